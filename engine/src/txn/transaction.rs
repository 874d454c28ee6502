//! One transaction: its snapshot, its number, its savepoints.

use std::sync::Arc;
use std::time::Duration;

use super::redo::RedoBuffer;
use super::savepoint::{Returns, Savepoint};
use super::state::State;
use super::transaction_manager::TransactionManager;
use crate::broken::IsolationFault;
use crate::error::{Error, Result};
use crate::ids::{Csn, PageId, TreeId, TxId, UndoPtr};
use crate::lock::range::Holders;
use crate::lock::row_name::Row;
use crate::lock::running_transaction::{micros_now, RunningTransaction, WaitSlot};
use crate::log::Promised;
#[cfg(feature = "broken")]
use crate::mvcc::live_snapshots::Horizon;
use crate::mvcc::snapshot::{ReadView, SnapshotSlot};
#[cfg(feature = "broken")]
use crate::mvcc::stale::Stale;
use crate::planted::{is_planted, PlantedFault};
use crate::settings::Isolation;
use crate::sync::atomic::Ordering;
use crate::sync::{strikes, Fault, Moment};
use crate::tree::Tree;
use crate::undo::stream::StreamWriter;

/// The number of trees for which the leaf changed last is noted: the clustered one and most tables' indexes.
pub(super) const LAST_LEAVES: usize = 8;

/// Interrupts a transaction's lock waits from another thread.
#[derive(Clone)]
pub struct KillHandle {
    wait_slot: Arc<WaitSlot>,
}

impl KillHandle {
    /// Makes the transaction's present and next waits return [`Error::Interrupted`] until [`KillHandle::clear`].
    ///
    /// Calls that visit many rows return it, too.
    pub fn kill(&self) {
        self.wait_slot.kill();
    }

    /// Returns whether it has been killed.
    pub fn is_killed(&self) -> bool {
        self.wait_slot.killed()
    }

    /// Ends the interruption.
    pub fn clear(&self) {
        self.wait_slot.clear_kill();
    }
}

/// Locks ranges of keys for one transaction; must not be used after its end.
pub struct RangeLocker {
    transactions: Arc<TransactionManager>,
    who: Arc<RunningTransaction>,
}

impl RangeLocker {
    /// Locks a range of keys of a tree, from `from` up to, not including, `to` (`None`: without end).
    ///
    /// Until the transaction ends, no other one writes a record there. The caller has no latch, and copies the leaf
    /// with the range only afterwards. The range may already have a record of a running writer:
    /// [`TreeTransaction::decided_payload`] waits for it.
    pub fn lock(&self, tree: &Tree, from: &[u8], to: Option<&[u8]>) {
        self.transactions.moments.come_to(Moment::RangeSeen);
        if !self.transactions.breaks(IsolationFault::SkipRangeLock) {
            self.transactions
                .ranges()
                .add(tree.id(), &self.who, from, to);
        }
    }

    /// Returns a number below which every transaction has ended.
    pub fn oldest_writer(&self) -> TxId {
        self.transactions.order().newest().low
    }
}

/// One transaction, used by one thread at a time.
///
/// If it is dropped without a commit, it rolls back. A prepared one goes on without an owner until a restart. After
/// commit or rollback it is empty, and can be used again.
pub struct TreeTransaction {
    pub(super) transactions: Arc<TransactionManager>,
    pub(super) isolation: Isolation,
    pub(super) slot: SnapshotSlot,
    /// Whether the slot holds back the horizon for what this transaction reads.
    pub(super) registered: bool,
    /// Whether the slot has the view as its second, newer snapshot.
    pub(super) has_second_snapshot: bool,
    pub(super) view: Option<ReadView>,
    /// The view against which writes are checked if reads use an older one.
    #[cfg(feature = "broken")]
    pub(super) checked_view: Option<ReadView>,
    pub(super) wait_slot: Arc<WaitSlot>,
    /// Set once it has written or locked.
    pub(super) running: Option<Arc<RunningTransaction>>,
    /// 0: it has not written.
    pub(super) txid: TxId,
    pub(super) undo: Option<StreamWriter>,
    pub(super) undo_head: UndoPtr,
    /// Undo records written.
    pub(super) undo_records: u64,
    /// The leaf changed last, by the place of its tree.
    pub(super) last_leaves: [PageId; LAST_LEAVES],
    /// The rollbacks to savepoints so far.
    pub(super) returns: Returns,
    /// The bytes to which its undo was given up on such rollbacks.
    pub(super) cuts: Returns,
    /// Whether purge must look at its undo: it deleted something, or left a note.
    pub(super) needs_purge: bool,
    pub(super) redo: RedoBuffer,
    /// The number of redo parts that are in the log.
    pub(super) redo_parts: u64,
    /// The number under which the log already has all of it: see [`TreeTransaction::stand_as`].
    pub(super) logged_as: Option<TxId>,
    pub(super) state: State,
    /// Log space reserved for the record of the end, if it is prepared.
    pub(super) decision: Option<Promised>,
    pub(super) generation: u64,
    pub(super) lock_wait_timeout: Duration,
    /// The holders of ranges that were in the way of the last write or lock.
    pub(super) blocked_by: Holders,
    /// The number of conflicts with other transactions.
    pub(super) waits: u64,
    /// The number of requests to lock a row.
    pub(super) lock_requests: u64,
    /// The row locked last, if the transaction held nothing of it before: see [`TreeTransaction::unlock_new`].
    pub(super) new_lock: Option<Row>,
    /// The same row, if a range can replace its entry as soon as another row is locked.
    pub(super) unescalated: Option<(TreeId, Box<[u8]>)>,
}

impl TransactionManager {
    /// Begins a transaction: claims only a snapshot slot.
    pub fn begin(self: &Arc<Self>, isolation: Isolation) -> TreeTransaction {
        TreeTransaction::new(self.clone(), self.snapshots().claim(), isolation)
    }
}

impl TreeTransaction {
    pub(super) fn new(
        transactions: Arc<TransactionManager>,
        slot: SnapshotSlot,
        isolation: Isolation,
    ) -> Self {
        let lock_wait_timeout = transactions.lock_wait_timeout();
        slot.owner()
            .isolation
            .store(isolation as u8, Ordering::Relaxed);
        let slot_number = slot.number();
        let generation = slot.next_generation();
        TreeTransaction {
            transactions,
            isolation,
            slot,
            registered: false,
            has_second_snapshot: false,
            view: None,
            #[cfg(feature = "broken")]
            checked_view: None,
            wait_slot: Arc::new(WaitSlot::new(slot_number)),
            running: None,
            txid: TxId(0),
            undo: None,
            undo_head: UndoPtr::NONE,
            undo_records: 0,
            last_leaves: [PageId(0); LAST_LEAVES],
            returns: Returns::default(),
            cuts: Returns::default(),
            needs_purge: false,
            redo: RedoBuffer::default(),
            redo_parts: 0,
            logged_as: None,
            state: State::Active,
            decision: None,
            generation,
            lock_wait_timeout,
            blocked_by: Holders::new(),
            waits: 0,
            lock_requests: 0,
            new_lock: None,
            unescalated: None,
        }
    }

    /// The number of conflicts with other transactions so far; if it has grown, earlier reads may be stale.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// The transaction manager.
    pub fn transactions(&self) -> &Arc<TransactionManager> {
        &self.transactions
    }

    /// The transaction's number, if it has written.
    pub fn id(&self) -> Option<TxId> {
        (self.txid.0 != 0).then_some(self.txid)
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Changes the isolation level of a transaction that has neither read nor written.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other transaction.
    pub fn set_isolation(&mut self, isolation: Isolation) -> Result<()> {
        if isolation != self.isolation && (self.view.is_some() || self.running.is_some()) {
            return Err(Error::Invalid(
                "the isolation level can only be set before a transaction reads or writes".into(),
            ));
        }
        self.isolation = isolation;
        let shown = &self.slot.owner().isolation;
        shown.store(isolation as u8, Ordering::Relaxed);
        Ok(())
    }

    /// Returns an empty transaction with the same isolation level, lock wait timeout and session.
    pub fn another(&self) -> TreeTransaction {
        let mut other = self.transactions.begin(self.isolation);
        if !is_planted(PlantedFault::ForgetSettings) {
            other.lock_wait_timeout = self.lock_wait_timeout;
            other.set_session(self.slot.owner().session.load(Ordering::Relaxed));
        }
        other
    }

    /// Returns whether it has neither written nor locked anything.
    pub fn is_read_only(&self) -> bool {
        self.running.is_none()
    }

    /// Begins a statement: under READ COMMITTED, the next read takes a new snapshot.
    ///
    /// At other levels, the first read takes the only snapshot, and this does nothing.
    pub fn start_statement(&mut self) {
        if self.isolation == Isolation::ReadCommitted {
            self.view = None;
            self.registered = false;
            self.drop_second();
        }
    }

    /// Ends a statement: under READ COMMITTED, gives up the snapshot; leaf images copied under it become invalid.
    pub fn end_statement(&mut self) {
        if self.isolation == Isolation::ReadCommitted {
            self.drop_view();
        }
    }

    /// Returns the transaction's view; takes a snapshot if there is none.
    #[inline]
    pub fn view(&mut self) -> ReadView {
        match self.view {
            Some(view) => view,
            None => self.take_view(),
        }
    }

    /// The snapshot of reads without a lock, if one has been taken.
    #[inline]
    pub fn snapshot(&self) -> Option<Csn> {
        self.view.map(|view| view.csn)
    }

    fn take_view(&mut self) -> ReadView {
        // If the slot has a snapshot already, leaf images may have been copied under it, so that snapshot stays. The
        // second one keeps versions that only the newer snapshot sees.
        let newest = if self.registered {
            self.has_second_snapshot = true;
            self.slot.take_second(self.transactions.order())
        } else {
            self.registered = true;
            self.slot.take(self.transactions.order())
        };
        #[cfg(feature = "broken")]
        let newest = self.older_snapshot(newest);
        let view = ReadView {
            csn: newest.csn,
            low: newest.low,
            own: self.txid,
        };
        self.view = Some(view);
        view
    }

    /// A snapshot that earlier transactions had, if the test build leaves out that rule.
    #[cfg(feature = "broken")]
    fn older_snapshot(&mut self, newest: Horizon) -> Horizon {
        if !self.transactions.breaks(IsolationFault::StaleSnapshot) {
            return newest;
        }
        self.checked_view = Some(ReadView {
            csn: newest.csn,
            low: newest.low,
            own: self.txid,
        });
        let mut stale = self.transactions.stale.lock();
        let order = self.transactions.order();
        stale
            .get_or_insert_with(|| Stale::new(self.transactions.snapshots().claim(), order))
            .give(&self.slot, order)
    }

    /// Returns a view of the newest committed state and the transaction's own changes, without a new snapshot for
    /// reads.
    pub fn latest_view(&mut self) -> ReadView {
        if !self.registered {
            // This keeps the undo of transactions that are running.
            self.registered = true;
            self.slot.take(self.transactions.order());
        }
        let newest = self.transactions.order().newest();
        ReadView {
            csn: Csn(u64::MAX),
            low: newest.low,
            own: self.txid,
        }
    }

    /// Returns the view for reads that lock the rows they return.
    ///
    /// Under READ COMMITTED, and as long as there is no snapshot, it is the newest state: a later snapshot is newer
    /// still. Otherwise it is the snapshot, because a row changed since can't be locked.
    pub fn locking_view(&mut self) -> ReadView {
        match self.snapshot_to_respect() {
            Some(view) => view,
            None => self.latest_view(),
        }
    }

    /// The snapshot against which writes and locks are checked: they must not touch rows changed since.
    ///
    /// `None` under READ COMMITTED, and as long as nothing has been read: the snapshot will then be newer than what
    /// is written or locked before it.
    pub(super) fn snapshot_to_respect(&self) -> Option<ReadView> {
        if self
            .transactions
            .breaks(IsolationFault::SkipFirstCommitterCheck)
        {
            return None;
        }
        #[cfg(feature = "broken")]
        if let Some(view) = self.checked_view {
            let view = ReadView {
                own: self.txid,
                ..view
            };
            return Some(view).filter(|_| self.isolation != Isolation::ReadCommitted);
        }
        self.view
            .filter(|_| self.isolation != Isolation::ReadCommitted)
    }

    #[inline]
    fn drop_second(&mut self) {
        if self.has_second_snapshot {
            self.has_second_snapshot = false;
            self.slot.clear_second();
        }
    }

    pub(super) fn drop_view(&mut self) {
        self.view = None;
        if !is_planted(PlantedFault::KeepSecondSnapshot) {
            self.drop_second();
        }
        #[cfg(feature = "broken")]
        {
            self.checked_view = None;
        }
        self.registered = false;
        self.slot.clear();
    }

    /// Returns an object that locks ranges for this transaction.
    pub fn range_locker(&mut self) -> RangeLocker {
        RangeLocker {
            transactions: self.transactions.clone(),
            who: self.running().clone(),
        }
    }

    /// Sets how long [`TreeTransaction::wait`] waits; zero: not at all.
    pub fn set_lock_wait_timeout(&mut self, limit: Duration) {
        self.lock_wait_timeout = limit;
    }

    /// Returns an error if the transaction has been killed.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once it has been killed.
    pub fn check_killed(&self) -> Result<()> {
        match self.wait_slot.killed() || strikes(Fault::Killed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Returns a handle with which another thread can interrupt this transaction's waits.
    pub fn kill_handle(&self) -> KillHandle {
        KillHandle {
            wait_slot: self.wait_slot.clone(),
        }
    }

    /// Sets the session that lists of transactions show: a number of the embedding program's.
    ///
    /// The engine itself does not interpret it.
    pub fn set_session(&mut self, session: u64) {
        let shown = &self.slot.owner().session;
        shown.store(session, Ordering::Relaxed);
    }

    /// Sets when the transaction began, in microseconds since 1970, for lists of transactions.
    ///
    /// Without it, they show when it first wrote or locked.
    #[inline]
    pub fn set_started(&mut self, micros: u64) {
        let shown = &self.slot.owner().started_us;
        shown.store(micros, Ordering::Relaxed);
    }

    /// Keeps the log for this transaction, whatever its length.
    pub fn keep_log(&mut self) {
        self.running().keep_log();
    }

    /// Sets the number of rows that the transaction has changed, for lists of transactions.
    #[inline]
    pub fn show_rows_changed(&self, rows: u64) {
        if let Some(running) = &self.running {
            let shown = &running.monitoring.rows_changed;
            shown.store(rows, Ordering::Relaxed);
        }
    }

    /// The number of undo records, a measure of the cost of a rollback.
    pub fn undo_records(&self) -> u64 {
        self.undo_records
    }

    /// The transaction as other threads see it; made when it first writes or locks.
    pub(super) fn running(&mut self) -> &Arc<RunningTransaction> {
        self.running.get_or_insert_with(|| {
            let running = RunningTransaction::new(self.wait_slot.clone());
            let began = match self.slot.owner().started_us.load(Ordering::Relaxed) {
                0 => micros_now(),
                told => told,
            };
            running
                .monitoring
                .started_us
                .store(began, Ordering::Relaxed);
            running
        })
    }

    /// Gives the transaction its number if it has none.
    pub fn begin_writing(&mut self) -> TxId {
        if self.txid.0 == 0 {
            let transactions = self.transactions.clone();
            self.txid = transactions.order().begin(self.running());
            let number = self.txid.0;
            let shown = &self.running().monitoring;
            shown.txid.store(number, Ordering::Relaxed);
            self.undo = Some(transactions.streams().acquire());
            if let Some(view) = &mut self.view {
                view.own = self.txid;
            }
        }
        self.txid
    }

    /// Returns a savepoint of the present state.
    pub fn savepoint(&self) -> Savepoint {
        Savepoint {
            generation: self.generation,
            undo: self.undo_head,
            undo_kept: self.undo.as_ref().map_or(0, StreamWriter::kept),
            cuts: self.cuts.count(),
            undo_records: self.undo_records,
            returns: self.returns.count(),
            redo_parts: self.redo_parts,
            redo_len: self.redo.len(),
        }
    }

    /// Empties the object, but does not end its transaction, which goes on without an owner until a restart.
    pub fn leave_for_recovery(&mut self) {
        self.undo = None;
        self.running = None;
        self.reset();
    }

    /// Makes the object empty for the next transaction, after the locks and the number were given up.
    pub(super) fn reset(&mut self) {
        self.drop_view();
        self.txid = TxId(0);
        self.undo_head = UndoPtr::NONE;
        self.undo_records = 0;
        self.returns = Returns::default();
        self.cuts = Returns::default();
        self.needs_purge = false;
        self.redo.clear();
        self.redo_parts = 0;
        self.logged_as = None;
        self.state = State::Active;
        self.decision = None;
        self.generation = self.slot.next_generation();
    }
}

impl Drop for TreeTransaction {
    fn drop(&mut self) {
        if self.is_prepared() {
            // Its coordinator has not decided: it goes on, and the next opening lists it.
            return self.leave_for_recovery();
        }
        if let Err(error) = self.rollback() {
            tracing::warn!(
                txid = self.txid.0,
                %error,
                "a rollback is not complete; purge will try again"
            );
            let transactions = self.transactions.clone();
            let unfinished = std::mem::replace(self, transactions.begin(self.isolation));
            // No session waits for its end, so it must belong to no session that could be interrupted for it.
            if !is_planted(PlantedFault::AbandonInSession) {
                unfinished.slot.owner().session.store(0, Ordering::Relaxed);
            }
            transactions.abandoned.push(Box::new(unfinished));
        }
    }
}
