//! Ordinary builds: nothing stands between the engine and the types that it names.

pub(crate) use std::sync::atomic;
pub(crate) use std::thread;

pub(crate) use atomic_wait as futex;
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::hint::spin_loop;

/// The clock's time.
#[inline]
pub fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// The time since a moment.
#[inline]
pub(crate) fn since(then: std::time::Instant) -> std::time::Duration {
    then.elapsed()
}

/// A place where, in shaken builds, a thread may lose the processor.
#[inline]
pub(crate) fn point() {}

/// A place where, in shaken builds, a thread may stay for a while.
#[inline]
pub(crate) fn pause(_: super::Pause) {}

/// Whether, in shaken builds, this fails now.
#[inline]
pub(crate) fn strikes(_: super::Fault) -> bool {
    false
}
