//! Locks of names, that is, of keys that need not have a record; guards use them (`session/guard.rs`).
//!
//! A name has an entry in the lock table, as a row has. A transaction with very many entries gets ranges instead of
//! further ones, as for rows. These ranges also lock the names between, until the transaction releases all names of
//! the tree.

use std::collections::hash_map::Entry as MapEntry;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::TreeId;
use crate::lock::range::Holders;
use crate::lock::row_name::{Row, RowName};
use crate::lock::running_transaction::RunningTransaction;
use crate::lock::table::{LockMode, LockTable};
use crate::planted::{is_planted, PlantedFault};
use crate::txn::waiting::row_locks::Conflict;
use crate::txn::TreeTransaction;

/// The lock that [`TreeTransaction::lock_name`] has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLock {
    /// One name, by its entry.
    Entry(NameEntry),
    /// Names of a tree, by ranges.
    Ranges(TreeId),
}

/// The entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameEntry(Row);

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

impl LockTable {
    /// Locks a name for `who` alone if nothing is in the way.
    ///
    /// # Errors
    /// The holders of ranges that are in the way; an empty list if others hold or await the name itself.
    fn try_take_name(
        &self,
        row: Row,
        tree: TreeId,
        key: &[u8],
        who: &Arc<RunningTransaction>,
    ) -> Result<KeyLock, Holders> {
        let mode = LockMode::Exclusive;
        let shard = self.shard(row);
        // Each request for this name looks under this mutex.
        let mut rows = shard.rows.lock();
        let holders = self.names.holders(tree, key, who, mode);
        if !holders.is_empty() {
            return Err(holders);
        }
        if !rows.contains_key(&row) {
            let many =
                who.held_rows() >= self.escalates_at && !is_planted(PlantedFault::GuardOneByOne);
            if many {
                self.names.add_key(tree, who, mode, key);
            }
            if many || self.names.covers(tree, key, who, mode) {
                return Ok(KeyLock::Ranges(tree));
            }
        }
        let name = RowName::new(tree, key);
        match LockTable::take(shard, &mut rows, row, &name, who, mode) {
            Some(_) => Ok(KeyLock::Entry(NameEntry(row))),
            None => Err(Holders::new()),
        }
    }

    /// Releases a held name if no other transaction holds or awaits it; returns whether it did.
    pub fn release_unwanted(&self, row: Row, who: &Arc<RunningTransaction>) -> bool {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let MapEntry::Occupied(occupied) = rows.entry(row) else {
            return false;
        };
        let queue = occupied.get();
        let wanted = !queue.waiters.is_empty() || queue.holders.len() > 1;
        if wanted || queue.position(who).is_none() {
            return false;
        }
        occupied.remove();
        shard.entry_gone();
        who.forget(row);
        true
    }
}
