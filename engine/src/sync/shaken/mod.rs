//! Shaken builds: the same types with points, and schedules.

pub(crate) mod atomic;
mod chances;
mod clock;
mod condvar;
pub(crate) mod futex;
mod lock;
pub mod schedule;
mod strategy;
#[cfg(test)]
mod tests;
pub mod thread;
mod waits;

pub use self::chances::{let_fail, let_pause};
pub(crate) use self::chances::{pause, strikes};
pub use self::condvar::Condvar;
pub use self::lock::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use self::schedule::now;
pub(crate) use self::schedule::{point, since, spin_loop};
