//! Mutexes and reader-writer locks, with points.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::schedule::{me, point, with_me};

/// Like `parking_lot::Mutex`.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    inner: parking_lot::Mutex<T>,
}

pub struct MutexGuard<'a, T: ?Sized> {
    pub(super) mutex: &'a Mutex<T>,
    /// `None` while the guard is unlocked for a moment.
    pub(super) held: Option<parking_lot::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Mutex {
            inner: parking_lot::Mutex::new(value),
        }
    }
}

impl<T: ?Sized> Mutex<T> {
    pub fn lock(&self) -> MutexGuard<'_, T> {
        point();
        MutexGuard {
            mutex: self,
            held: Some(self.take()),
        }
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        point();
        let held = self.inner.try_lock()?;
        Some(MutexGuard {
            mutex: self,
            held: Some(held),
        })
    }

    pub(super) fn take(&self) -> parking_lot::MutexGuard<'_, T> {
        let inner = &self.inner;
        take(
            address(self),
            "a mutex",
            || inner.try_lock(),
            || inner.lock(),
        )
    }

    /// Wakes the threads that wait for it, as it is free.
    pub(super) fn is_free(&self) {
        with_me(|me| me.wake(address(self), false));
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Mutex::new(value)
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    pub fn unlocked<U>(guard: &mut MutexGuard<'a, T>, work: impl FnOnce() -> U) -> U {
        guard.held = None;
        guard.mutex.is_free();
        point();
        let outcome = work();
        guard.held = Some(guard.mutex.take());
        outcome
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.held = None;
        self.mutex.is_free();
        point();
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("held")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("held")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Like `parking_lot::RwLock`.
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    inner: parking_lot::RwLock<T>,
}

pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    held: Option<parking_lot::RwLockReadGuard<'a, T>>,
}

pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    held: Option<parking_lot::RwLockWriteGuard<'a, T>>,
}

impl<T> RwLock<T> {
    pub const fn new(value: T) -> Self {
        RwLock {
            inner: parking_lot::RwLock::new(value),
        }
    }
}

impl<T: ?Sized> RwLock<T> {
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        point();
        let inner = &self.inner;
        let held = take(
            address(self),
            "a lock, to read",
            || inner.try_read(),
            || inner.read(),
        );
        RwLockReadGuard {
            lock: self,
            held: Some(held),
        }
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        point();
        let inner = &self.inner;
        let held = take(
            address(self),
            "a lock, to write",
            || inner.try_write(),
            || inner.write(),
        );
        RwLockWriteGuard {
            lock: self,
            held: Some(held),
        }
    }

    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        point();
        let held = self.inner.try_read()?;
        Some(RwLockReadGuard {
            lock: self,
            held: Some(held),
        })
    }

    #[cfg(test)]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        point();
        let held = self.inner.try_write()?;
        Some(RwLockWriteGuard {
            lock: self,
            held: Some(held),
        })
    }

    fn is_free(&self) {
        with_me(|me| me.wake(address(self), false));
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.held = None;
        self.lock.is_free();
        point();
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.held = None;
        self.lock.is_free();
        point();
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("held")
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("held")
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("held")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Returns the first success of `attempt`. Between attempts the thread waits for `address`; outside schedules it calls
/// `wait`.
fn take<G>(
    address: usize,
    what: &'static str,
    attempt: impl Fn() -> Option<G>,
    wait: impl FnOnce() -> G,
) -> G {
    if let Some(held) = attempt() {
        return held;
    }
    let Some(me) = me() else {
        return wait();
    };
    loop {
        me.wait(address, what, None);
        if let Some(held) = attempt() {
            return held;
        }
    }
}

/// The address for threads that wait for a value.
pub(super) fn address<T: ?Sized>(value: &T) -> usize {
    std::ptr::from_ref(value).cast::<()>() as usize
}
