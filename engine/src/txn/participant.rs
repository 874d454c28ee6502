//! What other threads may see and do to a running transaction: its place in wait queues, its
//! undo head; kill it, grant it a lock, choose it as a deadlock's victim.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use super::lock::Row;
use super::version::UndoPtr;
use crate::ids::Lsn;

/// How a wait stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WaitState {
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
pub(super) enum Wake {
    Granted,
    Victim,
    Killed,
    TimedOut,
}

/// Where a transaction sleeps. Lives as long as the session's transaction object, so that a kill
/// handle stays good from one transaction to the next.
#[derive(Default)]
pub(super) struct Parker {
    killed: AtomicBool,
    state: Mutex<WaitState>,
    woken: Condvar,
}

impl Parker {
    pub fn killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    pub fn kill(&self) {
        self.killed.store(true, Ordering::Release);
        // Under the mutex: a sleeper is either before its check of the flag or in the wait.
        let _state = self.state.lock();
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

    /// Moves a queued waiter to `to` and wakes it; whether it was queued.
    pub fn wake(&self, to: WaitState) -> bool {
        let mut state = self.state.lock();
        if !matches!(*state, WaitState::Queued(_)) {
            return false;
        }
        *state = to;
        self.woken.notify_all();
        true
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

/// A transaction that writes or locks, as others see it.
pub(super) struct Participant {
    /// The newest undo record; stable while the gate is closed.
    undo_head: AtomicU64,
    /// Where its first redo part went, `u64::MAX`: none yet. Stable while the gate is closed.
    first_redo: AtomicU64,
    /// Undo records written: what a rollback would cost.
    work: AtomicU64,
    /// Rows in whose queues it stands as holder; `None` once it has ended.
    rows: Mutex<Option<Vec<Row>>>,
    pub parker: Arc<Parker>,
}

impl Participant {
    pub fn new(parker: Arc<Parker>) -> Arc<Self> {
        Arc::new(Participant {
            undo_head: AtomicU64::new(0),
            first_redo: AtomicU64::new(u64::MAX),
            work: AtomicU64::new(0),
            rows: Mutex::new(Some(Vec::new())),
            parker,
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

    pub fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    pub fn set_work(&self, work: u64) {
        self.work.store(work, Ordering::Relaxed);
    }

    /// Remembers that it holds `row`; false once it has ended.
    pub fn add_row(&self, row: Row) -> bool {
        match &mut *self.rows.lock() {
            Some(rows) => {
                rows.push(row);
                true
            }
            None => false,
        }
    }

    /// Forgets `row` where it is the newest one held (older ones stay listed, which is harmless).
    pub fn forget_newest(&self, row: Row) {
        if let Some(rows) = &mut *self.rows.lock() {
            if rows.last() == Some(&row) {
                rows.pop();
            }
        }
    }

    /// Ends: gives the rows to release.
    pub fn take_rows(&self) -> Vec<Row> {
        self.rows.lock().take().unwrap_or_default()
    }
}
