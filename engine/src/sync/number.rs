//! Numbers of threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A small number for this thread, which spreads threads evenly over slots that any thread may use. In a schedule it is
/// the thread's number there, as earlier threads of the process must not matter.
pub(crate) fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    #[cfg(feature = "shaken")]
    if let Some(number) = super::shaken::schedule::number() {
        return number;
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
