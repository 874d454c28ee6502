//! One transaction: its snapshot, its number, its savepoints.

use std::sync::Arc;
use std::time::Duration;

use super::redo::RedoBuffer;
use super::savepoint::{Returns, Savepoint};
use super::state::{Phase, Standing};
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

/// Trees that have a place each for the leaf changed last: the clustered one and most tables' indexes.
pub(super) const LAST_LEAVES: usize = 8;

/// Interrupts a transaction's lock waits from another thread.
#[derive(Clone)]
pub struct KillHandle {
    wait_slot: Arc<WaitSlot>,
}

impl KillHandle {
    /// The transaction's present and next waits, and what looks at many rows in one call, return
    /// [`Error::Interrupted`], until [`KillHandle::clear`].
    pub fn kill(&self) {
        self.wait_slot.kill();
    }

    /// Whether it has been killed.
    pub fn is_killed(&self) -> bool {
        self.wait_slot.killed()
    }

    /// Takes the interruption back.
    pub fn clear(&self) {
        self.wait_slot.clear_kill();
    }
}

/// Locks ranges of keys for one transaction; of no use after its end.
pub struct RangeLocker {
    transactions: Arc<TransactionManager>,
    who: Arc<RunningTransaction>,
}

impl RangeLocker {
    /// Enters a range of keys of a tree, from `from` up to, not including, `to` (`None`: all
    /// behind): until the transaction ends nobody else writes a record there. To be called with no
    /// latch held, and before the leaf that holds the range is copied. A record of a running writer
    /// may stand there already: [`TreeTransaction::decided_payload`] waits for it.
    pub fn lock(&self, tree: &Tree, from: &[u8], to: Option<&[u8]>) {
        self.transactions.moments.come_to(Moment::RangeSeen);
        if !self.transactions.breaks(IsolationFault::SkipRangeLock) {
            self.transactions
                .ranges()
                .add(tree.id(), &self.who, from, to);
        }
    }

    /// Every transaction below has ended by now.
    pub fn oldest_writer(&self) -> TxId {
        self.transactions.order().newest().low
    }
}

/// One transaction. Used by one thread at a time. Dropped without a commit it rolls back; prepared,
/// it goes on without an owner until a restart. After commit or rollback it is empty, and can be used
/// again.
pub struct TreeTransaction {
    pub(super) transactions: Arc<TransactionManager>,
    pub(super) isolation: Isolation,
    pub(super) slot: SnapshotSlot,
    /// Whether the slot holds back the horizon for what this transaction reads.
    pub(super) registered: bool,
    /// Whether the slot holds the view as a second, newer snapshot.
    pub(super) has_second_snapshot: bool,
    pub(super) view: Option<ReadView>,
    /// What writes are checked against, where reads see something older.
    #[cfg(feature = "broken")]
    pub(super) checked_view: Option<ReadView>,
    pub(super) wait_slot: Arc<WaitSlot>,
    /// Once it has written or locked.
    pub(super) running: Option<Arc<RunningTransaction>>,
    /// 0: it has not written.
    pub(super) txid: TxId,
    pub(super) undo: Option<StreamWriter>,
    pub(super) undo_head: UndoPtr,
    /// Undo records written.
    pub(super) undo_records: u64,
    /// The leaves changed last, each in the place of its tree.
    pub(super) last_leaves: [PageId; LAST_LEAVES],
    /// The ways back to savepoints so far.
    pub(super) returns: Returns,
    /// How its undo was cut off on such ways, each to how many bytes.
    pub(super) cuts: Returns,
    /// Whether purge has to look at its undo: it deleted something, or left a note.
    pub(super) needs_purge: bool,
    pub(super) redo: RedoBuffer,
    /// Parts of the redo that are in the log already.
    pub(super) redo_parts: u64,
    /// The number under which the log has all of it already: see [`TreeTransaction::stand_as`].
    pub(super) logged_as: Option<TxId>,
    pub(super) phase: Phase,
    /// Prepared: room in the log for what is decided.
    pub(super) decision: Option<Promised>,
    pub(super) standing: Standing,
    pub(super) generation: u64,
    pub(super) lock_wait_timeout: Duration,
    /// Whose ranges the last write or lock ran into.
    pub(super) blocked_by: Holders,
    /// How often something was in the way of a lock or a write.
    pub(super) waits: u64,
    /// How often rows were asked for, to be locked.
    pub(super) lock_requests: u64,
    /// The row locked last of which it had held nothing before: see [`TreeTransaction::unlock_new`].
    pub(super) new_lock: Option<Row>,
    /// The same row, where it needs no entry of its own once another is locked.
    pub(super) unescalated: Option<(TreeId, Box<[u8]>)>,
}

impl TransactionManager {
    /// Begins a transaction: claims a snapshot slot, nothing else.
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
            phase: Phase::Running,
            decision: None,
            standing: Standing::Whole,
            generation,
            lock_wait_timeout,
            blocked_by: Holders::new(),
            waits: 0,
            lock_requests: 0,
            new_lock: None,
            unescalated: None,
        }
    }

    /// How often another transaction was in the way so far: where that has grown, what was read
    /// before may be old.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// The transaction manager.
    pub fn transactions(&self) -> &Arc<TransactionManager> {
        &self.transactions
    }

    /// The number, once it has written.
    pub fn id(&self) -> Option<TxId> {
        (self.txid.0 != 0).then_some(self.txid)
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Changes the isolation level; for a transaction that has neither read nor written.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other.
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

    /// An empty transaction for who has this one: at the same level, as patient, and shown as the same session's.
    pub fn another(&self) -> TreeTransaction {
        let mut other = self.transactions.begin(self.isolation);
        if !is_planted(PlantedFault::ForgetSettings) {
            other.lock_wait_timeout = self.lock_wait_timeout;
            other.set_session(self.slot.owner().session.load(Ordering::Relaxed));
        }
        other
    }

    /// Whether it has neither written nor locked anything.
    pub fn is_read_only(&self) -> bool {
        self.running.is_none()
    }

    /// Under READ COMMITTED: the next read takes a new snapshot. Otherwise the first read takes the
    /// only one, and this does nothing.
    pub fn start_statement(&mut self) {
        if self.isolation == Isolation::ReadCommitted {
            self.view = None;
            self.registered = false;
            self.drop_second();
        }
    }

    /// Under READ COMMITTED: gives the snapshot up. Leaf images copied under it are void.
    pub fn end_statement(&mut self) {
        if self.isolation == Isolation::ReadCommitted {
            self.drop_view();
        }
    }

    /// What this transaction sees now; takes the snapshot where there is none.
    #[inline]
    pub fn view(&mut self) -> ReadView {
        match self.view {
            Some(view) => view,
            None => self.take_view(),
        }
    }

    /// The snapshot that reads without a lock see by, where one has been taken.
    #[inline]
    pub fn snapshot(&self) -> Option<Csn> {
        self.view.map(|view| view.csn)
    }

    fn take_view(&mut self) -> ReadView {
        // Where the slot is registered already, leaf images may have been copied under it: it
        // stays where it is. Versions that only the newer snapshot sees are told of by the second.
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

    /// A snapshot that others have had before, where that is what is broken.
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

    /// The newest committed state and own changes. Takes no snapshot.
    pub fn latest_view(&mut self) -> ReadView {
        if !self.registered {
            // Keeps the undo of whoever is running now.
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

    /// What reads see that lock the rows they return: the newest state under READ COMMITTED, and
    /// as long as there is no snapshot, which can then only be newer; otherwise the snapshot (for
    /// a row changed since can't be locked).
    pub fn locking_view(&mut self) -> ReadView {
        match self.snapshot_to_respect() {
            Some(view) => view,
            None => self.latest_view(),
        }
    }

    /// The snapshot whose rows this transaction may not overwrite when they changed since. None
    /// under READ COMMITTED; and none as long as nothing has been read: the snapshot will be newer
    /// than what is written or locked before it.
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

    /// What enters ranges for this transaction.
    pub fn range_locker(&mut self) -> RangeLocker {
        RangeLocker {
            transactions: self.transactions.clone(),
            who: self.running().clone(),
        }
    }

    /// How long [`TreeTransaction::wait`] waits; zero: not at all.
    pub fn set_lock_wait_timeout(&mut self, limit: Duration) {
        self.lock_wait_timeout = limit;
    }

    /// Whether the transaction goes on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once it has been killed.
    pub fn check_killed(&self) -> Result<()> {
        match self.wait_slot.killed() || strikes(Fault::Killed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// Interrupts this transaction's waits from another thread.
    pub fn kill_handle(&self) -> KillHandle {
        KillHandle {
            wait_slot: self.wait_slot.clone(),
        }
    }

    /// Whose transaction this is, in lists of transactions: a number of the embedding program's,
    /// which means nothing to the engine.
    pub fn set_session(&mut self, session: u64) {
        let shown = &self.slot.owner().session;
        shown.store(session, Ordering::Relaxed);
    }

    /// When the transaction began, in microseconds since 1970: for lists of transactions. Without
    /// it they give the time when it first wrote or locked.
    #[inline]
    pub fn set_started(&mut self, micros: u64) {
        let shown = &self.slot.owner().started_us;
        shown.store(micros, Ordering::Relaxed);
    }

    /// The log is kept for this transaction, however long.
    pub fn keep_log(&mut self) {
        self.running().keep_log();
    }

    /// How many rows the transaction has changed: for lists of transactions.
    #[inline]
    pub fn show_rows_changed(&self, rows: u64) {
        if let Some(running) = &self.running {
            let shown = &running.monitoring.rows_changed;
            shown.store(rows, Ordering::Relaxed);
        }
    }

    /// Undo records written so far: a measure of what a rollback would cost.
    pub fn undo_records(&self) -> u64 {
        self.undo_records
    }

    /// What others see of this transaction; made when it first writes or locks.
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

    /// Gives the transaction its number where it has none.
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

    /// Remembers the present state.
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

    /// Empties the object without ending what it stands for: that goes on, unowned, until a restart.
    pub fn leave_for_recovery(&mut self) {
        self.undo = None;
        self.running = None;
        self.reset();
    }

    /// Makes the object empty for the next transaction. Its locks and its number are given up.
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
        self.phase = Phase::Running;
        self.decision = None;
        self.standing = Standing::Whole;
        self.generation = self.slot.next_generation();
    }
}

impl Drop for TreeTransaction {
    fn drop(&mut self) {
        if self.is_prepared() {
            // Nobody has decided: it stays, and the next opening lists it.
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
            // No session waits for its end, and none can be interrupted for it.
            if !is_planted(PlantedFault::AbandonInSession) {
                unfinished.slot.owner().session.store(0, Ordering::Relaxed);
            }
            transactions.abandoned.push(Box::new(unfinished));
        }
    }
}
