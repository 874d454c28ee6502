//! `peregrine bench sysbench` and `go-tpc`: our clients compared with others.

use clap::Args;

use peregrine_harness::command::arguments::{HostArguments, MariadbdArguments};
use peregrine_harness::command::values::{bytes, percent, seconds};

/// The queries, and their times. Lists are separated by commas.
#[derive(Debug, Args)]
pub struct SysbenchArguments {
    /// The engine: innodb, myisam, aria, myrocks or peregrine.
    #[arg(long, default_value = "innodb")]
    pub engine: String,
    /// Queries of the workload normal.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "READ_PK_POINT,READ_KEY_POINT_LIMIT,READ_PK_RANGE"
    )]
    pub queries: Vec<String>,
    /// Numbers of sessions.
    #[arg(long, value_delimiter = ',', default_value = "1,4", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: Vec<u32>,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// text or prepared: the protocol of statements.
    #[arg(long, default_value = "text")]
    pub protocol: String,
    /// Seconds of a turn.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub run_time: u64,
    /// Turns of each client after a warm-up turn; their median counts.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// The most that the figures may differ, in percent of sysbench's.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent)]
    pub within: f64,
    /// The tables and the server.
    #[command(flatten)]
    pub on: BothAskArguments,
}

/// The engines, and their times. Lists are separated by commas.
#[derive(Debug, Args)]
pub struct GoTpcArguments {
    /// Engines on which go-tpc checks the tables of the workload orders.
    #[arg(long, value_delimiter = ',', default_value = "innodb,peregrine")]
    pub engines: Vec<String>,
    /// Those engines on which go-tpc also runs its own order entry.
    #[arg(long, value_delimiter = ',', default_value = "innodb")]
    pub compare: Vec<String>,
    /// Warehouses.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub warehouses: u32,
    /// Sessions.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: u32,
    /// text or prepared: the protocol of our statements; go-tpc's are prepared.
    #[arg(long, default_value = "prepared")]
    pub protocol: String,
    /// Seconds of a turn.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub run_time: f64,
    /// Turns of each client after a warm-up turn; their median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// The most that the rates may differ, in percent of go-tpc's.
    #[arg(long, value_name = "PERCENT", default_value = "20", value_parser = percent)]
    pub within: f64,
    /// The tables and the server.
    #[command(flatten)]
    pub on: BothAskArguments,
}

/// The tables and server that both clients use.
#[derive(Debug, Args)]
pub struct BothAskArguments {
    /// Seed of our tables and parameters.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of each engine's cache, e.g. 1G.
    #[arg(long, default_value = "1G", value_parser = bytes)]
    pub cache: u64,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

impl BothAskArguments {
    /// The server to start.
    #[must_use]
    pub fn host(&self) -> HostArguments {
        HostArguments {
            cache: self.cache,
            mariadbd: self.mariadbd.clone(),
        }
    }
}
