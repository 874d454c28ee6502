//! What a run asks of whatever its sessions are open on.

use crate::engines::{Engine, Session};
use crate::error::Result;
use crate::results::record::Deferred;
use crate::workload::Workload;

/// What the sessions are open on.
pub trait Host {
    /// So many open sessions for an engine.
    ///
    /// # Errors
    /// When they can't be had.
    fn sessions(&mut self, engine: Engine, count: usize) -> Result<&mut [Box<dyn Session>]>;

    /// The most memory that the engine's server ever had resident, in bytes; `None` without a server.
    fn peak_resident_bytes(&self, engine: Engine) -> Option<u64>;

    /// Processor time that the engine's server has taken so far, in seconds; `None` without a server.
    fn cpu_seconds(&self, engine: Engine) -> Option<f64>;

    /// What an engine keeps.
    fn kept(&self, engine: Engine) -> Kept;

    /// Loads tables of the workload, by their numbers, anew.
    ///
    /// # Errors
    /// When that fails.
    fn load_again(&mut self, workload: &Workload, engine: Engine, tables: &[usize]) -> Result<()>;

    /// Has an engine do what it has put off, and waits until the server rests: what that took, where it can
    /// be told.
    ///
    /// # Errors
    /// When that fails.
    fn drain(&mut self, _engine: Engine) -> Result<Option<Deferred>> {
        Ok(None)
    }

    /// Makes things work again after queries on an engine have failed, and says what had happened to its
    /// server, if anything had.
    ///
    /// # Errors
    /// When that can't be done.
    fn recover(&mut self, engine: Engine) -> Result<Option<String>>;
}

/// What an engine keeps: its promise, and its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What a commit promises.
    pub durability: String,
    /// The size of its cache, in bytes; 0 where that is not known.
    pub cache_bytes: u64,
}
