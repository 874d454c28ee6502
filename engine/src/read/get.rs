//! Reading one row by its clustered key.

use crate::error::Result;
use crate::lock::LockMode;
use crate::mvcc::ReadView;
use crate::read::mini_page::Projection;
use crate::read::options::RowLock;
use crate::read::row_view::RowView;
use crate::row::key_bytes::KeyBytes;
use crate::session::transaction::Transaction;
use crate::settings::Isolation;
use crate::table::large;
use crate::table::open_table::{Table, TableTrees};
use crate::tree::Tree;
use crate::txn::{LastCommitted, LockRow};

/// How one row is read.
#[derive(Clone, Copy)]
pub(super) struct RowRead<'a> {
    pub lock: RowLock,
    /// Whether the read skips a row for which it would have to wait.
    pub skip: bool,
    /// Whether the read ignores the transaction's snapshot: see [`crate::read::cursor::Cursor::read_newest`].
    pub newest: bool,
    /// The columns that the caller will read; `None`: all.
    pub asked: Option<Projection<'a>>,
}

impl RowRead<'_> {
    fn of(lock: RowLock) -> Self {
        RowRead {
            lock,
            skip: false,
            newest: false,
            asked: None,
        }
    }
}

impl Transaction {
    /// Reads the row with the given clustered key; calls `f` with the row, if there is one.
    ///
    /// A snapshot read, except at [`Isolation::Serializable`], where the read takes a shared lock on the row.
    ///
    /// # Errors
    /// Those of reading pages, and of waiting for locks.
    pub fn get<R>(
        &mut self,
        table: &Table,
        clustered_key: &[u8],
        f: impl FnOnce(RowView<'_>) -> R,
    ) -> Result<Option<R>> {
        self.get_locked(table, clustered_key, RowLock::None, f)
    }

    /// As [`Transaction::get`], but locks the row first, and then reads the newest committed row.
    ///
    /// # Errors
    /// As [`Transaction::get`]; [`crate::Error::WriteConflict`] when the row was changed after
    /// the transaction's snapshot.
    pub fn get_locked<R>(
        &mut self,
        table: &Table,
        clustered_key: &[u8],
        lock: RowLock,
        f: impl FnOnce(RowView<'_>) -> R,
    ) -> Result<Option<R>> {
        self.enter_table(table)?;
        let mut row = std::mem::take(&mut self.read_buffer);
        let trees = table.trees.load();
        let result = self
            .read_row(&trees, clustered_key, RowRead::of(lock), &mut row)
            .and_then(|found| {
                found
                    .then(|| RowView::row(table, KeyBytes::Here(clustered_key), &row).map(f))
                    .transpose()
            });
        self.read_buffer = row;
        result
    }

    /// The lock that a read takes when the caller asks for `asked`.
    pub(crate) fn read_lock(&self, asked: RowLock) -> Option<LockMode> {
        match asked {
            RowLock::Exclusive => Some(LockMode::Exclusive),
            RowLock::Shared => Some(LockMode::Shared),
            RowLock::None if self.isolation() == Isolation::Serializable => Some(LockMode::Shared),
            RowLock::None => None,
        }
    }

    /// The view of a read: the snapshot, or the newest state for some locking reads.
    ///
    /// A locking read sees the newest state under READ COMMITTED, and as long as the transaction has no snapshot.
    pub(super) fn read_view(&mut self, lock: Option<LockMode>) -> ReadView {
        if lock.is_some() {
            self.tree_txn.locking_view()
        } else {
            self.tree_txn.view()
        }
    }

    /// Reads a row's payload into `row`: all of it, or one with the columns asked for alone.
    ///
    /// Loads a payload that is stored outside its page. Returns false if there is no such row, or if the read skips it.
    pub(super) fn read_row(
        &mut self,
        trees: &TableTrees,
        key: &[u8],
        how: RowRead<'_>,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        let lock = self.read_lock(how.lock);
        if let Some(mode) = lock {
            let clustered = &trees.clustered;
            let locked = match how.newest {
                true => self
                    .tree_txn
                    .lock_newest(clustered, key, mode)
                    .map(|()| true)?,
                false => self
                    .tree_txn
                    .lock_row_or_skip(clustered, key, mode, how.skip)?,
            };
            if !locked {
                return Ok(false);
            }
        }
        let view = match how.newest {
            true => self.tree_txn.latest_view(),
            false => self.read_view(lock),
        };
        row.clear();
        let tree = &trees.clustered;
        let found = match how.asked.filter(|_| lock.is_none()) {
            Some(asked) => self.copy_asked(tree, key, &view, asked, row)?,
            None => self.copy(tree, key, &view, row)?,
        };
        if !found {
            return Ok(false);
        }
        if trees.large.is_some() {
            large::bring_inside(trees, row)?;
        }
        Ok(true)
    }

    /// As [`Transaction::read_row`] with a lock under READ COMMITTED, but never waits.
    ///
    /// If another transaction has locked the row, this reads its last committed version without a lock. It then also
    /// returns the snapshot that keeps that version.
    pub(super) fn read_row_or_committed(
        &mut self,
        trees: &TableTrees,
        key: &[u8],
        mode: LockMode,
        row: &mut Vec<u8>,
    ) -> Result<(bool, Option<LastCommitted>)> {
        let tree = &trees.clustered;
        if !matches!(
            self.tree_txn.try_lock_row(tree, key, mode)?,
            LockRow::Conflict(_)
        ) {
            let view = self.read_view(Some(mode));
            return Ok((self.copy_whole(trees, key, &view, row)?, None));
        }
        let committed = self.tree_txn.last_committed();
        let found = self.copy_whole(trees, key, committed.view(), row)?;
        Ok((found, found.then_some(committed)))
    }

    /// Reads the version of a row that a view sees into `row`; false if there is none.
    ///
    /// Loads a payload that is stored outside.
    fn copy_whole(
        &self,
        trees: &TableTrees,
        key: &[u8],
        view: &ReadView,
        row: &mut Vec<u8>,
    ) -> Result<bool> {
        row.clear();
        let found = self.copy(&trees.clustered, key, view, row)?;
        if found && trees.large.is_some() {
            large::bring_inside(trees, row)?;
        }
        Ok(found)
    }

    /// Appends the payload that a view sees of a record; returns false if the view sees none.
    #[inline]
    pub(super) fn copy(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = self
            .tree_txn
            .read(tree, key, view, |payload| out.extend_from_slice(payload))?;
        Ok(found.is_some())
    }
}
