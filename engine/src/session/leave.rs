//! A table that a transaction drops, or whose creation fails, before the transaction ends.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::TableId;
use crate::planted::{is_planted, PlantedFault};
use crate::session::transaction::Transaction;
use crate::table::shared::Shared;
use crate::table::table_use::TableUse;

impl Transaction {
    /// Whether the transaction is of this open database.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared) || is_planted(PlantedFault::TablesByNumber)
    }

    /// Prepares for the drop of a table; returns how often this transaction counts among the table's users.
    ///
    /// Writes the transaction's collected redo to the log, before the record of the drop: replay then meets changes of
    /// an existing table, or the drop of one that is gone. The log gets no changes of a table of one session.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if a rollback to a savepoint has failed: undone changes must not get into the log.
    /// Those of writing the log.
    pub(crate) fn before_drop(&mut self, id: TableId) -> Result<u64> {
        let uses = |used: &&TableUse| used.id == id && used.is_entered();
        let Some(used) = self.used.iter().find(uses) else {
            return Ok(0);
        };
        // A transaction that can't commit needs none of its redo in the log.
        let ends = self.tree_txn.must_roll_back().is_some();
        if used.state.is_logged() && !ends && !self.tree_txn.redo().is_empty() {
            let transactions = self.shared.transactions.clone();
            let inside = transactions.barrier().enter();
            match self.tree_txn.append_part(&inside) {
                // Nor does one whose first changes the log no longer has.
                Err(Error::LogLimit { .. }) => {}
                appended => appended?,
            }
        }
        Ok(1)
    }

    /// Drops what this transaction keeps of a table that is gone.
    pub(crate) fn forget_table(&mut self, id: TableId) {
        for used in self.used.iter_mut().filter(|used| used.id == id) {
            used.forget();
        }
        self.forget_deferred_of(id);
        self.writes += 1;
        self.last_table = TableId(0);
    }
}
