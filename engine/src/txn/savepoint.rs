//! Places in a transaction to roll back to, and which of them are gone.

use crate::ids::UndoPtr;

/// A place in a transaction to roll back to.
#[derive(Clone, Debug)]
pub struct Savepoint {
    /// Which use of the transaction object it belongs to.
    pub(super) generation: u64,
    pub(super) undo: UndoPtr,
    /// Bytes that stood in the undo stream.
    pub(super) undo_kept: u64,
    /// How often undo had been cut off by then.
    pub(super) cuts: u64,
    pub(super) undo_records: u64,
    /// How often the transaction had gone back by then.
    pub(super) returns: u64,
    pub(super) redo_parts: u64,
    pub(super) redo_len: usize,
}

/// The ways back that a transaction has gone. Where it went back behind a savepoint, that one is gone for
/// good: as much work as before may have been done since, and it is other work.
#[derive(Default)]
pub(super) struct Returns {
    count: u64,
    /// Each way back that none behind it went further: which one it was, and how much work it left. Both rise.
    furthest: Vec<(u64, u64)>,
}

impl Returns {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The transaction has gone back, to so much work.
    pub fn add(&mut self, work: u64) {
        while self.furthest.last().is_some_and(|(_, left)| *left >= work) {
            self.furthest.pop();
        }
        self.furthest.push((self.count, work));
        self.count += 1;
    }

    /// Whether the transaction has gone back behind a savepoint since that was made.
    pub fn passed(&self, savepoint: &Savepoint) -> bool {
        self.went_below(savepoint.returns, savepoint.undo_records)
    }

    /// Whether one of those behind the first `count` has left less than this.
    pub fn went_below(&self, count: u64, least: u64) -> bool {
        let before = |(number, _): &(u64, u64)| *number < count;
        let first = self.furthest.partition_point(before);
        let furthest = self.furthest.get(first);
        furthest.is_some_and(|(_, left)| *left < least)
    }
}
