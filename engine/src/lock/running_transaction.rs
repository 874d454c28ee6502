//! The part of a running transaction that other threads see: its place in wait queues, its undo head.
//!
//! Other threads can also kill it, grant it a lock, or choose it as a deadlock's victim.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use smallvec::SmallVec;

use crate::ids::{Lsn, TreeId, UndoPtr};
use crate::lock::row_name::{Row, RowSet};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};

/// The state of a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// Not waiting.
    #[default]
    Idle,
    /// In the queue of this row.
    Queued(Row),
    /// The waiter may try again; if its request must hold the row for that, it holds the row.
    Granted,
    /// Chosen to break a deadlock.
    Victim,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Granted,
    Victim,
    Killed,
    TimedOut,
}

/// Where a transaction sleeps.
///
/// It lives as long as the session's transaction object, so that a kill handle stays valid from one transaction to
/// the next.
#[derive(Default)]
pub(crate) struct WaitSlot {
    /// The number of the transaction's snapshot slot.
    slot: u32,
    killed: AtomicBool,
    state: Mutex<WaitState>,
    woken: Condvar,
}

impl WaitSlot {
    pub fn new(slot: u32) -> Self {
        WaitSlot {
            slot,
            ..WaitSlot::default()
        }
    }

    /// The number of the transaction's snapshot slot.
    pub fn snapshot_slot(&self) -> u32 {
        self.slot
    }

    pub fn killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    pub fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        // Under the mutex: the sleeper has either not checked the flag yet, or is in the wait.
        let guarded = !is_planted(PlantedFault::UnguardedKill);
        let _state = guarded.then(|| self.state.lock());
        self.woken.notify_all();
    }

    pub fn clear_kill(&self) {
        self.killed.store(false, Ordering::Release);
    }

    pub fn set(&self, state: WaitState) {
        *self.state.lock() = state;
    }

    pub fn state(&self) -> WaitState {
        *self.state.lock()
    }

    /// Moves a queued waiter to `to`, and returns whether it was queued.
    ///
    /// It may sleep on until it is [unparked](WaitSlot::unpark).
    pub fn end_wait(&self, to: WaitState) -> bool {
        let mut state = self.state.lock();
        let queued = matches!(*state, WaitState::Queued(_));
        if queued {
            *state = to;
        }
        queued
    }

    /// Wakes the sleeper, which then sees that its wait has ended.
    pub fn unpark(&self) {
        self.woken.notify_one();
    }

    /// Moves a queued waiter to `to` and wakes it; returns whether it was queued.
    pub fn wake(&self, to: WaitState) -> bool {
        let queued = self.end_wait(to);
        if queued {
            self.unpark();
        }
        queued
    }

    /// Sleeps until the lock is granted, the transaction is chosen as victim or killed, or the deadline has passed.
    pub fn sleep(&self, deadline: Option<Instant>) -> Wake {
        let mut state = self.state.lock();
        loop {
            match *state {
                WaitState::Granted => return Wake::Granted,
                WaitState::Victim => return Wake::Victim,
                WaitState::Idle | WaitState::Queued(_) => {}
            }
            if self.killed() {
                return Wake::Killed;
            }
            match deadline {
                Some(deadline) => {
                    if self.woken.wait_until(&mut state, deadline).timed_out() {
                        return match *state {
                            WaitState::Granted => Wake::Granted,
                            WaitState::Victim => Wake::Victim,
                            _ => Wake::TimedOut,
                        };
                    }
                }
                None => self.woken.wait(&mut state),
            }
        }
    }
}

/// The time, in microseconds since 1970.
pub(crate) fn micros_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// The cost of a rollback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndoWork {
    /// Undo records.
    pub records: u64,
    /// Bytes of these records.
    pub bytes: u64,
    /// How often a change went to another leaf than the one before it in the same tree.
    pub leaves: u64,
}

impl UndoWork {
    pub(crate) fn add(&mut self, other: UndoWork) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.leaves += other.leaves;
    }
}

/// A transaction that writes or locks, as other threads see it.
pub(crate) struct RunningTransaction {
    /// The newest undo record; stable while the barrier is closed.
    undo_head: AtomicU64,
    /// The log position of its first redo part; `u64::MAX`: it has none, or none is needed. Stable while the barrier
    /// is closed.
    first_redo: AtomicU64,
    /// Bytes of redo that it has appended to the log so far.
    logged: AtomicU64,
    /// The log keeps all of its redo, whatever its length. Stable while the barrier is closed.
    keeps_log: AtomicBool,
    /// It is prepared, or about to be. Stable while the barrier is closed.
    promised: AtomicBool,
    /// The log need not keep its redo any more, so it can't commit. Set while the barrier is closed.
    out_of_log: AtomicBool,
    /// Undo records written: the cost of a rollback.
    undo_records: AtomicU64,
    /// The program is about to interrupt it in favour of a transaction that waits for it.
    gives_way: AtomicBool,
    /// Rows of which the lock table lists it as holder; `None` once it has ended.
    rows: Mutex<Option<RowSet>>,
    /// Trees in which it holds ranges.
    ranged_trees: Mutex<SmallVec<[TreeId; 4]>>,
    pub wait_slot: Arc<WaitSlot>,
    /// Figures for lists of transactions; nothing depends on them.
    pub monitoring: Monitoring,
}

/// Figures of a running transaction for lists of transactions.
///
/// The transaction itself writes them, together with fields that it writes anyway.
#[derive(Default)]
pub(crate) struct Monitoring {
    /// Its number; 0: it has not written.
    pub txid: AtomicU64,
    /// When it began, or first wrote or locked: microseconds since 1970.
    pub started_us: AtomicU64,
    /// Rows inserted, updated and deleted.
    pub rows_changed: AtomicU64,
    pub undo_bytes: AtomicU64,
    /// How often its changes went to another leaf.
    pub undo_leaves: AtomicU64,
    /// How often it waited for a lock.
    pub lock_waits: AtomicU64,
    /// When its present wait began: microseconds since 1970; 0: it does not wait.
    pub waits_since_us: AtomicU64,
    pub rolling_back: AtomicBool,
    /// It waits for its coordinator.
    pub prepared: AtomicBool,
}

impl RunningTransaction {
    pub fn new(wait_slot: Arc<WaitSlot>) -> Arc<Self> {
        Arc::new(RunningTransaction {
            undo_head: AtomicU64::new(0),
            first_redo: AtomicU64::new(u64::MAX),
            logged: AtomicU64::new(0),
            keeps_log: AtomicBool::new(false),
            promised: AtomicBool::new(false),
            out_of_log: AtomicBool::new(false),
            undo_records: AtomicU64::new(0),
            gives_way: AtomicBool::new(false),
            rows: Mutex::new(Some(RowSet::default())),
            ranged_trees: Mutex::default(),
            wait_slot,
            monitoring: Monitoring::default(),
        })
    }

    pub fn undo_head(&self) -> UndoPtr {
        UndoPtr(self.undo_head.load(Ordering::Acquire))
    }

    pub fn set_undo_head(&self, head: UndoPtr) {
        self.undo_head.store(head.0, Ordering::Release);
    }

    pub fn first_redo(&self) -> Option<Lsn> {
        let lsn = self.first_redo.load(Ordering::Acquire);
        (lsn != u64::MAX).then_some(Lsn(lsn))
    }

    pub fn note_redo(&self, at: Lsn) {
        self.first_redo.fetch_min(at.0, Ordering::AcqRel);
    }

    /// Drops the claim to its redo, because it rolls back. Inside the barrier.
    pub fn forget_redo(&self) {
        self.first_redo.store(u64::MAX, Ordering::Release);
    }

    /// Counts bytes of redo that it has appended to the log.
    pub fn add_logged(&self, bytes: u64) {
        self.logged.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn logged(&self) -> u64 {
        self.logged.load(Ordering::Relaxed)
    }

    /// Makes the log keep its redo, whatever its length.
    pub fn keep_log(&self) {
        self.keeps_log.store(true, Ordering::Release);
    }

    /// Makes the log keep its redo, because it is prepared. Inside the barrier.
    pub fn promise_redo(&self) {
        self.keep_log();
        self.promised.store(true, Ordering::Release);
    }

    pub fn is_promised(&self) -> bool {
        self.promised.load(Ordering::Acquire)
    }

    /// Gives up its redo if the log, which ends at `end`, keeps more than `longest` bytes for it, unless the log must
    /// keep it.
    ///
    /// The caller has closed the barrier.
    pub fn let_log_go(&self, end: Lsn, longest: u64) {
        let kept = self
            .first_redo()
            .map_or(0, |first| end.0.saturating_sub(first.0));
        // A coordinator has been told that a prepared transaction can commit.
        let keeps = self.keeps_log.load(Ordering::Acquire);
        let keeps = keeps && !is_planted(PlantedFault::LetPreparedGo);
        if kept > longest && !keeps {
            self.out_of_log.store(true, Ordering::Release);
            self.forget_redo();
        }
    }

    /// Returns whether the log has given up its redo. Inside the barrier.
    #[inline]
    pub fn is_out_of_log(&self) -> bool {
        self.out_of_log.load(Ordering::Relaxed)
    }

    pub fn undo_records(&self) -> u64 {
        self.undo_records.load(Ordering::Relaxed)
    }

    /// The cost of its rollback.
    pub fn undo_work(&self) -> UndoWork {
        UndoWork {
            records: self.undo_records(),
            bytes: self.monitoring.undo_bytes.load(Ordering::Relaxed),
            leaves: self.monitoring.undo_leaves.load(Ordering::Relaxed),
        }
    }

    pub fn set_undo_records(&self, work: u64) {
        self.undo_records.store(work, Ordering::Relaxed);
    }

    /// Records that the program is about to interrupt it in favour of a transaction that waits for it.
    ///
    /// So no other transaction need be the victim of a deadlock.
    pub fn gives_way(&self) {
        self.gives_way.store(true, Ordering::Relaxed);
    }

    /// The cost of its end as a deadlock's victim: the transaction with the lowest cost is chosen.
    pub fn cost(&self) -> u64 {
        match self.gives_way.load(Ordering::Relaxed) {
            true => 0,
            false => self.undo_records().saturating_add(1),
        }
    }

    /// Remembers that it holds `row`; returns false if it has ended.
    pub fn add_row(&self, row: Row) -> bool {
        match &mut *self.rows.lock() {
            Some(rows) => {
                rows.insert(row);
                true
            }
            None => false,
        }
    }

    /// Forgets `row`, which it does not hold any more; a row that stays listed does no harm.
    pub fn forget(&self, row: Row) {
        if is_planted(PlantedFault::ListGivenUp) {
            return;
        }
        if let Some(rows) = &mut *self.rows.lock() {
            rows.remove(&row);
        }
    }

    /// The number of rows that it holds with an entry in the lock table.
    pub fn held_rows(&self) -> usize {
        self.rows.lock().as_ref().map_or(0, RowSet::len)
    }

    /// Remembers that it holds ranges in `tree`; the same tree may be added a few times.
    pub fn add_ranged_tree(&self, tree: TreeId) {
        self.ranged_trees.lock().push(tree);
    }

    /// Takes the trees in which its ranges must be released, at its end.
    pub fn take_ranged_trees(&self) -> SmallVec<[TreeId; 4]> {
        std::mem::take(&mut *self.ranged_trees.lock())
    }

    /// Takes the rows that must be released, and marks it as ended.
    pub fn take_rows(&self) -> RowSet {
        self.rows.lock().take().unwrap_or_default()
    }
}
