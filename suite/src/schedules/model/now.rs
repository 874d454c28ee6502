//! What a session is at, for the others: whether it has a transaction, and which rows that has locked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use peregrine::{KillHandle, RowLock};

use crate::schedules::end::{wrong, Step};

/// What a session is at. Its mutexes are never held over a point of a schedule.
#[derive(Default)]
pub struct Now {
    /// The transaction that it has now, or had last, for whoever interrupts it.
    handle: Mutex<Option<KillHandle>>,
    /// How many transactions it has begun and how many have ended, together: an odd number while it has one.
    bounds: AtomicU64,
    /// Rows that its transaction was told it has locked, and has not begun to give back.
    locked: Mutex<HashMap<u64, RowLock>>,
}

impl Now {
    pub(in crate::schedules) fn begins(&self, handle: KillHandle) {
        *self.handle.lock() = Some(handle);
        self.bounds.fetch_add(1, Ordering::SeqCst);
    }

    pub(in crate::schedules) fn ends(&self) {
        self.gives_back();
        self.bounds.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of bounds; `None` where it has a transaction.
    pub(in crate::schedules) fn idle(&self) -> Option<u64> {
        let bounds = self.bounds.load(Ordering::SeqCst);
        bounds.is_multiple_of(2).then_some(bounds)
    }

    /// Interrupts its waits.
    pub fn kill(&self) {
        let handle = self.handle.lock().clone();
        if let Some(handle) = handle {
            handle.kill();
        }
    }

    /// Its locks may go from now on.
    pub(in crate::schedules) fn gives_back(&self) {
        self.locked.lock().clear();
    }

    fn has_locked(&self, id: u64) -> RowLock {
        let locked = self.locked.lock();
        locked.get(&id).copied().unwrap_or(RowLock::None)
    }
}

/// A session was told that it has locked a row: nobody else has a lock beside which it can't be.
///
/// # Errors
/// Somebody has.
pub(in crate::schedules) fn locks_alone(all: &[Now], session: u64, id: u64, lock: RowLock) -> Step {
    {
        let mut locked = all[session as usize].locked.lock();
        let held = locked.entry(id).or_insert(lock);
        if lock == RowLock::Exclusive {
            *held = lock;
        }
    }
    // Of two who come together, the second to put its lock down sees the first's.
    let excludes = |held: RowLock| match held {
        RowLock::None => false,
        RowLock::Shared => lock == RowLock::Exclusive,
        RowLock::Exclusive => true,
    };
    let beside = (0..)
        .zip(all)
        .find(|(number, now)| *number != session && excludes(now.has_locked(id)));
    match beside {
        None => Ok(()),
        Some((other, now)) => wrong(format!(
            "row {id} is locked {lock:?} while session {other} has locked it {:?}",
            now.has_locked(id)
        )),
    }
}
