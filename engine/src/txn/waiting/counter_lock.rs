//! The lock of a table's auto-increment counter, for statements whose values must follow one another.
//!
//! Correctness does not need it: values are taken without any lock. It is a row lock of a row that no tree has. So
//! waits for it are fair, deadlock detection sees them, and lists of locks show it. Unlike a row's lock, it can be
//! released before the transaction ends.

use crate::error::Result;
use crate::ids::TreeId;
use crate::lock::row_name::{Row, RowName};
use crate::lock::table::LockMode;
use crate::txn::waiting::row_locks::Conflict;
use crate::txn::TreeTransaction;

/// Marks a tree's number as that of its table's counter.
const COUNTER: u32 = 1 << 31;

/// The tree whose table's counter `tree` means; `None` if `tree` is a real tree.
pub fn tree_of_counter(tree: TreeId) -> Option<TreeId> {
    (tree.0 & COUNTER != 0).then_some(TreeId(tree.0 & !COUNTER))
}

impl TreeTransaction {
    /// Locks the counter of the table with this clustered tree, and waits as long as allowed.
    ///
    /// Not inside the barrier.
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

    /// Releases the counter's lock, if it is held.
    pub fn unlock_counter(&mut self, clustered: TreeId) {
        if let Some(me) = &self.running {
            let row = Row::new(TreeId(clustered.0 | COUNTER), &[]);
            me.forget(row);
            self.transactions.locks().release(row, me);
        }
    }
}
