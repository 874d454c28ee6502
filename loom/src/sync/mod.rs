//! The engine's interface to threads and synchronization, made of loom's types.

pub mod atomic;
pub(crate) mod futex;
mod lock;

pub(crate) use self::lock::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::thread;

/// All threads begin at the same place.
pub(crate) fn thread_number() -> usize {
    0
}
