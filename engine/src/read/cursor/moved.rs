//! Rows whose index entries others have moved before they were locked.
//!
//! A locking read that locks no ranges finds an entry, locks its row, and may find that the row has another
//! entry by now. One that lies ahead the cursor comes to. One that lies before, and behind the last row that was
//! returned, it would miss, though the row was there all the time: so it goes back to it.
//! A new entry that is not committed yet leads to the row, too, as in InnoDB, unless the row itself is new.

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
    /// From here on, a locking cursor comes to entries, too, that others have put and not committed.
    pub(super) fn meet_moving(&mut self, locks: bool) {
        let meets = locks && self.index != 0 && !self.newest;
        self.walk
            .set_meets_uncommitted(meets && !is_planted(PlantedFault::PassMovingEntries));
    }

    /// Whether the entry that the walk stands on is to be looked at: whether it is committed, or the new one
    /// of a row that is there. Such a row is waited for: where it had its entry, ahead, there may be none by the
    /// time that the cursor comes there.
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

    /// The entry that the row of the batch has, now that it is locked, where that lies between where the cursor came
    /// from and the entry that has led to the row.
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

/// Where a search or a step of a cursor began: what lies from there to where it has come to, it has looked at and
/// not returned.
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
    /// Behind it.
    Behind,
}

impl Origin {
    /// A search began at a position, or a step from a key.
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
