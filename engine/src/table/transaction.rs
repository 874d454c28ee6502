//! A transaction: row operations, savepoints, commit and rollback.

use std::time::Duration;

use super::row_view::RowView;
use super::table_handle::Table;
use crate::error::{Error, Result};
use crate::ids::TxId;
use crate::row::Value;

fn later<T>() -> Result<T> {
    Err(Error::Internal("not yet".into()))
}

/// A transaction, made by [`crate::Database::begin`]. Dropped without a commit it rolls back.
///
/// It can move between threads, but is used by one at a time. After [`Error::Deadlock`] or
/// [`Error::WriteConflict`] only a rollback is useful; after any other error of a row operation
/// nothing of that operation remains, and the transaction goes on.
pub struct Transaction {
    _private: (),
}

/// A place in a transaction to roll back to.
#[derive(Clone, Debug)]
pub struct Savepoint {
    _private: (),
}

/// Interrupts a transaction's lock wait from another thread.
#[derive(Clone)]
pub struct KillHandle {
    _private: (),
}

impl KillHandle {
    /// Makes the transaction's present and next lock waits return [`Error::Interrupted`], until
    /// [`KillHandle::clear`].
    pub fn kill(&self) {}

    /// Takes the interruption back.
    pub fn clear(&self) {}
}

impl Transaction {
    /// The transaction's number, once it has written.
    pub fn id(&self) -> Option<TxId> {
        None
    }

    /// Marks the start of a statement: under READ COMMITTED a new snapshot is taken.
    pub fn start_statement(&mut self) {}

    /// Marks the end of a statement: under READ COMMITTED its snapshot is given up.
    pub fn end_statement(&mut self) {}

    /// Remembers the present state for [`Transaction::rollback_to`].
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint { _private: () }
    }

    /// Undoes everything since a savepoint of this transaction. Locks stay.
    pub fn rollback_to(&mut self, _savepoint: &Savepoint) -> Result<()> {
        later()
    }

    /// Commits; returns when the commit is as durable as [`crate::Options::durability`] says.
    /// The transaction is empty afterwards and can be used again.
    ///
    /// # Errors
    /// `Error::Stopped` or an I/O error: whether the commit will be found after a restart is
    /// then unknown.
    pub fn commit(&mut self) -> Result<()> {
        later()
    }

    /// Undoes everything. The transaction is empty afterwards and can be used again.
    pub fn rollback(&mut self) -> Result<()> {
        later()
    }

    /// How long row operations of this transaction wait for a lock; zero does not wait.
    pub fn set_lock_wait_timeout(&mut self, _limit: Duration) {}

    /// A handle that interrupts this transaction's waits from another thread.
    pub fn kill_handle(&self) -> KillHandle {
        KillHandle { _private: () }
    }

    /// Inserts a row, a value for each column.
    ///
    /// # Errors
    /// [`Error::Duplicate`] names the unique index in the way ([`Transaction::duplicate_key`]
    /// has the row in the way); [`Error::Invalid`] a value that does not fit its column;
    /// [`Error::TooLarge`] a key or row beyond the limits; the errors of waiting for locks.
    pub fn insert(&mut self, _table: &Table, _row: &[Value<'_>]) -> Result<()> {
        later()
    }

    /// Replaces the row with the given clustered key. The new row may have another key.
    /// A column given as [`Value::OutOfRow`] keeps its present value.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such row; otherwise as [`Transaction::insert`].
    pub fn update(
        &mut self,
        _table: &Table,
        _clustered_key: &[u8],
        _new_row: &[Value<'_>],
    ) -> Result<()> {
        later()
    }

    /// Deletes the row with the given clustered key.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such row; the errors of waiting for locks.
    pub fn delete(&mut self, _table: &Table, _clustered_key: &[u8]) -> Result<()> {
        later()
    }

    /// Reads the row with the given clustered key; `f` gets the row, if there is one.
    pub fn get<R>(
        &mut self,
        _table: &Table,
        _clustered_key: &[u8],
        _f: impl FnOnce(RowView<'_>) -> R,
    ) -> Result<Option<R>> {
        later()
    }

    /// The clustered key of the row last inserted or updated by this transaction.
    pub fn last_key(&self) -> &[u8] {
        &[]
    }

    /// After [`Error::Duplicate`]: the clustered key of the row that was in the way.
    pub fn duplicate_key(&self) -> &[u8] {
        &[]
    }
}
