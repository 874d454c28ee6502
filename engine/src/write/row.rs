//! Row operations: each changes the clustered tree and the secondary trees, and is logged, as one.
//!
//! An operation runs inside the barrier, so that a checkpoint sees all of it or nothing. If another transaction's lock
//! is in the way, the operation undoes what it has done and leaves the barrier. After the wait it starts again: no
//! transaction waits with half an operation in the trees. The entries that a bulk insert defers (`deferred.rs`) are
//! inserted by operations of their own.

mod deferred;
mod fill;
mod operation;

use smallvec::SmallVec;

use self::operation::{no_row, Row, RowOperation, Step};

use crate::error::{Error, Result};
use crate::lock::LockMode;
use crate::mvcc::MAX_PAYLOAD;
use crate::planted::{is_planted, PlantedFault};
use crate::read::options::RowLock;
use crate::row::payload::{self, Field, LargeRef, RowRef};
use crate::row::{entry, Value};
use crate::session::scratch::Scratch;
use crate::session::transaction::Transaction;
use crate::table::large;
use crate::table::open_table::{Table, TableTrees};
use crate::{fallible, knobs};

impl Transaction {
    /// Inserts a row, with a value for each column.
    ///
    /// # Errors
    /// [`Error::Duplicate`] names the unique index that has such a row already ([`Transaction::duplicate_key`] has the
    /// key of that row); [`Error::Invalid`] for a value that does not fit its column; [`Error::TooLarge`] for a key or
    /// row beyond the limits; the errors of waiting for locks.
    pub fn insert(&mut self, table: &Table, row: &[Value<'_>]) -> Result<()> {
        self.insert_as(table, None, row, RowLock::None)
    }

    /// As [`Transaction::insert`], but locks a conflicting row before it returns [`Error::Duplicate`].
    ///
    /// For callers that then change that row instead: it stays, and stays in conflict, until the transaction ends. If
    /// it is no longer in conflict after the wait for its lock, the new row is inserted.
    ///
    /// # Errors
    /// As [`Transaction::insert`]; [`Error::WriteConflict`] if the conflicting row was changed after the transaction's
    /// snapshot.
    pub fn insert_or_lock(
        &mut self,
        table: &Table,
        row: &[Value<'_>],
        lock: RowLock,
    ) -> Result<()> {
        self.insert_as(table, None, row, lock)
    }

    /// As [`Transaction::insert`], under a given clustered key.
    pub(crate) fn insert_at(&mut self, table: &Table, key: &[u8], row: &[Value<'_>]) -> Result<()> {
        self.insert_as(table, Some(key), row, RowLock::None)
    }

    #[inline]
    fn insert_as(
        &mut self,
        table: &Table,
        key: Option<&[u8]>,
        row: &[Value<'_>],
        lock: RowLock,
    ) -> Result<()> {
        let used = self.enter_table_blind(table)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        if self.filling == table.id() {
            let result = match is_planted(PlantedFault::FillUnguarded) {
                false => self.whole_or_unwound(|txn| txn.fill(table, key, row, &mut scratch)),
                true => self.fill(table, key, row, &mut scratch),
            };
            self.scratch = scratch;
            self.note_write(table, used, result.is_ok());
            result?;
            if !self.guards.is_empty() && !is_planted(PlantedFault::KeepFillGuards) {
                self.row_stands(table);
            }
            return Ok(());
        }
        let lock = match is_planted(PlantedFault::UnlockedDuplicate) {
            true => RowLock::None,
            false => lock,
        };
        let result = self.lock_what_refused(table, &[], lock, &mut scratch, |txn, s| {
            txn.insert_row(table, key, row, s)
        });
        self.scratch = scratch;
        self.note_write(table, used, result.is_ok());
        result?;
        if !self.guards.is_empty() {
            self.row_stands(table);
        }
        self.used[used].rows += 1;
        self.counts.inserted += 1;
        self.tree_txn.show_rows_changed(self.rows_changed());
        Ok(())
    }

    /// Replaces the row with the given clustered key.
    ///
    /// The new row may have another key.
    ///
    /// A column given as [`Value::OutOfRow`] keeps its present value.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such row; otherwise as [`Transaction::insert`].
    pub fn update(
        &mut self,
        table: &Table,
        clustered_key: &[u8],
        new_row: &[Value<'_>],
    ) -> Result<()> {
        let used = self.enter_to_change(table)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let result = self.lock_what_refused(
            table,
            clustered_key,
            RowLock::None,
            &mut scratch,
            |txn, s| txn.update_row(table, clustered_key, new_row, s),
        );
        self.scratch = scratch;
        self.note_write(table, used, result.is_ok());
        result?;
        if !self.guards.is_empty() {
            self.row_stands(table);
        }
        self.counts.updated += 1;
        self.tree_txn.show_rows_changed(self.rows_changed());
        Ok(())
    }

    /// Deletes the row with the given clustered key.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such row; the errors of waiting for locks.
    pub fn delete(&mut self, table: &Table, clustered_key: &[u8]) -> Result<()> {
        let used = self.enter_to_change(table)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let trees = table.trees.load();
        let result = self.lock_what_refused(
            table,
            clustered_key,
            RowLock::None,
            &mut scratch,
            |txn, s| txn.retry_after_waits(table, &trees, |op| op.delete(clustered_key, s)),
        );
        scratch.key.clear();
        scratch.key.extend_from_slice(clustered_key);
        self.scratch = scratch;
        self.note_write(table, used, result.is_ok());
        result?;
        self.used[used].rows -= 1;
        self.counts.deleted += 1;
        self.tree_txn.show_rows_changed(self.rows_changed());
        Ok(())
    }

    /// The clustered key of the row that this transaction inserted, updated or deleted last.
    pub fn last_key(&self) -> &[u8] {
        &self.scratch.key
    }

    /// After [`Error::Duplicate`]: the clustered key of the conflicting row.
    pub fn duplicate_key(&self) -> &[u8] {
        &self.scratch.found
    }

    /// Enters a table to change existing rows; ends a fill, since these changes need versions.
    #[inline]
    fn enter_to_change(&mut self, table: &Table) -> Result<usize> {
        if self.filling == table.id() {
            self.end_fill();
        }
        self.enter_table(table)
    }

    fn note_write(&mut self, table: &Table, used: usize, ok: bool) {
        self.writes += 1;
        self.last_table = table.id();
        self.used[used].written |= ok;
    }

    /// Runs an operation, and locks the row for which it is refused.
    ///
    /// An operation that is refused, for a conflicting row or a missing one, has read that row: this locks the row as
    /// `lock` says before it returns the error. At SERIALIZABLE all reads lock.
    #[inline]
    fn lock_what_refused(
        &mut self,
        table: &Table,
        key: &[u8],
        lock: RowLock,
        s: &mut Scratch,
        mut operation: impl FnMut(&mut Self, &mut Scratch) -> Result<()>,
    ) -> Result<()> {
        let mut result = self.whole_or_unwound(|txn| operation(txn, s));
        if result.is_ok() {
            return result;
        }
        let Some(mode) = self.read_lock(lock) else {
            return result;
        };
        let mut locked: Option<Vec<u8>> = None;
        loop {
            let read = match &result {
                Err(Error::Duplicate { .. }) => &s.found,
                Err(Error::NotFound { what: "row", .. }) => key,
                _ => return result,
            };
            if locked.as_deref() == Some(read) {
                return result;
            }
            let clustered = &table.trees.load().clustered;
            self.tree_txn.lock_row(clustered, read, mode)?;
            locked = Some(read.to_vec());
            if let Err(Error::Duplicate { index }) = result {
                if self.is_still_in_the_way(table, index, s)? {
                    return result;
                }
            }
            result = self.whole_or_unwound(|txn| operation(txn, s));
        }
    }

    /// Whether the row of `s.found`, which was in conflict in an index and is locked now, still is.
    ///
    /// Only the row's writer may remove its entries, so no other transaction does so from here on.
    fn is_still_in_the_way(&mut self, table: &Table, index: usize, s: &Scratch) -> Result<bool> {
        let trees = table.trees.load();
        let view = self.tree_txn.latest_view();
        if index == 0 {
            let row = self
                .tree_txn
                .read(&trees.clustered, &s.found, &view, |_| ())?;
            return Ok(row.is_some());
        }
        let entry_key = &s.entry.key;
        let leads = self
            .tree_txn
            .read(&trees.indexes[index - 1], entry_key, &view, |payload| {
                entry::clustered_key(entry_key, payload).map(|row| row == s.found)
            })?;
        leads.unwrap_or(Ok(false))
    }

    /// Runs an operation until it succeeds or fails; undoes one that fails.
    fn retry_after_waits(
        &mut self,
        table: &Table,
        trees: &TableTrees,
        mut operation: impl FnMut(&mut RowOperation<'_>) -> Result<Step>,
    ) -> Result<()> {
        loop {
            self.shared.transactions.pool().check_room()?;
            let savepoint = self.tree_txn.savepoint();
            let step = {
                let inside = self.shared.transactions.barrier().enter();
                let step = operation(&mut RowOperation {
                    txn: &mut self.tree_txn,
                    inside: &inside,
                    table,
                    trees,
                });
                match step {
                    Ok(Step::Done) => self.tree_txn.log_full_part(&inside).map(|()| Step::Done),
                    step => step,
                }
            };
            match step {
                Ok(Step::Done) => return Ok(()),
                Ok(Step::Wait(conflict)) => {
                    self.tree_txn.take_operation_back(&savepoint)?;
                    self.tree_txn.wait(&conflict)?;
                }
                Err(error) => {
                    self.tree_txn.take_operation_back(&savepoint)?;
                    if matches!(error, Error::WriteConflict) {
                        let tree = trees.clustered.id();
                        return Err(self.tree_txn.changed_since(tree));
                    }
                    return Err(error);
                }
            }
        }
    }

    fn insert_row(
        &mut self,
        table: &Table,
        key: Option<&[u8]>,
        row: &[Value<'_>],
        s: &mut Scratch,
    ) -> Result<()> {
        s.encoder.measure(&table.layout, row)?;
        s.key.clear();
        match key {
            Some(key) => s.key.extend_from_slice(key),
            None => table.new_clustered_key(row, &mut s.key)?,
        }
        let trees = table.trees.load();
        let late = is_planted(PlantedFault::LateSavepoint);
        if !late {
            self.make_room_for_deferred(table)?;
        }
        if s.encoder.encoded_len() <= knobs::in_row_limit() {
            write_payload(table, row, s)?;
            return self.insert_encoded(table, &trees, row, s);
        }
        // Before this savepoint: deferred entries of earlier rows stay if this row is refused.
        let start = self.tree_txn.savepoint();
        if late {
            self.make_room_for_deferred(table)?;
        }
        let result = self
            .spill_and_encode(table, &trees, row, None, s)
            .and_then(|_| self.insert_encoded(table, &trees, row, s));
        fallible::give_back(&mut s.redo);
        if result.is_err() {
            self.tree_txn.take_operation_back(&start)?;
        }
        result
    }

    fn update_row(
        &mut self,
        table: &Table,
        old_key: &[u8],
        row: &[Value<'_>],
        s: &mut Scratch,
    ) -> Result<()> {
        let trees = table.trees.load();
        let keeps = || row.iter().any(|value| matches!(value, Value::OutOfRow(_)));
        if trees.large.is_some() || keeps() {
            let start = self.tree_txn.savepoint();
            let result = self.update_from_old(table, &trees, old_key, row, s);
            fallible::give_back(&mut s.redo);
            if result.is_err() {
                self.tree_txn.take_operation_back(&start)?;
            }
            return result;
        }
        s.encoder.measure(&table.layout, row)?;
        s.key.clear();
        if table.layout.hidden {
            s.key.extend_from_slice(old_key);
        } else {
            table.new_clustered_key(row, &mut s.key)?;
        }
        write_payload(table, row, s)?;
        self.retry_after_waits(table, &trees, |op| {
            if s.key == old_key {
                op.update(row, None, &[], s)
            } else {
                op.delete_and_insert(old_key, row, s)
            }
        })
    }

    /// An update whose new row may take values from the old one, inside or outside the row: locks and reads the old row
    /// first.
    fn update_from_old(
        &mut self,
        table: &Table,
        trees: &TableTrees,
        old_key: &[u8],
        given: &[Value<'_>],
        s: &mut Scratch,
    ) -> Result<()> {
        self.tree_txn
            .lock_row(&trees.clustered, old_key, LockMode::Exclusive)?;
        let view = self.tree_txn.latest_view();
        let mut stored = Vec::new();
        self.tree_txn
            .read(&trees.clustered, old_key, &view, |payload| {
                stored.extend_from_slice(payload)
            })?
            .ok_or_else(no_row)?;
        let mut old_bytes = stored.clone();
        large::bring_inside(trees, &mut old_bytes)?;
        let old = RowRef::new(&table.layout, old_key, &old_bytes)?;

        // Columns given as "outside" keep the old row's values, and key parts are made from these.
        if given.len() != table.layout.columns.len() {
            return s.encoder.measure(&table.layout, given);
        }
        let mut buffers = Vec::new();
        let old_values = large::values(&table.layout, trees, old, false, &mut buffers)?;
        let row = with_kept(given, &old_values);
        s.key.clear();
        if table.layout.hidden {
            s.key.extend_from_slice(old_key);
        } else {
            table.new_clustered_key(&row, &mut s.key)?;
        }
        if s.key != old_key {
            // A new key makes another row, which shares no values outside with the old one.
            let mut buffers = Vec::new();
            let old_values = large::values(&table.layout, trees, old, true, &mut buffers)?;
            let row = with_kept(given, &old_values);
            self.spill_and_encode(table, trees, &row, None, s)?;
            return self
                .retry_after_waits(table, trees, |op| op.delete_and_insert(old_key, &row, s));
        }
        let mut keep: SmallVec<[Option<LargeRef>; 16]> = SmallVec::new();
        keep.resize(given.len(), None);
        for (i, value) in given.iter().enumerate() {
            if let (Value::OutOfRow(_), Field::Outside(at)) = (value, old.field(i)?) {
                keep[i] = Some(at);
            }
        }
        self.share_unchanged(trees, old, given, &mut keep)?;
        let mut goes = Vec::new();
        large::references(&table.layout, trees, old_key, &stored, &mut goes)?;
        goes.retain(|old| !keep.contains(&Some(*old)));
        self.spill_and_encode(table, trees, &row, Some(&keep), s)?;
        self.retry_after_waits(table, trees, |op| {
            op.update(&row, Some(&old_values), &goes, s)
        })
    }

    /// Finds values outside the row that are the same in the new row and the old one.
    fn share_unchanged(
        &self,
        trees: &TableTrees,
        old: RowRef<'_>,
        new: &[Value<'_>],
        keep: &mut [Option<LargeRef>],
    ) -> Result<()> {
        for reference in old.references() {
            let (column, at) = reference?;
            let Some(&Value::Bytes(value)) = new.get(column) else {
                continue;
            };
            if keep[column].is_none()
                && at.len == value.len() as u64
                && large::is(trees, at, value)?
            {
                keep[column] = Some(at);
            }
        }
        Ok(())
    }

    /// Encodes a row into `s.payload` and `s.redo`; moves values outside if the row is too long, and writes these.
    ///
    /// With `keep`, those values are stored outside already.
    fn spill_and_encode(
        &mut self,
        table: &Table,
        trees: &TableTrees,
        row: &[Value<'_>],
        keep: Option<&[Option<LargeRef>]>,
        s: &mut Scratch,
    ) -> Result<()> {
        let layout = &table.layout;
        s.encoder.begin(row.len());
        if let Some(keep) = keep {
            for (i, at) in keep.iter().enumerate() {
                // Id 0 means: as in the row before.
                s.encoder.outside[i] = at.map(|at| LargeRef { id: 0, len: at.len });
            }
        }
        s.encoder.lay_out(layout, row)?;
        s.redo.clear();
        s.encoder.write(layout, row, &mut s.redo)?;
        if let Some(keep) = keep {
            s.encoder.outside.copy_from_slice(keep);
            s.encoder.lay_out(layout, row)?;
        }
        if s.encoder.encoded_len() > knobs::in_row_limit() {
            for column in large::choose(layout, row, &mut s.encoder)? {
                if let Value::Bytes(bytes) = row[column] {
                    let at = large::write(
                        &mut self.tree_txn,
                        &self.shared.transactions,
                        table,
                        trees,
                        bytes,
                    )?;
                    s.encoder.outside[column] = Some(at);
                }
            }
            s.encoder.lay_out(layout, row)?;
        }
        s.payload.clear();
        s.encoder.write(layout, row, &mut s.payload)?;
        if s.payload.len() > MAX_PAYLOAD {
            let transactions = &self.shared.transactions;
            let at = large::write(&mut self.tree_txn, transactions, table, trees, &s.payload)?;
            s.payload.clear();
            payload::put_outside_row(at, &mut s.payload);
        }
        Ok(())
    }
}

/// The new row, with the old row's values for columns given as "outside".
fn with_kept<'a>(given: &[Value<'a>], old: &[Value<'a>]) -> Row<'a> {
    given
        .iter()
        .zip(old)
        .map(|(&new, &old)| match new {
            Value::OutOfRow(_) => old,
            new => new,
        })
        .collect()
}

/// Writes a measured row without values outside to `s.payload`.
fn write_payload(table: &Table, row: &[Value<'_>], s: &mut Scratch) -> Result<()> {
    s.redo.clear();
    s.payload.clear();
    s.encoder.write(&table.layout, row, &mut s.payload)
}
