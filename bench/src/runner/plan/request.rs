//! The request of a run.

use std::path::PathBuf;

use crate::results::record::RunSettings;
use peregrine_harness::engines::ServerUrl;
use peregrine_harness::server::Installation;

/// A request to run the benchmark.
#[derive(Debug, Clone)]
pub struct Request {
    /// The settings; a resumed run uses those in the results instead.
    pub settings: RunSettings,
    /// The output directory.
    pub out: PathBuf,
    /// Whether to resume the results in the output directory.
    pub resume: bool,
    /// The server.
    pub server: Server,
    /// Whether to keep the loaded data after a complete run: the private servers' directories, or the schemas on
    /// another server.
    pub keep_data: bool,
    /// The size of each engine's cache for loading, if any: the server is restarted with it before loading, and with
    /// the settings' size after loading.
    pub loading_cache_bytes: Option<u64>,
}

/// The server that is measured.
#[derive(Debug, Clone)]
pub enum Server {
    /// Private servers that the run starts, one for each workload.
    Private(PrivateServer),
    /// A server that is running already.
    Url(ServerUrl),
    /// No server: embedded stores alone.
    None,
}

/// The parameters of a private server.
#[derive(Debug, Clone)]
pub struct PrivateServer {
    /// The MariaDB to run.
    pub installation: Installation,
    /// The Peregrine plug-in, if that engine is to be measured.
    pub plugin: Option<PathBuf>,
    /// More options for mariadbd.
    pub options: Vec<String>,
}
