//! What the purge thread and those who wake and stop it share.

use std::time::Duration;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::JoinHandle;
use crate::sync::{Condvar, Mutex};

/// The thread that purges.
#[derive(Default)]
pub(crate) struct PurgeThread {
    /// The thread sleeps with nothing to do: the next end of a transaction wakes it.
    pub idle: AtomicBool,
    stopping: Mutex<bool>,
    wake: Condvar,
    pub handle: Mutex<Option<JoinHandle<()>>>,
    /// One step at a time. The place of the stream with which the next one begins, for a step may not come
    /// to the last: a stream in which much ends keeps no other from its turn.
    pub step: Mutex<usize>,
    /// Ended transactions purged so far.
    pub passed: AtomicU64,
    /// The next transaction number when ends were last summarised.
    pub summarised: AtomicU64,
}

impl PurgeThread {
    /// A transaction has ended.
    pub fn ended(&self) {
        if self.idle.load(Ordering::Relaxed) && self.idle.swap(false, Ordering::AcqRel) {
            // Under the mutex: the thread is either before its last look or asleep.
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
            // The last owner of the system may be the thread itself.
            if handle.thread().id() != crate::sync::thread::current().id() {
                let _panicked = handle.join();
            }
        }
    }

    /// Sleeps; false when the thread shall stop.
    pub fn pause(&self, time: Duration) -> bool {
        let mut stopping = self.stopping.lock();
        if !*stopping && !time.is_zero() {
            self.wake.wait_for(&mut stopping, time);
        }
        !*stopping
    }
}
