//! Ordinary builds: the engine uses the standard types directly.

pub(crate) use std::sync::atomic;
pub(crate) use std::thread;

pub(crate) use atomic_wait as futex;
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::hint::spin_loop;

/// The time of the clock.
#[inline]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// The time since `then`.
#[inline]
pub(crate) fn since(then: std::time::Instant) -> std::time::Duration {
    then.elapsed()
}

/// A point: in shaken builds, a thread may lose the processor here.
#[inline]
pub(crate) fn point() {}

/// A place where a thread may pause in shaken builds.
#[inline]
pub(crate) fn pause(_: super::Pause) {}

/// Returns whether this fails now, which it does in shaken builds only.
#[inline]
pub(crate) fn strikes(_: super::Fault) -> bool {
    false
}
