//! The interface to threads: locks, atomics, waiting, and the clock.
//!
//! In ordinary builds these are the standard library's and `parking_lot`'s own types. In a build with the feature
//! `shaken`, each call is a *point* besides, at which a thread may lose the processor. It does so by chance; or, in a
//! thread of a `schedule`, only where the schedule's seed says so. Then one thread runs at a time, time is counted and
//! not measured, and the same seed gives the same run (FoundationDB's simulation; Burckhardt et al., "A Randomized
//! Scheduler with Probabilistic Guarantees of Finding Bugs", 2010, for the choice of threads).
//!
//! | file | holds |
//! |---|---|
//! | `fault.rs` | faults at points, and places where threads pause |
//! | `moment.rs` | named places between two steps, where tests act and threads of schedules pause |
//! | `number.rs` | numbers of threads |
//! | `shaken/clock.rs`, `shaken/waits.rs` | the time in a schedule; the addresses that threads may wait for |
//! | `shaken/schedule.rs` | the turn: threads that run one at a time |
//! | `shaken/strategy.rs` | the choice of the next thread |
//! | `shaken/chances.rs`, `shaken/faults.rs` | which faults and pauses happen at points |
//! | `shaken/lock.rs`, `condvar.rs`, `futex.rs`, `atomic.rs`, `thread.rs` | the types, with their points |
#![forbid(unsafe_code)]

mod fault;
mod moment;
mod number;
#[cfg(not(feature = "shaken"))]
mod plain;
#[cfg(feature = "shaken")]
mod shaken;

pub use self::fault::{Fault, Pause};
pub(crate) use self::moment::{Moment, Moments};
pub(crate) use self::number::thread_number;
#[cfg(not(feature = "shaken"))]
pub(crate) use self::plain::*;
#[cfg(feature = "shaken")]
pub(crate) use self::shaken::*;

// For the C interface, and for tests that run schedules.
#[cfg(not(feature = "shaken"))]
pub use self::plain::{now, Condvar, Mutex, RwLock};
#[cfg(feature = "shaken")]
pub use self::shaken::{let_fail, let_pause, now, schedule, thread, Condvar, Mutex, RwLock};
