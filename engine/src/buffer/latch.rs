//! The hybrid latch: one word that readers may check without writing to it.
//!
//! A thread can use it in three ways (Böttcher et al., "Scalable and Robust Latches for Database Systems", 2020). An
//! *optimistic* reader reads the version, then the data, and checks afterwards that the version still holds. *Shared*
//! holders keep changes out. The *exclusive* holder keeps all other threads out, and raises the version when it
//! releases the latch. A thread that must wait spins for a moment, then sleeps on a futex.

use crate::ids::LatchVersion;
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

const SHARED_ONE: u64 = 1;
const SHARED: u64 = 0xffff;
const EXCLUSIVE: u64 = 1 << 16;
/// A thread sleeps until the latch is free.
const SLEEPER: u64 = 1 << 17;
/// A thread that wants the latch exclusively sleeps: new shared holders stay out, so that its turn comes.
const WRITER_WAITS: u64 = 1 << 18;
const VERSION_ONE: u64 = 1 << 19;
const VERSION: u64 = !(VERSION_ONE - 1);

/// A latch: neither fair nor recursive, and it does not record its holders.
#[derive(Debug, Default)]
pub(crate) struct Latch {
    state: AtomicU64,
    /// Changes whenever sleepers are woken.
    event: AtomicU32,
}

impl Latch {
    /// Returns the version; `None` while a thread holds the latch exclusively.
    #[inline]
    pub fn try_optimistic(&self) -> Option<LatchVersion> {
        let state = self.state.load(Ordering::Acquire);
        (state & EXCLUSIVE == 0).then_some(LatchVersion(state & VERSION))
    }

    /// Returns the version; waits while a thread holds the latch exclusively.
    #[inline]
    pub fn optimistic(&self) -> LatchVersion {
        if let Some(version) = self.try_optimistic() {
            return version;
        }
        LatchVersion(self.wait_until(|state| state & EXCLUSIVE == 0, 0) & VERSION)
    }

    /// Returns the version while the caller holds the latch exclusively: the one from before it took the latch.
    pub fn held_version(&self) -> LatchVersion {
        LatchVersion(self.state.load(Ordering::Relaxed) & VERSION)
    }

    /// Returns whether nothing has changed since the version was read: only then are the reads since then valid.
    #[inline]
    pub fn still(&self, version: LatchVersion) -> bool {
        // Orders the reads made so far before the load of the state.
        if !is_planted(PlantedFault::UnfencedRead) {
            fence(Ordering::Acquire);
        }
        self.state.load(Ordering::Relaxed) & (VERSION | EXCLUSIVE) == version.0
    }

    /// Returns whether a thread sleeps until the latch is free.
    #[cfg(test)]
    pub fn is_slept_for(&self) -> bool {
        self.state.load(Ordering::Relaxed) & SLEEPER != 0
    }

    #[inline]
    pub fn try_lock_shared(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & (EXCLUSIVE | WRITER_WAITS) == 0
            && state & SHARED != SHARED
            && self
                .state
                .compare_exchange(
                    state,
                    state + SHARED_ONE,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    #[inline]
    pub fn lock_shared(&self) {
        while !self.try_lock_shared() {
            let free = |state| state & (EXCLUSIVE | WRITER_WAITS) == 0 && state & SHARED != SHARED;
            self.wait_until(free, 0);
        }
    }

    #[inline]
    pub fn unlock_shared(&self) {
        let before = self.state.fetch_sub(SHARED_ONE, Ordering::Release);
        debug_assert!(before & SHARED != 0);
        if before & SHARED == SHARED_ONE && before & SLEEPER != 0 {
            self.wake();
        }
    }

    #[inline]
    pub fn try_lock_exclusive(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & (EXCLUSIVE | SHARED) == 0 && self.take_exclusive(state)
    }

    #[inline]
    pub fn lock_exclusive(&self) {
        while !self.try_lock_exclusive() {
            self.wait_until(|state| state & (EXCLUSIVE | SHARED) == 0, WRITER_WAITS);
        }
    }

    /// Takes the latch exclusively if the version still holds and no other thread has the latch.
    #[inline]
    pub fn try_upgrade(&self, version: LatchVersion) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state & VERSION == version.0
            && state & (EXCLUSIVE | SHARED) == 0
            && self.take_exclusive(state)
    }

    #[inline]
    fn take_exclusive(&self, state: u64) -> bool {
        let taken = self
            .state
            .compare_exchange(
                state,
                state | EXCLUSIVE,
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok();
        // Orders the taking before the changes that follow: an optimistic reader that sees one of these changes also
        // sees the latch taken.
        if !is_planted(PlantedFault::UnfencedChange) {
            fence(Ordering::Release);
        }
        taken
    }

    /// Releases the latch, and makes all versions read so far invalid.
    #[inline]
    pub fn unlock_exclusive(&self) {
        let before = self
            .state
            .fetch_add(VERSION_ONE - EXCLUSIVE, Ordering::Release);
        debug_assert!(before & EXCLUSIVE != 0);
        if before & SLEEPER != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.state
            .fetch_and(!(SLEEPER | WRITER_WAITS), Ordering::Relaxed);
        if is_planted(PlantedFault::WakeBeforeEvent) {
            crate::sync::futex::wake_all(&self.event);
            self.event.fetch_add(1, Ordering::Release);
            return;
        }
        self.event.fetch_add(1, Ordering::Release);
        crate::sync::futex::wake_all(&self.event);
    }

    /// Waits until `free(state)` is true, and returns that state.
    #[cold]
    fn wait_until(&self, free: impl Fn(u64) -> bool, mark: u64) -> u64 {
        for _ in 0..knobs::latch_spins() {
            let state = self.state.load(Ordering::Acquire);
            if free(state) {
                return state;
            }
            crate::sync::spin_loop();
        }
        loop {
            // Read before the mark is set. The thread that clears the mark changes the event afterwards, so the wait
            // below can't miss it.
            let event = self.event.load(Ordering::Acquire);
            let state = self.state.load(Ordering::Acquire);
            if free(state) {
                return state;
            }
            let marked = state | SLEEPER | mark;
            // A mark set while no thread holds the latch would never be cleared.
            if state & (EXCLUSIVE | SHARED) == 0 {
                if state & WRITER_WAITS != 0 {
                    self.wake();
                }
                crate::sync::spin_loop();
                continue;
            }
            if marked == state
                || self
                    .state
                    .compare_exchange(state, marked, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                crate::sync::futex::wait(&self.event, event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    /// Under Miri a round takes a millisecond.
    const ROUNDS: u64 = if cfg!(miri) { 200 } else { 20_000 };

    struct Guarded {
        latch: Latch,
        value: UnsafeCell<(u64, u64)>,
    }
    impl Guarded {
        fn value(&self) -> *mut (u64, u64) {
            self.value.get()
        }
    }
    // SAFETY: the test reaches the value under the latch only.
    unsafe impl Sync for Guarded {}

    #[test]
    fn keeps_writers_and_readers_apart() {
        let whole = Guarded {
            latch: Latch::default(),
            value: UnsafeCell::new((0, 0)),
        };
        let cell = &whole;
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        cell.latch.lock_exclusive();
                        // SAFETY: held exclusively.
                        unsafe {
                            (*cell.value()).0 += 1;
                            (*cell.value()).1 += 1;
                        }
                        cell.latch.unlock_exclusive();
                    }
                });
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        cell.latch.lock_shared();
                        // SAFETY: held shared.
                        let (a, b) = unsafe { *cell.value() };
                        assert_eq!(a, b);
                        cell.latch.unlock_shared();
                    }
                });
            }
        });
        // SAFETY: all threads are gone.
        assert_eq!(unsafe { *cell.value() }, (3 * ROUNDS, 3 * ROUNDS));
    }

    #[test]
    fn versions_tell_changes() {
        let latch = Latch::default();
        let version = latch.optimistic();
        latch.lock_shared();
        assert!(latch.still(version));
        assert!(!latch.try_upgrade(version));
        latch.unlock_shared();
        assert!(latch.try_upgrade(version));
        assert!(!latch.still(version));
        assert!(!latch.try_lock_shared());
        latch.unlock_exclusive();
        assert!(!latch.still(version));
        assert!(!latch.try_upgrade(version));
        assert!(latch.try_lock_exclusive());
        latch.unlock_exclusive();
    }
}
