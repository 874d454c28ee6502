//! Locks of names, that is, of keys that need not have a record.

use std::collections::hash_map::Entry as MapEntry;
use std::sync::Arc;

use super::{LockMode, LockTable};
use crate::ids::TreeId;
use crate::lock::range::Holders;
use crate::lock::row_name::{Row, RowName};
use crate::lock::running_transaction::RunningTransaction;
use crate::planted::{is_planted, PlantedFault};

/// The lock of a name that a transaction has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLock {
    /// One name, by its entry.
    Entry(NameEntry),
    /// Names of a tree, by ranges.
    Ranges(TreeId),
}

/// The entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameEntry(pub(crate) Row);

impl LockTable {
    /// Locks a name for `who` alone if nothing is in the way.
    ///
    /// # Errors
    /// The holders of ranges that are in the way; an empty list if others hold or await the name itself.
    pub fn try_take_name(
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
