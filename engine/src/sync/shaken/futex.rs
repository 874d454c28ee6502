//! Waiting for a word to change, with points.

use super::atomic::AtomicU32;
use super::lock::address;
use super::schedule::{me, point, with_me};

/// Waits while the word has this value; may return early.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    match me() {
        None => atomic_wait::wait(&word.0, value),
        Some(me) => {
            point();
            if word.0.load(std::sync::atomic::Ordering::Acquire) == value {
                me.wait(address(&word.0), "a latch", None);
            }
        }
    }
}

/// Wakes all threads that wait for the word.
pub(crate) fn wake_all(word: &AtomicU32) {
    atomic_wait::wake_all(&word.0);
    with_me(|me| me.wake(address(&word.0), false));
    point();
}
