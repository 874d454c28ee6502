//! Waiting for a change of a word, with the kernel's semantics: the check of the word and the entry into the queue are
//! one step.
//!
//! All words share one queue. A thread that is woken for another word checks its word again, as after any early return.

use loom::sync::{Condvar, Mutex};

use super::atomic::{AtomicU32, Ordering};

struct Queue {
    queue: Mutex<()>,
    woken: Condvar,
}

loom::lazy_static! {
    static ref QUEUE: Queue = Queue { queue: Mutex::new(()), woken: Condvar::new() };
}

/// Waits while the word has this value; may return early.
pub(crate) fn wait(word: &AtomicU32, value: u32) {
    let queue = QUEUE.queue.lock().expect("nobody panics with it");
    if word.load(Ordering::Relaxed) == value {
        drop(QUEUE.woken.wait(queue));
    }
}

/// Wakes all threads that wait for the word.
pub(crate) fn wake_all(_: &AtomicU32) {
    drop(QUEUE.queue.lock());
    QUEUE.woken.notify_all();
}
