//! The command line: the actions and their options.

mod server;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use self::server::{ServerAction, ServerPlace, SqlArguments, StartArguments};

/// Peregrine: a private MariaDB with the engine in it, tools for its files, measurements and proofs.
#[derive(Debug, Parser)]
#[command(name = "peregrine", version)]
pub struct Arguments {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// The command's actions.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// A private MariaDB server with the Peregrine plug-in.
    #[command(subcommand)]
    Server(ServerAction),
    /// Measurements: comparison of engines on many workloads (`peregrine-bench`).
    #[command(disable_help_flag = true)]
    Bench(OtherArguments),
    /// Proofs of durability, isolation and right answers (`peregrine-prove`).
    #[command(disable_help_flag = true)]
    Prove(OtherArguments),
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

/// The arguments of another command.
#[derive(Debug, Args)]
pub struct OtherArguments {
    /// Its actions and options; `--help` lists them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    pub arguments: Vec<OsString>,
}
