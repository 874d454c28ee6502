//! What other threads may see and do to a running transaction: its place in wait queues, its
//! undo head; kill it, grant it a lock, choose it as a deadlock's victim.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use smallvec::SmallVec;

use crate::ids::{Lsn, TreeId, UndoPtr};
use crate::lock::row_name::{Row, RowSet};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex};

/// How a wait stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WaitState {
    /// Not waiting.
    #[default]
    Idle,
    /// In the queue of this row.
    Queued(Row),
    /// The row is free to try again; when it had to be held for that, it is held.
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

/// Where a transaction sleeps. Lives as long as the session's transaction object, so that a kill
/// handle stays good from one transaction to the next.
#[derive(Default)]
pub(crate) struct WaitSlot {
    /// Its snapshot slot's number.
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
        // Under the mutex: a sleeper is either before its check of the flag or in the wait.
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

    /// Moves a queued waiter to `to`; whether it was queued. It may sleep on until it is
    /// [unparked](WaitSlot::unpark).
    pub fn end_wait(&self, to: WaitState) -> bool {
        let mut state = self.state.lock();
        let queued = matches!(*state, WaitState::Queued(_));
        if queued {
            *state = to;
        }
        queued
    }

    /// Lets the sleeper see that its wait has ended.
    pub fn unpark(&self) {
        self.woken.notify_one();
    }

    /// Moves a queued waiter to `to` and wakes it; whether it was queued.
    pub fn wake(&self, to: WaitState) -> bool {
        let queued = self.end_wait(to);
        if queued {
            self.unpark();
        }
        queued
    }

    /// Sleeps until granted, chosen as victim, killed or late.
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

/// What a rollback would cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UndoWork {
    /// Records of undo.
    pub records: u64,
    /// Bytes of them.
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

/// A transaction that writes or locks, as others see it.
pub(crate) struct RunningTransaction {
    /// The newest undo record; stable while the barrier is closed.
    undo_head: AtomicU64,
    /// Where its first redo part went, `u64::MAX`: none yet, or none that is needed. Stable while the barrier is closed.
    first_redo: AtomicU64,
    /// Bytes of redo that it has put into the log so far.
    logged: AtomicU64,
    /// The log keeps all of its redo, however long. Stable while the barrier is closed.
    keeps_log: AtomicBool,
    /// It is prepared, or about to be. Stable while the barrier is closed.
    promised: AtomicBool,
    /// The log keeps its redo no longer, so it can't commit any more. Set while the barrier is closed.
    out_of_log: AtomicBool,
    /// Undo records written: what a rollback would cost.
    undo_records: AtomicU64,
    /// Whether the program interrupts it for one that waits for it.
    gives_way: AtomicBool,
    /// Rows in whose queues it stands as holder; `None` once it has ended.
    rows: Mutex<Option<RowSet>>,
    /// Trees in which it holds ranges.
    ranged_trees: Mutex<SmallVec<[TreeId; 4]>>,
    pub wait_slot: Arc<WaitSlot>,
    /// What others see of it, and nothing depends on.
    pub monitoring: Monitoring,
}

/// Figures of a running transaction for those who look on. Each is written by the transaction
/// itself, beside what it writes anyway.
#[derive(Default)]
pub(crate) struct Monitoring {
    /// Its number; 0: it has not written.
    pub txid: AtomicU64,
    /// When it first wrote or locked, or began: microseconds since 1970.
    pub started_us: AtomicU64,
    /// Rows inserted, updated and deleted.
    pub rows_changed: AtomicU64,
    pub undo_bytes: AtomicU64,
    /// How often its changes went to another leaf.
    pub undo_leaves: AtomicU64,
    /// How often it waited for a lock.
    pub lock_waits: AtomicU64,
    /// Since when it waits: microseconds since 1970; 0: it does not.
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

    /// Nobody will need its redo: it rolls back. Inside the barrier.
    pub fn forget_redo(&self) {
        self.first_redo.store(u64::MAX, Ordering::Release);
    }

    /// Its redo in the log is so much longer.
    pub fn add_logged(&self, bytes: u64) {
        self.logged.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn logged(&self) -> u64 {
        self.logged.load(Ordering::Relaxed)
    }

    /// The log is to keep its redo, however long.
    pub fn keep_log(&self) {
        self.keeps_log.store(true, Ordering::Release);
    }

    /// It is prepared: the log keeps its redo. Inside the barrier.
    pub fn promise_redo(&self) {
        self.keep_log();
        self.promised.store(true, Ordering::Release);
    }

    pub fn is_promised(&self) -> bool {
        self.promised.load(Ordering::Acquire)
    }

    /// The log, which ends at `end`, keeps its redo no longer if that is so far back. While the barrier is closed.
    pub fn let_log_go(&self, end: Lsn, longest: u64) {
        let kept = self
            .first_redo()
            .map_or(0, |first| end.0.saturating_sub(first.0));
        // A coordinator has been told that a prepared one can commit.
        let keeps = self.keeps_log.load(Ordering::Acquire);
        let keeps = keeps && !is_planted(PlantedFault::LetPreparedGo);
        if kept > longest && !keeps {
            self.out_of_log.store(true, Ordering::Release);
            self.forget_redo();
        }
    }

    /// Whether the log has let go of its redo. Inside the barrier.
    #[inline]
    pub fn is_out_of_log(&self) -> bool {
        self.out_of_log.load(Ordering::Relaxed)
    }

    pub fn undo_records(&self) -> u64 {
        self.undo_records.load(Ordering::Relaxed)
    }

    /// What its rollback would cost.
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

    /// The program is about to interrupt it for one that waits for it: no other need be a deadlock's victim.
    pub fn gives_way(&self) {
        self.gives_way.store(true, Ordering::Relaxed);
    }

    /// What its end as a deadlock's victim would cost: the least is chosen.
    pub fn cost(&self) -> u64 {
        match self.gives_way.load(Ordering::Relaxed) {
            true => 0,
            false => self.undo_records().saturating_add(1),
        }
    }

    /// Remembers that it holds `row`; false once it has ended.
    pub fn add_row(&self, row: Row) -> bool {
        match &mut *self.rows.lock() {
            Some(rows) => {
                rows.insert(row);
                true
            }
            None => false,
        }
    }

    /// Forgets `row`, which it holds no more. One that stays listed is harmless.
    pub fn forget(&self, row: Row) {
        if is_planted(PlantedFault::ListGivenUp) {
            return;
        }
        if let Some(rows) = &mut *self.rows.lock() {
            rows.remove(&row);
        }
    }

    /// Rows with an entry in the lock table that it holds.
    pub fn held_rows(&self) -> usize {
        self.rows.lock().as_ref().map_or(0, RowSet::len)
    }

    /// Remembers that it holds ranges in `tree`. Once for each tree, or a few times.
    pub fn add_ranged_tree(&self, tree: TreeId) {
        self.ranged_trees.lock().push(tree);
    }

    /// Ends: gives the trees in which to release ranges.
    pub fn take_ranged_trees(&self) -> SmallVec<[TreeId; 4]> {
        std::mem::take(&mut *self.ranged_trees.lock())
    }

    /// Ends: gives the rows to release.
    pub fn take_rows(&self) -> RowSet {
        self.rows.lock().take().unwrap_or_default()
    }
}
