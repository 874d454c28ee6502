//! The command line: the command's actions and their options.
//!
//! | file | holds |
//! |---|---|
//! | `schedules.rs` | orders of threads, in shaken builds |
//! | `server.rs` | the private server |
//! | `bench.rs` | the actions of `peregrine bench` |
//! | `measuring.rs` | comparison of engines |
//! | `cross_check.rs` | comparison of our clients with sysbench and go-tpc |
//! | `transactions.rs` | isolation of sessions, and right answers of statements |
//! | `durability.rs` | kills, loss of power, faults, damage, hostile input |
//! | `stress.rs` | load, large transactions, pauses, the time of recovery |
//! | `values.rs` | sizes, times, parameters |

mod bench;
mod cross_check;
mod durability;
mod host;
mod measuring;
#[cfg(feature = "shaken")]
mod schedules;
mod server;
mod stress;
mod transactions;
mod values;

use std::io::Write;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub use self::bench::BenchAction;
pub use self::cross_check::{GoTpcArguments, SysbenchArguments};
pub use self::durability::{
    CorruptionArguments, CrashArguments, CrashTarget, CrashWriterArguments, DamageArguments,
    FullDiskArguments, FullDiskKind, FuzzArguments, IoErrorsArguments, PowerLossArguments,
};
pub use self::host::{HostArguments, MariadbdArguments};
pub use self::measuring::{
    EmbeddedArguments, LargerThanMemoryArguments, NullArguments, ReportArguments, RunArguments,
    ThresholdsArguments, WorkloadArguments,
};
#[cfg(feature = "shaken")]
pub use self::schedules::SchedulesArguments;
#[cfg(feature = "shaken")]
pub use self::schedules::SchedulesHereArguments;
pub use self::server::{ServerAction, ServerPlace, SqlArguments, StartArguments};
pub use self::stress::{
    BatchedJoinArguments, CheckpointStallsArguments, ContentionArguments, HeldSnapshotArguments,
    LargeTransactionArguments, LockedRowsArguments, ManyTablesArguments, MemoryArguments,
    RecoveryTimeArguments, ScanThreadsArguments,
};
pub use self::transactions::{
    AnswersArguments, BankArguments, BehaviourArguments, ChangesArguments, DifferentialArguments,
    HistoriesArguments, PushdownArguments, StatementsArguments,
};
pub use self::values::WarmUp;

/// Peregrine: a private MariaDB with the engine in it, and the benchmark that compares engines.
#[derive(Debug, Parser)]
#[command(name = "peregrine", version)]
pub struct Arguments {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

impl Arguments {
    /// Reads the command line. Reports an error in it with the allowed values, and ends the program.
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
                // Without standard error the message can't be shown.
                let _ = error.print();
                let _ = writeln!(std::io::stderr(), "{known}");
                std::process::exit(2);
            }
            error.exit()
        })
    }
}

/// Returns the names allowed at the innermost action on the command line.
fn allowed(names: impl Fn(&clap::Command) -> (&'static str, Vec<String>)) -> Option<String> {
    let mut command = Arguments::command();
    let mut path = command.get_name().to_owned();
    for word in std::env::args_os().skip(1) {
        let Some(next) = command.find_subcommand(&word).cloned() else {
            break;
        };
        path = format!("{path} {}", next.get_name());
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
    /// The benchmark: comparison of engines on many workloads.
    #[command(subcommand)]
    Bench(BenchAction),
    /// Verifies the files of a database that is not in use: checksums, tree order, and that index entries and rows
    /// match. Exit status 1 when something is wrong.
    Check(CheckArguments),
    /// Writes all readable data of a database that is not in use, as SQL or CSV. The database may be damaged or
    /// crashed, and is not changed. Reports missing data on standard error: which rows, which file and page, and why;
    /// exit status 1 then.
    Dump(DumpArguments),
}

/// The database to verify.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The database's directory; with MariaDB it is `#peregrine` in the data directory.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// The database to write, and the form.
#[derive(Debug, Args)]
pub struct DumpArguments {
    /// The database's directory; with MariaDB it is `#peregrine` in the data directory.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Only this table; the name of a server's table is database/table.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// sql (statements that MariaDB loads) or csv (a file per table, in a folder of its database).
    #[arg(long, value_enum, default_value_t = DumpFormat::Sql)]
    pub format: DumpFormat,
    /// The file to write, which must not exist; for CSV of several tables a directory [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// The form of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DumpFormat {
    /// Statements that MariaDB loads.
    Sql,
    /// Lines of values separated by commas.
    Csv,
}
