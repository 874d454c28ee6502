//! The command line: the actions and their options.
//!
//! | file | holds |
//! |---|---|
//! | `measuring.rs` | comparison of engines |
//! | `cross_check.rs` | comparison of our clients with sysbench and go-tpc |
//! | `stress.rs` | load, large transactions, pauses, the time of recovery |

mod cross_check;
mod measuring;
mod stress;

use clap::{Parser, Subcommand};

pub use self::cross_check::{GoTpcArguments, SysbenchArguments};
pub use self::measuring::{
    BehaviourArguments, EmbeddedArguments, LargerThanMemoryArguments, NullArguments,
    ReportArguments, RunArguments, ThresholdsArguments, WorkloadArguments,
};
pub use self::stress::{
    BatchedJoinArguments, CheckpointStallsArguments, ContentionArguments, HeldSnapshotArguments,
    LargeTransactionArguments, LockedRowsArguments, ManyTablesArguments, MemoryArguments,
    RecoveryTimeArguments, ScanThreadsArguments,
};

/// Measurements: engines and embedded stores beside each other, on many workloads.
#[derive(Debug, Parser)]
#[command(name = "peregrine-bench", bin_name = "peregrine bench", version)]
pub struct Arguments {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// The measurements.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Loads the tables of workloads into each engine and measures their transactions.
    Run(Box<RunArguments>),
    /// Reports the errors in workload files, with line and column; exit status 1 when there are any.
    CheckWorkload(WorkloadArguments),
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
    /// Runs the published anomaly scripts at every isolation level, a deadlock of two sessions, and an update of one
    /// row by two, on each engine. Prints each engine's behaviour.
    Behaviour(BehaviourArguments),
    /// Compares Peregrine's library with LMDB, SQLite, redb and fjall, everything in memory: point reads by one thread
    /// and two, full scans beside a plain memory copy, every answer checked. A table and one line; exit status 1 when
    /// Peregrine is not as much faster as promised.
    Embedded(EmbeddedArguments),
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
