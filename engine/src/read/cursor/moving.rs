//! How a cursor moves: single rows, walks, batches, and when the entries that it holds are out of date.

use crate::error::Result;
use crate::lock::LockMode;
use crate::mvcc::ReadView;
use crate::planted::{is_planted, PlantedFault};
use crate::read::cursor::place::Gap;
use crate::read::cursor::{At, BatchExtent, Cursor};
use crate::read::filter::Verdict;
use crate::read::get::RowRead;
use crate::read::mini_page::Projection;
use crate::read::options::RowLock;
use crate::read::record_cursor::Direction;
use crate::read::row_view::RowView;
use crate::row::entry::{self, EntryRef};
use crate::row::key_bytes::KeyBytes;
use crate::session::transaction::Transaction;
use crate::settings::Isolation;
use crate::sync::Moment;
use crate::table::key_prefix::successor;
use crate::table::large;
use crate::table::open_table::TableTrees;
use crate::tree::{Position, Tree};

impl Cursor {
    /// Whether the cursor fetches rows (rather than returning entries of a secondary index).
    pub(super) fn returns_rows(&self) -> bool {
        self.index == 0 || !self.options.index_only || self.options.lock != RowLock::None
    }

    /// Whether the cursor returns rows of batches, rather than records of the walk.
    pub(super) fn batched(&self, txn: &Transaction) -> bool {
        (self.index != 0 && self.returns_rows()) || txn.read_lock(self.options.lock).is_some()
    }

    /// Reads the one row of a whole key.
    pub(super) fn point(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        key: &[u8],
    ) -> Result<bool> {
        self.point_key.clear();
        self.point_key.extend_from_slice(key);
        let (asked, skip) = (self.options.lock, self.options.skip_locked);
        let lock = txn.read_lock(asked);
        if lock.is_some() {
            self.begin_locking(txn);
        }
        let how = RowRead {
            lock: asked,
            skip,
            newest: self.newest,
            asked: Projection::of(&self.table, self.columns),
        };
        if self.index == 0 {
            if !txn.read_row(trees, key, how, &mut self.buffer)? {
                self.pass_absent(txn);
                return Ok(false);
            }
            self.at = At::Point;
            if lock.is_some() {
                self.has_locked(txn);
            }
            return Ok(true);
        }
        let tree = trees.index(self.index)?;
        if txn.isolation() == Isolation::Serializable {
            // Lock the key even if there is no such entry: then no transaction can insert one.
            let mode = LockMode::Shared;
            if !txn.tree_txn.lock_row_or_skip(tree, key, mode, skip)? {
                return Ok(false);
            }
        }
        // The row that was locked last, if the entry did not lead to it any more.
        let mut passed: Option<Vec<u8>> = None;
        loop {
            let view = self.view(txn, lock);
            self.buffer.clear();
            let found = txn.copy(tree, key, &view, &mut self.buffer)?;
            let leads_to = match found {
                true => entry::clustered_key(key, &self.buffer)?,
                false => &[],
            };
            if passed.take().is_some_and(|row| row != leads_to) {
                self.pass_locked(txn);
            }
            if !found {
                return Ok(false);
            }
            if !self.batched(txn) {
                self.at = At::PointEntry;
                return Ok(true);
            }
            self.point_clustered.clear();
            self.point_clustered.extend_from_slice(leads_to);
            txn.tree_txn
                .transactions()
                .moments
                .come_to(Moment::EntryFound);
            let waits = txn.tree_txn.waits();
            if txn.read_row(trees, &self.point_clustered, how, &mut self.buffer)?
                && (lock.is_none() || self.still_leads(txn, trees, key, &self.point_clustered)?)
            {
                self.at = At::Point;
                if lock.is_some() {
                    self.has_locked(txn);
                }
                return Ok(true);
            }
            if txn.tree_txn.waits() == waits
                && (lock.is_none()
                    || is_planted(PlantedFault::PointReadOnce)
                    || self.still_leads(txn, trees, key, &self.point_clustered)?)
            {
                self.pass_absent(txn);
                return Ok(false);
            }
            // The entry may lead to another row by now, even if the transaction did not wait.
            passed = Some(self.point_clustered.clone());
        }
    }

    /// Whether an entry still leads to the row that was locked meanwhile.
    pub(super) fn still_leads(
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
        let view = self.view(txn, lock);
        let leads = txn
            .tree_txn
            .read(trees.index(self.index)?, key, &view, |payload| {
                entry::clustered_key(key, payload).map(|found| found == clustered)
            })?;
        leads.unwrap_or(Ok(false))
    }

    /// The view that the cursor reads with.
    pub(super) fn view(&self, txn: &mut Transaction, lock: Option<LockMode>) -> ReadView {
        match self.newest {
            true => txn.tree_txn.latest_view(),
            false => txn.read_view(lock),
        }
    }

    /// Begins a walk at a position, in `self.direction`.
    pub(super) fn start(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        position: Position<'_>,
        extent: BatchExtent,
    ) -> Result<bool> {
        let lock = txn.read_lock(self.options.lock);
        let view = self.view(txn, lock);
        self.note_copy(txn);
        self.batch_misses_columns = false;
        self.plain = !self.batched(txn);
        let locker = locks_ranges(txn).then(|| txn.tree_txn.range_locker());
        self.walk.set_locker(locker, self.newest);
        if lock.is_some() && self.index != 0 {
            self.origin.set(position);
        }
        self.meet_moving(lock.is_some());
        let tree = trees.index(self.index)?;
        let on = self
            .walk
            .seek(&txn.tree_txn, tree, view, position, self.direction)?;
        self.arrive(txn, trees, on, extent)
    }

    /// Puts the cursor where the walk has come to: on a record (`on`), or on the first row of a new batch.
    ///
    /// If the walk has ended (`on` is false), the cursor leaves it.
    pub(super) fn arrive(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        mut on: bool,
        extent: BatchExtent,
    ) -> Result<bool> {
        if !self.batched(txn) {
            if !on || !self.within(self.walk.key(), extent) {
                self.leave_walk(on);
                return Ok(false);
            }
            self.at = At::Walk;
            if self.index == 0 && trees.large.is_some() && self.walk.payload().first() == Some(&0) {
                self.buffer.clear();
                self.buffer.extend_from_slice(self.walk.payload());
                if let Err(error) = large::bring_inside(trees, &mut self.buffer) {
                    if !is_planted(PlantedFault::PassUnread) {
                        self.leave_unread();
                    }
                    return Err(error);
                }
                self.at = At::Fetched;
            }
            return Ok(true);
        }
        let tree = trees.index(self.index)?;
        let lock = txn.read_lock(self.options.lock);
        if lock.is_some() {
            self.begin_locking(txn);
        }
        on = self.wait_for_writer(txn, tree, on, extent)?;
        // The row that was locked last, if it did not match.
        let mut passed: Option<Vec<u8>> = None;
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
                    on = self.walk.step(&txn.tree_txn, tree, self.direction)?;
                    on = self.wait_for_writer(txn, tree, on, extent)?;
                    taken = false;
                }
                if !on || !self.within(self.walk.key(), extent) {
                    break;
                }
                match self.look()? {
                    Verdict::Stop => break,
                    Verdict::Keep if self.leads_to_row(txn, trees)? => collected += 1,
                    Verdict::Keep | Verdict::Skip => {
                        taken = true;
                        continue;
                    }
                }
                if self.index == 0 {
                    self.batch.add_row(self.walk.key());
                } else {
                    self.batch.add(self.walk.key(), self.walk.payload())?;
                }
                taken = true;
            }
            let came_to = self.batch.last_clustered_key();
            if passed.take().is_some_and(|row| row != came_to) {
                self.pass_locked(txn);
            }
            if self.batch.is_empty() {
                return Ok(false);
            }
            if let Some(mode) = lock {
                let waits = txn.tree_txn.waits();
                let committed = if self.may_pass(txn) {
                    self.batch
                        .fetch_or_committed(txn, trees, mode, &mut self.buffer)?
                } else {
                    self.batch.fetch_locked(
                        txn,
                        trees,
                        &self.options,
                        self.newest,
                        &mut self.buffer,
                    )?;
                    None
                };
                let locks_ranges = self.walk.locks();
                let waited = !locks_ranges && txn.tree_txn.waits() != waits;
                let found = self.batch.advance();
                if let Some(committed) = committed.filter(|_| found) {
                    self.at = At::Batch;
                    self.stand_on_committed(committed);
                    return Ok(true);
                }
                if found && !waited && self.entry_stands(txn, tree)? {
                    self.at = At::Batch;
                    self.has_locked(txn);
                    return Ok(true);
                }
                let back = match found && !locks_ranges {
                    true => self.moved_back(trees)?,
                    false => None,
                };
                passed = (!locks_ranges).then(|| self.batch.last_clustered_key().to_vec());
                if waited || (!locks_ranges && (found || !self.options.skip_locked)) {
                    // The leaf was copied before another transaction changed this entry.
                    on = self.look_again(txn, tree, back, waited || found)?;
                    if !is_planted(PlantedFault::LookAgainUndecided) {
                        on = self.wait_for_writer(txn, tree, on, extent)?;
                    }
                    continue;
                }
            } else {
                let asked = Projection::of(&self.table, self.columns);
                self.batch
                    .fetch(txn, trees, &self.walk.view, asked, &mut self.buffer)?;
                if self.batch.advance() {
                    self.at = At::Batch;
                    return Ok(true);
                }
            }
            // No entry of the batch has a row.
            if taken {
                on = self.walk.step(&txn.tree_txn, tree, self.direction)?;
                on = self.wait_for_writer(txn, tree, on, extent)?;
            }
        }
    }

    /// Whether the walk's entry is the same as when the leaf was copied, after its row was locked.
    fn entry_stands(&self, txn: &mut Transaction, tree: &Tree) -> Result<bool> {
        if self.index == 0 {
            return Ok(true);
        }
        let lock = txn.read_lock(self.options.lock);
        let view = self.view(txn, lock);
        let (key, before) = (self.walk.key(), self.walk.payload());
        let same = txn.tree_txn.read(tree, key, &view, |now| now == before)?;
        Ok(same == Some(true))
    }

    /// Copies the leaf anew, and goes on from the row's present entry (`back`), or else from the entry of the batch.
    ///
    /// With `here`, the walk goes to that entry: the cursor waited for it, or it has changed. Without, the walk goes
    /// behind it: it has no row.
    fn look_again(
        &mut self,
        txn: &mut Transaction,
        tree: &Tree,
        back: Option<Vec<u8>>,
        here: bool,
    ) -> Result<bool> {
        let lock = txn.read_lock(self.options.lock);
        let view = self.view(txn, lock);
        self.note_copy(txn);
        let key = back.as_deref().unwrap_or(self.batch.last_key());
        let position = match (self.direction, here) {
            (Direction::Forward, true) => Position::AtOrAfter(key),
            (Direction::Forward, false) => Position::After(key),
            (Direction::Backward, true) => Position::AtOrBefore(key),
            (Direction::Backward, false) => Position::Before(key),
        };
        self.walk
            .seek(&txn.tree_txn, tree, view, position, self.direction)
    }

    /// Waits for the writer of the walk's record, if the cursor waits for writers and the record may be uncommitted.
    ///
    /// Passes over the record if it turns out to be none. Does not wait for records beyond the cursor's end.
    fn wait_for_writer(
        &mut self,
        txn: &mut Transaction,
        tree: &Tree,
        mut on: bool,
        extent: BatchExtent,
    ) -> Result<bool> {
        while on && self.walk.maybe_uncommitted() {
            if !self.within(self.walk.key(), extent) && !is_planted(PlantedFault::WaitBehindEnd) {
                break;
            }
            let waits = txn.tree_txn.waits();
            let key = self.walk.key();
            let here = (!self.walk.locks()).then(|| key.to_vec());
            let skip = self.options.skip_locked;
            let buffer = &mut self.buffer;
            match txn.tree_txn.decided_payload(tree, key, skip, buffer)? {
                Some(payload) => self.walk.set_payload(payload),
                None => on = self.walk.step(&txn.tree_txn, tree, self.direction)?,
            }
            if let Some(here) = here.filter(|_| txn.tree_txn.waits() != waits) {
                // The cursor locks no range: others may have inserted records during the wait.
                let position = match self.direction {
                    Direction::Forward => Position::AtOrAfter(&here),
                    Direction::Backward => Position::AtOrBefore(&here),
                };
                let view = txn.tree_txn.latest_view();
                self.note_copy(txn);
                on = self
                    .walk
                    .seek(&txn.tree_txn, tree, view, position, self.direction)?;
            }
        }
        Ok(on)
    }

    /// The filter's decision on the walk's entry.
    pub(super) fn look(&mut self) -> Result<Verdict> {
        let Some(filter) = self.filter.as_mut().filter(|_| self.index != 0) else {
            return Ok(Verdict::Keep);
        };
        let index = self.table.key_layout(self.index)?;
        let (key, payload) = (KeyBytes::There(&self.walk), self.walk.payload());
        self.filter_entry.decode(index, usize::MAX, key, payload)?;
        let layout = &self.table.layout;
        let entry = EntryRef::new(layout, index, key, payload, &self.filter_entry);
        filter.look(&RowView::entry(&self.table, entry))
    }

    /// Whether the cursor may collect entries as far as `key`.
    pub(super) fn within(&self, key: &[u8], ahead: BatchExtent) -> bool {
        if ahead == BatchExtent::Prefix && !key.starts_with(&self.prefix) {
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

    pub(super) fn step(
        &mut self,
        txn: &mut Transaction,
        direction: Direction,
        extent: BatchExtent,
    ) -> Result<bool> {
        if self.at == At::Gap(Gap::Nowhere) {
            return Ok(false);
        }
        txn.enter_table(&self.table)?;
        let trees = self.take_trees();
        let result = self.step_in(txn, &trees, direction, extent);
        self.trees = Some(trees);
        result
    }

    /// Whether the next entry is the next record of the copied leaf, if that lies below the walk's stop.
    #[inline]
    pub(super) fn can_step(&self, txn: &mut Transaction) -> bool {
        self.plain
            && self.at == At::Walk
            && self.writes == txn.writes
            && self.direction == Direction::Forward
            && txn.tree_txn.view().csn == self.walk.view.csn
    }

    /// Tells the walk where the cursor's end is, or after an exact seek the end of the prefix.
    pub(super) fn set_stop(&mut self) {
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

    /// The cursor no longer stays within the prefix of the last seek.
    #[inline]
    pub(super) fn leave_prefix(&mut self) {
        if self.same_prefix {
            self.same_prefix = false;
            self.set_stop();
        }
    }

    /// The walk has stepped onto a row that is stored outside its page.
    #[cold]
    pub(super) fn arrive_again(&mut self, txn: &mut Transaction) -> Result<bool> {
        let trees = self.take_trees();
        let result = self.arrive(txn, &trees, true, BatchExtent::End);
        self.trees = Some(trees);
        result
    }

    pub(super) fn step_in(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        direction: Direction,
        extent: BatchExtent,
    ) -> Result<bool> {
        if let Some(key) = self.leaves_committed() {
            return self.read_again(key, txn, trees, direction, extent);
        }
        let lock = txn.read_lock(self.options.lock);
        let view = self.view(txn, lock);
        let mut goes_on = !matches!(self.at, At::Point | At::PointEntry | At::Gap(_))
            && !self.batch_misses_columns
            && direction == self.direction
            && (view.csn == self.walk.view.csn
                || lock.is_some() && is_planted(PlantedFault::KeepNewestView))
            && self.knows_writes(txn)
            && (lock.is_none() || self.knows_waits(txn));
        if self.same_prefix && extent == BatchExtent::End {
            // The cursor, and its lock, go beyond the prefix of the last seek.
            self.leave_prefix();
            // The walk may have ended at the end of the locked range.
            goes_on &= direction == Direction::Forward && !locks_ranges(txn);
        }
        if !goes_on {
            return self.restart(txn, trees, direction, extent);
        }
        self.writes = txn.writes;
        if self.at == At::Batch {
            if self.batch.advance() {
                if !self.within(self.batch.key(), BatchExtent::End) {
                    self.leave(Gap::Before);
                    return Ok(false);
                }
                return Ok(true);
            }
            // The cursor goes on from here if the next batch is empty.
            self.place.clear();
            self.place.extend_from_slice(self.batch.last_key());
            self.at = At::Gap(Gap::On);
            if lock.is_some() && self.index != 0 {
                self.origin.set(Position::After(&self.place));
            }
            if self.walk.may_have_more() {
                return self.restart(txn, trees, direction, extent);
            }
            if self.walk.has_ended() {
                // The filter has skipped all entries behind the batch.
                return Ok(self.at_end());
            }
            if self.walk.key() != self.batch.last_key() {
                // The walk is on an entry at which the batch stopped.
                let found = self.arrive(txn, trees, true, extent)?;
                return Ok(found || self.at_end());
            }
        }
        let tree = trees.index(self.index)?;
        let on = match self.walk.step(&txn.tree_txn, tree, direction) {
            Ok(on) => on,
            Err(error) => {
                self.leave_walk(false);
                return Err(error);
            }
        };
        let found = self.arrive(txn, trees, on, extent)?;
        Ok(found || self.at_end())
    }

    /// Must be called before a leaf is copied.
    fn note_copy(&mut self, txn: &Transaction) {
        self.writes = txn.writes;
        self.waits = txn.tree_txn.waits();
    }

    /// Whether the transaction has waited for no other since the leaf was copied, also elsewhere in the statement.
    ///
    /// A transaction that was waited for may have changed the leaf. A walk that locks ranges has its leaf up to date.
    fn knows_waits(&self, txn: &Transaction) -> bool {
        self.waits == txn.tree_txn.waits()
            || locks_ranges(txn)
            || is_planted(PlantedFault::ForgetWaits)
    }

    /// Whether all that the transaction has written since the leaf was copied is the current row.
    pub(super) fn knows_writes(&self, txn: &Transaction) -> bool {
        txn.writes == self.writes
            || (txn.writes == self.writes + 1
                && txn.last_table == self.table.id()
                && txn.last_key() == self.clustered_key())
    }
}

/// Whether a walk locks the ranges that it reads.
fn locks_ranges(txn: &Transaction) -> bool {
    txn.isolation() == Isolation::Serializable
}
