//! The servers that commands start.

use std::path::PathBuf;

use clap::Args;

use super::values::bytes;

/// Options of the servers that commands start.
#[derive(Debug, Clone, Default, Args)]
pub struct MariadbdArguments {
    /// The Peregrine plug-in [default: target/plugin/ha_peregrine.so].
    #[arg(long, value_name = "FILE")]
    pub plugin: Option<PathBuf>,
    /// Options for mariadbd, after `--`.
    #[arg(last = true, value_name = "MARIADBD OPTION")]
    pub options: Vec<String>,
}

/// The private server of a command, in a new directory under target/bench, which is kept after a failure.
#[derive(Debug, Args)]
pub struct HostArguments {
    /// Size of each engine's cache, e.g. 128M.
    #[arg(long, default_value = "128M", value_parser = bytes)]
    pub cache: u64,
    /// The server's plug-in and options.
    #[command(flatten)]
    pub mariadbd: MariadbdArguments,
}
