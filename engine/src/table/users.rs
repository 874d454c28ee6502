//! The number of transactions that use a table.
//!
//! Every statement of every thread counts here. If many threads meet at a table, they count in separate cache lines,
//! chosen by thread number. Most of many tables are never used by two threads at once, and need only one number.

use std::sync::OnceLock;

use crate::knobs;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::thread_number;
use crossbeam_utils::CachePadded;

/// The number of separate cache lines.
const STRIPES: usize = 16;

/// Where a user of a table was counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seat {
    Together,
    Apart(usize),
}

/// The transactions that use a table.
#[derive(Default)]
pub(super) struct Users {
    /// Users that are not counted in `stripes`.
    together: AtomicU64,
    /// How often a user came while another was counted.
    met: AtomicU32,
    /// Whether `stripes` is in use: set after `stripes` exists, and before any user is counted in it.
    apart: AtomicBool,
    stripes: OnceLock<Box<[CachePadded<AtomicU64>; STRIPES]>>,
}

impl Users {
    /// Counts a user.
    #[inline]
    pub fn enter(&self) -> Seat {
        if self.apart.load(Ordering::SeqCst) {
            if let Some(stripes) = self.stripes.get() {
                let stripe = thread_number() % knobs::users_stripes();
                stripes[stripe].fetch_add(1, Ordering::SeqCst);
                return Seat::Apart(stripe);
            }
        }
        if self.together.fetch_add(1, Ordering::SeqCst) > 0
            && self.met.fetch_add(1, Ordering::Relaxed) >= knobs::users_meetings()
        {
            self.stripes.get_or_init(Box::default);
            self.apart.store(true, Ordering::SeqCst);
        }
        Seat::Together
    }

    /// Removes a user.
    #[inline]
    pub fn leave(&self, seat: Seat) {
        match (seat, self.stripes.get()) {
            (Seat::Apart(stripe), Some(stripes)) => {
                stripes[stripe].fetch_sub(1, Ordering::SeqCst);
            }
            _ => {
                self.together.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// The number of users.
    ///
    /// A user in `stripes` has found `apart` set before: so a later call of this function finds it set, too.
    pub fn count(&self) -> u64 {
        let together = self.together.load(Ordering::SeqCst);
        let apart = match self.stripes.get() {
            Some(stripes) if self.apart.load(Ordering::SeqCst) => {
                stripes.iter().map(|n| n.load(Ordering::SeqCst)).sum()
            }
            _ => 0,
        };
        together + apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_counted_wherever_they_sit() {
        let users = Users::default();
        assert_eq!(users.count(), 0);
        let seats: Vec<Seat> = (0..100).map(|_| users.enter()).collect();
        assert!(matches!(seats[0], Seat::Together));
        assert!(matches!(seats[99], Seat::Apart(_)));
        for (seat, left) in seats.into_iter().zip((1..=100).rev()) {
            assert_eq!(users.count(), left);
            users.leave(seat);
        }
        assert_eq!(users.count(), 0);
    }

    #[test]
    fn one_after_another_needs_one_number() {
        let users = Users::default();
        for _ in 0..1_000 {
            let seat = users.enter();
            users.leave(seat);
        }
        assert!(users.stripes.get().is_none());
    }
}
