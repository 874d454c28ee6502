//! A transaction: begin, savepoints, commit and rollback. Row operations are in `write` and `read`.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use crate::catalog::{DdlRecord, KIND_COUNTER};
use crate::error::{Error, Result};
use crate::ids::{TableId, TxId};
use crate::mvcc::ReadView;
use crate::planted::{is_planted, PlantedFault};
use crate::session::deferred_entries::Deferred;
use crate::session::held_guards::Guards;
use crate::session::scratch::Scratch;
use crate::settings::Isolation;
use crate::sync::Moment;
use crate::table::open_table::Table;
use crate::table::prepared_transactions::PreparedUse;
use crate::table::shared::{RowCounts, Shared};
use crate::table::table_use::{Entered, TableUse};
use crate::txn::Committed;
use crate::{knobs, txn};

pub use crate::txn::KillHandle;

/// A transaction, made by [`crate::Database::begin`].
///
/// If it is dropped without a commit, it rolls back. A prepared one stays instead, for
/// [`crate::Database::commit_prepared`] or [`crate::Database::rollback_prepared`].
///
/// It can move between threads, but only one thread uses it at a time. After [`Error::Deadlock`],
/// [`Error::WriteConflict`] or [`Error::LogLimit`] it can only be rolled back: all other calls, also those to roll back
/// to a savepoint or to commit, return the same error ([`Transaction::must_roll_back`]). A cursor may still return
/// entries that it has copied. After any other error of a row operation nothing of that operation remains, and the
/// transaction goes on.
pub struct Transaction {
    pub(crate) tree_txn: txn::TreeTransaction,
    pub(crate) shared: Arc<Shared>,
    pub(crate) used: SmallVec<[TableUse; 4]>,
    /// Set once the transaction is prepared: holds the tables that it uses, so that it can use no more.
    pub(super) prepared: Option<Box<PreparedUse>>,
    /// A commit that others see, and that is not finished.
    pub(super) committed: Option<Committed>,
    /// The number of row operations so far, and of other events that make copies invalid.
    ///
    /// Cursors compare it to learn whether their copies may be outdated.
    pub(crate) writes: u64,
    /// The table of the last row operation; its key is `scratch.key`.
    pub(crate) last_table: TableId,
    pub(crate) scratch: Scratch,
    /// The deferred entries of bulk inserts.
    pub(crate) deferred: Vec<Deferred>,
    /// See [`Transaction::guard`].
    pub(crate) guards: Guards,
    /// The table that is filled, see [`Transaction::begin_fill`]; 0: none.
    pub(crate) filling: TableId,
    pub(crate) read_buffer: Vec<u8>,
    pub(crate) counts: RowCounts,
    /// Why rows may lack index entries; the transaction can then only be rolled back, or go back further.
    ///
    /// It went back to a savepoint at which deferred entries could not be inserted: rows from before may lack them. Or
    /// an operation has panicked (`unwound.rs`).
    pub(super) missing_entries: Option<Error>,
}

/// A place in a transaction to roll back to.
#[derive(Clone, Debug)]
pub struct Savepoint {
    tree_txn: txn::Savepoint,
    /// Why deferred entries could not be inserted.
    missing_entries: Option<Error>,
    rows: SmallVec<[i64; 4]>,
    counts: RowCounts,
}

impl Savepoint {
    /// Why entries of a bulk insert could not be inserted when the savepoint was made.
    ///
    /// A transaction that goes back here can then only be rolled back, or go back further.
    pub fn missing_entries(&self) -> Option<&Error> {
        self.missing_entries.as_ref()
    }
}

impl Transaction {
    pub(crate) fn new(shared: Arc<Shared>, isolation: Isolation) -> Self {
        let inner = shared.transactions.begin(isolation);
        Transaction::of(shared, inner)
    }

    pub(super) fn of(shared: Arc<Shared>, inner: txn::TreeTransaction) -> Self {
        Transaction {
            tree_txn: inner,
            shared,
            used: SmallVec::new(),
            prepared: None,
            committed: None,
            writes: 0,
            last_table: TableId(0),
            scratch: Scratch::default(),
            deferred: Vec::new(),
            guards: Guards::default(),
            filling: TableId(0),
            read_buffer: Vec::new(),
            counts: RowCounts::default(),
            missing_entries: None,
        }
    }

    /// The transaction's number, once it has written.
    pub fn id(&self) -> Option<TxId> {
        self.tree_txn.id()
    }

    /// The transaction's isolation level.
    pub fn isolation(&self) -> Isolation {
        self.tree_txn.isolation()
    }

    /// Marks the start of a statement: under READ COMMITTED the next read takes a new snapshot.
    pub fn start_statement(&mut self) {
        self.tree_txn.start_statement();
        self.void_copies();
    }

    /// Takes the snapshot now, rather than at the first read.
    ///
    /// Does nothing at [`Isolation::Serializable`], which has locks instead of a snapshot, nor in a prepared
    /// transaction, which reads no more.
    pub fn take_snapshot(&mut self) {
        let reads = !self.is_prepared() || is_planted(PlantedFault::SnapshotOfPrepared);
        if reads && self.isolation() != Isolation::Serializable {
            self.tree_txn.view();
        }
    }

    /// Marks the end of a statement: under READ COMMITTED its snapshot ends.
    pub fn end_statement(&mut self) {
        self.tree_txn.end_statement();
        self.void_copies();
    }

    /// Makes cursors copy their leaves anew, under READ COMMITTED.
    ///
    /// A leaf that was copied in an earlier statement refers to older versions that no snapshot keeps.
    fn void_copies(&mut self) {
        let voids = self.isolation() == Isolation::ReadCommitted;
        if voids && !is_planted(PlantedFault::KeepVoidCopies) {
            self.writes += 1;
            self.last_table = TableId(0);
        }
    }

    /// Makes a savepoint for [`Transaction::rollback_to`]; inserts the deferred entries of bulk inserts.
    ///
    /// If that fails, the next operation that needs the entries tries again. Once the transaction has gone back to this
    /// savepoint, no retry is possible: an operation that needs them fails with an error that names the first one, and
    /// the transaction can only be rolled back. [`Savepoint::missing_entries`] has that error.
    pub fn savepoint(&mut self) -> Savepoint {
        let failed = match self.deferred.is_empty() {
            true => None,
            false => self.put_deferred(None).err(),
        };
        Savepoint {
            tree_txn: self.tree_txn.savepoint(),
            missing_entries: self.missing_entries.clone().or(failed),
            rows: self.used.iter().map(|u| u.rows).collect(),
            counts: self.counts,
        }
    }

    /// Undoes everything since a savepoint of this transaction. Locks stay.
    ///
    /// # Errors
    /// [`Error::Deadlock`], [`Error::WriteConflict`] and [`Error::LogLimit`], if one came before: nothing is undone.
    /// Those of reading and writing pages. After these the transaction can't be used, committed or prepared: either a
    /// retry, with the same savepoint or an earlier one, succeeds, or the caller rolls the transaction back.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.writes += 1;
        self.last_table = TableId(0);
        self.tree_txn.rollback_to(&savepoint.tree_txn)?;
        self.forget_deferred();
        if savepoint.missing_entries.is_some() || !is_planted(PlantedFault::LackForGood) {
            self.missing_entries = savepoint.missing_entries.clone();
        }
        for (n, used) in self.used.iter_mut().enumerate() {
            used.rows = savepoint.rows.get(n).copied().unwrap_or(0);
        }
        self.counts = savepoint.counts;
        self.tree_txn.show_rows_changed(self.rows_changed());
        Ok(())
    }

    /// Commits; returns when the commit is as durable as [`crate::Options::durability`] says.
    ///
    /// This includes earlier commits by [`Transaction::commit_visibly`]. The transaction is empty afterwards and can be
    /// used again.
    ///
    /// # Errors
    /// [`Error::Deadlock`], [`Error::WriteConflict`] and [`Error::LogLimit`], also if one came before; those of
    /// [`Transaction::insert`], if deferred index entries of a bulk insert are in conflict with other transactions. The
    /// transaction has been rolled back, and needs another [`Transaction::kill_handle`], as after
    /// [`Transaction::rollback`].
    ///
    /// After `Error::Stopped` or an I/O error it is unknown whether a restart will find the commit.
    pub fn commit(&mut self) -> Result<()> {
        self.commit_visibly()?;
        self.finish_commit(true)
    }

    /// The first half of [`Transaction::commit`], which does not wait for the log: others see the commit, and get its
    /// locks.
    ///
    /// For programs that keep several stores in one order of commits. [`Transaction::finish_commit`] must follow.
    ///
    /// # Errors
    /// The commit is not in the log. The transaction has been rolled back, and needs another
    /// [`Transaction::kill_handle`]. A prepared transaction is still prepared, and the caller can try again.
    pub fn commit_visibly(&mut self) -> Result<()> {
        let prepared = self.complete_pending().and_then(|()| self.log_counters());
        let prepared = prepared.and_then(|()| self.decide_in_quarantine(true));
        let result = prepared.and_then(|()| {
            let used = match &self.prepared {
                Some(prepared) => &prepared.used,
                None => &self.used,
            };
            self.tree_txn.commit_visibly(|inside| {
                for used in used {
                    used.state.add_rows(inside, used.rows);
                }
            })
        });
        match result {
            Ok(committed) => {
                // An earlier commit that is not finished must become durable, too.
                let earlier = self.committed.take();
                self.committed = Some(match earlier {
                    Some(earlier) if !is_planted(PlantedFault::ForgetVisible) => {
                        committed.after(earlier)
                    }
                    _ => committed,
                });
            }
            Err(error) if self.is_prepared() => return Err(error),
            Err(error) => {
                // The commit record is not in the log: nothing of the transaction may remain. A transaction without a
                // number has written nothing, but still holds locks and a snapshot.
                if self.tree_txn.id().is_some() || !is_planted(PlantedFault::KeepUnnumbered) {
                    if let Err(error) = self.tree_txn.rollback() {
                        tracing::error!("rolling back after a failed commit: {error}");
                        self.abandon();
                    }
                }
                self.release();
                return Err(error);
            }
        }
        self.end_prepared();
        self.shared.rows.add(self.counts);
        self.release();
        Ok(())
    }

    /// The second half of [`Transaction::commit`]: with `wait`, waits until all visible commits are durable.
    ///
    /// As durable as [`crate::Options::durability`] says. Without `wait` it returns at once: for a prepared transaction
    /// whose coordinator remembers its decision until [`crate::Database::sync_log`] has been called.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn finish_commit(&mut self, wait: bool) -> Result<()> {
        match self.committed.take() {
            Some(committed) => self.tree_txn.finish_commit(committed, wait),
            None => Ok(()),
        }
    }

    /// Whether the transaction's commit is visible, but [`Transaction::finish_commit`] has not been called.
    pub fn is_committed_visibly(&self) -> bool {
        self.committed.is_some()
    }

    /// Undoes all changes.
    ///
    /// The transaction is empty afterwards and can be used again.
    ///
    /// # Errors
    /// Those of reading and writing pages. Purge undoes the remaining changes as soon as it can; their rows stay locked
    /// until then. The transaction needs another [`Transaction::kill_handle`]. A prepared transaction whose rollback
    /// can't be logged is still prepared, and the caller can try again.
    pub fn rollback(&mut self) -> Result<()> {
        self.decide_in_quarantine(false)?;
        let result = self.tree_txn.rollback();
        if self.is_prepared() && self.tree_txn.is_prepared() {
            return result;
        }
        if result.is_err() {
            self.abandon();
        }
        self.end_prepared();
        self.release();
        result
    }

    /// Leaves changes that could not be undone to purge, and goes on as another transaction.
    ///
    /// No later change may be committed together with them.
    fn abandon(&mut self) {
        let empty = self.tree_txn.another();
        drop(std::mem::replace(&mut self.tree_txn, empty));
    }

    /// Why the transaction can only be rolled back: [`Error::Deadlock`], [`Error::WriteConflict`] or
    /// [`Error::LogLimit`].
    ///
    /// The error is that of an earlier operation. `None`: there was no such error.
    pub fn must_roll_back(&self) -> Option<&Error> {
        self.tree_txn.must_roll_back()
    }

    /// Inserts deferred entries, so that the transaction can be committed or prepared.
    pub(super) fn complete_pending(&mut self) -> Result<()> {
        self.tree_txn.check_whole()?;
        match self.looks_at_missing_entries() {
            false => Ok(()),
            true => self.end_bulk_insert(),
        }
    }

    /// Whether entries are deferred, or missing for good: an operation that needs them must check.
    fn looks_at_missing_entries(&self) -> bool {
        let lacks = self.missing_entries.is_some() && !is_planted(PlantedFault::LookIfDeferred);
        lacks || !self.deferred.is_empty()
    }

    /// Fails if rows of a bulk insert lack entries that are not deferred.
    pub(crate) fn check_entries(&self) -> Result<()> {
        match &self.missing_entries {
            None => Ok(()),
            // After these errors callers retry, which would always fail here.
            Some(
                error @ (Error::LockWaitTimeout
                | Error::LockNotAvailable
                | Error::RowChanged
                | Error::Interrupted),
            ) if !is_planted(PlantedFault::RepeatCause) => Err(Error::Invalid(format!(
                "rows from before a savepoint lack index entries, so the transaction can only be rolled \
                 back: there, {error}"
            ))),
            Some(error) => Err(error.clone()),
        }
    }

    /// How long row operations of this transaction wait for a lock; zero does not wait.
    pub fn set_lock_wait_timeout(&mut self, limit: Duration) {
        self.tree_txn.set_lock_wait_timeout(limit);
    }

    /// A handle that interrupts this transaction's waits from another thread.
    pub fn kill_handle(&self) -> KillHandle {
        self.tree_txn.kill_handle()
    }

    /// Sets the session of this transaction for [`crate::Database::inspect`]: a number without meaning to the engine.
    pub fn set_session(&mut self, session: u64) {
        self.tree_txn.set_session(session);
    }

    /// Sets when the transaction began, in microseconds since 1970, for [`crate::Database::inspect`].
    ///
    /// Without this call, that returns the time when the transaction first wrote or locked.
    #[inline]
    pub fn set_started(&mut self, micros: u64) {
        self.tree_txn.set_started(micros);
    }

    /// Keeps the log for this transaction until its end, even beyond
    /// [`Options::longest_kept_log`](crate::Options::longest_kept_log).
    ///
    /// For a transaction that will be prepared, if others are told so before [`Transaction::prepare`] can refuse.
    pub fn keep_log(&mut self) {
        self.tree_txn.keep_log();
    }

    /// Locks a table's auto-increment counter, so that the values reserved meanwhile follow one another.
    ///
    /// Lasts until [`Transaction::unlock_auto_increment`] or the end of the transaction. Other transactions that lock
    /// the counter wait. Reserving values needs no lock.
    ///
    /// # Errors
    /// Those of waiting for locks.
    pub fn lock_auto_increment(&mut self, table: &Table) -> Result<()> {
        self.enter_table_blind(table)?;
        let tree = table.trees.load().clustered.id();
        self.tree_txn.lock_counter(tree)
    }

    /// Releases the counter's lock, if this transaction holds it.
    pub fn unlock_auto_increment(&mut self, table: &Table) {
        let tree = table.trees.load().clustered.id();
        self.tree_txn.unlock_counter(tree);
    }

    /// Rows inserted, updated and deleted since the transaction began.
    pub fn rows_changed(&self) -> u64 {
        self.counts.inserted + self.counts.updated + self.counts.deleted
    }

    /// Notes that the transaction uses a table: the table can't be dropped until the transaction ends.
    ///
    /// # Errors
    /// [`Error::TableNewerThanSnapshot`]: the table no longer has the rows that the transaction's snapshot sees.
    #[inline]
    pub(crate) fn enter_table(&mut self, table: &Table) -> Result<usize> {
        self.tree_txn.check_whole()?;
        if self.looks_at_missing_entries() {
            self.put_deferred(Some(table))?;
        }
        match self.place_of(table) {
            Some(n) if matches!(self.used[n].entered, Entered::Yes(_)) => Ok(n),
            known => {
                let n = self.enter_first(table, known)?;
                match self.used[n].entered {
                    Entered::Yes(_) => Ok(n),
                    _ => Err(Error::TableNewerThanSnapshot(table.name())),
                }
            }
        }
    }

    /// The snapshot by which a check of a table reads, at other levels than SERIALIZABLE.
    pub(crate) fn look_at(&mut self, table: &Table) -> Result<(&txn::TreeTransaction, ReadView)> {
        self.enter_table(table)?;
        let view = self.tree_txn.view();
        Ok((&self.tree_txn, view))
    }

    /// As [`Transaction::enter_table`], for operations that read no row: they may use a table newer than the snapshot.
    #[inline]
    pub(crate) fn enter_table_blind(&mut self, table: &Table) -> Result<usize> {
        self.tree_txn.check_whole()?;
        match self.place_of(table) {
            Some(n) if !matches!(self.used[n].entered, Entered::No) => Ok(n),
            known => self.enter_first(table, known),
        }
    }

    /// The table's place in `used`.
    ///
    /// A table of another open database may have the same number.
    #[inline]
    fn place_of(&self, table: &Table) -> Option<usize> {
        let by_number = is_planted(PlantedFault::TablesByNumber);
        let same = |used: &TableUse| match by_number {
            false => Arc::ptr_eq(&used.state, &table.state),
            true => used.id == table.id(),
        };
        self.used.iter().rposition(same)
    }

    /// Refuses a table of another open database, or of an earlier opening of this one.
    ///
    /// Otherwise one database's log and undo would get changes of the other.
    pub(crate) fn check_is_of(&self, table: &Table) -> Result<()> {
        let pool = self.shared.transactions.pool();
        match table.is_of(pool) || is_planted(PlantedFault::TablesByNumber) {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "table {} belongs to another open database than the transaction",
                table.name()
            ))),
        }
    }

    fn enter_first(&mut self, table: &Table, known: Option<usize>) -> Result<usize> {
        if self.is_prepared() {
            return Err(Error::Invalid(
                "a prepared transaction can only be committed or rolled back".into(),
            ));
        }
        let n = match known {
            Some(n) => n,
            None => {
                self.check_is_of(table)?;
                self.used.push(TableUse {
                    id: table.id(),
                    state: table.state.clone(),
                    entered: Entered::No,
                    rows: 0,
                    written: false,
                });
                self.used.len() - 1
            }
        };
        let used = &mut self.used[n];
        let seat = match used.entered {
            Entered::Yes(seat) | Entered::WriteOnly(seat) => seat,
            Entered::No | Entered::LetGo => match table.state.enter() {
                Some(seat) => seat,
                None if table.state.is_gone() || is_planted(PlantedFault::ClosedIsGone) => {
                    return Err(Error::NotFound {
                        what: "table",
                        name: table.name(),
                    })
                }
                None => return Err(Error::Busy(table.name())),
            },
        };
        // From here on the table can't be changed as a whole, and a later snapshot is newer than the table.
        let seen = match self.tree_txn.snapshot() {
            Some(snapshot) if self.tree_txn.isolation() != Isolation::Serializable => {
                table.state.is_in(snapshot)
            }
            _ => true,
        };
        used.entered = if seen {
            Entered::Yes(seat)
        } else {
            Entered::WriteOnly(seat)
        };
        Ok(n)
    }

    /// Logs auto-increment counters, before the commit of the rows that moved them.
    pub(super) fn log_counters(&mut self) -> Result<()> {
        for used in self.used.iter().filter(|u| u.written) {
            if used.state.unlogged_auto().is_none() {
                continue;
            }
            // Inside the barrier: a checkpoint either precedes the record, or knows that the counter is logged up to
            // `next`.
            let _inside = (!is_planted(PlantedFault::CountersOutsideBarrier))
                .then(|| self.shared.transactions.barrier().enter());
            if let Some(next) = used.state.unlogged_auto() {
                let record = DdlRecord::Counter(used.id, next).encode()?;
                self.shared.log.append(KIND_COUNTER, &[&record])?;
                self.shared
                    .transactions
                    .moments
                    .come_to(Moment::CounterLogged);
                used.state.auto_logged(next);
            }
        }
        Ok(())
    }

    fn release(&mut self) {
        self.used.iter_mut().for_each(TableUse::forget);
        if self.used.len() > knobs::states_remembered() {
            self.used.clear();
        }
        self.writes += 1;
        self.last_table = TableId(0);
        self.counts = RowCounts::default();
        self.forget_deferred();
        self.deferred.clear();
        self.guards.clear();
        self.end_fill();
        self.missing_entries = None;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.is_prepared() {
            return self.detach();
        }
        if self.used.iter().any(TableUse::is_entered) {
            if let Err(error) = self.rollback() {
                tracing::error!("rolling back a dropped transaction: {error}");
            }
        }
    }
}
