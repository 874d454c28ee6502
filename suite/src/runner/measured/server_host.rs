//! What a measurement session asks of the server that it runs on, whoever started it.

use std::collections::BTreeMap;

use super::host::Host;
use crate::engines::Engine;
use crate::error::Result;
use crate::runner::loading::{Loading, TableFile};
use crate::workload::Workload;

/// How a measurement session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Ending {
    /// Everything was measured.
    Complete,
    /// The user wanted to stop, and may go on later.
    Interrupted,
    /// Something failed.
    Failed,
}

impl Ending {
    /// How the work ended that had this result.
    pub fn of<T>(result: &Result<T>) -> Self {
        match result {
            Ok(_) => Self::Complete,
            Err(crate::error::SuiteError::Interrupted) => Self::Interrupted,
            Err(_) => Self::Failed,
        }
    }
}

/// A server with the engines' schemas.
pub(in crate::runner) trait ServerHost: Host {
    /// A connection for statements of administration.
    fn administration(&self) -> Result<mysql::Conn>;

    /// The server's variables that matter, when it is as it must be.
    fn variables(&self, connection: &mut mysql::Conn) -> Result<BTreeMap<String, String>>;

    /// Whether nothing can have been loaded there before this measurement session.
    fn has_new_data(&self) -> bool;

    /// Starts the server anew with caches of this size.
    fn start_again(&mut self, cache_bytes: u64) -> Result<()>;

    /// Takes the rows of the workload's tables, which are needed for loading.
    fn take(&mut self, files: Vec<TableFile>);

    /// What loads an engine's tables.
    fn loading<'h>(&'h self, workload: &'h Workload, engine: Engine) -> Result<Loading<'h>>;

    /// Leaves the server, and takes away what is not needed any more.
    fn end(&mut self, ending: Ending) -> Result<()>;
}
