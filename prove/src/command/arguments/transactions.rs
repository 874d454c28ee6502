//! `peregrine prove histories`, `bank`, `pushdown`, `changes`, `differential`, `statements` and `answers`:
//! isolation of sessions, and right answers.

use clap::Args;

use peregrine_harness::command::arguments::{HostArguments, MariadbdArguments};
use peregrine_harness::command::values::seconds;

/// The histories to run.
#[derive(Debug, Args)]
pub struct HistoriesArguments {
    /// library (in this process, on a simulated disk) or server (a private one).
    #[arg(long, default_value = "library")]
    pub target: String,
    /// With --target server: innodb, myrocks or peregrine.
    #[arg(long, default_value = "peregrine")]
    pub engine: String,
    /// Isolation levels, separated by commas: read-uncommitted, read-committed, repeatable-read,
    /// serializable [default: all but the first].
    #[arg(long, value_delimiter = ',')]
    pub level: Vec<String>,
    /// Committed transactions of each level [default: 20000, or as many as --duration allows].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    /// Seed of the transactions and of the crashes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Ends each level after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Threads, each with a session.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub threads: u32,
    /// Transactions on the same keys before they are checked and new keys are taken.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub window: u64,
    /// One window in this many is interrupted by a crash (the library loses power, the server gets kill -9); 0: none.
    #[arg(long, default_value_t = 10)]
    pub crash_every: u32,
    /// A statement to run in every session of a server, e.g. SET SESSION innodb_snapshot_isolation=ON;
    /// may be repeated.
    #[arg(long, value_name = "STATEMENT")]
    pub prepare: Vec<String>,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

/// The load of `peregrine prove bank`.
#[derive(Debug, Args)]
pub struct BankArguments {
    /// The engine of the tables: innodb, myrocks or peregrine.
    #[arg(long, default_value = "peregrine")]
    pub engine: String,
    /// Threads that move money; two more audit.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: u32,
    /// The time, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub duration: f64,
    /// Kills the server (kill -9) each time this many seconds have passed.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub kill_every: Option<f64>,
    /// Seed of the transfers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// A statement to run in every session, e.g. SET SESSION innodb_snapshot_isolation=ON; may be
    /// repeated.
    #[arg(long, value_name = "STATEMENT")]
    pub prepare: Vec<String>,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// Options of `peregrine prove pushdown`.
#[derive(Debug, Args)]
pub struct PushdownArguments {
    /// Queries.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub queries: u64,
    /// Seed of tables, queries and changes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// Options of `peregrine prove changes`.
#[derive(Debug, Args)]
pub struct ChangesArguments {
    /// Statements.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub statements: u64,
    /// Seed of rows and statements.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// Options of `peregrine prove differential`.
#[derive(Debug, Args)]
pub struct DifferentialArguments {
    /// Statements.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub statements: u64,
    /// Seed of tables and statements.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Number of the first script, to repeat a script of an earlier run.
    #[arg(long, default_value_t = 0)]
    pub first: u64,
    /// Ends after this many scripts with a difference.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub differences: u32,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}

/// Options of `peregrine prove statements`.
#[derive(Debug, Args)]
pub struct StatementsArguments {
    /// The total number of statements.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub statements: u64,
    /// Seconds after which no further server is started.
    #[arg(long, default_value = "86400", value_parser = seconds)]
    pub duration: f64,
    /// Statements after which a server is stopped, and another is started with other settings.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub statements_a_life: u64,
    /// Sessions: half of them write, and the others read.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub sessions: u32,
    /// The engine of the tables.
    #[arg(long, default_value = "peregrine")]
    pub engine: String,
    /// Seed of the first server's settings and statements.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The servers' plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

/// Options of `peregrine prove answers`.
#[derive(Debug, Args)]
pub struct AnswersArguments {
    /// Scripts, separated by commas [default: all].
    #[arg(long, value_name = "SCRIPT", value_delimiter = ',')]
    pub case: Vec<String>,
    /// The server.
    #[command(flatten)]
    pub host: HostArguments,
}
