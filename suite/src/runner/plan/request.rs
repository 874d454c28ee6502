//! What somebody asks to be run.

use std::path::PathBuf;

use crate::engines::ServerUrl;
use crate::results::record::RunSettings;
use crate::server::Installation;

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Request {
    /// The settings; when resuming, those in the results count instead.
    pub settings: RunSettings,
    /// The output directory.
    pub out: PathBuf,
    /// Whether to go on with what is in the output directory.
    pub resume: bool,
    /// The server.
    pub server: Server,
    /// Whether to keep what was loaded after a complete run: the private servers' directories, or the
    /// schemas on another.
    pub keep_data: bool,
    /// The size of each engine's cache while tables are loaded, where it shall be larger than the
    /// settings'; then the server is started again.
    pub loading_cache_bytes: Option<u64>,
}

/// What is measured.
#[derive(Debug, Clone)]
pub enum Server {
    /// Private servers that are started for it, one for each workload.
    Private(PrivateServer),
    /// A server that runs already.
    Url(ServerUrl),
    /// None: embedded stores alone.
    None,
}

/// With what a private server is started.
#[derive(Debug, Clone)]
pub struct PrivateServer {
    /// The MariaDB to run.
    pub installation: Installation,
    /// The Peregrine plug-in, if that engine is to be measured.
    pub plugin: Option<PathBuf>,
    /// More options for mariadbd.
    pub options: Vec<String>,
}
