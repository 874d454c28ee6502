//! Shaken builds: the same types with points, and schedules.

pub(crate) mod atomic;
mod chances;
mod clock;
mod condvar;
mod faults;
pub(crate) mod futex;
mod lock;
pub mod schedule;
mod strategy;
#[cfg(test)]
mod tests;
pub mod thread;
mod waits;

pub use self::condvar::Condvar;
pub use self::faults::{let_fail, let_pause};
pub(crate) use self::faults::{pause, strikes};
pub use self::lock::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use self::schedule::now;
pub(crate) use self::schedule::{point, since, spin_loop};
