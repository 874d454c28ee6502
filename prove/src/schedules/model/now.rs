//! The state of a session that other sessions may know: whether it has a transaction, and the rows that this has
//! locked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use peregrine::{KillHandle, RowLock};

use crate::schedules::end::{wrong, Step};

/// The state of a session.
///
/// Its mutexes are never held across a schedule point.
#[derive(Default)]
pub struct Now {
    /// The kill handle of the session's current or last transaction, for sessions that interrupt it.
    handle: Mutex<Option<KillHandle>>,
    /// The number of begins and ends of transactions: odd while the session has a transaction.
    bounds: AtomicU64,
    /// The rows that the transaction has locked and has not begun to unlock.
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

    /// Returns the number of begins and ends; `None` while the session has a transaction.
    pub(in crate::schedules) fn idle(&self) -> Option<u64> {
        let bounds = self.bounds.load(Ordering::SeqCst);
        bounds.is_multiple_of(2).then_some(bounds)
    }

    /// Interrupts the transaction's waits.
    pub fn kill(&self) {
        let handle = self.handle.lock().clone();
        if let Some(handle) = handle {
            handle.kill();
        }
    }

    /// Forgets the locked rows: the transaction may unlock them from here on.
    pub(in crate::schedules) fn gives_back(&self) {
        self.locked.lock().clear();
    }

    fn has_locked(&self, id: u64) -> RowLock {
        let locked = self.locked.lock();
        locked.get(&id).copied().unwrap_or(RowLock::None)
    }
}

/// Records that a session has locked a row, and checks that no other session holds a conflicting lock.
///
/// # Errors
/// When another session holds a conflicting lock.
pub(in crate::schedules) fn locks_alone(all: &[Now], session: u64, id: u64, lock: RowLock) -> Step {
    {
        let mut locked = all[session as usize].locked.lock();
        let held = locked.entry(id).or_insert(lock);
        if lock == RowLock::Exclusive {
            *held = lock;
        }
    }
    // Each session records its lock before it looks: of two at once, the second to record its lock sees the first's.
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
