//! What all transactions of a database share.

use std::sync::Arc;

use super::gate::{ClosedGate, Gate};
use super::transaction::{LockMode, Transaction};
use crate::error::Result;
use crate::ids::{Lsn, TreeId, TxId};
use crate::log::Log;
use crate::page::{LeafSettle, Pool};
use crate::settings::{Durability, Isolation};
use crate::tree::Tree;

/// How rollback and purge find trees, and tell the layer above what they finished.
pub trait Trees: Send + Sync {
    /// The tree of a number; `None` when it was dropped meanwhile (its undo is then skipped).
    fn tree(&self, tree: TreeId) -> Option<Arc<Tree>>;
    /// A note given to `Transaction::note_on_purge`: its transaction committed, and no snapshot
    /// sees the state before it any more (large values that it replaced can go). Runs inside the gate.
    fn purged(&self, _note: &[u8]) -> Result<()> {
        Ok(())
    }
    /// A note given to `Transaction::note_on_rollback`: the operation was rolled back, and no
    /// snapshot could see it (large values that it made can go). Runs inside the gate.
    fn rolled_back(&self, _note: &[u8]) -> Result<()> {
        Ok(())
    }
    /// A change in this tree was rolled back to a savepoint after its redo had gone to the log:
    /// when the tree is a clustered one, log the restored state (`Transaction::log_put` /
    /// `log_delete` write into `redo`). `previous` is the payload restored, `None`: no row.
    fn compensate(
        &self,
        _tree: TreeId,
        _key: &[u8],
        _previous: Option<&[u8]>,
        _redo: &mut super::RedoBuffer,
    ) -> Result<()> {
        Ok(())
    }
}

/// What was in the way of a write or a lock: give it to [`Transaction::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The row, as the lock table names it.
    pub(super) row: u64,
    /// The active writer that holds the row implicitly; 0: holders stand in the lock table.
    pub(super) writer: TxId,
    pub(super) mode: LockMode,
}

/// Interrupts a transaction's lock waits from another thread.
#[derive(Clone)]
pub struct KillHandle {}

impl KillHandle {
    /// The transaction's present and next waits return `Error::Interrupted`.
    pub fn kill(&self) {}
    /// Takes the interruption back.
    pub fn clear(&self) {}
}

/// Figures since the system was made.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemStats {
    /// Commits of transactions that had written.
    pub commits: u64,
    /// Rollbacks of transactions that had written.
    pub rollbacks: u64,
    /// Lock waits begun.
    pub lock_waits: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Finished transactions whose undo is not purged yet.
    pub unpurged: u64,
    /// Undo pages in use.
    pub undo_pages: u64,
}

/// What a checkpoint must hold of transactions (serde).
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Captured {}

impl Captured {
    /// The first log position that replay from this checkpoint needs: `checkpoint`, or earlier
    /// where an active transaction has appended changes before.
    pub fn redo_from(&self, checkpoint: Lsn) -> Lsn {
        checkpoint
    }
}

/// What all transactions of a database share: commit order, snapshots, locks, undo, gate, purge.
pub struct System {}

impl System {
    /// A system for a new or a just opened database; `durability` is what commits wait for.
    pub fn new(_pool: Arc<Pool>, _log: Arc<Log>, _durability: Durability) -> Result<Arc<System>> {
        todo!()
    }
    /// Says how trees are found. Once, before the first write; later calls are ignored.
    pub fn set_trees(&self, _trees: Arc<dyn Trees>) {
        todo!()
    }
    /// What settles records of full leaves: for `Pool::set_settle`.
    pub fn leaf_settle(self: &Arc<Self>) -> Arc<dyn LeafSettle> {
        todo!()
    }
    /// The gate between operations and checkpoints.
    pub fn gate(&self) -> &Gate {
        todo!()
    }
    /// Begins a transaction.
    pub fn begin(self: &Arc<Self>, _isolation: Isolation) -> Transaction {
        todo!()
    }
    /// What a checkpoint must hold; inside the closed gate.
    pub fn capture(&self, _closed: &ClosedGate<'_>) -> Captured {
        todo!()
    }
    /// On open, before replay and before any transaction: rolls the losers back, purges what was
    /// unpurged, frees all undo pages of the last run.
    pub fn restore(&self, _captured: &Captured) -> Result<()> {
        todo!()
    }
    /// After replay, before any transaction: no number up to `seen` is given again.
    pub fn raise_txid(&self, _seen: TxId) {
        todo!()
    }
    /// Starts the purge thread.
    pub fn start_purge(self: &Arc<Self>) -> Result<()> {
        todo!()
    }
    /// One bounded step of purging (what the thread does); whether there is more to do now.
    pub fn purge_step(&self) -> Result<bool> {
        todo!()
    }
    /// Stops and joins the purge thread.
    pub fn shutdown(&self) {
        todo!()
    }
    /// Figures.
    pub fn stats(&self) -> SystemStats {
        todo!()
    }
}
