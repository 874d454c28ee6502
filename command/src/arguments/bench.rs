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

/// The benchmark's actions.
#[derive(Debug, Subcommand)]
pub enum BenchAction {
    /// Loads the tables of workloads into each engine and measures their transactions.
    Run(Box<RunArguments>),
    /// Reports the errors in workload files, with line and column; exit status 1 when there are any.
    Check(WorkloadArguments),
    /// Writes one offline HTML page with the results in one or more directories.
    Report(ReportArguments),
    /// Compares results with thresholds, and prints every cell below its threshold, with all its runs, and one line.
    /// Exit status 1 when a cell is below, missing or void.
    Thresholds(ThresholdsArguments),
    /// Runs the cells of results on a target that answers at once, to measure the clients' own cost, and compares with
    /// the fastest server. A table and one line; exit status 1 when clients are not as much faster as required.
    Null(NullArguments),
    /// Runs queries of the workload normal with our clients and with sysbench in turns on the same server. A table and
    /// one line; exit status 1 when the figures differ by more than the clients' costs explain.
    Sysbench(SysbenchArguments),
    /// Runs order entry with our clients and with go-tpc in turns on the same server, and go-tpc's check of our tables.
    /// A table and one line; exit status 1 when the rates don't agree or a condition does not hold.
    GoTpc(GoTpcArguments),
    /// Kills (kill -9) the server, or a process with the library, repeatedly while threads write; after each restart
    /// every acknowledged commit must be there, and no half of a transaction.
    Crash(Box<CrashArguments>),
    /// The process that `bench crash --target library` kills.
    #[command(hide = true)]
    CrashWriter(CrashWriterArguments),
    /// Loses power after every I/O of many small workloads on a simulated disk, in six ways, and again during recovery:
    /// every acknowledged change must be found, and nothing else.
    PowerLoss(PowerLossArguments),
    /// Runs schedules: sessions and the engine's own threads on a simulated disk, with random knobs, in an order that a
    /// seed decides. Only in builds for tests (feature `shaken`). One line; exit status 1 when one failed.
    #[cfg(feature = "shaken")]
    Schedules(SchedulesArguments),
    /// A process of `bench schedules`.
    #[cfg(feature = "shaken")]
    #[command(hide = true)]
    SchedulesHere(SchedulesHereArguments),
    /// Gives hostile input to every decoder of the formats, and whole damaged files to the engine: errors are allowed,
    /// panics and endless loops are not.
    Fuzz(FuzzArguments),
    /// Damages a database in memory: every bit of sampled parts of each kind, and stale and misplaced pages and log
    /// blocks. Each damage must be found, and must affect no more than necessary.
    BitFlips(CorruptionArguments),
    /// Makes every call to the (simulated) operating system fail, once and permanently, and the disk full at every
    /// point: statements get errors, the process does not abort, and no acknowledged change is lost.
    IoErrors(IoErrorsArguments),
    /// Fills disks with log, up to a random level: the engine refuses statements, and must resume by itself within ten
    /// seconds, with no acknowledged change lost. One line; exit status 1 when it did not, 69 where no file system can
    /// be mounted.
    FullDisk(FullDiskArguments),
    /// Flips bits of a simulated disk, and returns stale and misplaced writes: the engine must detect each, or it must
    /// have no effect.
    DiskFaults(DamageArguments),
    /// Runs the published anomaly scripts at every isolation level, a deadlock of two sessions, and an update of one
    /// row by two, on each engine. Prints each engine's behaviour.
    Behaviour(BehaviourArguments),
    /// Runs random concurrent transactions on few hot keys and checks that their reads and writes are allowed at their
    /// isolation level. One line per level; exit status 1 when they are not.
    Histories(HistoriesArguments),
    /// Moves money between accounts in two schemas while auditors sum all accounts at REPEATABLE READ: every sum must
    /// be right, also when the server is killed repeatedly.
    Bank(BankArguments),
    /// Compares Peregrine's library with LMDB, SQLite, redb and fjall, everything in memory: point reads by one thread
    /// and two, full scans beside a plain memory copy, every answer checked. A table and one line; exit status 1 when
    /// Peregrine is not as much faster as promised.
    Embedded(EmbeddedArguments),
    /// Runs generated SELECTs on InnoDB, and on Peregrine run by the engine and by the server: the answers must be the
    /// same. One line; exit status 1 when some differ.
    Pushdown(PushdownArguments),
    /// Runs random changes of one session on `InnoDB` and on Peregrine: errors, row counts, and the rows by every index
    /// must be the same. One line; exit status 1 when something differs.
    Changes(ChangesArguments),
    /// Runs the same random statements on random tables on `InnoDB` and on Peregrine: after each statement rows, error,
    /// warnings and the number of changed rows must be the same. Shortens each script that shows a difference. One
    /// line; exit status 1 when something differs.
    Differential(DifferentialArguments),
    /// Runs random statements of several sessions on servers with random settings, one after the other: each query has
    /// one answer in a snapshot, whatever its plan, and in the end all tables are sound. One line; exit status 1 when
    /// something is wrong.
    Statements(StatementsArguments),
    /// Runs scripts of statements that Peregrine once answered wrongly, or lost rows by, on InnoDB and on Peregrine:
    /// the answers must be the same. A line per script; exit status 1 when some differ.
    Answers(AnswersArguments),
    /// Updates one row with few and with many sessions, and closes a ring of sessions that wait for each other.
    Contention(ContentionArguments),
    /// Commits a transaction many times larger than the cache and rolls another back, while other sessions continue.
    LargeTransaction(LargeTransactionArguments),
    /// Holds a reader's snapshot open while writers update the same rows repeatedly.
    HeldSnapshot(HeldSnapshotArguments),
    /// Compares a join through a secondary key of data larger than the cache, row by row and in batches of keys, with
    /// `InnoDB`. One line; exit status 1 when batches are not twice as fast, or InnoDB's are faster.
    BatchedJoin(BatchedJoinArguments),
    /// Locks very many rows in one transaction without changing them, on Peregrine and `InnoDB`: checks that no other
    /// session gets one, and measures the locks' memory. One line; exit status 1 when a row is free, or memory exceeds
    /// 64 MB.
    LockedRows(LockedRowsArguments),
    /// Creates very many tables with a small cache on Peregrine and `InnoDB`, writes and reads each, restarts the
    /// server, and reads each. Time and memory in one line; exit status 1 when Peregrine takes more.
    ManyTables(ManyTablesArguments),
    /// Runs a mixed load on a server whose memory has a hard limit: the server must not be killed, and every answer
    /// must be right. One line; exit status 1 when it was killed or wrong, 69 where no such limit can be set.
    Memory(MemoryArguments),
    /// Runs points, ranges and scans of a table ten times larger than the caches, on Peregrine and `InnoDB`, both
    /// without the system's page cache. One line; exit status 1 when a query is not as much faster as required.
    LargerThanMemory(Box<LargerThanMemoryArguments>),
    /// Takes checkpoint after checkpoint while writers run at full load: measures how long transactions take, and what
    /// causes pauses. One line per target; exit status 1 when the engine caused pauses.
    CheckpointStalls(CheckpointStallsArguments),
    /// Kills a server at full load, when its log is longest: it must be ready again within
    /// peregrine_recovery_target_seconds.
    RecoveryTime(RecoveryTimeArguments),
    /// Runs a scan with a condition and three aggregates, through the library, with one thread and with several in
    /// turns. One line; exit status 1 when several threads are not as much faster as required.
    ScanThreads(ScanThreadsArguments),
}
