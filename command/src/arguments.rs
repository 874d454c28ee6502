//! What can be typed: the command's actions and their options.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use peregrine_suite::simulated::work::Workloads;

/// Peregrine: a private MariaDB with the engine in it, and the benchmark that compares engines.
#[derive(Debug, Parser)]
#[command(name = "peregrine", version)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub action: Action,
}

impl Arguments {
    /// Reads the command line. What is wrong with it is told, with all that is allowed, and ends the
    /// program.
    #[must_use]
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            let known = match error.kind() {
                ErrorKind::UnknownArgument => allowed(|command| {
                    let options = command.get_arguments().filter_map(clap::Arg::get_long);
                    let mut names: Vec<String> = options.map(|name| format!("--{name}")).collect();
                    names.extend(["--help".to_owned()]);
                    ("options", names)
                }),
                ErrorKind::InvalidSubcommand => allowed(|command| {
                    let actions = command.get_subcommands().map(clap::Command::get_name);
                    ("actions", actions.map(str::to_owned).collect())
                }),
                _ => None,
            };
            if let Some(known) = known {
                // Without standard error there is nobody to tell it.
                let _ = error.print();
                eprintln!("{known}");
                std::process::exit(2);
            }
            error.exit()
        })
    }
}

/// What the innermost action on the command line allows.
fn allowed(names: impl Fn(&clap::Command) -> (&'static str, Vec<String>)) -> Option<String> {
    let mut command = Arguments::command();
    let mut path = command.get_name().to_owned();
    for word in std::env::args().skip(1) {
        let Some(next) = command.find_subcommand(&word).cloned() else {
            break;
        };
        path = format!("{path} {word}");
        command = next;
    }
    let (what, names) = names(&command);
    (!names.is_empty()).then(|| format!("\nThe {what} of {path}: {}", names.join(", ")))
}

/// The command's actions.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// A private MariaDB server with the Peregrine plug-in.
    #[command(subcommand)]
    Server(ServerAction),
    /// The benchmark: engines side by side on table `normal`.
    #[command(subcommand)]
    Bench(BenchAction),
    /// Verifies the files of a database that is not in use: checksums, tree order, and that every
    /// index entry has its row and the reverse. Exit status 1 when something is wrong.
    Check(CheckArguments),
    /// Writes out, as SQL or CSV, all that can still be read of a database that is not in use, also
    /// of a damaged or crashed one, which is left as it is. What is missing is told on standard
    /// error: which rows, which file and page, and why; exit status 1 then.
    Dump(DumpArguments),
}

/// What to verify.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The database's directory; with MariaDB it is `#peregrine` in the data directory.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// What to write out.
#[derive(Debug, Args)]
pub struct DumpArguments {
    /// The database's directory; with MariaDB it is `#peregrine` in the data directory.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Only this table; of the server's tables the name is database/table.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// sql (statements that MariaDB loads) or csv (a file a table).
    #[arg(long, value_enum, default_value_t = DumpFormat::Sql)]
    pub format: DumpFormat,
    /// The file to write, which must not exist; for CSV of several tables a directory [default:
    /// standard output].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What rows are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DumpFormat {
    /// Statements that MariaDB loads.
    Sql,
    /// Lines of values separated by commas.
    Csv,
}

/// What can be done with the private server.
#[derive(Debug, Subcommand)]
pub enum ServerAction {
    /// Starts it, creating its directory on first use.
    Start(StartArguments),
    /// Stops it in order.
    Stop(ServerPlace),
    /// Opens the ordinary client, or runs the statement given.
    Sql(SqlArguments),
    /// Says whether it runs.
    Status(ServerPlace),
}

/// Which private server.
#[derive(Debug, Args)]
pub struct ServerPlace {
    /// The server's directory [default: target/server].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// How to start the private server.
#[derive(Debug, Args)]
pub struct StartArguments {
    /// Which server.
    #[command(flatten)]
    pub place: ServerPlace,
    /// The Peregrine plug-in [default: target/plugin/ha_peregrine.so, if it is there].
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Another plug-in of the server's own to load, e.g. ha_rocksdb; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub load: Vec<String>,
    /// Options for mariadbd, after `--`.
    #[arg(last = true, value_name = "MARIADBD OPTION")]
    pub options: Vec<String>,
}

/// What to ask the private server.
#[derive(Debug, Args)]
pub struct SqlArguments {
    /// Which server.
    #[command(flatten)]
    pub place: ServerPlace,
    /// The statement to run; without one the client opens.
    #[arg(value_name = "STATEMENT")]
    pub statement: Option<String>,
    /// Options for the client, after `--`.
    #[arg(last = true, value_name = "CLIENT OPTION")]
    pub options: Vec<String>,
}

/// What the benchmark can do.
#[derive(Debug, Subcommand)]
pub enum BenchAction {
    /// Loads table `normal` into each engine and measures the thirteen queries.
    Run(Box<RunArguments>),
    /// Makes one offline HTML page of the results in one or more directories.
    Report(ReportArguments),
    /// Kills the server, or a process with the library, (kill -9) again and again while threads write;
    /// after each restart every acknowledged commit must be there, and no half of a transaction.
    Crash(Box<CrashArguments>),
    /// The process that `bench crash --target library` kills.
    #[command(hide = true)]
    CrashWriter(CrashWriterArguments),
    /// Loses power after every I/O of many small workloads on a simulated disk, in six ways, and again
    /// during the recoveries: every acknowledged change must be found, and nothing else.
    PowerLoss(PowerLossArguments),
    /// Gives hostile input to every decoder of the formats, and whole damaged files to the engine:
    /// errors are allowed, panics and endless loops are not.
    Fuzz(FuzzArguments),
    /// Damages a database in memory: every bit of sampled parts of each kind, stale and misplaced
    /// pages and log blocks; each must be found, and must not reach further than it has to.
    Corruption(CorruptionArguments),
    /// Lets every call to the (simulated) operating system fail, once and for good, and the disk be full
    /// at every point: errors for statements, no abort, nothing lost, no false acknowledgement.
    IoErrors(IoErrorsArguments),
    /// Flips bits of a simulated disk, and gives back stale and misplaced writes: each must be noticed,
    /// or not matter.
    Damage(DamageArguments),
    /// Plays the published anomaly scripts at every isolation level, the deadlock of two sessions and
    /// the update of one row by two, on each engine, and prints who does what.
    Behaviour(BehaviourArguments),
    /// Runs random concurrent transactions on few hot keys and checks that what they saw and did is
    /// what their isolation level allows. One line a level; exit status 1 when it is not.
    Histories(HistoriesArguments),
    /// Moves money between accounts in two schemas while auditors sum all of it at REPEATABLE READ:
    /// every sum must be right, also when the server is killed again and again.
    Bank(BankArguments),
    /// One row updated by few and by many sessions, and a ring of sessions that wait for each other.
    Contention(ContentionArguments),
    /// A transaction many times larger than the cache commits and another rolls back, while other
    /// sessions go on.
    LargeTransaction(LargeTransactionArguments),
    /// A reader's snapshot held open while writers update the same rows again and again.
    HeldSnapshot(HeldSnapshotArguments),
    /// Checkpoint after checkpoint beside writers at full load: how long their transactions take, and
    /// whose the pauses are. One line a target; exit status 1 when the engine made them pause.
    CheckpointStalls(CheckpointStallsArguments),
    /// A server killed at full load, when its log is longest: ready again in the time that
    /// peregrine_recovery_target_seconds says.
    RecoveryTime(RecoveryTimeArguments),
}

/// The private server of a command; it lies in a new directory under target/bench, which is kept when
/// something was wrong.
#[derive(Debug, Args)]
pub struct HostArguments {
    /// Size of each engine's cache, e.g. 128M.
    #[arg(long, default_value = "128M", value_parser = bytes)]
    pub cache: u64,
    /// The Peregrine plug-in [default: target/plugin/ha_peregrine.so].
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Options for mariadbd, after `--`.
    #[arg(last = true, value_name = "MARIADBD OPTION")]
    pub options: Vec<String>,
}

/// What all proofs on a simulated disk take.
#[derive(Debug, Args)]
pub struct SimulationArguments {
    /// Seed of the workloads and of what goes wrong.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Length of the workloads, in percent of the usual.
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub size: u32,
    /// Only the workload of this number, to see a failure again.
    #[arg(long, value_name = "NUMBER")]
    pub workload: Option<u64>,
    /// Threads that work beside each other [default: one a core].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: Option<u32>,
}

impl SimulationArguments {
    /// The workloads asked for, `count` of them if not one alone.
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

/// How much power is lost.
#[derive(Debug, Args)]
pub struct PowerLossArguments {
    /// Goes on with new workloads until there are so many crash images.
    #[arg(long, default_value_t = 100_000)]
    pub images: u64,
    /// At least so many workloads.
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

/// How much is damaged.
#[derive(Debug, Args)]
pub struct DamageArguments {
    /// Workloads whose disks are damaged.
    #[arg(long, default_value_t = 108, value_parser = clap::value_parser!(u64).range(1..))]
    pub workloads: u64,
    /// The simulation.
    #[command(flatten)]
    pub simulation: SimulationArguments,
}

/// How the bank works.
#[derive(Debug, Args)]
pub struct BankArguments {
    /// The engine of the tables: innodb, myrocks or peregrine.
    #[arg(long, default_value = "peregrine")]
    pub engine: String,
    /// Threads that move money; two more audit.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub threads: u32,
    /// How long, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub duration: f64,
    /// Kills the server (kill -9) after every so many seconds.
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

/// Which histories to run.
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
    /// Ends each level after so many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Threads, each with a session.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub threads: u32,
    /// Transactions on the same keys before they are checked and fresh keys are taken.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    pub window: u64,
    /// One window out of so many is interrupted by a crash (the library's loses power, the server gets
    /// kill -9); 0: none.
    #[arg(long, default_value_t = 10)]
    pub crash_every: u32,
    /// A statement to run in every session of a server, e.g. SET SESSION innodb_snapshot_isolation=ON;
    /// may be repeated.
    #[arg(long, value_name = "STATEMENT")]
    pub prepare: Vec<String>,
    /// The Peregrine plug-in [default: target/plugin/ha_peregrine.so].
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Options for mariadbd, after `--`.
    #[arg(last = true, value_name = "MARIADBD OPTION")]
    pub options: Vec<String>,
}

/// What to look at when sessions meet.
#[derive(Debug, Args)]
pub struct BehaviourArguments {
    /// Engines to compare, separated by commas: innodb, myisam, aria, myrocks, peregrine [default:
    /// innodb,myrocks,peregrine]. InnoDB gets two columns, with innodb_snapshot_isolation off and on.
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// How often the deadlock is played; its median counts.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub deadlocks: u32,
    /// Where the findings go; with results of `bench run` there, both stand in one report [default: a
    /// new directory under target/bench].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The Peregrine plug-in [default: target/plugin/ha_peregrine.so].
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Options for mariadbd, after `--`.
    #[arg(last = true, value_name = "MARIADBD OPTION")]
    pub options: Vec<String>,
}

/// Which decoders, and for how long.
#[derive(Debug, Args)]
pub struct FuzzArguments {
    /// Targets, separated by commas: page, header, log, catalog, row, key, files [default: all].
    #[arg(long, value_delimiter = ',')]
    pub target: Vec<String>,
    /// Ends each target after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub duration: f64,
    /// Ends each target after so many executions, if not before.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub executions: Option<u64>,
    /// Seed of the mutations.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The kept inputs [default: suite/corpus].
    #[arg(long, value_name = "DIR")]
    pub corpus: Option<PathBuf>,
    /// Takes inputs from a database and keeps them in the corpus instead.
    #[arg(long)]
    pub write_corpus: bool,
}

/// How much to damage.
#[derive(Debug, Args)]
pub struct CorruptionArguments {
    /// Parts of each kind of which every bit is flipped, one at a time.
    #[arg(long, default_value_t = 200)]
    pub samples: usize,
    /// Parts of each kind after whose damage the whole database is checked, opened, read and dumped.
    #[arg(long, default_value_t = 25)]
    pub planted: usize,
    /// Seed of the content, and of which parts are taken.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How to prove durability.
#[derive(Debug, Args)]
pub struct CrashArguments {
    /// What is killed: a server, or a process with the library.
    #[arg(long, value_enum, default_value_t)]
    pub target: CrashTarget,
    /// The engine of the server's tables: innodb, myrocks or peregrine.
    #[arg(long, default_value = "peregrine")]
    pub engine: String,
    /// How often it is killed.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub kills: u32,
    /// Kill until this time has passed, in seconds, instead of so often.
    #[arg(long, value_name = "SECONDS", conflicts_with = "kills", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub duration: Option<u64>,
    /// Writing threads.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub threads: u32,
    /// Seed of the transactions and of the times between kills.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of the server's cache, e.g. 128M. (The library's is 1M, its log too: crashes are to fall
    /// into evictions and checkpoints.)
    #[arg(long, default_value = "128M", value_parser = bytes)]
    pub cache: u64,
    /// The directory, which must not exist yet; kept when a promise was broken [default: a new one
    /// under target/bench].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The Peregrine plug-in [default: target/plugin/ha_peregrine.so].
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Options for mariadbd, after `--`.
    #[arg(last = true, value_name = "MARIADBD OPTION")]
    pub options: Vec<String>,
}

/// What is killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CrashTarget {
    /// A private MariaDB server.
    #[default]
    Server,
    /// A process with the library.
    Library,
}

/// What the killed process is told.
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

/// What to report.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Directories with results [default: target/bench/latest].
    #[arg(value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// The page to write [default: report.html in the first directory].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What to measure. Lists are separated by commas.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// quick (five engines within twelve minutes), standard (some hours), or paper (the published
    /// times) [default: quick].
    #[arg(long)]
    pub profile: Option<String>,
    /// Engines to compare: innodb, myisam, aria, myrocks, peregrine [default: all].
    #[arg(long, value_delimiter = ',')]
    pub engines: Vec<String>,
    /// Queries to run, by their published names [default: all thirteen].
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// The thread ladder [default: the profile's].
    #[arg(long, value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Rows of the table [default: 1000000].
    #[arg(long)]
    pub rows: Option<u32>,
    /// Seed of the table and of the queries' parameters.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Size of each engine's cache, e.g. 128M or 1G [default: 1G].
    #[arg(long, value_parser = bytes)]
    pub cache: Option<u64>,
    /// text, prepared or both: how statements travel.
    #[arg(long, default_value = "text")]
    pub protocol: String,
    /// The table's character set, e.g. latin1 (as published) or utf8mb4.
    #[arg(long, default_value = "latin1")]
    pub charset: String,
    /// paired (each client thread on one processor with its server thread) or free (wherever the
    /// scheduler likes).
    #[arg(long, default_value = "paired")]
    pub placement: String,
    /// Warm-up before each cell, in seconds [default: the profile's].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub warm_up: Option<f64>,
    /// Time of an effective run, in seconds [default: the profile's].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub run_time: Option<f64>,
    /// Effective runs per cell [default: 3].
    #[arg(long)]
    pub runs: Option<u32>,
    /// Where the results go [default: a new directory under target/bench; with --resume the latest].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with an interrupted run where it stopped, under its settings.
    #[arg(long)]
    pub resume: bool,
    /// Keep the server's directory (with the data) after a complete run.
    #[arg(long)]
    pub keep_data: bool,
    /// The Peregrine plug-in [default: target/plugin/ha_peregrine.so].
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Options for mariadbd, after `--`.
    #[arg(last = true, value_name = "MARIADBD OPTION")]
    pub options: Vec<String>,
}

/// Reads a size such as `128M`.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.trim_end_matches(['b', 'B', 'i']) {
        t if t.ends_with(['k', 'K']) => (&t[..t.len() - 1], 1_u64 << 10),
        t if t.ends_with(['m', 'M']) => (&t[..t.len() - 1], 1 << 20),
        t if t.ends_with(['g', 'G']) => (&t[..t.len() - 1], 1 << 30),
        t => (t, 1),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|size| *size >= 1 << 20)
        .ok_or_else(|| "a size of at least 1M is a number with K, M or G, such as 128M".to_owned())
}

/// Reads a time in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|time| time.is_finite() && (0.0..=86_400.0).contains(time))
        .ok_or_else(|| "a time is a number of seconds, such as 0.5".to_owned())
}
