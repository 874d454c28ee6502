//! A transaction and a table that it drops, or whose creation fails, before it ends.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::TableId;
use crate::planted::{is_planted, PlantedFault};
use crate::session::transaction::Transaction;
use crate::table::shared::Shared;
use crate::table::table_use::TableUse;

impl Transaction {
    /// Whether it is a transaction of this open database.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared) || is_planted(PlantedFault::TablesByNumber)
    }

    /// The transaction is about to drop a table: how often it counts among those that use it.
    ///
    /// What the log is still to get of it goes there first, before the table's end: replay then meets
    /// changes of a table that is there, or the end of one that is not. Of a table of one session the log gets nothing.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] where the way back to a savepoint has failed: what was undone must not get there.
    /// Those of writing the log.
    pub(crate) fn before_drop(&mut self, id: TableId) -> Result<u64> {
        let uses = |used: &&TableUse| used.id == id && used.is_entered();
        let Some(used) = self.used.iter().find(uses) else {
            return Ok(0);
        };
        // Of what is never committed the log needs nothing.
        let ends = self.tree_txn.doomed_by().is_some();
        if used.state.is_logged() && !ends && !self.tree_txn.redo().is_empty() {
            let transactions = self.shared.transactions.clone();
            let inside = transactions.barrier().enter();
            match self.tree_txn.append_part(&inside) {
                // Nor has it any more of what it began with.
                Err(Error::LogLimit { .. }) => {}
                appended => appended?,
            }
        }
        Ok(1)
    }

    /// A table is gone, and what this transaction did there.
    pub(crate) fn forget_table(&mut self, id: TableId) {
        for used in self.used.iter_mut().filter(|used| used.id == id) {
            used.forget();
        }
        self.forget_deferred_of(id);
        self.writes += 1;
        self.last_table = TableId(0);
    }
}
