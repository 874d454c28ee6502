//! The lock of a table's auto-increment counter, for those who want the values of one statement to
//! follow one another.
//!
//! Nothing needs it to be right: values are taken without any lock. It is a row lock of a row that
//! no tree has, so that waits for it are fair, seen by deadlock detection, and listed as others are.
//! Unlike a row's it can be given back before the transaction ends.

use crate::error::Result;
use crate::ids::TreeId;
use crate::lock::row_name::{Row, RowName};
use crate::lock::table::LockMode;
use crate::txn::waiting::row_locks::Conflict;
use crate::txn::TreeTransaction;

/// Marks the number of a tree to mean its table's counter.
const COUNTER: u32 = 1 << 31;

/// The tree whose table's counter this "tree" stands for.
pub fn tree_of_counter(tree: TreeId) -> Option<TreeId> {
    (tree.0 & COUNTER != 0).then_some(TreeId(tree.0 & !COUNTER))
}

impl TreeTransaction {
    /// Locks the counter of the table with this clustered tree, waiting as long as allowed. Not
    /// inside the barrier.
    ///
    /// # Errors
    /// Those of [`TreeTransaction::wait`].
    pub fn lock_counter(&mut self, clustered: TreeId) -> Result<()> {
        let counter = TreeId(clustered.0 | COUNTER);
        let row = Row::new(counter, &[]);
        let name = RowName::new(counter, &[]);
        let transactions = self.transactions.clone();
        loop {
            let me = self.running();
            if transactions
                .locks()
                .try_lock(row, &name, me, LockMode::Exclusive)
            {
                return Ok(());
            }
            self.wait(&Conflict::with_holders(counter, &[], LockMode::Exclusive))?;
        }
    }

    /// Gives the counter's lock back, if it is held.
    pub fn unlock_counter(&mut self, clustered: TreeId) {
        if let Some(me) = &self.running {
            let row = Row::new(TreeId(clustered.0 | COUNTER), &[]);
            me.forget(row);
            self.transactions.locks().release(row, me);
        }
    }
}
