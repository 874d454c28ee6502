//! A transaction: begin, savepoints, commit and rollback. Row operations are in `write` and
//! `read`.

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

/// A transaction, made by [`crate::Database::begin`]. Dropped without a commit it rolls back, unless
/// it is prepared: then it stays, for [`crate::Database::commit_prepared`] or
/// [`crate::Database::rollback_prepared`].
///
/// It can move between threads, but is used by one at a time. After [`Error::Deadlock`] or
/// [`Error::WriteConflict`] it can only be rolled back: all else, the way back to a savepoint and the commit
/// included, gives the same error ([`Transaction::must_roll_back`]). A cursor may still give what it has at hand.
/// After any other error of a row operation nothing of that operation remains, and the transaction goes on.
pub struct Transaction {
    pub(crate) tree_txn: txn::TreeTransaction,
    pub(crate) shared: Arc<Shared>,
    pub(crate) used: SmallVec<[TableUse; 4]>,
    /// Once it is prepared: what it uses stands here, so that it can use nothing more.
    pub(super) prepared: Option<Box<PreparedUse>>,
    /// Its commit, which others see already.
    pub(super) committed: Option<Committed>,
    /// The number of row operations, and of what else voids copies, so far: cursors see by it that what they hold may
    /// be old.
    pub(crate) writes: u64,
    /// The table of the last row operation; its key is `scratch.key`.
    pub(crate) last_table: TableId,
    pub(crate) scratch: Scratch,
    /// What bulk inserts have deferred.
    pub(crate) deferred: Vec<Deferred>,
    /// See [`Transaction::guard`].
    pub(crate) guards: Guards,
    /// The table that is being filled, see [`Transaction::begin_fill`]; 0: none.
    pub(crate) filling: TableId,
    pub(crate) read_buffer: Vec<u8>,
    pub(crate) counts: RowCounts,
    /// It went back to a savepoint at which what was deferred could not be put in, and why: rows from before
    /// it may lack entries. Or an operation has unwound (`unwound.rs`).
    pub(super) missing_entries: Option<Error>,
}

/// A place in a transaction to roll back to.
#[derive(Clone, Debug)]
pub struct Savepoint {
    tree_txn: txn::Savepoint,
    /// Why what was deferred could not be put in.
    missing_entries: Option<Error>,
    rows: SmallVec<[i64; 4]>,
    counts: RowCounts,
}

impl Savepoint {
    /// Why entries of a bulk insert could not be put in when it was made. A transaction that goes back here can only
    /// be rolled back then, or go back further.
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

    /// The isolation level it was begun with.
    pub fn isolation(&self) -> Isolation {
        self.tree_txn.isolation()
    }

    /// Marks the start of a statement: under READ COMMITTED the next read takes a new snapshot.
    pub fn start_statement(&mut self) {
        self.tree_txn.start_statement();
        self.void_copies();
    }

    /// Takes the snapshot now, rather than at the first read. At [`Isolation::Serializable`], which
    /// has locks instead of a snapshot, this does nothing, nor in a prepared transaction, which reads nothing more.
    pub fn take_snapshot(&mut self) {
        let reads = !self.is_prepared() || is_planted(PlantedFault::SnapshotOfPrepared);
        if reads && self.isolation() != Isolation::Serializable {
            self.tree_txn.view();
        }
    }

    /// Marks the end of a statement: under READ COMMITTED its snapshot is given up.
    pub fn end_statement(&mut self) {
        self.tree_txn.end_statement();
        self.void_copies();
    }

    /// Cursors copy what they see anew. Under READ COMMITTED nobody keeps older versions, of which leaves speak that
    /// were copied in an earlier statement.
    fn void_copies(&mut self) {
        let voids = self.isolation() == Isolation::ReadCommitted;
        if voids && !is_planted(PlantedFault::KeepVoidCopies) {
            self.writes += 1;
            self.last_table = TableId(0);
        }
    }

    /// Remembers the present state for [`Transaction::rollback_to`]. Puts in what bulk inserts have deferred.
    /// Where that fails it is tried again by whatever needs the entries. Once the transaction has gone back here
    /// it cannot be: whatever needs them fails with an error that names the first one, and the transaction can
    /// only be rolled back. [`Savepoint::missing_entries`] tells.
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
    /// [`Error::Deadlock`] and [`Error::WriteConflict`], where one came before: nothing is undone. Those of
    /// reading and writing pages. The transaction can do nothing else then, and can't be committed
    /// or prepared: either this is tried again, with the same savepoint or an earlier one, and succeeds;
    /// or the transaction is rolled back.
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

    /// Commits; returns when the commit is as durable as [`crate::Options::durability`] says, and with it
    /// what [`Transaction::commit_visibly`] has committed before. The transaction is empty afterwards and can be
    /// used again.
    ///
    /// # Errors
    /// [`Error::Deadlock`] and [`Error::WriteConflict`], where one came before; those of [`Transaction::insert`], where
    /// index entries that a bulk insert had put off are in the way of others: the transaction has been rolled back,
    /// and another [`Transaction::kill_handle`] is to be used, as after [`Transaction::rollback`].
    /// `Error::Stopped` or an I/O error: whether the commit will be found after a restart is then unknown.
    pub fn commit(&mut self) -> Result<()> {
        self.commit_visibly()?;
        self.finish_commit(true)
    }

    /// The first half of [`Transaction::commit`], which waits for nothing: others see the commit,
    /// and take its locks. For whoever keeps several stores in one order of commits.
    /// [`Transaction::finish_commit`] is to follow.
    ///
    /// # Errors
    /// The commit is not in the log. The transaction has been rolled back, and another
    /// [`Transaction::kill_handle`] is to be used; one that is prepared still is, and this can be tried again.
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
                // One that has not been finished still waits to be durable.
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
                // The commit record is not in the log: nothing of the transaction may remain. Where it has written
                // nothing under a number of its own, there are still its locks and its snapshot.
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

    /// The second half of [`Transaction::commit`]: returns when all that is committed visibly is as durable as
    /// [`crate::Options::durability`] says; if not to `wait`, at once. Not waiting is for a
    /// transaction that was prepared and whose coordinator will remember its decision until
    /// [`crate::Database::sync_log`] has been called.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn finish_commit(&mut self, wait: bool) -> Result<()> {
        match self.committed.take() {
            Some(committed) => self.tree_txn.finish_commit(committed, wait),
            None => Ok(()),
        }
    }

    /// Whether its commit is visible, and [`Transaction::finish_commit`] has not been called.
    pub fn is_committed_visibly(&self) -> bool {
        self.committed.is_some()
    }

    /// Undoes everything. The transaction is empty afterwards and can be used again.
    ///
    /// # Errors
    /// Those of reading and writing pages: what could not be undone is undone by purge when that can
    /// be done, and stays locked until then; another [`Transaction::kill_handle`] is to be used. A
    /// prepared transaction whose rollback can't be logged is still prepared, and this can be tried
    /// again.
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

    /// Leaves what could not be undone to purge, and goes on as another transaction: nothing that
    /// follows may be committed together with it.
    fn abandon(&mut self) {
        let empty = self.tree_txn.another();
        drop(std::mem::replace(&mut self.tree_txn, empty));
    }

    /// Why the transaction can only be rolled back: [`Error::Deadlock`] or [`Error::WriteConflict`], which one of its
    /// operations has given. `None`: no other transaction was in its way for good.
    pub fn must_roll_back(&self) -> Option<&Error> {
        self.tree_txn.doomed_by()
    }

    /// Makes what the transaction has done complete, so that it can be committed or prepared.
    pub(super) fn complete_pending(&mut self) -> Result<()> {
        self.tree_txn.check_whole()?;
        match self.looks_at_missing_entries() {
            false => Ok(()),
            true => self.end_bulk_insert(),
        }
    }

    /// Whether entries are deferred, or are lacking for good: who needs them has to look.
    fn looks_at_missing_entries(&self) -> bool {
        let lacks = self.missing_entries.is_some() && !is_planted(PlantedFault::LookIfDeferred);
        lacks || !self.deferred.is_empty()
    }

    /// Whether rows of a bulk insert have all entries, or those that they lack are deferred.
    pub(crate) fn check_entries(&self) -> Result<()> {
        match &self.missing_entries {
            None => Ok(()),
            // Errors after which one tries again: here that would fail for ever.
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

    /// Whose transaction this is, in [`crate::Database::inspect`]: a number that means nothing to
    /// the engine.
    pub fn set_session(&mut self, session: u64) {
        self.tree_txn.set_session(session);
    }

    /// When the transaction began, in microseconds since 1970, for [`crate::Database::inspect`].
    /// Where it is not called, that gives the time when the transaction first wrote or locked.
    #[inline]
    pub fn set_started(&mut self, micros: u64) {
        self.tree_txn.set_started(micros);
    }

    /// The log is kept for this transaction until its end, also beyond
    /// [`Options::longest_kept_log`](crate::Options::longest_kept_log). For one that is going to be prepared, where
    /// others are told of that before [`Transaction::prepare`] can refuse.
    pub fn keep_log(&mut self) {
        self.tree_txn.keep_log();
    }

    /// Locks a table's auto-increment counter against others who lock it, until
    /// [`Transaction::unlock_auto_increment`] or the end of the transaction, so that the values
    /// reserved meanwhile follow one another. Reserving values never needs it.
    ///
    /// # Errors
    /// Those of waiting for locks.
    pub fn lock_auto_increment(&mut self, table: &Table) -> Result<()> {
        self.enter_table_blind(table)?;
        let tree = table.trees.load().clustered.id();
        self.tree_txn.lock_counter(tree)
    }

    /// Gives the counter's lock back, if it is held.
    pub fn unlock_auto_increment(&mut self, table: &Table) {
        let tree = table.trees.load().clustered.id();
        self.tree_txn.unlock_counter(tree);
    }

    /// Rows inserted, updated and deleted since the transaction began.
    pub fn rows_changed(&self) -> u64 {
        self.counts.inserted + self.counts.updated + self.counts.deleted
    }

    /// Notes that the transaction uses a table, which then can't be dropped until it ends.
    ///
    /// # Errors
    /// [`Error::TableNewerThanSnapshot`]: what the transaction's snapshot has of the table is gone.
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

    /// What a check of a table reads by, at another level than SERIALIZABLE: its snapshot.
    pub(crate) fn look_at(&mut self, table: &Table) -> Result<(&txn::TreeTransaction, ReadView)> {
        self.enter_table(table)?;
        let view = self.tree_txn.view();
        Ok((&self.tree_txn, view))
    }

    /// As [`Transaction::enter_table`], for what looks at no row: that can be done in a table that
    /// is newer than the snapshot.
    #[inline]
    pub(crate) fn enter_table_blind(&mut self, table: &Table) -> Result<usize> {
        self.tree_txn.check_whole()?;
        match self.place_of(table) {
            Some(n) if !matches!(self.used[n].entered, Entered::No) => Ok(n),
            known => self.enter_first(table, known),
        }
    }

    /// Where the table stands in `used`. A table of another open database may have the same number.
    #[inline]
    fn place_of(&self, table: &Table) -> Option<usize> {
        let by_number = is_planted(PlantedFault::TablesByNumber);
        let same = |used: &TableUse| match by_number {
            false => Arc::ptr_eq(&used.state, &table.state),
            true => used.id == table.id(),
        };
        self.used.iter().rposition(same)
    }

    /// Refuses a table of another database than the transaction's, or of an earlier opening of it: log and undo of
    /// the one would have changes of the other.
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
        // Nobody changes the table as a whole from here on, and a snapshot taken later is newer.
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

    /// The log learns auto-increment counters before the commit of the rows that moved them.
    pub(super) fn log_counters(&mut self) -> Result<()> {
        for used in self.used.iter().filter(|u| u.written) {
            if used.state.unlogged_auto().is_none() {
                continue;
            }
            // A checkpoint comes before the record, or knows that the log has had it: the counter may be lower by then.
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
