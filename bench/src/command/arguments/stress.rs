//! `peregrine bench contention`, `large-transaction`, `held-snapshot`, `memory`,
//! `checkpoint-stalls`, `recovery-time`, `scan-threads`, `locked-rows` and `batched-join`: the engine under stress.

use clap::Args;

use peregrine_harness::command::arguments::{HostArguments, MariadbdArguments};
use peregrine_harness::command::values::{bytes, seconds};

/// The load of `peregrine bench contention`.
#[derive(Debug, Args)]
pub struct ContentionArguments {
    /// Engines to compare: innodb, myrocks, peregrine [default: innodb,peregrine].
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// Few sessions at the hot row.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    pub few: u32,
    /// Many sessions at the hot row.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4_000))]
    pub many: u32,
    /// Sessions in the ring.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=4_000))]
    pub ring: u32,
    /// Time of each run, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub duration: f64,
    /// Runs of each engine at each number of sessions; the best counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The size of the transaction.
#[derive(Debug, Args)]
pub struct LargeTransactionArguments {
    /// The engine: innodb, myrocks or peregrine.
    #[arg(long, default_value = "peregrine")]
    pub engine: String,
    /// Rows of each of the two transactions.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub rows: u64,
    /// Other sessions, which update rows of their own.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub others: u32,
    /// The most memory that the server may take, e.g. 512M.
    #[arg(long, default_value = "384M", value_parser = bytes)]
    pub memory: u64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The snapshot and the load.
#[derive(Debug, Args)]
pub struct HeldSnapshotArguments {
    /// Engines, each on a server of its own: innodb, myrocks, peregrine [default: peregrine,innodb].
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// Rows of the table.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Writers.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub writers: u32,
    /// How long the snapshot is held, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub duration: f64,
    /// The most that memory, and disk, may grow meanwhile, e.g. 1G.
    #[arg(long, default_value = "2G", value_parser = bytes)]
    pub growth: u64,
    /// The most seconds for the reader's last read, and then for the release of space.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub patience: f64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The memory limit, and the time.
#[derive(Debug, Args)]
pub struct MemoryArguments {
    /// The time, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    pub duration: f64,
    /// The limit, e.g. 384M [default: the server's own memory, one and a half times the cache, and 160M].
    #[arg(long, value_parser = bytes)]
    pub limit: Option<u64>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The load and the checkpoints.
#[derive(Debug, Args)]
pub struct CheckpointStallsArguments {
    /// library (in this process) and server (a private one).
    #[arg(long, value_delimiter = ',', default_value = "library,server")]
    pub targets: Vec<String>,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Writers.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub writers: u32,
    /// The time for each target, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub duration: f64,
    /// Seconds from the end of a checkpoint to the start of the next.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    pub between: f64,
    /// A transaction that takes longer counts as a pause, in milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value = "100", value_parser = seconds)]
    pub limit: f64,
    /// The server, and the library's cache.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The load and the kills.
#[derive(Debug, Args)]
pub struct RecoveryTimeArguments {
    /// The most seconds from start to ready: peregrine_recovery_target_seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub target: u32,
    /// The number of kills.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub kills: u32,
    /// The longest that the writers write before a kill, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub duration: f64,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Writers.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub writers: u32,
    /// Neighbouring rows that one statement updates.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rows_a_statement: u32,
    /// Rows that another transaction has inserted, and not committed, at each kill.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    pub open_rows: u32,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The sizes of the joined tables.
#[derive(Debug, Args)]
pub struct BatchedJoinArguments {
    /// Rows of each of the two tables.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rows: u64,
    /// Size of each engine's cache, e.g. 32M; a million rows take about 100 MB.
    #[arg(long, default_value = "32M", value_parser = bytes)]
    pub cache: u64,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

/// The number of locked rows.
#[derive(Debug, Args)]
pub struct LockedRowsArguments {
    /// Rows.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pub rows: u64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The number of tables.
#[derive(Debug, Args)]
pub struct ManyTablesArguments {
    /// Tables.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub tables: u32,
    /// The servers.
    #[command(flatten)]
    pub host: HostArguments,
}

/// The table, and the number of threads that scan it.
#[derive(Debug, Args)]
pub struct ScanThreadsArguments {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Threads of a parallel scan, which is compared with one thread.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub threads: u32,
    /// Scans with one thread, and as many with several, in turns; the best of each counts.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// How many times as fast as one thread the threads must be.
    #[arg(long, value_name = "TIMES", default_value_t = 1.8)]
    pub minimum: f64,
    /// Size of the cache, which must hold everything, e.g. 1G.
    #[arg(long, default_value = "1G", value_parser = bytes)]
    pub cache: u64,
}
