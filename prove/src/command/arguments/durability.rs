//! `peregrine prove power-loss`, `io-errors`, `disk-faults`, `crash`, `bit-flips` and `fuzz`: proofs of durability.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use peregrine_prove::simulated::work::Workloads;

use peregrine_harness::command::arguments::MariadbdArguments;
use peregrine_harness::command::values::{bytes, seconds};

/// Options that all proofs on a simulated disk have.
#[derive(Debug, Args)]
pub struct SimulationArguments {
    /// Seed of the workloads and of the faults.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Length of the workloads, in percent of the normal length.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub size: u32,
    /// Only the workload of this number, to repeat a failure.
    #[arg(long, value_name = "NUMBER")]
    pub workload: Option<u64>,
    /// Threads that work at the same time [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: Option<u32>,
}

impl SimulationArguments {
    /// Returns the one workload asked for, or else `count` workloads.
    #[must_use]
    pub fn workloads(&self, count: u64) -> Workloads {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let one_a_core = || u32::try_from(cores()).unwrap_or(1);
        Workloads {
            count,
            only: self.workload,
            seed: self.seed,
            size: self.size,
            threads: self.threads.unwrap_or_else(one_a_core),
            stop_when_found: false,
        }
    }
}

/// The number of power losses.
#[derive(Debug, Args)]
pub struct PowerLossArguments {
    /// Adds workloads until there are this many crash images.
    #[arg(long, default_value_t = 100_000)]
    pub images: u64,
    /// The least number of workloads.
    #[arg(long, default_value_t = 108, value_parser = clap::value_parser!(u64).range(1..))]
    pub workloads: u64,
    /// Only this moment of the workload.
    #[arg(long, value_name = "NUMBER", requires = "workload")]
    pub moment: Option<u64>,
    /// The simulation.
    #[command(flatten)]
    pub simulation: SimulationArguments,
}

/// How many calls fail.
#[derive(Debug, Args)]
pub struct IoErrorsArguments {
    /// Workloads, each with every fault.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..))]
    pub workloads: u64,
    /// Tries one fault out of so many; 1 tries all.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub stride: u64,
    /// The simulation.
    #[command(flatten)]
    pub simulation: SimulationArguments,
}

/// How often a disk is filled.
#[derive(Debug, Args)]
pub struct FullDiskArguments {
    /// Disks that are filled, one after another.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub times: u32,
    /// Seed of the disks' first level, and of the changes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The kind of disk. Mounting a file system needs the right to do so.
    #[arg(long, value_enum, default_value_t)]
    pub disk: FullDiskKind,
}

/// A disk to be filled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FullDiskKind {
    /// A simulated one, which loses power at the end.
    #[default]
    Simulated,
    /// A file system in memory.
    Tmpfs,
    /// A file system in a file.
    Ext4,
}

/// The amount of damage.
#[derive(Debug, Args)]
pub struct DamageArguments {
    /// Workloads whose disks are damaged.
    #[arg(long, default_value_t = 108, value_parser = clap::value_parser!(u64).range(1..))]
    pub workloads: u64,
    /// The simulation.
    #[command(flatten)]
    pub simulation: SimulationArguments,
}

/// Options of `peregrine prove crash`.
#[derive(Debug, Args)]
pub struct CrashArguments {
    /// The target of the kills: a server, or a process with the library.
    #[arg(long, value_enum, default_value_t)]
    pub target: CrashTarget,
    /// The engine of the server's tables: innodb, myrocks or peregrine.
    #[arg(long, default_value = "peregrine")]
    pub engine: String,
    /// The number of kills.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub kills: u32,
    /// Kill until this time has passed, in seconds, instead of a number of kills.
    #[arg(long, value_name = "SECONDS", conflicts_with = "kills", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub duration: Option<u64>,
    /// Writing threads.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub threads: u32,
    /// Seed of the transactions and of the times between kills.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of the server's cache, e.g. 128M. (The library's cache and log are 1M, so that crashes hit evictions and
    /// checkpoints.)
    #[arg(long, default_value = "128M", value_parser = bytes)]
    pub cache: u64,
    /// The directory, which must not exist yet; kept after a failure [default: a new one under target/bench].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}

/// The target of the kills.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CrashTarget {
    /// A private MariaDB server.
    #[default]
    Server,
    /// A process with the library.
    Library,
}

/// Options of the process that is killed.
#[derive(Debug, Args)]
pub struct CrashWriterArguments {
    /// The database's directory.
    pub dir: PathBuf,
    /// Writing threads.
    #[arg(long)]
    pub threads: u32,
    /// Seed of the transactions.
    #[arg(long)]
    pub seed: u64,
    /// The round.
    #[arg(long)]
    pub round: u32,
}

/// The amount of damage.
#[derive(Debug, Args)]
pub struct CorruptionArguments {
    /// Parts of each kind of which every bit is flipped, one at a time.
    #[arg(long, default_value_t = 200)]
    pub samples: usize,
    /// Parts of each kind after whose damage the database is checked, opened, read and dumped.
    #[arg(long, default_value_t = 25)]
    pub planted: usize,
    /// Seed of the content, and of the parts chosen.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The decoders, and the time for each.
#[derive(Debug, Args)]
pub struct FuzzArguments {
    /// Targets, separated by commas: page, header, log, catalog, row, key, files [default: all].
    #[arg(long, value_delimiter = ',')]
    pub target: Vec<String>,
    /// Ends each target after this many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub duration: f64,
    /// Ends each target after this many executions, if that is earlier.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub executions: Option<u64>,
    /// Seed of the mutations.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The directory of kept inputs [default: prove/corpus].
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Takes inputs from a database and adds them to the corpus instead.
    #[arg(long)]
    pub write_corpus: bool,
}
