//! `peregrine server`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
