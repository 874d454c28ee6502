//! Faults and pauses at points of this thread's schedule.

use super::schedule::with_me;
use super::thread::sleep;
use crate::sync::{Fault, Pause};

/// From now on a fault comes once in so many points of this thread's schedule, in the mean; with 0 at none. Outside
/// schedules nothing fails.
pub fn let_fail(fault: Fault, once_in: u64) {
    with_me(|me| me.chances().let_fail(fault, once_in));
}

/// The same of pauses, at which a thread stays where it is for a while: with a latch, before it tells what it did.
pub fn let_pause(at: Pause, once_in: u64) {
    with_me(|me| me.chances().let_pause(at, once_in));
}

/// Whether this fails now.
pub(crate) fn strikes(fault: Fault) -> bool {
    with_me(|me| me.chances().strikes(fault)).unwrap_or(false)
}

/// A place where the thread may stay for a while.
pub(crate) fn pause(at: Pause) {
    let pause = with_me(|me| me.chances().pause(at)).flatten();
    if let Some(pause) = pause.filter(|_| !std::thread::panicking()) {
        sleep(pause);
    }
}
