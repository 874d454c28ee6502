//! Mutex and condition variable with the interface of `parking_lot`: no poisoning, and a wait that keeps the guard.

use std::ops::{Deref, DerefMut};
use std::time::Instant;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(self.0.lock().ok())
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

/// `None` only while its owner waits for a condition.
pub(crate) struct MutexGuard<'a, T>(Option<loom::sync::MutexGuard<'a, T>>);

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect("it is held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().expect("it is held")
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Condvar(loom::sync::Condvar);

impl Default for Condvar {
    fn default() -> Self {
        Condvar(loom::sync::Condvar::new())
    }
}

/// The result of a wait with a limit.
pub(crate) struct Waited;

impl Waited {
    /// Models have no time: a wait never times out.
    pub fn timed_out(&self) -> bool {
        false
    }
}

impl Condvar {
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.0.take();
        guard.0 = held.and_then(|held| self.0.wait(held).ok());
    }

    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, _: Instant) -> Waited {
        self.wait(guard);
        Waited
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
