//! Guards: what must hold of all rows, checked by one transaction at a time.
//!
//! Some rules about rows are not the engine's: who changes rows looks first whether others are in the way,
//! as for a hash of a long value, or for periods that must not overlap. Two that look at the same time
//! see nothing of each other. So each takes a guard of what it looks for before it looks, and has it
//! until its row stands: whoever comes then finds that row, and waits for its writer. A look is to be by
//! [`crate::read::Cursor::read_newest`].

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::session::transaction::Transaction;
use crate::table::open_table::{IndexId, Table};

impl Transaction {
    /// Keeps out others who guard the same prefix of an index's keys, until this transaction has
    /// inserted or updated a row of the table, or has ended. Waits as for a row.
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

    /// The row for which guards were taken stands, its index entries with it, unless they are
    /// deferred: it is found from now on.
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
