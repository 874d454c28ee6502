//! `peregrine bench`.

use clap::Subcommand;

use super::cross_check::{GoTpcArguments, SysbenchArguments};
use super::durability::{
    CorruptionArguments, CrashArguments, CrashWriterArguments, DamageArguments, FullDiskArguments,
    FuzzArguments, IoErrorsArguments, PowerLossArguments,
};
use super::measuring::{
    EmbeddedArguments, LargerThanMemoryArguments, NullArguments, ReportArguments, RunArguments,
    ThresholdsArguments, WorkloadArguments,
};
#[cfg(feature = "shaken")]
use super::schedules::SchedulesArguments;
#[cfg(feature = "shaken")]
use super::schedules::SchedulesHereArguments;
use super::stress::{
    BatchedJoinArguments, CheckpointStallsArguments, ContentionArguments, HeldSnapshotArguments,
    LargeTransactionArguments, LockedRowsArguments, ManyTablesArguments, MemoryArguments,
    RecoveryTimeArguments, ScanThreadsArguments,
};
use super::transactions::{
    AnswersArguments, BankArguments, BehaviourArguments, ChangesArguments, DifferentialArguments,
    HistoriesArguments, PushdownArguments, StatementsArguments,
};

/// What the benchmark can do.
#[derive(Debug, Subcommand)]
pub enum BenchAction {
    /// Loads the tables of workloads into each engine and measures their transactions.
    Run(Box<RunArguments>),
    /// Says what is wrong with workload files, with line and column; exit status 1 when something is.
    Check(WorkloadArguments),
    /// Makes one offline HTML page of the results in one or more directories.
    Report(ReportArguments),
    /// Holds results against what they must reach: every cell that is below, with all its runs, and one
    /// line. Exit status 1 when something is below, missing or void.
    Thresholds(ThresholdsArguments),
    /// Runs the cells of results on a target that answers at once: what clients cost by themselves, beside
    /// the fastest server. A table and one line; exit status 1 when they are not so much faster.
    Null(NullArguments),
    /// Queries of the workload normal, asked by our clients and by sysbench in turns on the same server. A table
    /// and one line; exit status 1 when their figures neither agree nor differ by what the clients cost.
    Sysbench(SysbenchArguments),
    /// Order entry by our clients and by go-tpc in turns on the same server, and go-tpc's check of our tables. A
    /// table and one line; exit status 1 when the rates don't agree or a condition does not hold.
    GoTpc(GoTpcArguments),
    /// Kills the server, or a process with the library, (kill -9) again and again while threads write;
    /// after each restart every acknowledged commit must be there, and no half of a transaction.
    Crash(Box<CrashArguments>),
    /// The process that `bench crash --target library` kills.
    #[command(hide = true)]
    CrashWriter(CrashWriterArguments),
    /// Loses power after every I/O of many small workloads on a simulated disk, in six ways, and again
    /// during the recoveries: every acknowledged change must be found, and nothing else.
    PowerLoss(PowerLossArguments),
    /// Plays schedules: sessions and the engine's own threads on a simulated disk, with knobs drawn at random, in an
    /// order that a seed decides. Only in builds for tests (feature `shaken`). One line; exit status 1 when one failed.
    #[cfg(feature = "shaken")]
    Schedules(SchedulesArguments),
    /// The processes of `bench schedules`.
    #[cfg(feature = "shaken")]
    #[command(hide = true)]
    SchedulesHere(SchedulesHereArguments),
    /// Gives hostile input to every decoder of the formats, and whole damaged files to the engine:
    /// errors are allowed, panics and endless loops are not.
    Fuzz(FuzzArguments),
    /// Damages a database in memory: every bit of sampled parts of each kind, stale and misplaced
    /// pages and log blocks; each must be found, and must not reach further than it has to.
    BitFlips(CorruptionArguments),
    /// Lets every call to the (simulated) operating system fail, once and for good, and the disk be full
    /// at every point: errors for statements, no abort, nothing lost, no false acknowledgement.
    IoErrors(IoErrorsArguments),
    /// Fills disks with log, up to a level of chance: statements are refused, and the database must go on by
    /// itself within ten seconds, with nothing acknowledged lost. One line; exit status 1 when it did not,
    /// 69 where no file system can be mounted.
    FullDisk(FullDiskArguments),
    /// Flips bits of a simulated disk, and gives back stale and misplaced writes: each must be noticed,
    /// or not matter.
    DiskFaults(DamageArguments),
    /// Plays the published anomaly scripts at every isolation level, the deadlock of two sessions and
    /// the update of one row by two, on each engine, and prints who does what.
    Behaviour(BehaviourArguments),
    /// Runs random concurrent transactions on few hot keys and checks that what they saw and did is
    /// what their isolation level allows. One line a level; exit status 1 when it is not.
    Histories(HistoriesArguments),
    /// Moves money between accounts in two schemas while auditors sum all of it at REPEATABLE READ:
    /// every sum must be right, also when the server is killed again and again.
    Bank(BankArguments),
    /// Peregrine's library beside LMDB, SQLite, redb and fjall, everything in memory: point reads by one
    /// thread and two, full scans beside a plain memory copy, every answer checked. A table and one line;
    /// exit status 1 when Peregrine is not as much faster as promised.
    Embedded(EmbeddedArguments),
    /// Asks generated SELECTs of InnoDB, and of Peregrine with the engine and with the server running
    /// them: the answers must be the same. One line; exit status 1 when some differ.
    Pushdown(PushdownArguments),
    /// Random changes of one session, each run on `InnoDB` and on Peregrine: errors, numbers of rows, and the rows by
    /// every index must be the same. One line; exit status 1 when something differs.
    Changes(ChangesArguments),
    /// Random tables and random statements, the same on `InnoDB` and on Peregrine: after each statement rows, error,
    /// warnings and the number of changed rows must be the same. A script that shows a difference is made short. One
    /// line; exit status 1 when something differs.
    Differential(DifferentialArguments),
    /// Random statements of several sessions on servers with random settings, one after the other: each query has one
    /// answer in a snapshot, whatever its plan, and in the end all tables are sound. One line; exit status 1 when
    /// something is wrong.
    Statements(StatementsArguments),
    /// Plays scripts of statements that Peregrine once answered wrongly, or lost rows by, on InnoDB and on
    /// Peregrine: the answers must be the same. A line a script; exit status 1 when some differ.
    Answers(AnswersArguments),
    /// One row updated by few and by many sessions, and a ring of sessions that wait for each other.
    Contention(ContentionArguments),
    /// A transaction many times larger than the cache commits and another rolls back, while other
    /// sessions go on.
    LargeTransaction(LargeTransactionArguments),
    /// A reader's snapshot held open while writers update the same rows again and again.
    HeldSnapshot(HeldSnapshotArguments),
    /// A join through a secondary key of data larger than the cache, row by row and by batches of keys, Peregrine beside
    /// `InnoDB`. One line; exit status 1 when batches are not twice as fast, or InnoDB's are faster.
    BatchedJoin(BatchedJoinArguments),
    /// Very many rows that one transaction locks and does not change, Peregrine beside `InnoDB`: whether others get
    /// none of them, and what memory the locks take. One line; exit status 1 when one is free, or it is over 64 MB.
    LockedRows(LockedRowsArguments),
    /// Very many tables with a small cache, Peregrine beside `InnoDB`: made, each written and read, the server
    /// started again, each read. Time and memory in one line; exit status 1 when Peregrine takes more.
    ManyTables(ManyTablesArguments),
    /// A mixed load on a server whose memory has a hard limit: not killed, every answer right. One line;
    /// exit status 1 when it was not so, 69 where no such limit can be set.
    Memory(MemoryArguments),
    /// Points, ranges and scans of a table that the caches hold a tenth of, Peregrine beside `InnoDB`, both
    /// reading past the system's page cache. One line; exit status 1 when a query is not so much faster.
    LargerThanMemory(Box<LargerThanMemoryArguments>),
    /// Checkpoint after checkpoint beside writers at full load: how long their transactions take, and
    /// whose the pauses are. One line a target; exit status 1 when the engine made them pause.
    CheckpointStalls(CheckpointStallsArguments),
    /// A server killed at full load, when its log is longest: ready again in the time that
    /// peregrine_recovery_target_seconds says.
    RecoveryTime(RecoveryTimeArguments),
    /// A scan with a condition and three aggregates, through the library, by one thread and by several
    /// in turns. One line; exit status 1 when several are not as much faster as asked for.
    ScanThreads(ScanThreadsArguments),
}
