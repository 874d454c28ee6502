//! The interface of a measurement session to its server, private or not.

use std::collections::BTreeMap;

use super::host::Host;
use crate::runner::loading::{Loading, TableFile};
use crate::workload::Workload;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::Result;

/// How a measurement session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum Ending {
    /// Everything was measured.
    Complete,
    /// The user stopped it and may resume it later.
    Interrupted,
    /// Something failed.
    Failed,
}

impl Ending {
    /// Returns how work with this result ended.
    pub fn of<T>(result: &Result<T>) -> Self {
        match result {
            Ok(_) => Self::Complete,
            Err(peregrine_harness::error::HarnessError::Interrupted) => Self::Interrupted,
            Err(_) => Self::Failed,
        }
    }
}

/// A server with the engines' schemas.
pub(in crate::runner) trait ServerHost: Host {
    /// Opens a connection for administration.
    fn administration(&self) -> Result<mysql::Conn>;

    /// Returns the server's variables that matter, and checks that they are as required.
    fn variables(&self, connection: &mut mysql::Conn) -> Result<BTreeMap<String, String>>;

    /// Returns whether nothing can have been loaded on it before this measurement session.
    fn has_new_data(&self) -> bool;

    /// Restarts the server with caches of this size.
    fn start_again(&mut self, cache_bytes: u64) -> Result<()>;

    /// Takes the files with the rows of the workload's tables, for loading.
    fn take(&mut self, files: Vec<TableFile>);

    /// Returns the loader of an engine's tables.
    fn loading<'h>(&'h self, workload: &'h Workload, engine: Engine) -> Result<Loading<'h>>;

    /// Ends the use of the server, and removes what is not needed any more.
    fn end(&mut self, ending: Ending) -> Result<()>;
}
