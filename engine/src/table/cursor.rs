//! Cursors: walking an index in both directions.
//!
//! A cursor over the clustered index, or an index-only one, returns what its [`Walk`] stands on;
//! any other collects entries and fetches their rows in batches; a seek for a whole key of a
//! unique index is a read of that one row. What a cursor holds ahead of its position is dropped
//! when the transaction's view has changed or the transaction has written something else than
//! the row that the cursor stands on.

use std::sync::Arc;

use super::fetch::Batch;
use super::filter::{EntryFilter, Verdict};
use super::large;
use super::open_table::{IndexId, Table, TableTrees, WholeKey};
use super::read::RowLock;
use super::row_view::RowView;
use super::transaction::Transaction;
use super::walk::{Direction, Walk};
use crate::error::{Error, Result};
use crate::row::entry::{self, EntryBuffer, EntryRef};
use crate::tree::Position;

/// How a cursor reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorOptions {
    /// Locking read or snapshot read. A locking read returns the newest committed rows under
    /// READ COMMITTED; at the other levels a row that was changed after the snapshot is
    /// [`Error::WriteConflict`].
    pub lock: RowLock,
    /// Return index entries without fetching their rows: [`crate::RowView::get`] gives the
    /// columns for which [`Table::index_covers`] holds. A locking cursor fetches rows anyway.
    pub index_only: bool,
}

/// Where [`Cursor::seek`] goes, from an encoded key prefix p. An entry "starts with p" when its
/// encoded key does; the empty prefix starts everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seek {
    /// The first entry that starts with p.
    Exact,
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
    Nowhere,
    /// What the walk stands on.
    Walk,
    /// The walk's key, with the payload in `buffer`.
    Brought,
    /// `point_key`, with the row in `buffer`.
    Point,
    /// `point_key` of a secondary index, with the entry's payload in `buffer`.
    PointEntry,
    /// The current item of the batch.
    Batch,
}

/// How far a collection goes ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// As far as the cursor may go.
    End,
    /// As long as entries start with the prefix of the last seek.
    Prefix,
}

/// A position in an index of a table. Made without I/O; reusable by any number of seeks, but
/// only with the transaction of its last seek in between.
pub struct Cursor {
    table: Arc<Table>,
    /// The table's trees as of the last seek: they can't change while the transaction uses the
    /// table.
    trees: Option<Arc<TableTrees>>,
    index: IndexId,
    options: CursorOptions,
    /// Parts of the index's key to decode for index-only reads.
    parts: usize,
    walk: Walk,
    batch: Batch,
    at: At,
    direction: Direction,
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
    /// Entries come from the walk, without locks.
    plain: bool,
    /// The last seek was for entries that start with its prefix.
    same_prefix: bool,
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
            walk: Walk::new(),
            batch: Batch::default(),
            at: At::Nowhere,
            direction: Direction::Forward,
            prefix: Vec::new(),
            end: None,
            point_key: Vec::new(),
            point_clustered: Vec::new(),
            buffer: Vec::new(),
            entry: EntryBuffer::default(),
            filter: None,
            filter_entry: EntryBuffer::default(),
            writes: 0,
            plain: false,
            same_prefix: false,
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The index.
    pub fn index(&self) -> IndexId {
        self.index
    }

    /// Says which columns will be asked for, so that index-only reads decode no others. `None`
    /// is all, as at the beginning.
    pub fn set_columns(&mut self, columns: Option<&[usize]>) {
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

    /// Goes to an entry; false when there is none, and the cursor then stands nowhere.
    ///
    /// # Errors
    /// For locking reads those of waiting for locks; those of reading pages.
    pub fn seek(&mut self, txn: &mut Transaction, prefix: &[u8], to: Seek) -> Result<bool> {
        txn.enter_table(&self.table)?;
        self.at = At::Nowhere;
        self.prefix.clear();
        if !matches!(to, Seek::First | Seek::Last) {
            self.prefix.extend_from_slice(prefix);
        }
        self.batch.restart();
        self.direction = match to {
            Seek::AtOrBefore | Seek::Before | Seek::Last => Direction::Backward,
            _ => Direction::Forward,
        };
        let trees = self.take_trees();
        let result = self.seek_in(txn, &trees, prefix, to);
        self.trees = Some(trees);
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
            Seek::After | Seek::AtOrBefore => match successor(prefix) {
                Some(next) => {
                    behind = next;
                    if to == Seek::After {
                        Position::AtOrAfter(&behind)
                    } else {
                        Position::Before(&behind)
                    }
                }
                // Nothing is greater than all that start with the prefix.
                None if to == Seek::After => return Ok(false),
                None => Position::Last,
            },
        };
        let ahead = if to == Seek::Exact {
            Ahead::Prefix
        } else {
            Ahead::End
        };
        self.same_prefix = to == Seek::Exact;
        self.set_stop();
        self.start(txn, trees, position, ahead)
    }

    /// Goes to the next entry; false at the end, and the cursor then stands nowhere.
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
        self.step(txn, Direction::Forward, Ahead::End)
    }

    /// Goes to the previous entry; false at the beginning, and the cursor then stands nowhere.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn prev(&mut self, txn: &mut Transaction) -> Result<bool> {
        self.step(txn, Direction::Backward, Ahead::End)
    }

    /// Goes to the next entry if it starts with the prefix of the last seek; otherwise false, and
    /// the cursor then stands nowhere.
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
            self.at = At::Nowhere;
            return Ok(false);
        }
        if self.step(txn, Direction::Forward, Ahead::Prefix)?
            && self.key().starts_with(&self.prefix)
        {
            return Ok(true);
        }
        self.at = At::Nowhere;
        Ok(false)
    }

    /// The row, or index entry, that the cursor stands on. Valid until the cursor moves.
    ///
    /// # Errors
    /// `Error::Invalid` when it stands nowhere; `Error::Internal` when the bytes are no row.
    #[inline]
    pub fn row(&mut self) -> Result<RowView<'_>> {
        let (key, payload) = match self.at {
            At::Nowhere => return Err(Error::Invalid("the cursor stands on no row".into())),
            At::Batch => {
                return RowView::row(&self.table, self.batch.clustered_key(), self.batch.row())
            }
            At::Point if self.index != 0 => {
                return RowView::row(&self.table, &self.point_clustered, &self.buffer)
            }
            At::Walk if self.index == 0 => return RowView::row_at(&self.table, &self.walk),
            At::Walk => (self.walk.key(), self.walk.payload()),
            At::Brought => (self.walk.key(), &self.buffer[..]),
            At::Point | At::PointEntry => (&self.point_key[..], &self.buffer[..]),
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

    /// The encoded index key that the cursor stands on; empty when it stands nowhere.
    pub fn key(&self) -> &[u8] {
        match self.at {
            At::Nowhere => &[],
            At::Walk | At::Brought => self.walk.key(),
            At::Point | At::PointEntry => &self.point_key,
            At::Batch => self.batch.key(),
        }
    }

    /// The clustered key of the row that the cursor stands on; empty when it stands nowhere.
    pub fn clustered_key(&self) -> &[u8] {
        match self.at {
            At::Nowhere => &[],
            At::Batch => self.batch.clustered_key(),
            _ if self.index == 0 => self.key(),
            At::Walk | At::Brought => {
                entry::clustered_key(self.walk.key(), self.walk.payload()).unwrap_or(&[])
            }
            At::Point => &self.point_clustered,
            At::PointEntry => entry::clustered_key(&self.point_key, &self.buffer).unwrap_or(&[]),
        }
    }

    /// Whether the cursor fetches rows (rather than returning entries of a secondary index).
    fn returns_rows(&self) -> bool {
        self.index == 0 || !self.options.index_only || self.options.lock != RowLock::None
    }

    /// Whether rows come in batches, rather than from the walk.
    fn batched(&self, txn: &Transaction) -> bool {
        (self.index != 0 && self.returns_rows()) || txn.read_lock(self.options.lock).is_some()
    }

    /// Reads the one row of a whole key.
    fn point(&mut self, txn: &mut Transaction, trees: &TableTrees, key: &[u8]) -> Result<bool> {
        self.point_key.clear();
        self.point_key.extend_from_slice(key);
        let asked = self.options.lock;
        if self.index == 0 {
            if !txn.read_row(trees, key, asked, &mut self.buffer)? {
                return Ok(false);
            }
            self.at = At::Point;
            return Ok(true);
        }
        let lock = txn.read_lock(asked);
        let view = txn.read_view(lock);
        let tree = trees.index(self.index)?;
        self.buffer.clear();
        if !txn.copy(tree, key, &view, &mut self.buffer)? {
            return Ok(false);
        }
        if !self.batched(txn) {
            self.at = At::PointEntry;
            return Ok(true);
        }
        self.point_clustered.clear();
        self.point_clustered
            .extend_from_slice(entry::clustered_key(key, &self.buffer)?);
        if !txn.read_row(trees, &self.point_clustered, asked, &mut self.buffer)? {
            return Ok(false);
        }
        if lock.is_some() && !self.still_leads(txn, trees, key, &self.point_clustered)? {
            return Ok(false);
        }
        self.at = At::Point;
        Ok(true)
    }

    /// Whether an entry is still there, leading to the row that was locked meanwhile.
    fn still_leads(
        &self,
        txn: &mut Transaction,
        trees: &TableTrees,
        key: &[u8],
        clustered: &[u8],
    ) -> Result<bool> {
        if self.index == 0 {
            return Ok(true);
        }
        let lock = txn.read_lock(self.options.lock);
        let view = txn.read_view(lock);
        let leads = txn
            .inner
            .read(trees.index(self.index)?, key, &view, |payload| {
                entry::clustered_key(key, payload).map(|found| found == clustered)
            })?;
        leads.unwrap_or(Ok(false))
    }

    /// Begins a walk at a position, in `self.direction`.
    fn start(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        position: Position<'_>,
        ahead: Ahead,
    ) -> Result<bool> {
        let lock = txn.read_lock(self.options.lock);
        let view = txn.read_view(lock);
        self.writes = txn.writes;
        self.plain = !self.batched(txn);
        let tree = trees.index(self.index)?;
        let on = self
            .walk
            .seek(&txn.inner, tree, view, position, self.direction)?;
        self.arrive(txn, trees, on, ahead)
    }

    /// The walk stands on a record (`on`) or has ended: makes the cursor stand there, or on the
    /// first row of a new batch.
    fn arrive(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        mut on: bool,
        ahead: Ahead,
    ) -> Result<bool> {
        if !self.batched(txn) {
            if !on || !self.within(self.walk.key(), ahead) {
                self.at = At::Nowhere;
                return Ok(false);
            }
            self.at = At::Walk;
            if self.index == 0 && trees.large.is_some() && self.walk.payload().first() == Some(&0) {
                self.buffer.clear();
                self.buffer.extend_from_slice(self.walk.payload());
                large::bring_inside(trees, &mut self.buffer)?;
                self.at = At::Brought;
            }
            return Ok(true);
        }
        let tree = trees.index(self.index)?;
        let lock = txn.read_lock(self.options.lock);
        loop {
            self.batch.clear();
            let size = if lock.is_some() {
                1
            } else {
                self.batch.take_size()
            };
            let mut taken = false;
            let mut collected = 0;
            while collected < size {
                if taken {
                    on = self.walk.step(&txn.inner, tree, self.direction)?;
                    taken = false;
                }
                if !on || !self.within(self.walk.key(), ahead) {
                    break;
                }
                match self.look()? {
                    Verdict::Keep => collected += 1,
                    Verdict::Skip => {
                        taken = true;
                        continue;
                    }
                    Verdict::Stop => break,
                }
                if self.index == 0 {
                    self.batch.add_row(self.walk.key());
                } else {
                    self.batch.add(self.walk.key(), self.walk.payload())?;
                }
                taken = true;
            }
            if self.batch.is_empty() {
                self.at = At::Nowhere;
                return Ok(false);
            }
            if lock.is_none() {
                self.batch
                    .fetch(txn, trees, &self.walk.view, &mut self.buffer)?;
            } else {
                self.batch
                    .fetch_locked(txn, trees, self.options.lock, &mut self.buffer)?;
            }
            while self.batch.advance() {
                if lock.is_some() {
                    let (key, row) = (self.batch.key(), self.batch.clustered_key());
                    if !self.still_leads(txn, trees, key, row)? {
                        continue;
                    }
                }
                self.at = At::Batch;
                return Ok(true);
            }
            // No entry of the batch has a row.
            if taken {
                on = self.walk.step(&txn.inner, tree, self.direction)?;
            }
        }
    }

    /// What the filter says of the entry that the walk stands on.
    fn look(&mut self) -> Result<Verdict> {
        let Some(filter) = self.filter.as_mut().filter(|_| self.index != 0) else {
            return Ok(Verdict::Keep);
        };
        let index = self.table.key_layout(self.index)?;
        let (key, payload) = (self.walk.key(), self.walk.payload());
        self.filter_entry.decode(index, usize::MAX, key, payload)?;
        let layout = &self.table.layout;
        let entry = EntryRef::new(layout, index, key, payload, &self.filter_entry);
        filter.look(&RowView::entry(&self.table, entry))
    }

    /// Whether a collection may go as far as `key`.
    fn within(&self, key: &[u8], ahead: Ahead) -> bool {
        if ahead == Ahead::Prefix && !key.starts_with(&self.prefix) {
            return false;
        }
        match &self.end {
            Some((end, inclusive)) if self.direction == Direction::Forward => {
                if key.starts_with(end) {
                    *inclusive
                } else {
                    key < &end[..]
                }
            }
            _ => true,
        }
    }

    fn step(&mut self, txn: &mut Transaction, direction: Direction, ahead: Ahead) -> Result<bool> {
        if self.at == At::Nowhere {
            return Ok(false);
        }
        txn.enter_table(&self.table)?;
        let trees = self.take_trees();
        let result = self.step_in(txn, &trees, direction, ahead);
        self.trees = Some(trees);
        result
    }

    /// Whether the next record of the leaf at hand, below the walk's stop, is the next entry.
    #[inline]
    fn can_step(&self, txn: &mut Transaction) -> bool {
        self.plain
            && self.at == At::Walk
            && self.writes == txn.writes
            && self.direction == Direction::Forward
            && txn.inner.view().csn == self.walk.view.csn
    }

    /// Tells the walk where the cursor's end, or after an exact seek the prefix, is reached.
    fn set_stop(&mut self) {
        let mut stop = self.end.as_ref().and_then(|(end, inclusive)| {
            if *inclusive {
                successor(end)
            } else {
                Some(end.clone())
            }
        });
        if self.same_prefix {
            let behind = successor(&self.prefix);
            stop = match (stop, behind) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        self.walk.set_stop(stop);
    }

    /// The walk has stepped onto a row that stands outside.
    #[cold]
    fn arrive_again(&mut self, txn: &mut Transaction) -> Result<bool> {
        let trees = self.take_trees();
        let result = self.arrive(txn, &trees, true, Ahead::End);
        self.trees = Some(trees);
        result
    }

    fn step_in(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        direction: Direction,
        ahead: Ahead,
    ) -> Result<bool> {
        let lock = txn.read_lock(self.options.lock);
        let view = txn.read_view(lock);
        let goes_on = !matches!(self.at, At::Point | At::PointEntry)
            && direction == self.direction
            && (lock.is_some() || view.csn == self.walk.view.csn)
            && self.knows_writes(txn);
        if !goes_on {
            self.direction = direction;
            let mut here = std::mem::take(&mut self.point_key);
            if !matches!(self.at, At::Point | At::PointEntry) {
                here.clear();
                here.extend_from_slice(self.key());
            }
            self.batch.clear();
            let position = match direction {
                Direction::Forward => Position::After(&here),
                Direction::Backward => Position::Before(&here),
            };
            let result = self.start(txn, trees, position, ahead);
            self.point_key = here;
            return result;
        }
        self.writes = txn.writes;
        if self.at == At::Batch {
            if self.batch.advance() {
                if !self.within(self.batch.key(), Ahead::End) {
                    self.at = At::Nowhere;
                    return Ok(false);
                }
                return Ok(true);
            }
            if self.walk.key() != self.batch.last_key() {
                // The collection stopped before what the walk stands on.
                return self.arrive(txn, trees, true, ahead);
            }
        }
        let tree = trees.index(self.index)?;
        let on = self.walk.step(&txn.inner, tree, direction)?;
        self.arrive(txn, trees, on, ahead)
    }

    /// Whether all that the transaction has written since the leaf was copied is the row that
    /// the cursor stands on.
    fn knows_writes(&self, txn: &Transaction) -> bool {
        txn.writes == self.writes
            || (txn.writes == self.writes + 1
                && txn.last_table == self.table.id()
                && txn.last_key() == self.clustered_key())
    }
}

/// The least key greater than all that start with `prefix`; `None` when there is none.
pub(super) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&b| b != 0xff)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}
