//! The barrier between row operations and checkpoints.
//!
//! Every row operation (its tree changes, undo and redo) and every commit runs inside the barrier. A checkpoint
//! closes the barrier for the moment in which it records the log position, the active transactions and the epoch of
//! the pages. So it sees each operation and each commit as a whole or not at all. Entering costs one uncontended
//! atomic exchange, because each thread uses one of several locks.
//!
//! A thread inside the barrier must not wait for a row lock, for a sync or for another entry.

use crate::knobs;
use crate::sync::{pause, thread_number, Pause, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crossbeam_utils::CachePadded;

/// See the module's text.
pub struct CheckpointBarrier {
    stripes: Box<[CachePadded<RwLock<()>>]>,
}

/// Proof that the thread is inside the barrier; drop it before any wait.
pub struct BarrierGuard<'a> {
    _stripe: RwLockReadGuard<'a, ()>,
}

/// Proof that the barrier is closed: no thread is inside until this is dropped.
pub struct ClosedBarrier<'a> {
    _stripes: Vec<RwLockWriteGuard<'a, ()>>,
}

impl Default for CheckpointBarrier {
    fn default() -> Self {
        CheckpointBarrier {
            stripes: (0..knobs::barrier_stripes())
                .map(|_| CachePadded::default())
                .collect(),
        }
    }
}

impl CheckpointBarrier {
    /// Enters the barrier, and waits while it is closed. A thread is inside at most once.
    #[inline]
    pub fn enter(&self) -> BarrierGuard<'_> {
        let _stripe = self.stripes[thread_number() % knobs::barrier_stripes()].read();
        pause(Pause::Held);
        BarrierGuard { _stripe }
    }

    /// Closes the barrier: waits until all threads inside have left, and keeps others out until the proof is dropped.
    pub fn close(&self) -> ClosedBarrier<'_> {
        let _stripes = self.stripes.iter().map(|stripe| stripe.write()).collect();
        pause(Pause::Held);
        ClosedBarrier { _stripes }
    }

    /// Like [`CheckpointBarrier::close`], but returns `None` rather than wait.
    #[cfg(test)]
    pub fn try_close(&self) -> Option<ClosedBarrier<'_>> {
        let stripes = self.stripes.iter().map(|stripe| stripe.try_write());
        let _stripes = stripes.collect::<Option<_>>()?;
        Some(ClosedBarrier { _stripes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn a_closed_barrier_sees_every_operation_whole() {
        let barrier = CheckpointBarrier::default();
        let (first, second) = (AtomicU64::new(0), AtomicU64::new(0));
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let _inside = barrier.enter();
                        first.fetch_add(1, Ordering::Relaxed);
                        std::thread::yield_now();
                        second.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let mut closings = 0;
            while closings < 200 || first.load(Ordering::Relaxed) < 1000 {
                let closed = barrier.close();
                assert_eq!(
                    first.load(Ordering::Relaxed),
                    second.load(Ordering::Relaxed)
                );
                drop(closed);
                closings += 1;
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
