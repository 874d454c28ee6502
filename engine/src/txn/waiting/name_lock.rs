//! Locks of names: of keys of which there need be no record. Guards are such (`session/guard.rs`).
//!
//! A name has an entry in the lock table, as a row has. Who has very many entries gets ranges instead of further ones,
//! as for rows. These hold the names between, too, until all names of the tree are given back.

use crate::error::Result;
use crate::ids::TreeId;
use crate::lock::row_name::Row;
use crate::lock::table::{KeyLock, LockMode, NameEntry};
use crate::planted::{is_planted, PlantedFault};
use crate::txn::waiting::row_locks::Conflict;
use crate::txn::TreeTransaction;

impl TreeTransaction {
    /// Locks the name of a key of which there need be no record, against others who do; waits as long
    /// as allowed. It is not the lock of that key's record, which stays when the name is given back. Not inside
    /// the barrier.
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

    /// Gives a locked name back, or all names of a tree that ranges stand for; unless others wait for it: they get it
    /// at the end.
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
