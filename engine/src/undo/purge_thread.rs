//! The state that the purge thread shares with the threads that wake and stop it.

use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::JoinHandle;
use crate::sync::{Condvar, Mutex};

/// The handle and the state of the purge thread.
#[derive(Default)]
pub(crate) struct PurgeThread {
    /// The thread sleeps and has nothing to do; the next end of a transaction wakes it.
    pub idle: AtomicBool,
    stopping: Mutex<bool>,
    wake: Condvar,
    pub handle: Mutex<Option<JoinHandle<()>>>,
    /// Lets one step run at a time, and has the place of the stream with which the next step begins.
    ///
    /// A step may end before the last stream. So a stream in which many transactions end can't keep the others from
    /// being purged.
    pub step: Mutex<usize>,
    /// Ended transactions purged so far.
    pub passed: AtomicU64,
    /// The next transaction number when ends were last summarised.
    pub summarised: AtomicU64,
}

impl PurgeThread {
    /// Wakes an idle purge thread after a transaction's end.
    pub fn ended(&self) {
        if self.idle.load(Ordering::Relaxed) && self.idle.swap(false, Ordering::AcqRel) {
            // The mutex orders this call with the thread's look at `idle` in `pause`.
            let _stopping = self.stopping.lock();
            self.wake.notify_one();
        }
    }

    /// Stops and joins the thread.
    pub fn stop(&self) {
        *self.stopping.lock() = true;
        self.wake.notify_all();
        let handle = self.handle.lock().take();
        if let Some(handle) = handle {
            // The purge thread itself may be the last owner of the transaction manager.
            if handle.thread().id() != crate::sync::thread::current().id() {
                let _panicked = handle.join();
            }
        }
    }

    /// Sleeps, an idle thread not if a transaction has ended since `idle` was set. Returns false when the thread must
    /// stop.
    pub fn pause(&self, time: Duration, idle: bool) -> bool {
        let mut stopping = self.stopping.lock();
        let woken = idle && !self.idle.load(Ordering::Acquire);
        if !*stopping && !woken && !time.is_zero() {
            self.wake.wait_for(&mut stopping, time);
        }
        !*stopping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_before_the_idle_thread_sleeps_is_not_lost() {
        let thread = PurgeThread::default();
        thread.idle.store(true, Ordering::Release);
        thread.ended();
        // It would sleep for longer than any test runs.
        assert!(thread.pause(Duration::from_secs(1 << 20), true));
    }
}
