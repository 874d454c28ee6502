//! Conditions, with points.

use std::time::{Duration, Instant};

use parking_lot::WaitTimeoutResult;

use super::lock::{address, MutexGuard};
use super::schedule::{me, now, point, with_me, Woken};

/// Like `parking_lot::Condvar`.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: parking_lot::Condvar,
}

/// Whether a wait ended because its time was over.
#[derive(Clone, Copy, Debug)]
pub struct TimedOut(bool);

impl TimedOut {
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl From<WaitTimeoutResult> for TimedOut {
    fn from(result: WaitTimeoutResult) -> Self {
        TimedOut(result.timed_out())
    }
}

impl Condvar {
    pub const fn new() -> Self {
        Condvar {
            inner: parking_lot::Condvar::new(),
        }
    }

    pub fn notify_one(&self) {
        self.inner.notify_one();
        with_me(|me| me.wake(address(self), true));
        point();
    }

    pub fn notify_all(&self) {
        self.inner.notify_all();
        with_me(|me| me.wake(address(self), false));
        point();
    }

    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        if self.wait_scheduled(guard, None).is_none() {
            self.inner.wait(guard.held.as_mut().expect("held"));
        }
    }

    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> TimedOut {
        let until = now() + limit;
        let ended = self.wait_scheduled(guard, Some(until));
        ended.unwrap_or_else(|| {
            let held = guard.held.as_mut().expect("held");
            self.inner.wait_for(held, limit).into()
        })
    }

    pub fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> TimedOut {
        let ended = self.wait_scheduled(guard, Some(until));
        ended.unwrap_or_else(|| {
            let held = guard.held.as_mut().expect("held");
            self.inner.wait_until(held, until).into()
        })
    }

    /// No other thread runs between the release of the mutex and the wait, so no signal is missed.
    fn wait_scheduled<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        until: Option<Instant>,
    ) -> Option<TimedOut> {
        let me = me()?;
        guard.held = None;
        guard.mutex.is_free();
        let woken = me.wait(address(self), "a condition", until);
        guard.held = Some(guard.mutex.take());
        Some(TimedOut(woken == Woken::Time))
    }
}
