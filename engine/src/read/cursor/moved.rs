//! Rows whose index entries other transactions have moved before the cursor locked them.
//!
//! A locking read that locks no ranges finds an entry, locks its row, and may find that the row has another entry by
//! now. If that entry lies ahead, the cursor comes to it. If it lies between the last returned row and the old entry,
//! the cursor would miss a row that was there all the time. So the cursor goes back to that entry. A new entry that is
//! not committed yet leads to the row, too, as in InnoDB, unless the row itself is new.

use std::cmp::Ordering;

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::read::cursor::Cursor;
use crate::read::record_cursor::Direction;
use crate::row::entry;
use crate::row::payload::RowRef;
use crate::session::transaction::Transaction;
use crate::table::large;
use crate::table::open_table::TableTrees;
use crate::tree::Position;

impl Cursor {
    /// From the next seek on, a locking cursor also comes to entries that others have inserted and not committed.
    pub(super) fn meet_moving(&mut self, locks: bool) {
        let meets = locks && self.index != 0 && !self.newest;
        self.walk
            .set_meets_uncommitted(meets && !is_planted(PlantedFault::PassMovingEntries));
    }

    /// Whether the cursor must check the walk's entry: if it is committed, or the new entry of an existing row.
    ///
    /// The cursor waits for the row of a new entry: by the time that the cursor comes to the row's old entry, that may
    /// be gone.
    pub(super) fn leads_to_row(&self, txn: &mut Transaction, trees: &TableTrees) -> Result<bool> {
        if !self.walk.is_uncommitted() {
            return Ok(true);
        }
        let clustered = entry::clustered_key(self.walk.key(), self.walk.payload())?;
        let view = txn.tree_txn.latest_view();
        let row = txn
            .tree_txn
            .read(&trees.clustered, clustered, &view, |_| ())?;
        Ok(row.is_some())
    }

    /// The present entry of the batch's row, which is now locked, if the cursor has already passed that entry.
    ///
    /// `None` if the entry lies ahead, or before the place where the cursor's search or step began.
    #[cold]
    pub(super) fn moved_back(&self, trees: &TableTrees) -> Result<Option<Vec<u8>>> {
        if self.index == 0 || self.newest || is_planted(PlantedFault::MissMovedEntries) {
            return Ok(None);
        }
        let index = self.table.key_layout(self.index)?;
        let clustered = self.batch.clustered_key();
        let row = RowRef::new(&self.table.layout, clustered, self.batch.row())?;
        let mut buffers = Vec::new();
        let values = large::values(&self.table.layout, trees, row, false, &mut buffers)?;
        let (mut key, mut payload) = (Vec::new(), Vec::new());
        let collations = self.table.collations();
        entry::encode(
            index,
            &values,
            clustered,
            collations,
            &mut key,
            &mut payload,
        )?;
        let here = self.batch.key();
        let behind = match self.direction {
            Direction::Forward => &key[..] < here,
            Direction::Backward => &key[..] > here,
        };
        Ok((behind && self.origin.comes_before(&key, self.direction)).then_some(key))
    }
}

/// Where a search or a step of a cursor began: it has checked, and not returned, all entries since.
#[derive(Default)]
pub(super) struct Origin {
    key: Vec<u8>,
    place: Place,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// Before all entries.
    #[default]
    End,
    /// At the key.
    At,
    /// Behind the key.
    Behind,
}

impl Origin {
    /// Notes that a search began at a position, or a step at a key.
    pub(super) fn set(&mut self, position: Position<'_>) {
        self.key.clear();
        let key = match position {
            Position::First | Position::Last => {
                self.place = Place::End;
                return;
            }
            Position::AtOrAfter(key) | Position::AtOrBefore(key) => {
                self.place = Place::At;
                key
            }
            Position::After(key) | Position::Before(key) => {
                self.place = Place::Behind;
                key
            }
        };
        self.key.extend_from_slice(key);
    }

    /// Whether a cursor that goes in `direction` from here comes to `key`.
    fn comes_before(&self, key: &[u8], direction: Direction) -> bool {
        let order = match direction {
            Direction::Forward => self.key[..].cmp(key),
            Direction::Backward => key.cmp(&self.key),
        };
        match self.place {
            Place::End => true,
            Place::At => order != Ordering::Greater,
            Place::Behind => order == Ordering::Less,
        }
    }
}
