//! `peregrine server`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The private server's actions.
#[derive(Debug, Subcommand)]
pub enum ServerAction {
    /// Starts the server, and creates its directory on first use.
    Start(StartArguments),
    /// Stops the server in order.
    Stop(ServerPlace),
    /// Opens the ordinary client, or runs the given statement.
    Sql(SqlArguments),
    /// Tells whether the server runs.
    Status(ServerPlace),
}

/// The private server.
#[derive(Debug, Args)]
pub struct ServerPlace {
    /// The server's directory [default: target/server].
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Options for the start of the private server.
#[derive(Debug, Args)]
pub struct StartArguments {
    /// The server.
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

/// The statement for the private server.
#[derive(Debug, Args)]
pub struct SqlArguments {
    /// The server.
    #[command(flatten)]
    pub place: ServerPlace,
    /// The statement to run; without one the client opens.
    #[arg(value_name = "STATEMENT")]
    pub statement: Option<String>,
    /// Options for the client, after `--`.
    #[arg(last = true, value_name = "CLIENT OPTION")]
    pub options: Vec<String>,
}
