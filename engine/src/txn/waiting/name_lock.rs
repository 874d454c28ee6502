//! Locks of names, that is, of keys that need not have a record; guards use them (`session/guard.rs`).
//!
//! A name has an entry in the lock table, as a row has. A transaction with very many entries gets ranges instead of
//! further ones, as for rows. These ranges also lock the names between, until the transaction releases all names of
//! the tree.

use crate::error::Result;
use crate::ids::TreeId;
use crate::lock::row_name::Row;
use crate::lock::table::{KeyLock, LockMode, NameEntry};
use crate::planted::{is_planted, PlantedFault};
use crate::txn::waiting::row_locks::Conflict;
use crate::txn::TreeTransaction;

impl TreeTransaction {
    /// Locks the name of a key, which need not have a record, against others that lock the name.
    ///
    /// Waits as long as allowed. It does not lock the key's record: a lock of that stays when the name is released.
    /// Not inside the barrier.
    ///
    /// # Errors
    /// Those of [`TreeTransaction::wait`].
    pub fn lock_name(&mut self, tree: TreeId, key: &[u8]) -> Result<KeyLock> {
        let record = Row::new(tree, key);
        let row = match is_planted(PlantedFault::GuardAsRow) {
            true => record,
            false => Row(!record.0),
        };
        let mode = LockMode::Exclusive;
        loop {
            let running = self.running().clone();
            let locks = self.transactions.locks();
            let conflict = match locks.try_take_name(row, tree, key, &running) {
                Ok(lock) => return Ok(lock),
                Err(holders) if holders.is_empty() => Conflict::with_holders(tree, key, mode),
                Err(holders) => {
                    self.blocked_by = holders;
                    Conflict::with_ranges(tree, key, mode)
                }
            };
            self.wait(&conflict.of_name(row))?;
        }
    }

    /// Releases a locked name, or all names of a tree that ranges lock.
    ///
    /// If others wait for a name, they get it at the end of this transaction.
    pub fn unlock_name(&mut self, lock: KeyLock) {
        if let Some(running) = &self.running {
            match lock {
                KeyLock::Entry(NameEntry(row)) => {
                    self.transactions.locks().release_unwanted(row, running);
                }
                KeyLock::Ranges(tree) => self.transactions.locks().names.release(tree, running),
            }
        }
    }
}
