//! Rows whose index entries others have moved before they were locked.
//!
//! A locking read that locks no ranges finds an entry, locks its row, and may find that the row has another
//! entry by now. One that lies ahead the cursor comes to. One that lies where it has looked already it would
//! miss, though the row was there all the time: so it returns the row in the place of the entry that it found.
//! (PostgreSQL's READ COMMITTED does the same: it looks at the newest version of a row once that is locked.)
//! A new entry that is not committed yet leads to the row, too, as in InnoDB, unless the row itself is new.

use super::{Cursor, Seek};
use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::row::entry::{self, EntryRef};
use crate::row::key_bytes::KeyBytes;
use crate::row::Value;
use crate::table::filter::Verdict;
use crate::table::open_table::TableTrees;
use crate::table::row_view::RowView;
use crate::table::transaction::Transaction;
use crate::table::walk::Direction;

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
        let view = txn.inner.latest_view();
        let row = txn.inner.read(&trees.clustered, clustered, &view, |_| ())?;
        Ok(row.is_some())
    }

    /// Whether the row of the batch, which is locked, is one that is looked for, and has its entry between where
    /// the last seek began and the entry that led to it.
    #[cold]
    pub(super) fn has_moved_behind(&mut self) -> Result<bool> {
        if self.index == 0 || self.newest || is_planted(PlantedFault::MissMovedEntries) {
            return Ok(false);
        }
        let index = self.table.key_layout(self.index)?;
        let clustered = self.batch.clustered_key();
        let row = RowView::row(&self.table, KeyBytes::Here(clustered), self.batch.row())?;
        let mut values = vec![Value::Null; self.table.layout.columns.len()];
        for part in &index.parts {
            values[part.column] = row.get(part.column)?;
        }
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
        if !self.has_passed(&key) {
            return Ok(false);
        }
        let Some(filter) = &mut self.filter else {
            return Ok(true);
        };
        let bytes = KeyBytes::Here(&key);
        let parts = usize::MAX;
        self.filter_entry.decode(index, parts, bytes, &payload)?;
        let layout = &self.table.layout;
        let entry = EntryRef::new(layout, index, bytes, &payload, &self.filter_entry);
        let verdict = filter.look(&RowView::entry(&self.table, entry))?;
        Ok(verdict == Verdict::Keep)
    }

    /// Whether the cursor has been where `key` stands, on its way from where the last seek began to the entry of
    /// the batch.
    fn has_passed(&self, key: &[u8]) -> bool {
        let (here, from) = (self.batch.key(), &self.prefix[..]);
        let begun = match self.sought {
            Seek::First | Seek::Last => true,
            Seek::Exact | Seek::AtOrAfter => key >= from,
            Seek::After => key > from && !key.starts_with(from),
            Seek::ExactLast | Seek::AtOrBefore => key <= from || key.starts_with(from),
            Seek::Before => key < from,
        };
        let before = match self.direction {
            Direction::Forward => key < here,
            Direction::Backward => key > here,
        };
        begun && before && self.direction == self.sought.direction()
    }
}
