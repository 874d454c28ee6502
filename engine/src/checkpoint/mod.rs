//! When checkpoints happen, and in which order their parts run.
#![forbid(unsafe_code)]

use crate::error::Result;
use crate::ids::Lsn;

/// What a checkpoint must hold besides pages.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Opaque to the store; comes back from `Store::open`.
    pub meta: Vec<u8>,
    /// The oldest log position that recovery from this checkpoint reads; usually `redo_from`.
    pub keep_log_from: Lsn,
}

/// What the checkpointer needs from the layers above.
pub trait CheckpointSource: Send + Sync {
    /// Closes the gate, so that no row operation and no commit runs, calls `inside`, opens it.
    fn with_gate_closed(&self, inside: &mut dyn FnMut() -> Result<()>) -> Result<()>;
    /// Inside the gate: the buffer pool notes which frames the checkpoint needs.
    fn begin_pages(&self, epoch: u64);
    /// Inside the gate: roots, counters, active transactions, …; `redo_from` is where recovery
    /// will begin to read the log, and must be found in `meta` again.
    fn capture(&self, redo_from: Lsn) -> Result<Captured>;
    /// Outside the gate: writes the pages that the checkpoint needs; calls `progress` now and
    /// then with the number of pages written since the last call.
    fn write_pages(&self, epoch: u64, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()>;
}
