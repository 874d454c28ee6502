//! Cursors: walking an index in both directions.

use std::sync::Arc;

use super::row_view::RowView;
use super::table_handle::{IndexId, Table};
use super::transaction::Transaction;
use crate::error::{Error, Result};

fn later<T>() -> Result<T> {
    Err(Error::Internal("not yet".into()))
}

/// Whether a cursor locks the rows that it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowLock {
    /// A snapshot read (at [`crate::Isolation::Serializable`]: as [`RowLock::Shared`]).
    #[default]
    None,
    /// Others may read and share, not change, until the end of the transaction.
    Shared,
    /// Nobody else may lock or change, until the end of the transaction.
    Exclusive,
}

/// How a cursor reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct CursorOptions {
    /// Locking read or snapshot read. A locking read returns the newest committed rows.
    pub lock: RowLock,
    /// Return index entries without fetching their rows: [`crate::RowView::get`] gives the
    /// columns for which [`Table::index_covers`] holds.
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

/// A position in an index of a table. Made without I/O; reusable by any number of seeks, but
/// only with the transaction of its last seek in between.
pub struct Cursor {
    _private: (),
}

impl Cursor {
    /// A cursor over an index of a table.
    pub fn new(_table: &Arc<Table>, _index: IndexId, _options: CursorOptions) -> Self {
        Cursor { _private: () }
    }

    /// Ends forward scans at an encoded key prefix: entries greater than all that start with it
    /// (or, not `inclusive`, entries that start with it or are greater) are not returned, nor
    /// prefetched. Stays until [`Cursor::clear_end`].
    pub fn set_end(&mut self, _prefix: &[u8], _inclusive: bool) {}

    /// Takes [`Cursor::set_end`] back.
    pub fn clear_end(&mut self) {}

    /// Goes to an entry; false when there is none, and the cursor then stands nowhere.
    ///
    /// # Errors
    /// For locking reads those of waiting for locks; those of reading pages.
    pub fn seek(&mut self, _txn: &mut Transaction, _prefix: &[u8], _to: Seek) -> Result<bool> {
        later()
    }

    /// Goes to the next entry; false at the end (the cursor then stands after the last entry).
    pub fn next(&mut self, _txn: &mut Transaction) -> Result<bool> {
        later()
    }

    /// Goes to the previous entry; false at the beginning.
    pub fn prev(&mut self, _txn: &mut Transaction) -> Result<bool> {
        later()
    }

    /// Goes to the next entry if it starts with the prefix of the last seek; otherwise false.
    pub fn next_same_prefix(&mut self, _txn: &mut Transaction) -> Result<bool> {
        later()
    }

    /// The row, or index entry, that the cursor stands on. Valid until the cursor moves.
    ///
    /// # Errors
    /// `Error::Invalid` when it stands nowhere.
    pub fn row(&mut self) -> Result<RowView<'_>> {
        Err(Error::Internal("not yet".into()))
    }

    /// The encoded index key that the cursor stands on; empty when it stands nowhere.
    pub fn key(&self) -> &[u8] {
        &[]
    }

    /// The clustered key of the row that the cursor stands on; empty when it stands nowhere.
    pub fn clustered_key(&self) -> &[u8] {
        &[]
    }
}
