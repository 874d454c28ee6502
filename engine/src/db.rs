//! The database: opening, tables by name, transactions, background work, closing.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::row::TableSchema;
use crate::settings::{Isolation, Options};
use crate::table::{Table, Transaction};

fn later<T>() -> Result<T> {
    Err(Error::Internal("not yet".into()))
}

/// An open database: a directory that this process alone uses. Share it in an [`Arc`].
pub struct Database {
    _private: (),
}

/// Counters since the database was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Pages read from disk (buffer pool misses).
    pub pages_read: u64,
    /// Pages written to disk.
    pub pages_written: u64,
    /// Pages evicted from the pool.
    pub pages_evicted: u64,
    /// Frames of the pool in use.
    pub pool_pages_used: u64,
    /// Frames of the pool.
    pub pool_pages_total: u64,
    /// Dirty frames of the pool.
    pub pool_pages_dirty: u64,
    /// Bytes appended to the log.
    pub log_bytes: u64,
    /// Syncs of the log.
    pub log_syncs: u64,
    /// Checkpoints completed.
    pub checkpoints: u64,
    /// Transactions committed that had written.
    pub commits: u64,
    /// Transactions rolled back that had written.
    pub rollbacks: u64,
    /// Rows inserted.
    pub rows_inserted: u64,
    /// Rows updated.
    pub rows_updated: u64,
    /// Rows deleted.
    pub rows_deleted: u64,
    /// Lock waits begun.
    pub lock_waits: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Transactions whose old versions await purging.
    pub purge_backlog: u64,
    /// Bytes of the data file.
    pub file_bytes: u64,
}

impl Database {
    /// Opens the database in a directory, creating both when they do not exist (see
    /// [`Options::create`]), and recovers it: after this returns, exactly the committed
    /// transactions are there.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Format`], [`Error::Corrupt`], [`Error::Io`],
    /// [`Error::Invalid`] for options out of range.
    pub fn open(_dir: impl AsRef<Path>, _options: Options) -> Result<Database> {
        later()
    }

    /// Takes a last checkpoint and closes. Dropping without it is safe too: the next open then
    /// replays the log. Open transactions are rolled back by the next open.
    pub fn close(self) -> Result<()> {
        later()
    }

    /// Creates a table. Names are any strings, compared byte by byte.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::Invalid`] for a schema that cannot be.
    pub fn create_table(&self, _name: &str, _schema: &TableSchema) -> Result<Arc<Table>> {
        later()
    }

    /// Drops a table and frees its pages.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Busy`] when open transactions have changed it.
    pub fn drop_table(&self, _name: &str) -> Result<()> {
        later()
    }

    /// Renames a table, atomically.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Exists`].
    pub fn rename_table(&self, _from: &str, _to: &str) -> Result<()> {
        later()
    }

    /// Removes all rows of a table at once, and sets its auto-increment counter to 1.
    ///
    /// # Errors
    /// As [`Database::drop_table`].
    pub fn truncate_table(&self, _name: &str) -> Result<()> {
        later()
    }

    /// The table of a name.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn table(&self, _name: &str) -> Result<Arc<Table>> {
        later()
    }

    /// The names of all tables, sorted.
    pub fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Begins a transaction. Costs next to nothing until it reads or writes.
    pub fn begin(&self, _isolation: Isolation) -> Transaction {
        unimplemented!()
    }

    /// Takes a checkpoint now: afterwards recovery starts from here.
    pub fn checkpoint(&self) -> Result<()> {
        later()
    }

    /// Counters for monitoring.
    pub fn status(&self) -> Status {
        Status::default()
    }
}
