//! Locking of rows, and waiting for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::broken::IsolationFault;
use crate::error::{Error, Result};
use crate::ids::{TreeId, TxId};
use crate::lock::row_name::{Row, RowName};
use crate::lock::running_transaction::{micros_now, RunningTransaction, WaitState, Wake};
use crate::lock::table::{Enqueued, LockMode, LockTable, Taken};
use crate::mvcc::snapshot::{never_given, ReadView};
use crate::mvcc::status::Status;
use crate::mvcc::version::Header;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;
use crate::tree::Tree;
use crate::txn::transaction_manager::Counters;
use crate::txn::waiting::deadlock::may_close_a_circle;
use crate::txn::TreeTransaction;

/// The hindrance of a write or a lock: pass it to [`TreeTransaction::wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    row: Row,
    name: RowName,
    /// The running writer whose version is in the tree; `None`: the entry in the lock table has holders.
    writer: Option<TxId>,
    /// The write or the lock found other transactions that hold ranges around the row.
    ranges: bool,
    mode: LockMode,
}

impl Conflict {
    pub(crate) fn with_writer(tree: TreeId, key: &[u8], writer: TxId, mode: LockMode) -> Self {
        Conflict {
            row: Row::new(tree, key),
            name: RowName::new(tree, key),
            writer: Some(writer),
            ranges: false,
            mode,
        }
    }

    pub(crate) fn with_holders(tree: TreeId, key: &[u8], mode: LockMode) -> Self {
        Conflict {
            row: Row::new(tree, key),
            name: RowName::new(tree, key),
            writer: None,
            ranges: false,
            mode,
        }
    }

    pub(crate) fn with_ranges(tree: TreeId, key: &[u8], mode: LockMode) -> Self {
        Conflict {
            row: Row::new(tree, key),
            name: RowName::new(tree, key),
            writer: None,
            ranges: true,
            mode,
        }
    }

    /// Returns the same conflict for a name that is not a row's.
    pub(super) fn of_name(self, row: Row) -> Self {
        Conflict { row, ..self }
    }
}

/// A place in a row's queue while the program is told of the wait.
///
/// If the program's code panics, the place is left: otherwise the row could be granted to a transaction that does not
/// take it.
struct Queued<'a> {
    locks: &'a LockTable,
    row: Row,
    me: &'a Arc<RunningTransaction>,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if !is_planted(PlantedFault::StayQueued) {
            self.locks.leave(self.row, self.me);
            self.me.wait_slot.set(WaitState::Idle);
        }
    }
}

/// The outcome of [`TreeTransaction::try_lock_row`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LockRow {
    /// Locked (also if there is no such row: then no other transaction can insert it).
    Done,
    /// Another transaction holds the row: call [`TreeTransaction::wait`], and try again.
    Conflict(Conflict),
    /// The row was changed after this transaction's snapshot (never under READ COMMITTED).
    Changed,
}

impl TreeTransaction {
    /// Locks a row, and waits as long as allowed. Not inside the barrier.
    ///
    /// # Errors
    /// Those of [`TreeTransaction::wait`]; [`Error::WriteConflict`] when the row was changed after
    /// this transaction's snapshot (never under READ COMMITTED).
    pub fn lock_row(&mut self, tree: &Tree, key: &[u8], mode: LockMode) -> Result<()> {
        self.lock_row_or_skip(tree, key, mode, false).map(|_| ())
    }

    /// Like [`TreeTransaction::lock_row`]; with `skip` it returns false rather than wait, and for a row changed after
    /// the snapshot.
    ///
    /// # Errors
    /// As [`TreeTransaction::lock_row`].
    pub fn lock_row_or_skip(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        skip: bool,
    ) -> Result<bool> {
        loop {
            match self.try_lock_row(tree, key, mode)? {
                LockRow::Done => return Ok(true),
                LockRow::Changed if skip => return Ok(false),
                LockRow::Changed => return Err(self.changed_since(tree.id())),
                LockRow::Conflict(_) if skip => return Ok(false),
                LockRow::Conflict(conflict) => self.wait_for_row(&conflict)?,
            }
        }
    }

    /// Waits for a row that is to be locked; the transaction that ends may make this one its holder.
    fn wait_for_row(&mut self, conflict: &Conflict) -> Result<()> {
        let (transactions, row) = (self.transactions.clone(), conflict.row);
        let me = self.running().clone();
        let held = transactions.locks().holds(row, &me);
        self.wait(conflict)?;
        if !held && transactions.locks().holds(row, &me) {
            self.new_lock = Some(row);
        }
        Ok(())
    }

    /// Begins a statement's locking: [`TreeTransaction::unlock_new`] gives back only locks taken after this call.
    pub fn begin_locking(&mut self) {
        self.new_lock = None;
    }

    /// The number of requests to lock a row so far, including those for rows that were already locked.
    pub fn lock_requests(&self) -> u64 {
        self.lock_requests
    }

    /// Releases the row locked last, and lets its waiters have it.
    ///
    /// Has no effect unless the row was locked since [`TreeTransaction::begin_locking`], and this transaction held
    /// nothing of it before. For rows that have not been written since.
    pub fn unlock_new(&mut self) {
        if let (Some(row), Some(me)) = (self.new_lock.take(), &self.running) {
            self.unescalated = None;
            self.transactions.locks().release_early(row, me);
        }
    }

    /// Like [`TreeTransaction::lock_row`], but also locks a row changed after this transaction's snapshot.
    ///
    /// For readers of the newest rows.
    ///
    /// # Errors
    /// Those of [`TreeTransaction::wait`].
    pub fn lock_newest(&mut self, tree: &Tree, key: &[u8], mode: LockMode) -> Result<()> {
        loop {
            match self.try_lock_seen(tree, key, mode, None)? {
                LockRow::Conflict(conflict) => self.wait_for_row(&conflict)?,
                LockRow::Done | LockRow::Changed => return Ok(()),
            }
        }
    }

    /// Locks a row if that needs no wait; the lock stays until the transaction ends.
    ///
    /// # Errors
    /// I/O errors; [`Error::Internal`] for damaged records.
    pub fn try_lock_row(&mut self, tree: &Tree, key: &[u8], mode: LockMode) -> Result<LockRow> {
        let view = self.snapshot_to_respect();
        self.try_lock_seen(tree, key, mode, view)
    }

    /// Like [`TreeTransaction::try_lock_row`]; `view` must see the row's newest version.
    fn try_lock_seen(
        &mut self,
        tree: &Tree,
        key: &[u8],
        mode: LockMode,
        view: Option<ReadView>,
    ) -> Result<LockRow> {
        let own = self.txid;
        let transactions = self.transactions.clone();
        self.lock_requests += 1;
        self.escalate_last();
        let mut taken = None;
        let mut in_the_way = None;
        let running = self.running();
        let outcome = tree.read(key, |value, _| {
            let order = transactions.order();
            let writer = match value {
                Some(value) => Header::decode(value)?.0.txid(),
                None => None,
            };
            if let Some(writer) = writer {
                if writer == own {
                    return Ok(LockRow::Done);
                }
                match order.status(writer) {
                    Status::Active if transactions.breaks(IsolationFault::OverwriteUncommitted) => {
                        return Ok(LockRow::Done)
                    }
                    Status::Active => {
                        let conflict = Conflict::with_writer(tree.id(), key, writer, mode);
                        return Ok(LockRow::Conflict(conflict));
                    }
                    Status::Committed(_) | Status::Aborted(_) => {}
                    Status::Unknown => return Err(never_given(writer)),
                }
                if let Some(view) = &view {
                    if !view.sees(order, writer)? {
                        return Ok(LockRow::Changed);
                    }
                }
            }
            if transactions.breaks(IsolationFault::SkipRowLock) {
                return Ok(LockRow::Done);
            }
            // Under the leaf's latch: a writer that comes later finds this lock.
            Ok(
                match transactions.locks().try_take(tree.id(), key, running, mode) {
                    Ok(how) => {
                        taken = Some(how);
                        LockRow::Done
                    }
                    Err(holders) if holders.is_empty() => {
                        LockRow::Conflict(Conflict::with_holders(tree.id(), key, mode))
                    }
                    Err(holders) => {
                        in_the_way = Some(holders);
                        LockRow::Conflict(Conflict::with_ranges(tree.id(), key, mode))
                    }
                },
            )
        })?;
        if let Some(holders) = in_the_way {
            self.blocked_by = holders;
        }
        let is_new = match taken {
            Some(Taken::Newly(row)) => {
                self.new_lock = Some(row);
                true
            }
            // Another transaction granted it while this one waited for it.
            Some(Taken::Before) => {
                let new = self.new_lock;
                new.is_some_and(|new| new == Row::new(tree.id(), key))
            }
            None => false,
        };
        if is_new {
            let requests = self.lock_requests;
            let me = self.running.as_ref();
            if me.is_some_and(|me| transactions.locks().escalates(me, requests)) {
                self.unescalated = Some((tree.id(), key.into()));
            }
        }
        outcome
    }

    /// Replaces the entry of the row locked last by a range if there are many entries; the row stays locked.
    fn escalate_last(&mut self) {
        if let (Some((tree, key)), Some(me)) = (self.unescalated.take(), &self.running) {
            self.transactions.locks().escalate(tree, &key, me);
        }
    }

    /// Returns the payload of a record that no other transaction is writing; `None` if there is no row.
    ///
    /// Waits as long as allowed. With `skip`, a record for which it would have to wait counts as no row. The payload
    /// stays valid if the transaction holds a range around the key. `buf` takes the payload. Not inside the barrier.
    ///
    /// # Errors
    /// Those of [`TreeTransaction::wait`], and of reading.
    pub fn decided_payload<'a>(
        &mut self,
        tree: &Tree,
        key: &[u8],
        skip: bool,
        buf: &'a mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>> {
        let own = self.txid;
        loop {
            let transactions = self.transactions.clone();
            let conflict = tree.read(key, |value, _| {
                buf.clear();
                let Some(value) = value else {
                    return Ok(None);
                };
                let (header, payload) = Header::decode(value)?;
                match header.txid() {
                    Some(writer)
                        if writer != own
                            && transactions.order().status(writer) == Status::Active =>
                    {
                        let mode = LockMode::Shared;
                        Ok(Some(Conflict::with_writer(tree.id(), key, writer, mode)))
                    }
                    _ if header.deleted => Ok(None),
                    _ => {
                        // A 0 marks a row, because a row's payload may be empty.
                        buf.push(0);
                        buf.extend_from_slice(payload);
                        Ok(None)
                    }
                }
            })??;
            match conflict {
                Some(_) if skip => return Ok(None),
                Some(conflict) => self.wait(&conflict)?,
                None => return Ok(buf.get(1..)),
            }
        }
    }

    /// Returns how long this transaction may wait for a row of a tree.
    ///
    /// It asks the program each time, because a statement may call others that have their own limits.
    fn may_wait(&self, tree: TreeId) -> Result<Duration> {
        let session = self.slot.owner().session.load(Ordering::Relaxed);
        let mut waiting = self.transactions.sessions.waiting(session);
        if is_planted(PlantedFault::LimitOfOuterStatement) {
            waiting.limit = None;
        }
        if is_planted(PlantedFault::NeverWaitOptimistic) {
            waiting.also_optimistic = false;
        }
        if !waiting.also_optimistic && self.transactions.is_optimistic(tree) {
            return Err(Error::RowChanged);
        }
        Ok(waiting.limit.unwrap_or(self.lock_wait_timeout))
    }

    /// Waits until the hindrance may be gone; then the caller tries again from the top.
    ///
    /// Not inside the barrier. The queue is first come, first served: a woken transaction holds the row, so newcomers
    /// can't overtake it.
    ///
    /// # Errors
    /// [`Error::Deadlock`]: this transaction was chosen to break a circle, and can only be rolled back.
    /// [`Error::LockWaitTimeout`] after the limit; [`Error::LockNotAvailable`] at once where the limit is zero;
    /// [`Error::RowChanged`] at once in a tree whose locking is optimistic, unless the session waits there too
    /// ([`crate::Waiting`]); [`Error::Interrupted`] when killed.
    pub fn wait(&mut self, conflict: &Conflict) -> Result<()> {
        self.waits += 1;
        let transactions = self.transactions.clone();
        self.check_killed()?;
        let limit = self.may_wait(conflict.name.tree())?;
        let writer = match conflict.writer {
            None => None,
            Some(txid) => match transactions.order().running(txid) {
                Some(writer) => Some(writer),
                None => return Ok(()),
            },
        };
        if limit.is_zero() {
            return Err(Error::LockNotAvailable);
        }
        self.stop_writing();
        let me = self.running().clone();
        let row = conflict.row;
        let locks = transactions.locks();
        let (name, mode) = (&conflict.name, conflict.mode);
        let holders = std::mem::take(&mut self.blocked_by);
        let outcome = {
            let _queueing = transactions.queueing.read();
            if conflict.ranges {
                locks.enqueue_behind(row, name, &me, mode, &holders)
            } else {
                locks.enqueue(row, name, &me, mode, writer.as_ref())
            }
        };
        if outcome == Enqueued::Retry {
            return Ok(());
        }
        let queued = Queued {
            locks,
            row,
            me: &me,
        };
        transactions.tell_waits(row, &me, outcome == Enqueued::WaitingWithHolder);
        // Earlier waiters for the row now also wait for the holders that this request made. That can close a circle
        // that does not go through this transaction.
        let entered = holders.iter().map(|(holder, _)| holder);
        let entered = entered.filter(|_| conflict.ranges);
        for start in std::iter::once(&me).chain(&writer).chain(entered) {
            if may_close_a_circle(locks, start) {
                transactions.break_circles(start);
            }
        }
        std::mem::forget(queued);
        let began = crate::sync::now();
        transactions.counters.wait_begins();
        me.monitoring.lock_waits.fetch_add(1, Ordering::Relaxed);
        let since = micros_now();
        me.monitoring.waits_since_us.store(since, Ordering::Relaxed);
        let wake = self.wait_slot.sleep(began.checked_add(limit));
        transactions.counters.wait_ends(began);
        let granted = wake == Wake::Granted || transactions.locks().leave(row, &me);
        self.wait_slot.set(WaitState::Idle);
        match wake {
            Wake::Granted => Ok(()),
            Wake::Victim => Err(self.doom(Error::Deadlock)),
            Wake::Killed => Err(Error::Interrupted),
            Wake::TimedOut if granted => Ok(()),
            Wake::TimedOut => {
                transactions
                    .counters
                    .lock_timeouts
                    .fetch_add(1, Ordering::Relaxed);
                Err(Error::LockWaitTimeout)
            }
        }
    }
}

impl Counters {
    fn wait_begins(&self) {
        self.lock_waits.fetch_add(1, Ordering::Relaxed);
        self.lock_waits_now.fetch_add(1, Ordering::Relaxed);
    }

    fn wait_ends(&self, began: Instant) {
        let took = crate::sync::since(began).as_micros() as u64;
        self.lock_waits_now.fetch_sub(1, Ordering::Relaxed);
        self.lock_wait_us.fetch_add(took, Ordering::Relaxed);
        self.longest_lock_wait_us.fetch_max(took, Ordering::Relaxed);
    }
}
