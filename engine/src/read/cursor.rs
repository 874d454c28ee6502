//! Cursors: walking an index in both directions.
//!
//! A cursor over the clustered index, or an index-only one, returns what its [`RecordCursor`] stands on;
//! any other collects entries and fetches their rows in batches; a seek for a whole key of a
//! unique index is a read of that one row. What a cursor holds ahead of its position is dropped
//! when the transaction's view has changed or the transaction has written something else than
//! the row that the cursor stands on.
//!
//! A cursor that finds no entry keeps its place among them, and goes on from there.

mod moved;
mod moving;
mod passing;
mod place;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::planted::{is_planted, PlantedFault};
use crate::read::filter::EntryFilter;
use crate::read::options::CursorOptions;
use crate::read::record_cursor::{Direction, RecordCursor};
use crate::read::row_batch::Batch;
use crate::read::row_view::RowView;
use crate::row::entry::{self, EntryBuffer, EntryRef};
use crate::row::key_bytes::KeyBytes;
use crate::row::projection::ColumnSet;
use crate::row::{NumberPlace, Text, TextPlace};
use crate::session::transaction::Transaction;
use crate::table::key_prefix::successor;
use crate::table::open_table::{IndexId, Table, TableTrees, WholeKey};
use crate::tree::Position;
use moved::Origin;
use passing::CommittedRow;
use place::Gap;

/// Where [`Cursor::seek`] goes, from an encoded key prefix p. An entry "starts with p" when its
/// encoded key does; the empty prefix starts everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The first entry that starts with p.
    Exact,
    /// The last entry that starts with p.
    ExactLast,
    /// The first entry that starts with p or is greater.
    AtOrAfter,
    /// The first entry that is greater than all that start with p.
    After,
    /// The last entry that starts with p or is less.
    AtOrBefore,
    /// The last entry that is less than all that start with p.
    Before,
    /// The first entry of all (p is ignored).
    First,
    /// The last entry of all (p is ignored).
    Last,
}

/// What a cursor stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// On no entry.
    Gap(Gap),
    /// What the walk stands on.
    Walk,
    /// The walk's key, with the payload in `buffer`.
    Fetched,
    /// `point_key`, with the row in `buffer`.
    Point,
    /// `point_key` of a secondary index, with the entry's payload in `buffer`.
    PointEntry,
    /// The current item of the batch.
    Batch,
}

/// How far a collection goes ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchExtent {
    /// As far as the cursor may go.
    End,
    /// As long as entries start with the prefix of the last seek.
    Prefix,
}

/// A position in an index of a table. Made without I/O; reusable by any number of seeks, but
/// only with the transaction of its last seek, or [`Cursor::step_off`], in between.
pub struct Cursor {
    table: Arc<Table>,
    /// The table's trees as of the last seek: they can't change while the transaction uses the
    /// table.
    trees: Option<Arc<TableTrees>>,
    index: IndexId,
    options: CursorOptions,
    /// Parts of the index's key to decode for index-only reads.
    parts: usize,
    /// The columns that rows will be asked for; `None`: all.
    columns: Option<ColumnSet>,
    /// Rows in the batch lack columns that are asked for now.
    batch_misses_columns: bool,
    walk: RecordCursor,
    batch: Batch,
    at: At,
    /// The key that some gaps lie at.
    place: Vec<u8>,
    direction: Direction,
    /// Where the search or step began that leads to the next row that is locked.
    origin: Origin,
    /// The prefix of the last seek.
    prefix: Vec<u8>,
    end: Option<(Vec<u8>, bool)>,
    point_key: Vec<u8>,
    /// The clustered key, for a point read through a secondary index.
    point_clustered: Vec<u8>,
    buffer: Vec<u8>,
    entry: EntryBuffer,
    filter: Option<Box<dyn EntryFilter>>,
    filter_entry: EntryBuffer,
    /// [`Transaction::writes`] when the walk's leaf was copied.
    writes: u64,
    /// How often the transaction had waited for others then.
    waits: u64,
    /// Entries come from the walk, without locks.
    plain: bool,
    /// The last seek was for entries that start with its prefix, and the cursor has not gone back since: what
    /// follows, below the walk's stop, starts with the prefix.
    same_prefix: bool,
    /// See [`Cursor::read_newest`].
    newest: bool,
    /// See [`Cursor::set_semi_consistent`].
    semi_consistent: bool,
    /// The row that the cursor stands on is as it was committed last, and not locked.
    committed: Option<CommittedRow>,
    /// The key of a row that is waited for, since it was wanted as it was committed last.
    again: Option<Vec<u8>>,
    /// What the transaction had asked for and written once the row was locked that the cursor
    /// stands on: [`Cursor::unlock_row`].
    locked: Option<(u64, u64)>,
}

impl Cursor {
    /// A cursor over an index of a table.
    pub fn new(table: &Arc<Table>, index: IndexId, options: CursorOptions) -> Self {
        Cursor {
            table: table.clone(),
            trees: None,
            index,
            options,
            parts: usize::MAX,
            columns: None,
            batch_misses_columns: false,
            walk: RecordCursor::new(),
            batch: Batch::default(),
            at: At::Gap(Gap::Nowhere),
            place: Vec::new(),
            direction: Direction::Forward,
            origin: Origin::default(),
            prefix: Vec::new(),
            end: None,
            point_key: Vec::new(),
            point_clustered: Vec::new(),
            buffer: Vec::new(),
            entry: EntryBuffer::default(),
            filter: None,
            filter_entry: EntryBuffer::default(),
            writes: 0,
            waits: 0,
            plain: false,
            same_prefix: false,
            newest: false,
            semi_consistent: false,
            committed: None,
            again: None,
            locked: None,
        }
    }

    /// From the next seek on, what is read are the newest rows, whatever the transaction's snapshot is,
    /// and those that others are writing are waited for: for whoever checks what must hold of all
    /// rows. For locking cursors. Rows that come to be where the cursor has looked already are kept
    /// out by [`Transaction::guard`].
    pub fn read_newest(&mut self) {
        self.newest = !is_planted(PlantedFault::SnapshotCheck);
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The index.
    pub fn index(&self) -> IndexId {
        self.index
    }

    /// Says which columns will be asked for: index-only reads decode no others, and rows whose page is not
    /// in memory may come without them, so that asking for another column is an error. `None` is all, as at
    /// the beginning. Of the row that the cursor stands on it says nothing.
    pub fn set_columns(&mut self, columns: Option<&[usize]>) {
        let before = self.columns;
        self.columns = columns.and_then(ColumnSet::of);
        self.batch_misses_columns |= before.is_some_and(|before| !before.holds(self.columns));
        let key = self.table.layout.key(self.index);
        self.parts = match (columns, key) {
            (Some(columns), Some(key)) => columns
                .iter()
                .filter_map(|&c| key.entry_part(c))
                .filter(|&n| key.parts[n].stands_at().is_none())
                .max()
                .map_or(0, |last| last + 1),
            _ => usize::MAX,
        };
    }

    /// Ends forward scans at an encoded key prefix: entries greater than all that start with it
    /// (or, not `inclusive`, entries that start with it or are greater) are not returned, nor
    /// prefetched. Stays until [`Cursor::clear_end`].
    pub fn set_end(&mut self, prefix: &[u8], inclusive: bool) {
        let (end, flag) = self.end.get_or_insert_with(Default::default);
        end.clear();
        end.extend_from_slice(prefix);
        *flag = inclusive;
        self.set_stop();
    }

    /// Takes [`Cursor::set_end`] back.
    pub fn clear_end(&mut self) {
        if self.end.take().is_some() {
            self.set_stop();
        }
    }

    /// Looks at entries of a secondary index with a filter before it fetches their rows. For
    /// cursors that fetch rows; from the next seek on.
    pub fn set_filter(&mut self, filter: Option<Box<dyn EntryFilter>>) {
        self.filter = filter;
    }

    /// Goes to an entry; false when there is none, and the cursor then stands where it would be: on
    /// no entry, with those behind that place next and those before it previous.
    ///
    /// # Errors
    /// For locking reads those of waiting for locks; those of reading pages; [`Error::Interrupted`] when killed,
    /// where it comes to another leaf.
    pub fn seek(&mut self, txn: &mut Transaction, prefix: &[u8], to: Seek) -> Result<bool> {
        txn.enter_table(&self.table)?;
        self.again = self.leaves_committed();
        self.at = At::Gap(Gap::of_seek(to));
        self.prefix.clear();
        if !matches!(to, Seek::First | Seek::Last) {
            self.prefix.extend_from_slice(prefix);
        }
        self.batch.restart();
        self.direction = match to {
            Seek::ExactLast | Seek::AtOrBefore | Seek::Before | Seek::Last => Direction::Backward,
            _ => Direction::Forward,
        };
        self.leave_prefix();
        let trees = self.take_trees();
        let result = self.seek_in(txn, &trees, prefix, to);
        self.trees = Some(trees);
        self.again = None;
        result
    }

    /// The table's present trees. Cursors of many threads share them: what they count stays
    /// untouched unless the trees have changed.
    fn take_trees(&mut self) -> Arc<TableTrees> {
        let now = self.table.trees.load();
        match self.trees.take() {
            Some(trees) if Arc::ptr_eq(&trees, &now) => trees,
            _ => arc_swap::Guard::into_inner(now),
        }
    }

    fn seek_in(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        prefix: &[u8],
        to: Seek,
    ) -> Result<bool> {
        if to == Seek::Exact && self.filter.is_none() {
            match self.table.whole_key(self.index, prefix) {
                WholeKey::Yes => return self.point(txn, trees, prefix),
                WholeKey::Unknown if self.point(txn, trees, prefix)? => return Ok(true),
                _ => {}
            }
        }
        let behind;
        let position = match to {
            Seek::Exact | Seek::AtOrAfter => Position::AtOrAfter(prefix),
            Seek::Before => Position::Before(prefix),
            Seek::First => Position::First,
            Seek::Last => Position::Last,
            Seek::After | Seek::AtOrBefore | Seek::ExactLast => match successor(prefix) {
                Some(next) => {
                    behind = next;
                    if to == Seek::After {
                        Position::AtOrAfter(&behind)
                    } else {
                        Position::Before(&behind)
                    }
                }
                // Nothing is greater than all that start with the prefix. It is a read all the same, and the
                // snapshot is of now.
                None if to == Seek::After => {
                    let lock = txn.read_lock(self.options.lock);
                    self.view(txn, lock);
                    return Ok(false);
                }
                None => Position::Last,
            },
        };
        let extent = match to {
            Seek::Exact | Seek::ExactLast => BatchExtent::Prefix,
            _ => BatchExtent::End,
        };
        self.same_prefix = to == Seek::Exact;
        self.set_stop();
        if to != Seek::ExactLast {
            return self.start(txn, trees, position, extent);
        }
        self.walk.set_floor(prefix);
        let found = self.start(txn, trees, position, extent);
        // What comes before may be asked for next.
        self.walk.set_floor(&[]);
        found
    }

    /// Goes to the next entry; false at the end, and before the first seek. The cursor then stands
    /// behind the last entry, on none. After an error it stands on none, and what was to come is still to come.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self, txn: &mut Transaction) -> Result<bool> {
        if self.can_step(txn) && self.walk.step_within()? {
            if self.index != 0 || self.walk.payload().first() != Some(&0) {
                return Ok(true);
            }
            return self.arrive_again(txn);
        }
        self.step(txn, Direction::Forward, BatchExtent::End)
    }

    /// Goes to the previous entry; false at the beginning, and before the first seek. The cursor then
    /// stands before the first entry, on none.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn prev(&mut self, txn: &mut Transaction) -> Result<bool> {
        self.step(txn, Direction::Backward, BatchExtent::End)
    }

    /// Goes to the next entry if it starts with the prefix of the last seek; otherwise false, and
    /// the cursor then stands before that entry, on none.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    #[inline]
    pub fn next_same_prefix(&mut self, txn: &mut Transaction) -> Result<bool> {
        if self.same_prefix && self.can_step(txn) && self.walk.step_within()? {
            if self.index != 0 || self.walk.payload().first() != Some(&0) {
                return Ok(true);
            }
            return self.arrive_again(txn);
        }
        if matches!(self.at, At::Point | At::PointEntry) && self.prefix == self.point_key {
            // A whole key of a unique index has one entry.
            self.at = At::Gap(Gap::BehindPrefix);
            return Ok(false);
        }
        if !self.step(txn, Direction::Forward, BatchExtent::Prefix)? {
            return Ok(false);
        }
        if self.key().starts_with(&self.prefix) {
            return Ok(true);
        }
        self.leave(Gap::Before);
        Ok(false)
    }

    /// Whether [`Cursor::next_in_leaf`] may be tried, instead of [`Cursor::next`] or with `same_prefix` of
    /// [`Cursor::next_same_prefix`].
    #[inline]
    pub fn is_in_leaf(&self, txn: &mut Transaction, same_prefix: bool) -> bool {
        self.index != 0 && (self.same_prefix || !same_prefix) && self.can_step(txn)
    }

    /// Goes to the next entry where that stands in the leaf at hand; otherwise stays, and says false. Only as long as
    /// nothing else has been done with the transaction since [`Cursor::is_in_leaf`] said that it may be tried.
    ///
    /// # Errors
    /// `Error::Internal` when the bytes are no entry.
    #[inline]
    pub fn next_in_leaf(&mut self) -> Result<bool> {
        self.walk.step_within()
    }

    /// The row, or index entry, that the cursor stands on. Valid until the cursor moves.
    ///
    /// # Errors
    /// `Error::Invalid` when it stands on none; `Error::Internal` when the bytes are no row.
    #[inline]
    pub fn row(&mut self) -> Result<RowView<'_>> {
        let (key, payload) = match self.at {
            At::Gap(_) => return Err(Error::Invalid("the cursor stands on no row".into())),
            At::Batch => {
                let key = KeyBytes::Here(self.batch.clustered_key());
                return RowView::row(&self.table, key, self.batch.row());
            }
            At::Point if self.index != 0 => {
                let key = KeyBytes::Here(&self.point_clustered);
                return RowView::row(&self.table, key, &self.buffer);
            }
            At::Walk => (KeyBytes::There(&self.walk), self.walk.payload()),
            At::Fetched => (KeyBytes::There(&self.walk), &self.buffer[..]),
            At::Point | At::PointEntry => (KeyBytes::Here(&self.point_key), &self.buffer[..]),
        };
        if self.index == 0 {
            return RowView::row(&self.table, key, payload);
        }
        let layout = &self.table.layout;
        let index = self.table.key_layout(self.index)?;
        self.entry.decode(index, self.parts, key, payload)?;
        let entry = EntryRef::new(layout, index, key, payload, &self.entry);
        Ok(RowView::entry(&self.table, entry))
    }

    /// The number at a place that [`Table::number_place`] gave for this cursor's index, or, when the
    /// cursor returns rows, for index 0: its low bytes as in two's complement, those above zero.
    /// `None` when the cursor stands on no entry.
    #[inline]
    pub fn number(&self, place: &NumberPlace) -> Option<u64> {
        match self.at {
            At::Walk | At::Fetched => self.walk.number(place),
            _ => {
                let key = if self.returns_rows() {
                    self.clustered_key()
                } else {
                    self.key()
                };
                place.read(key.len(), |i| key[i])
            }
        }
    }

    /// Puts the string at a place that [`Table::text_place`] gave for this index-only cursor's index
    /// at the front of `out`; what `out` has behind it may be overwritten.
    ///
    /// # Errors
    /// `Error::Internal` when there is no such string, or it is longer than `out`.
    #[inline]
    pub fn text(&self, place: &TextPlace, out: &mut [u8]) -> Result<Text> {
        let text = match self.at {
            At::Walk => self.walk.text(place, out),
            At::Fetched | At::PointEntry => place.read(&self.key(), &self.buffer, out),
            At::Batch => self.text_of_row(self.batch.row(), place, out)?,
            At::Point => self.text_of_row(&self.buffer, place, out)?,
            At::Gap(_) => None,
        };
        text.ok_or_else(|| Error::Internal("an index entry without its string".into()))
    }

    /// As [`Cursor::text`], where an index-only cursor has locked the row, and has it instead of the entry.
    #[cold]
    fn text_of_row(
        &self,
        payload: &[u8],
        place: &TextPlace,
        out: &mut [u8],
    ) -> Result<Option<Text>> {
        if is_planted(PlantedFault::RowsWithoutTexts) {
            return Ok(None);
        }
        let key = KeyBytes::Here(self.clustered_key());
        let row = RowView::row(&self.table, key, payload)?;
        let mut text = Vec::new();
        if !row.get_large(place.column(), &mut text)? {
            return Ok(Some(Text::Null));
        }
        let Some(front) = out.get_mut(..text.len()) else {
            return Ok(None);
        };
        front.copy_from_slice(&text);
        Ok(Some(Text::Bytes(text.len())))
    }

    /// The encoded index key that the cursor stands on; empty when it stands on none.
    pub fn key(&self) -> &[u8] {
        match self.at {
            At::Gap(_) => &[],
            At::Walk | At::Fetched => self.walk.key(),
            At::Point | At::PointEntry => &self.point_key,
            At::Batch => self.batch.key(),
        }
    }

    /// The clustered key of the row that the cursor stands on; empty when it stands on none.
    pub fn clustered_key(&self) -> &[u8] {
        match self.at {
            At::Gap(_) => &[],
            At::Batch => self.batch.clustered_key(),
            _ if self.index == 0 => self.key(),
            At::Walk | At::Fetched => {
                entry::clustered_key(self.walk.key(), self.walk.payload()).unwrap_or(&[])
            }
            At::Point => &self.point_clustered,
            At::PointEntry => entry::clustered_key(&self.point_key, &self.buffer).unwrap_or(&[]),
        }
    }
}
