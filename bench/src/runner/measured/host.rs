//! The interface of a run to the systems on which its sessions are open.

use crate::results::record::Deferred;
use crate::runner::kept::Kept;
use crate::workload::Workload;
use peregrine_harness::engines::{Engine, Session};
use peregrine_harness::error::Result;

/// A system on which sessions are open.
pub trait Host {
    /// Returns this many open sessions for an engine.
    ///
    /// # Errors
    /// When they can't be opened.
    fn sessions(&mut self, engine: Engine, count: usize) -> Result<&mut [Box<dyn Session>]>;

    /// The peak resident memory of the engine's server, in bytes; `None` without a server.
    fn peak_resident_bytes(&self, engine: Engine) -> Option<u64>;

    /// Processor time of the engine's server so far, in seconds; `None` without a server.
    fn cpu_seconds(&self, engine: Engine) -> Option<f64>;

    /// Returns an engine's durability and cache size.
    fn kept(&self, engine: Engine) -> Kept;

    /// Loads tables of the workload again, by their numbers.
    ///
    /// # Errors
    /// When that fails.
    fn load_again(&mut self, workload: &Workload, engine: Engine, tables: &[usize]) -> Result<()>;

    /// Makes an engine do its deferred work, and waits until the server is idle.
    ///
    /// Returns the cost, where it can be measured.
    ///
    /// # Errors
    /// When that fails.
    fn drain(&mut self, _engine: Engine) -> Result<Option<Deferred>> {
        Ok(None)
    }

    /// Restores the host after queries on an engine have failed.
    ///
    /// Returns what had happened to its server, if anything had.
    ///
    /// # Errors
    /// When the host can't be restored.
    fn recover(&mut self, engine: Engine) -> Result<Option<String>>;
}
