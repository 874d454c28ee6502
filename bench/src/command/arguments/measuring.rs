//! `peregrine bench run` and `report`: comparison of engines.

use std::path::PathBuf;

use clap::Args;

use peregrine_harness::command::arguments::MariadbdArguments;
use peregrine_harness::command::values::{
    bytes, parameter, percent, rate, seconds, warm_up, WarmUp,
};

/// Options that the results of a run store, and that `--resume` takes from there.
const SETTINGS: [&str; 18] = [
    "profile",
    "workload",
    "set",
    "engines",
    "queries",
    "threads",
    "rows",
    "seed",
    "cache",
    "protocol",
    "charset",
    "placement",
    "warm_up",
    "steady",
    "rate",
    "memory_limit",
    "run_time",
    "runs",
];

/// The measurements. Lists are separated by commas.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// quick (five engines within twelve minutes), standard (some hours), or paper (the published
    /// times) [default: quick].
    #[arg(long)]
    pub profile: Option<String>,
    /// Workloads: normal, join, oltp, orders, dvdstore, operations, load, all of them (all), or your own files ending
    /// in .toml.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "normal"
    )]
    pub workload: Vec<String>,
    /// A parameter of the workloads, such as rows=1000000; may be repeated.
    #[arg(long, value_name = "NAME=NUMBER", value_parser = parameter)]
    pub set: Vec<(String, i64)>,
    /// A running server instead of private ones: mysql://user:password@host:port/ or
    /// mysql://user:password@localhost/?socket=PATH. Only schemas called peregrine_bench_ENGINE are touched, and they
    /// are dropped at the end.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Engines to compare: innodb, myisam, aria, myrocks, peregrine [default: these]; and embedded stores, which need
    /// no server and run the queries of normal: peregrine-library, sqlite, lmdb, redb, fjall [default with --workload
    /// all: these, too]. With --url any that the server has [default: innodb].
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// Queries or transactions to run, by their names [default: all of the workloads].
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// The thread ladder [default: the profile's].
    #[arg(long, value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// The same as --set rows=NUMBER.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i64).range(1..))]
    pub rows: Option<i64>,
    /// Seed of the tables and of the queries' parameters.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of each engine's cache, e.g. 128M or 1G [default: 1G].
    #[arg(long, value_parser = bytes)]
    pub cache: Option<u64>,
    /// text, prepared or both: the protocol of statements to a server; embedded stores are called directly, and
    /// reported under the first of them.
    #[arg(long, default_value = "text")]
    pub protocol: String,
    /// The table's character set, e.g. latin1 (as published) or utf8mb4.
    #[arg(long, default_value = "latin1")]
    pub charset: String,
    /// paired (each client thread on one processor with its server thread) or free (as the scheduler decides) [default:
    /// paired; with --url free].
    #[arg(long)]
    pub placement: Option<String>,
    /// Warm-up before each cell, in seconds; or steady: until the rate of the last three seconds differs by no more
    /// than --steady percent, at most a minute [default: the profile's].
    #[arg(long, value_name = "SECONDS|steady", value_parser = warm_up)]
    pub warm_up: Option<WarmUp>,
    /// Warm up until the rate of the last three seconds differs by no more than this many percent; --warm-up is then
    /// the longest time [default with --warm-up steady: 5].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub steady: Option<f64>,
    /// An open loop: this many transactions a second are due in total, whatever the server does, and latencies count
    /// from when each was due [default: a closed loop, where each client waits for its answer].
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    pub rate: Option<f64>,
    /// A hard limit on the server's memory, including its files' cache, e.g. 512M: for data that do not fit. Needs the
    /// right to create a control group. Does not apply to embedded stores.
    #[arg(long, value_parser = bytes)]
    pub memory_limit: Option<u64>,
    /// Time of an effective run, in seconds [default: the profile's].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub run_time: Option<f64>,
    /// Effective runs per cell [default: 3].
    #[arg(long)]
    pub runs: Option<u32>,
    /// The directory of the results [default: a new one under target/bench; with --resume the latest].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Continue an interrupted run where it stopped, with its settings.
    #[arg(long, conflicts_with_all = SETTINGS)]
    pub resume: bool,
    /// Keep the directories of servers and embedded stores (with the data), or the schemas on a running server, after
    /// a complete run.
    #[arg(long)]
    pub keep_data: bool,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

impl Default for RunArguments {
    /// The defaults of all options.
    fn default() -> Self {
        RunArguments {
            profile: None,
            workload: vec!["normal".to_owned()],
            set: Vec::new(),
            url: None,
            engines: Vec::new(),
            queries: Vec::new(),
            threads: Vec::new(),
            rows: None,
            seed: 1,
            cache: None,
            protocol: "text".to_owned(),
            charset: "latin1".to_owned(),
            placement: None,
            warm_up: None,
            steady: None,
            rate: None,
            memory_limit: None,
            run_time: None,
            runs: None,
            out: None,
            resume: false,
            keep_data: false,
            mariadbd: MariadbdArguments::default(),
        }
    }
}

/// The report's input and output.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Directories with results, all in one report [default: target/bench/latest].
    #[arg(value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Compare the results in two directories: the changes are printed, and are on the page with both.
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with = "dirs")]
    pub compare: Vec<PathBuf>,
    /// html (a page), or md (tables for a README, printed unless --out is given).
    #[arg(long, default_value = "html")]
    pub format: String,
    /// The file to write [default: report.html in the first directory, or compare.html in AFTER].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The workload files to check.
#[derive(Debug, Args)]
pub struct WorkloadArguments {
    /// Workload files; docs/workloads.md describes their format.
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

/// The results and the thresholds.
#[derive(Debug, Args)]
pub struct ThresholdsArguments {
    /// A directory with results.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The thresholds: a TOML file; docs/benchmark.md describes its format.
    #[arg(long, value_name = "FILE")]
    pub thresholds: PathBuf,
}

/// The results to compare with, and the time of each cell.
#[derive(Debug, Args)]
pub struct NullArguments {
    /// A directory with results [default: target/bench/latest].
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Time of each cell, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "0.2", value_parser = seconds)]
    pub run_time: f64,
    /// How many times the rate of the fastest server cell the clients must reach.
    #[arg(long, default_value_t = 20.0)]
    pub minimum: f64,
}

/// Sizes of data and cache, and the required ratio.
#[derive(Debug, Args)]
pub struct LargerThanMemoryArguments {
    /// Rows of the table; a million take about 350 MB.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(i64).range(1..))]
    pub rows: i64,
    /// Size of each engine's cache, e.g. 32M.
    #[arg(long, default_value = "32M", value_parser = bytes)]
    pub cache: u64,
    /// Queries [default: points, ranges and a scan, six in all].
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// The thread ladder.
    #[arg(long, value_delimiter = ',', default_value = "1,4,16")]
    pub threads: Vec<u32>,
    /// The ratio to `InnoDB` that every cell must reach.
    #[arg(long, default_value_t = 1.5)]
    pub minimum: f64,
    /// Warm-up before each cell, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds)]
    pub warm_up: f64,
    /// Time of an effective run, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub run_time: f64,
    /// Effective runs per cell; the best counts.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub runs: u32,
    /// Seed of the table and of the queries' parameters.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The directory of the results [default: a new one under target/bench].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

/// Options of `peregrine bench embedded`.
#[derive(Debug, Args)]
pub struct EmbeddedArguments {
    /// Stores: peregrine, lmdb, sqlite, redb, fjall [default: all of them]. Without peregrine there is no promise to
    /// check.
    #[arg(long, value_delimiter = ',')]
    pub stores: Vec<String>,
    /// Rows of the table.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub rows: u32,
    /// Numbers of threads that read.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..=512))]
    pub threads: Vec<u32>,
    /// Time of each run, in seconds.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub seconds: f64,
    /// Runs of each store in each discipline, in turns; the best counts, and all are shown.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub runs: u32,
    /// Seed of the rows and of the ids that are read.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of each store's cache, which must hold everything, e.g. 1G.
    #[arg(long, default_value = "1G", value_parser = bytes)]
    pub cache: u64,
}

/// The engines and the output.
#[derive(Debug, Args)]
pub struct BehaviourArguments {
    /// Engines to compare, separated by commas: innodb, myisam, aria, myrocks, peregrine [default:
    /// innodb,myrocks,peregrine]. InnoDB gets two columns, with innodb_snapshot_isolation off and on.
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// How often the deadlock is run; the median counts.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub deadlocks: u32,
    /// The directory of the findings; with results of `bench run` there, one report shows both [default: a new one
    /// under target/bench].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}
