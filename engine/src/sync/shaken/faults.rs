//! Faults and pauses at points of this thread's schedule.

use super::schedule::with_me;
use super::thread::sleep;
use crate::sync::{Fault, Pause};

/// Makes a fault happen once in so many points of this thread's schedule, on average; never if 0. Outside schedules
/// nothing fails.
pub fn let_fail(fault: Fault, once_in: u64) {
    with_me(|me| me.chances().let_fail(fault, once_in));
}

/// The same for pauses, at which a thread stays for a while: with a latch, for example, or before others see its
/// change.
pub fn let_pause(at: Pause, once_in: u64) {
    with_me(|me| me.chances().let_pause(at, once_in));
}

/// Returns whether this fault happens now.
pub(crate) fn strikes(fault: Fault) -> bool {
    with_me(|me| me.chances().strikes(fault)).unwrap_or(false)
}

/// A place where the thread may pause.
pub(crate) fn pause(at: Pause) {
    let pause = with_me(|me| me.chances().pause(at)).flatten();
    if let Some(pause) = pause.filter(|_| !std::thread::panicking()) {
        sleep(pause);
    }
}
