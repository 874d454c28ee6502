//! The database: tables by name, transactions, counters, closing; `db/opening.rs` opens it.
#![forbid(unsafe_code)]

mod checkpoint_source;
mod inspection;
mod opening;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use self::checkpoint_source::Source;
pub use self::inspection::{Deadlock, Inspection, Lock, NamedRow};
use crate::check::{check_open_table, Report};
use crate::checkpoint::{self, Checkpointer};
use crate::error::{Error, Result};
use crate::planted::{is_planted, PlantedFault};
use crate::row::{SchemaNames, TableSchema};
use crate::session::Transaction;
use crate::settings::{Durability, Isolation, Locking, TableOptions};
use crate::sync::atomic::Ordering;
use crate::sync::{Moment, Mutex};
use crate::table::ddl::Tables;
use crate::table::shared::Shared;
use crate::table::{Prepared, Table};
use crate::txn::Xid;

/// An open database: a directory that this process alone uses. Share it in an [`Arc`].
///
/// ```
/// use peregrine::{
///     Column, ColumnType, Cursor, CursorOptions, Database, Index, Isolation, Key, Options, Seek,
///     TableSchema, Value,
/// };
///
/// # fn main() -> peregrine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path().join("db");
/// let db = Database::open(dir, Options::default())?;
/// let people = db.create_table(
///     "people",
///     &TableSchema {
///         columns: vec![
///             Column::new("id", ColumnType::Int { bytes: 4, signed: false }),
///             Column::new("name", ColumnType::VarBytes { max: 64 }),
///             Column::new("born", ColumnType::Int { bytes: 2, signed: true }).nullable(),
///         ],
///         primary: Some(Key::new(&[0])),
///         indexes: vec![Index::new("by_birth", &[2])],
///         user: vec![],
///     },
/// )?;
///
/// let mut txn = db.begin(Isolation::RepeatableRead);
/// for (id, name, born) in [(1u32, "Ada", 1815i16), (2, "Grace", 1906), (3, "Edsger", 1930)] {
///     txn.insert(&people, &[id.into(), name.into(), born.into()])?;
/// }
/// txn.commit()?;
///
/// // One row by its key.
/// let key = people.encode_key(0, &[Value::UInt(2)])?;
/// let name = txn.get(&people, &key, |row| row.get(1).map(|v| v.to_owned()))?;
/// assert_eq!(name.unwrap()?.as_value(), Value::Bytes(b"Grace"));
///
/// // A range of an index, backwards, with the columns that are asked for.
/// let mut cursor = Cursor::new(&people, 1, CursorOptions::default());
/// let before = people.encode_key(1, &[Value::Int(1930)])?;
/// let mut found = Vec::new();
/// let mut more = cursor.seek(&mut txn, &before, Seek::Before)?;
/// while more {
///     found.push(cursor.row()?.get(0)?.to_owned());
///     more = cursor.prev(&mut txn)?;
/// }
/// assert_eq!(found.len(), 2);
/// assert_eq!(found[0].as_value(), Value::UInt(2));
/// # drop((txn, cursor));
/// db.close()
/// # }
/// ```
pub struct Database {
    shared: Arc<Shared>,
    tables: Arc<Tables>,
    /// `None` while the database is being closed, and for a database without threads.
    checkpointer: Option<Checkpointer>,
    /// Gives checkpoints the state that they store.
    source: Arc<Source>,
    /// Held during a checkpoint of a database without threads: one runs at a time.
    checkpointing: Mutex<()>,
    dir: PathBuf,
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
    /// Reads that a mini-page answered, without the leaf.
    pub mini_page_reads: u64,
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
    /// Transactions that wait for a lock now.
    pub lock_waits_now: u64,
    /// Microseconds of all lock waits that have ended.
    pub lock_wait_us: u64,
    /// Microseconds of the longest lock wait.
    pub longest_lock_wait_us: u64,
    /// Lock waits that reached their time limit.
    pub lock_timeouts: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Rows with an entry in the lock table.
    pub locked_rows: u64,
    /// Transactions whose old versions wait for purge.
    pub purge_backlog: u64,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Free bytes of the data file.
    pub file_free_bytes: u64,
    /// Pages that hold undo: older versions, and how to roll back.
    pub undo_pages: u64,
    /// Bytes of memory for the outcomes of recent transactions.
    pub transaction_status_bytes: u64,
    /// How long an opening would take if the process were killed now.
    ///
    /// Computed from the work that it would have to do, and from the duration of earlier openings. An opening replays
    /// the log of transactions that have committed since the last checkpoint, and rolls back those that were running at
    /// the checkpoint. If such a transaction has committed by now, the opening repeats it from its first change on.
    pub recovery_time: Duration,
}

impl Database {
    /// The database's directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes a last checkpoint and closes the database.
    ///
    /// Dropping it instead is safe, too: the next opening then replays the log. The next opening rolls back open
    /// transactions, and restores prepared ones. Tables and transactions that still exist return [`Error::Stopped`].
    ///
    /// # Errors
    /// Those of [`Database::checkpoint`]; the database is closed all the same.
    pub fn close(self) -> Result<()> {
        self.shared.transactions.shutdown();
        // Even if nothing was logged since the last one: a rollback changes pages without log.
        self.checkpoint()
    }

    /// Creates a table.
    ///
    /// Names are any strings, compared byte by byte.
    ///
    /// Durable when it returns, as every change of definitions.
    ///
    /// # Errors
    /// [`Error::Exists`]; [`Error::Invalid`] for an invalid schema.
    pub fn create_table(&self, name: &str, schema: &TableSchema) -> Result<Arc<Table>> {
        self.create_table_with(name, schema, &TableOptions::default())
    }

    /// As [`Database::create_table`], with options.
    ///
    /// # Errors
    /// As [`Database::create_table`].
    pub fn create_table_with(
        &self,
        name: &str,
        schema: &TableSchema,
        options: &TableOptions,
    ) -> Result<Arc<Table>> {
        self.tables.create(&self.shared, name, schema, options)
    }

    /// How conflicts between transactions in a table are handled.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn locking(&self, name: &str) -> Result<Locking> {
        self.shared.registry.locking(name)
    }

    /// Sets how conflicts between transactions in a table are handled, from the next conflict on.
    ///
    /// The table is not touched. Transactions that wait in it go on waiting.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn set_locking(&self, name: &str, locking: Locking) -> Result<()> {
        // A program that opens a table mostly sets what the table has already: this must not wait for another change.
        if self.locking(name)? == locking && !is_planted(PlantedFault::KnownNamesWait) {
            return Ok(());
        }
        self.tables.set_locking(&self.shared, name, locking)
    }

    /// Gives a table's columns and indexes other names.
    ///
    /// Affects neither the table's pages nor its users.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] if the number of names is not that of columns and indexes.
    pub fn set_names(&self, name: &str, names: &SchemaNames) -> Result<()> {
        // As in `set_locking`.
        let registry = &self.shared.registry;
        let now = registry.definition(registry.id_of(name)?)?.schema;
        if now.named(names)? == now && !is_planted(PlantedFault::KnownNamesWait) {
            return Ok(());
        }
        self.tables.set_names(&self.shared, name, names)
    }

    /// Changes the bytes that the program keeps with a table: [`TableSchema::user`].
    ///
    /// Affects neither its pages nor its users.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn set_user(&self, name: &str, user: &[u8]) -> Result<()> {
        // As in `set_locking`.
        let registry = &self.shared.registry;
        if registry.definition(registry.id_of(name)?)?.schema.user == user {
            return Ok(());
        }
        self.tables.set_user(&self.shared, name, user)
    }

    /// Makes a table's auto-increment counter at least `value`.
    ///
    /// Durable when it returns, unlike [`Table::set_auto_increment_at_least`].
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn set_auto_increment(&self, name: &str, value: u64) -> Result<()> {
        self.tables.set_counter(&self.shared, name, value)
    }

    /// Drops a table and frees its pages.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Busy`] when open transactions have used it.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.tables.remove_table(&self.shared, name, None)
    }

    /// As [`Database::drop_table`], but also allowed if `txn`, and no other transaction, has used the table.
    ///
    /// The changes of `txn` in the table are gone with it: they are neither committed nor undone. A rollback of `txn`
    /// does not restore the table.
    ///
    /// # Errors
    /// As [`Database::drop_table`]; those of writing the log. [`Error::Invalid`] if a rollback to a savepoint has
    /// failed, or if `txn` is of another database.
    pub fn drop_table_used_by(&self, txn: &mut Transaction, name: &str) -> Result<()> {
        if !txn.is_of(&self.shared) {
            return Err(Error::Invalid(format!(
                "table {name} belongs to another open database than the transaction"
            )));
        }
        let id = self.shared.registry.id_of(name)?;
        let own = match is_planted(PlantedFault::OwnUseIsBusy) {
            true => 0,
            false => txn.before_drop(id)?,
        };
        self.shared
            .transactions
            .moments
            .come_to(Moment::TableToDrop);
        let own = Some((id, own));
        self.tables.remove_table(&self.shared, name, own)?;
        txn.forget_table(id);
        Ok(())
    }

    /// Renames a table, atomically.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Exists`].
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.tables.rename(&self.shared, from, to, false)
    }

    /// As [`Database::rename_table`], for a copy that replaces another table.
    ///
    /// Transactions whose snapshot is older than this call can't read the table ([`Error::TableNewerThanSnapshot`]):
    /// they do not see the copy's rows.
    ///
    /// # Errors
    /// As [`Database::rename_table`].
    pub fn rename_table_as_new(&self, from: &str, to: &str) -> Result<()> {
        self.tables.rename(&self.shared, from, to, true)
    }

    /// Removes all rows of a table at once, and sets its auto-increment counter to 1.
    ///
    /// # Errors
    /// As [`Database::drop_table`].
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.tables.truncate(&self.shared, name)
    }

    /// The table with this name.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn table(&self, name: &str) -> Result<Arc<Table>> {
        self.shared.registry.table(name)
    }

    #[cfg(test)]
    pub(crate) fn transactions(&self) -> &crate::txn::TransactionManager {
        &self.shared.transactions
    }

    #[cfg(test)]
    pub(crate) fn registry(&self) -> &crate::table::registry::Registry {
        &self.shared.registry
    }

    /// The names of all tables, sorted.
    pub fn table_names(&self) -> Vec<String> {
        self.shared.registry.names()
    }

    /// Verifies a table while it is in use: its trees, its rows, and that each index has the entries of these rows.
    ///
    /// Calls `interrupted` at every page. The problems found go into the report.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Interrupted`]; [`Error::Stopped`]; errors that are no faults of the table:
    /// [`Error::Io`] of a read that fails, and [`Error::TooLarge`] when all of the buffer pool is in use.
    pub fn check_table(
        &self,
        name: &str,
        interrupted: &dyn Fn() -> bool,
        report: &mut Report,
    ) -> Result<()> {
        let mut txn = self.begin(Isolation::RepeatableRead);
        check_open_table(&self.table(name)?, &mut txn, interrupted, report)
    }

    /// Begins a transaction.
    ///
    /// Costs almost nothing until the transaction reads or writes.
    pub fn begin(&self, isolation: Isolation) -> Transaction {
        Transaction::new(self.shared.clone(), isolation)
    }

    /// The prepared transactions ([`Transaction::prepare`]) without a decision, by name; also those from before a
    /// restart.
    pub fn prepared(&self) -> Vec<Prepared> {
        self.shared.prepared.list()
    }

    /// Commits a prepared transaction that no session holds.
    ///
    /// # Errors
    /// [`Error::NotFound`]; otherwise as [`Transaction::commit`]. If the commit could not be logged, the transaction is
    /// still prepared, and the caller can try again.
    pub fn commit_prepared(&self, xid: &Xid) -> Result<()> {
        // If it is still prepared, dropping it puts it back into the list.
        self.shared.prepared.claim(xid)?.commit()
    }

    /// Rolls back a prepared transaction that no session holds.
    ///
    /// # Errors
    /// As [`Database::commit_prepared`].
    pub fn rollback_prepared(&self, xid: &Xid) -> Result<()> {
        self.shared.prepared.claim(xid)?.rollback()
    }

    /// Makes every commit so far durable, whatever [`Durability`] is set.
    ///
    /// For a coordinator that is about to forget its decisions (see [`Transaction::finish_commit`]). The log notes its
    /// durable length: if the device loses a part of that later, an opening finds out, and does not take the loss for a
    /// torn write.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn sync_log(&self) -> Result<()> {
        if is_planted(PlantedFault::SyncLogLater) {
            return Ok(());
        }
        self.shared.log.confirm()
    }

    /// Sets how durable commits are from now on.
    pub fn set_durability(&self, durability: Durability) {
        self.shared.transactions.set_durability(durability);
    }

    /// Changes [`crate::Options::scan_threads`].
    ///
    /// # Errors
    /// `Error::Invalid` for a number out of range.
    pub fn set_scan_threads(&self, threads: usize) -> Result<()> {
        opening::check_scan_threads(threads)?;
        self.shared.scans.set_most(threads);
        Ok(())
    }

    /// Changes [`crate::Options::longest_kept_log`], from the next checkpoint on.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value below the least one.
    pub fn set_longest_kept_log(&self, bytes: u64) -> Result<()> {
        opening::check_bytes("longest_kept_log", bytes)?;
        self.shared.transactions.set_longest_kept_log(bytes);
        Ok(())
    }

    /// Sets how long transactions that begin from now on wait for a lock.
    pub fn set_lock_wait_timeout(&self, limit: Duration) {
        self.shared.transactions.set_lock_wait_timeout(limit);
    }

    /// Stops the database for good: nothing more is written or acknowledged, and every later change returns
    /// [`Error::Stopped`].
    ///
    /// For an embedding program that finds its memory damaged. The next opening recovers.
    pub fn stop(&self, reason: &str) {
        // The error is for later calls; this one has no use for it.
        let _ = self.shared.registry.pool().store().stop_flag().stop(reason);
    }

    /// Takes a checkpoint now, from which a later recovery starts.
    ///
    /// # Errors
    /// [`Error::NoSpace`]: the database goes on with the earlier checkpoint; [`Error::Stopped`].
    pub fn checkpoint(&self) -> Result<()> {
        if let Some(checkpointer) = &self.checkpointer {
            return checkpointer.now();
        }
        let at_once = is_planted(PlantedFault::CheckpointsAtOnce);
        let _alone = (!at_once).then(|| self.checkpointing.lock());
        let store = self.shared.registry.pool().store();
        checkpoint::checkpoint(store, &self.shared.log, &*self.source).map(drop)
    }

    /// Purges now what no snapshot can see.
    ///
    /// A database with threads of its own ([`crate::Options::background`]) does so by itself.
    ///
    /// # Errors
    /// I/O errors; a later call does the rest.
    pub fn purge(&self) -> Result<()> {
        self.shared.transactions.purge_all()
    }

    /// Counters for monitoring.
    pub fn status(&self) -> Status {
        let stats = self.shared.transactions.stats();
        let pool = self.shared.registry.pool().stats();
        let file = self.shared.registry.pool().store().stats();
        let log = self.shared.log.stats();
        let rows = &self.shared.rows;
        Status {
            pages_read: pool.reads,
            pages_written: pool.writes,
            pages_evicted: pool.evictions,
            mini_page_reads: pool.mini_page_reads,
            pool_pages_used: pool.frames.saturating_sub(pool.free),
            pool_pages_total: pool.frames,
            pool_pages_dirty: pool.dirty,
            log_bytes: log.written_bytes,
            log_syncs: log.syncs,
            checkpoints: self
                .checkpointer
                .as_ref()
                .map_or(file.checkpoints, |c| c.stats().completed),
            commits: stats.commits,
            rollbacks: stats.rollbacks,
            rows_inserted: rows.inserted.load(Ordering::Relaxed),
            rows_updated: rows.updated.load(Ordering::Relaxed),
            rows_deleted: rows.deleted.load(Ordering::Relaxed),
            lock_waits: stats.lock_waits,
            lock_waits_now: stats.lock_waits_now,
            lock_wait_us: stats.lock_wait_us,
            longest_lock_wait_us: stats.longest_lock_wait_us,
            lock_timeouts: stats.lock_timeouts,
            deadlocks: stats.deadlocks,
            locked_rows: stats.locked_rows,
            purge_backlog: stats.unpurged,
            file_bytes: file.file_bytes,
            file_free_bytes: file.free_bytes,
            undo_pages: stats.undo_pages,
            transaction_status_bytes: stats.status_bytes,
            recovery_time: self.source.recovery_time(),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.shared.transactions.shutdown();
        drop(self.checkpointer.take());
        self.shared.prepared.close();
        // Commits that did not wait for the log become durable here, if possible.
        let log = &self.shared.log;
        if let Err(error) = log.durable(log.end(), Durability::SyncAtCommit) {
            tracing::error!("the end of the log could not be written: {error}");
        }
        let store = self.shared.registry.pool().store();
        // Before the log is closed, since both use one stop flag.
        store.give_room_back();
        log.close();
        store.close();
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}
