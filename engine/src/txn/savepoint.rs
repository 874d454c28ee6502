//! Savepoints of a transaction, and which of them are gone.

use crate::ids::UndoPtr;

/// A state within a transaction to which it can roll back.
#[derive(Clone, Debug)]
pub struct Savepoint {
    /// The generation of the transaction object to which it belongs.
    pub(super) generation: u64,
    pub(super) undo: UndoPtr,
    /// Bytes that its undo stream kept (`StreamWriter::kept`).
    pub(super) undo_kept: u64,
    /// How many times undo had been given up by then.
    pub(super) cuts: u64,
    pub(super) undo_records: u64,
    /// How many times the transaction had rolled back to a savepoint by then.
    pub(super) returns: u64,
    pub(super) redo_parts: u64,
    pub(super) redo_len: usize,
}

/// The rollbacks to savepoints of a transaction.
///
/// A rollback beyond a savepoint makes that savepoint invalid for good. The transaction may have done as much work
/// again since, but it is other work.
#[derive(Default)]
pub(super) struct Returns {
    count: u64,
    /// Each rollback after which none went further: its place in the order, and the work that it left. Both rise.
    furthest: Vec<(u64, u64)>,
}

impl Returns {
    /// The number of rollbacks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Records a rollback that left `work`.
    pub fn add(&mut self, work: u64) {
        while self.furthest.last().is_some_and(|(_, left)| *left >= work) {
            self.furthest.pop();
        }
        self.furthest.push((self.count, work));
        self.count += 1;
    }

    /// Returns whether the transaction has rolled back beyond a savepoint since the savepoint was made.
    pub fn passed(&self, savepoint: &Savepoint) -> bool {
        self.went_below(savepoint.returns, savepoint.undo_records)
    }

    /// Returns whether a rollback after the first `count` has left less than `least`.
    pub fn went_below(&self, count: u64, least: u64) -> bool {
        let before = |(number, _): &(u64, u64)| *number < count;
        let first = self.furthest.partition_point(before);
        let furthest = self.furthest.get(first);
        furthest.is_some_and(|(_, left)| *left < least)
    }
}
