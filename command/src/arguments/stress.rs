//! `peregrine bench contention`, `large-transaction`, `held-snapshot`, `memory`,
//! `checkpoint-stalls`, `recovery-time`, `scan-threads`, `locked-rows` and `batched-join`: the engine under stress.

use clap::Args;

use super::host::{HostArguments, MariadbdArguments};
use super::values::{bytes, seconds};

/// How sessions contend.
#[derive(Debug, Args)]
pub struct ContentionArguments {
    /// Engines beside each other: innodb, myrocks, peregrine [default: innodb,peregrine].
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

/// How large the transaction is.
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

/// How the snapshot is held.
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
    /// How long the reader's last look may take, and then how long space may take to be given back, in
    /// seconds.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub patience: f64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// How much memory the server may take, and for how long it must do with it.
#[derive(Debug, Args)]
pub struct MemoryArguments {
    /// How long, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    pub duration: f64,
    /// The limit, e.g. 384M [default: what the server takes alone, one and a half times the cache, and
    /// 160M].
    #[arg(long, value_parser = bytes)]
    pub limit: Option<u64>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// How checkpoints meet writers.
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
    /// How long, in seconds, for each target.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub duration: f64,
    /// From the end of a checkpoint to the beginning of the next, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    pub between: f64,
    /// A transaction that takes longer is a pause, in milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value = "100", value_parser = seconds)]
    pub limit: f64,
    /// The server, and the cache of the library too.
    #[command(flatten)]
    pub host: HostArguments,
}

/// When and how often the server is killed.
#[derive(Debug, Args)]
pub struct RecoveryTimeArguments {
    /// Seconds from start to ready that are asked for: peregrine_recovery_target_seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    pub target: u32,
    /// Kills.
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

/// How large the tables are that are joined.
#[derive(Debug, Args)]
pub struct BatchedJoinArguments {
    /// Rows of each of the two tables.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rows: u64,
    /// Size of each engine's cache, e.g. 32M; a million rows are some 100 MB.
    #[arg(long, default_value = "32M", value_parser = bytes)]
    pub cache: u64,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

/// How many rows are locked.
#[derive(Debug, Args)]
pub struct LockedRowsArguments {
    /// Rows.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pub rows: u64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// How many tables there are.
#[derive(Debug, Args)]
pub struct ManyTablesArguments {
    /// Tables.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub tables: u32,
    /// The servers.
    #[command(flatten)]
    pub host: HostArguments,
}

/// What is scanned, and by how many threads.
#[derive(Debug, Args)]
pub struct ScanThreadsArguments {
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Threads of a scan, beside one.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub threads: u32,
    /// Scans by one thread, and as many by several, in turns; the best of each counts.
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// How many times as fast as one thread several must be.
    #[arg(long, value_name = "TIMES", default_value_t = 1.8)]
    pub minimum: f64,
    /// Size of the cache, which must hold everything, e.g. 1G.
    #[arg(long, default_value = "1G", value_parser = bytes)]
    pub cache: u64,
}
