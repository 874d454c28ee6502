//! Guards: they let one transaction at a time check a rule over many rows.
//!
//! The engine does not know some rules about rows: a session that changes rows first checks whether others conflict, as
//! for a hash of a long value, or for periods that must not overlap. Two sessions that check at the same time do not
//! see each other's rows. So each first takes a guard of the keys that it checks, and keeps the guard until its row is
//! in the table. A session that comes later finds that row, and waits for its writer. The check must use
//! [`crate::read::Cursor::read_newest`].

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::session::transaction::Transaction;
use crate::table::open_table::{IndexId, Table};

impl Transaction {
    /// Keeps out other transactions that guard the same prefix of an index's keys.
    ///
    /// The guard lasts until this transaction has inserted or updated a row of the table, or has ended. Waits as for a
    /// row lock.
    ///
    /// # Errors
    /// Those of waiting for locks.
    pub fn guard(&mut self, table: &Table, index: IndexId, prefix: &[u8]) -> Result<()> {
        if is_planted(PlantedFault::UnguardedCheck) {
            return Ok(());
        }
        self.enter_table_blind(table)?;
        let tree = table.trees.load().index(index)?.id();
        let lock = self.tree_txn.lock_name(tree, prefix)?;
        self.guards.add(table.id(), lock);
        Ok(())
    }

    /// Releases the table's guards: the row for which they were taken, and its index entries, are in the trees.
    ///
    /// While its entries are deferred, the guards stay.
    #[cold]
    pub(crate) fn row_stands(&mut self, table: &Table) {
        if self.defers_entries(table) {
            return;
        }
        let Transaction {
            guards,
            tree_txn: inner,
            ..
        } = self;
        guards.take_of(table.id(), |lock| inner.unlock_name(lock));
    }
}
