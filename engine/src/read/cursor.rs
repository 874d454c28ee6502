//! Cursors: reading an index in both directions.
//!
//! A cursor over the clustered index, or an index-only one, returns the current record of its [`RecordCursor`]. Any
//! other cursor collects entries and fetches their rows in batches. A seek for a whole key of a unique index reads that
//! one row. The cursor drops entries that it holds ahead of its position in two cases: when the transaction's view has
//! changed, and when the transaction has written another row than the current one.
//!
//! A cursor that finds no entry keeps its place between the entries, and the next step goes on from there.

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

/// Where [`Cursor::seek`] goes, given an encoded key prefix p.
///
/// An entry "starts with p" if its encoded key does; every entry starts with the empty prefix.
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

/// The position of a cursor, and where its row is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// On no entry.
    Gap(Gap),
    /// On the record of the walk.
    Walk,
    /// On the record of the walk, with its payload in `buffer`.
    Fetched,
    /// On `point_key`, with the row in `buffer`.
    Point,
    /// On `point_key` of a secondary index, with the entry's payload in `buffer`.
    PointEntry,
    /// On the current item of the batch.
    Batch,
}

/// How far a cursor collects entries ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BatchExtent {
    /// As far as the cursor may go.
    End,
    /// As long as entries start with the prefix of the last seek.
    Prefix,
}

/// A position in an index of a table.
///
/// Making one does no I/O. A cursor serves any number of seeks. Between two seeks, only the transaction of the last
/// seek may use it, unless [`Cursor::step_off`] is called.
pub struct Cursor {
    table: Arc<Table>,
    /// The table's trees as of the last seek: they can't change while the transaction uses the table.
    trees: Option<Arc<TableTrees>>,
    index: IndexId,
    options: CursorOptions,
    /// Parts of the index's key to decode for index-only reads.
    parts: usize,
    /// The columns that the caller will read; `None`: all.
    columns: Option<ColumnSet>,
    /// Rows in the batch lack columns that the caller asks for since.
    batch_misses_columns: bool,
    walk: RecordCursor,
    batch: Batch,
    at: At,
    /// The key of the gaps that have one.
    place: Vec<u8>,
    direction: Direction,
    /// Where the search or step began that leads to the row that is locked next.
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
    /// How often the transaction had waited for others at that time.
    waits: u64,
    /// The cursor returns records of the walk, without locks.
    plain: bool,
    /// The last seek was [`Seek::Exact`], and the cursor has stayed within its prefix: entries below the walk's stop
    /// start with it.
    same_prefix: bool,
    /// See [`Cursor::read_newest`].
    newest: bool,
    /// See [`Cursor::set_semi_consistent`].
    semi_consistent: bool,
    /// Set if the current row is the last committed version, and not locked.
    committed: Option<CommittedRow>,
    /// The key of a row that a semi-consistent read returned and the caller wants: the cursor waits for it.
    again: Option<Vec<u8>>,
    /// The transaction's counts of lock requests and writes when the current row was locked: for
    /// [`Cursor::unlock_row`].
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

    /// From the next seek on, the cursor reads the newest rows, whatever the transaction's snapshot is.
    ///
    /// It waits for rows that others are writing. This serves checks that must hold for all rows. For locking cursors.
    /// [`Transaction::guard`] keeps others from adding rows where the cursor has already read.
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

    /// Sets the columns that the caller will read; `None`, the default, is all.
    ///
    /// Index-only reads decode no other columns. A row whose page is not in memory may come without the other columns:
    /// reading one of these is then an error. The current row is not affected.
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

    /// Ends forward scans at an encoded key prefix, until [`Cursor::clear_end`].
    ///
    /// The cursor neither returns nor prefetches entries greater than all that start with the prefix; if not
    /// `inclusive`, also none that start with it.
    pub fn set_end(&mut self, prefix: &[u8], inclusive: bool) {
        let (end, flag) = self.end.get_or_insert_with(Default::default);
        end.clear();
        end.extend_from_slice(prefix);
        *flag = inclusive;
        self.set_stop();
    }

    /// Removes the end that [`Cursor::set_end`] has set.
    pub fn clear_end(&mut self) {
        if self.end.take().is_some() {
            self.set_stop();
        }
    }

    /// Sets a filter that checks entries of a secondary index before the cursor fetches their rows.
    ///
    /// For cursors that fetch rows; works from the next seek on.
    pub fn set_filter(&mut self, filter: Option<Box<dyn EntryFilter>>) {
        self.filter = filter;
    }

    /// Goes to an entry; returns false if there is none.
    ///
    /// The cursor is then on no entry, but at the place where the entry would be: the next step forward leads to the
    /// entry behind that place, the next step back to the entry before it.
    ///
    /// # Errors
    /// For locking reads those of waiting for locks; those of reading pages; [`Error::Interrupted`] when killed,
    /// checked when the cursor goes to another leaf.
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

    /// The table's present trees.
    ///
    /// Cursors of many threads share the reference count of the trees, so it is changed only if the trees have changed.
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
                // No key is greater than all that start with the prefix. The seek is a read all the same, and takes the
                // transaction's snapshot.
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
        // The next step back may go beyond the prefix.
        self.walk.set_floor(&[]);
        found
    }

    /// Goes to the next entry; returns false at the end, and before the first seek.
    ///
    /// At the end the cursor is behind the last entry, on none. After an error it is on no entry, and the next step
    /// leads to the entry that it could not read.
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

    /// Goes to the previous entry; returns false at the beginning, and before the first seek.
    ///
    /// At the beginning the cursor is before the first entry, on none.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn prev(&mut self, txn: &mut Transaction) -> Result<bool> {
        self.step(txn, Direction::Backward, BatchExtent::End)
    }

    /// Goes to the next entry if it starts with the prefix of the last seek; otherwise returns false.
    ///
    /// The cursor is then before that entry, on none.
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

    /// Whether the caller may try [`Cursor::next_in_leaf`] in place of [`Cursor::next`].
    ///
    /// With `same_prefix`: in place of [`Cursor::next_same_prefix`].
    #[inline]
    pub fn is_in_leaf(&self, txn: &mut Transaction, same_prefix: bool) -> bool {
        self.index != 0 && (self.same_prefix || !same_prefix) && self.can_step(txn)
    }

    /// Goes to the next entry if it is in the copied leaf; otherwise returns false and does not move.
    ///
    /// Allowed only as long as nothing else has been done with the transaction since [`Cursor::is_in_leaf`] returned
    /// true.
    ///
    /// # Errors
    /// `Error::Internal` when the bytes are no entry.
    #[inline]
    pub fn next_in_leaf(&mut self) -> Result<bool> {
        self.walk.step_within()
    }

    /// The current row or index entry.
    ///
    /// Valid until the cursor moves.
    ///
    /// # Errors
    /// `Error::Invalid` if the cursor is on no entry; `Error::Internal` when the bytes are no row.
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

    /// The number at a place that [`Table::number_place`] gave for this cursor's index.
    ///
    /// For a cursor that returns rows: for index 0. The number is in two's complement, in the low bytes; the bytes
    /// above are zero. `None` if the cursor is on no entry.
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

    /// Puts the string at a place that [`Table::text_place`] gave for this index-only cursor's index at the front of
    /// `out`.
    ///
    /// May overwrite the rest of `out`.
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

    /// As [`Cursor::text`], for an index-only cursor that has locked the row, and has the row instead of the entry.
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

    /// The encoded index key of the current entry; empty if the cursor is on none.
    pub fn key(&self) -> &[u8] {
        match self.at {
            At::Gap(_) => &[],
            At::Walk | At::Fetched => self.walk.key(),
            At::Point | At::PointEntry => &self.point_key,
            At::Batch => self.batch.key(),
        }
    }

    /// The clustered key of the current row; empty if the cursor is on no entry.
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
