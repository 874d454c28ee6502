//! The times at which clients ask: as soon as they have their answer (a closed loop), or at times set by the clock (an
//! open loop).
//!
//! In an open loop, a fixed number of transactions is due in each second, at even intervals, whatever the server does.
//! A free client takes the next one. If all clients are busy when a transaction is due, it begins late, and its latency
//! counts from when it was due. Otherwise a server that stops for a second would be charged with one slow answer, and
//! not with all the transactions that waited ("coordinated omission").

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The longest time for which a waiting client does not check whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// When clients ask.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As soon as a client has its answer.
    Closed,
    /// A fixed number of transactions a second of all clients together, by the clock.
    Open {
        /// Transactions a second.
        rate: f64,
    },
}

/// The due times of one run, which all its clients share.
#[derive(Debug)]
pub struct Arrivals {
    /// The interval between two transactions in an open loop.
    apart: Option<Duration>,
    time: Duration,
    begun: OnceLock<Instant>,
    taken: AtomicU64,
}

impl Arrivals {
    /// Creates the due times of a run of this length.
    #[must_use]
    pub fn new(pace: Pace, time: Duration) -> Self {
        Self {
            apart: match pace {
                Pace::Closed => None,
                Pace::Open { rate } => Duration::try_from_secs_f64(1.0 / rate).ok(),
            },
            time,
            begun: OnceLock::new(),
            taken: AtomicU64::new(0),
        }
    }

    /// Begins the run at the first call, and returns when it began.
    pub fn begin(&self) -> Instant {
        *self.begun.get_or_init(Instant::now)
    }

    /// Waits until the next transaction is due, and returns the time when it was due.
    ///
    /// Returns `None` when no transaction is due before the end, or when `over` is set. In a closed loop the
    /// transaction is due now.
    pub fn next(&self, over: &AtomicBool) -> Option<Instant> {
        let begun = self.begin();
        let now = Instant::now();
        if over.load(Ordering::Relaxed) {
            return None;
        }
        let Some(apart) = self.apart else {
            return Some(now);
        };
        if now >= begun + self.time {
            // [`Self::left`] counts the transactions that were due and did not begin.
            return None;
        }
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let due = self.due(begun, apart, number)?;
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(due);
            }
            if over.load(Ordering::Relaxed) {
                return None;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Returns when a transaction of this number is due; `None` after the end.
    fn due(&self, begun: Instant, apart: Duration, number: u64) -> Option<Instant> {
        let after = apart.as_secs_f64() * number as f64;
        let after = Duration::try_from_secs_f64(after).ok()?;
        (after < self.time).then(|| begun + after)
    }

    /// The number of transactions that were due and did not begin, because all clients were busy until the end.
    #[must_use]
    pub fn left(&self) -> u64 {
        let Some(apart) = self.apart else { return 0 };
        let all = (self.time.as_secs_f64() / apart.as_secs_f64()).ceil() as u64;
        all.saturating_sub(self.taken.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_evenly_apart_and_end_with_the_run() {
        let arrivals = Arrivals::new(Pace::Open { rate: 200.0 }, Duration::from_millis(50));
        let over = AtomicBool::new(false);
        let begun = arrivals.begin();
        let mut times = Vec::new();
        while let Some(due) = arrivals.next(&over) {
            assert!(Instant::now() >= due, "not before its time");
            times.push(due - begun);
            if times.len() == 10 {
                break;
            }
        }
        // Ten are due in 50 ms, 5 ms apart, however late a slow machine takes them. The transactions that it is too
        // late for are counted as left.
        for (number, time) in (0..).zip(&times) {
            assert_eq!(*time, Duration::from_millis(5) * number);
        }
        assert_eq!(times.len() as u64 + arrivals.left(), 10);
    }

    #[test]
    fn what_is_never_begun_is_counted() {
        let time = Duration::from_millis(20);
        let arrivals = Arrivals::new(Pace::Open { rate: 1_000.0 }, time);
        let over = AtomicBool::new(false);
        let begun = arrivals.begin();
        assert_eq!(arrivals.next(&over), Some(begun));
        std::thread::sleep(time);
        assert_eq!(arrivals.next(&over), None);
        assert_eq!(arrivals.left(), 19);
    }

    #[test]
    fn who_is_late_begins_at_once_and_keeps_the_time() {
        let arrivals = Arrivals::new(Pace::Open { rate: 100.0 }, Duration::from_secs(3_600));
        let over = AtomicBool::new(false);
        let begun = arrivals.begin();
        assert_eq!(arrivals.next(&over), Some(begun));
        std::thread::sleep(Duration::from_millis(35));
        let due = arrivals.next(&over).expect("a time");
        assert_eq!(due - begun, Duration::from_millis(10));
    }

    #[test]
    fn a_closed_loop_never_waits_and_both_end_when_all_is_over() {
        let over = AtomicBool::new(false);
        let closed = Arrivals::new(Pace::Closed, Duration::ZERO);
        let before = Instant::now();
        assert!(closed.next(&over).expect("now") >= before);
        assert_eq!(closed.left(), 0);
        over.store(true, Ordering::Relaxed);
        assert_eq!(closed.next(&over), None);
        let open = Arrivals::new(Pace::Open { rate: 0.001 }, Duration::from_secs(3_600));
        assert_eq!(open.next(&over), None);
    }
}
