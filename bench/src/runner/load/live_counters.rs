//! The counts of clients while they run, for progress and for the end of a warm-up at a steady rate.
//!
//! Each client counts on a cache line of its own, so that a count costs it two stores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use peregrine_harness::arithmetic;

/// The counts of one client.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counter {
    done: AtomicU64,
    micros: AtomicU64,
}

impl Counter {
    /// Counts a transaction that took this many microseconds.
    ///
    /// Only the client itself calls it, so plain loads and stores are enough.
    pub fn count(&self, micros: u64) {
        let add = |to: &AtomicU64, more: u64| {
            let so_far = to.load(Ordering::Relaxed);
            to.store(so_far.wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.done, 1);
        add(&self.micros, micros);
    }
}

/// The counts of all clients at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Glance {
    /// The time since the clients began.
    pub elapsed: Duration,
    /// Transactions done.
    pub done: u64,
    /// The sum of their latencies, in microseconds.
    pub micros: u64,
}

impl Glance {
    /// Sums the counters after this time.
    #[must_use]
    pub fn at(elapsed: Duration, counters: &[Counter]) -> Self {
        let sum = |of: fn(&Counter) -> &AtomicU64| {
            let all = counters.iter().map(|one| of(one).load(Ordering::Relaxed));
            all.fold(0, u64::wrapping_add)
        };
        Self {
            elapsed,
            done: sum(|one| &one.done),
            micros: sum(|one| &one.micros),
        }
    }

    /// Transactions a second since an earlier glance.
    #[must_use]
    pub fn rate_since(&self, before: &Self) -> Option<f64> {
        let time = self.elapsed.checked_sub(before.elapsed)?.as_secs_f64();
        arithmetic::ratio(self.done.wrapping_sub(before.done) as f64, time)
    }

    /// Their mean latency since an earlier glance, in microseconds; `None` when none was done.
    #[must_use]
    pub fn latency_since(&self, before: &Self) -> Option<f64> {
        let done = self.done.wrapping_sub(before.done);
        arithmetic::ratio(self.micros.wrapping_sub(before.micros) as f64, done as f64)
    }
}

/// The length of a window over which the rate is taken.
const WINDOW: Duration = Duration::from_secs(1);
/// The number of windows that are compared.
const WINDOWS: usize = 3;

/// Tests whether the rate is steady.
///
/// It is if the rates of the last three windows of a second differ by no more than some percent of the highest.
#[derive(Debug, Clone)]
pub struct Steadiness {
    /// Percent.
    within: f64,
    begun: Glance,
    rates: Vec<f64>,
}

impl Steadiness {
    /// Makes a test that accepts differences of this many percent.
    #[must_use]
    pub fn within(percent: f64) -> Self {
        Self {
            within: percent,
            begun: Glance::default(),
            rates: Vec::new(),
        }
    }

    /// Takes another glance and returns whether the rate is steady.
    pub fn is_reached(&mut self, now: Glance) -> bool {
        if now.elapsed.saturating_sub(self.begun.elapsed) < WINDOW {
            return false;
        }
        self.rates.extend(now.rate_since(&self.begun));
        self.begun = now;
        let last = self.rates.len().saturating_sub(WINDOWS);
        let windows = self.rates.get(last..).unwrap_or_default();
        if windows.len() < WINDOWS {
            return false;
        }
        let (Some(apart), Some(most)) = (
            arithmetic::spread(windows),
            arithmetic::maximum(windows.iter().copied()),
        ) else {
            return false;
        };
        // A rate of zero is not steady.
        most > 0.0 && apart <= most * self.within / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Glances a second apart at clients with these rates.
    fn looks(rates: &[u64]) -> Vec<Glance> {
        let mut done = 0;
        (1..)
            .zip(rates)
            .map(|(second, rate)| {
                done += rate;
                Glance {
                    elapsed: Duration::from_secs(second),
                    done,
                    micros: done * 50,
                }
            })
            .collect()
    }

    fn reached(percent: f64, rates: &[u64]) -> Option<usize> {
        let mut steadiness = Steadiness::within(percent);
        looks(rates)
            .into_iter()
            .position(|look| steadiness.is_reached(look))
            .map(|at| at + 1)
    }

    #[test]
    fn three_windows_of_nearly_the_same_rate_are_steady() {
        assert_eq!(reached(5.0, &[100, 100, 100, 100]), Some(3));
        // The range 100 to 105 is 4.8 % of 105; 99 to 105 is 5.7 %.
        assert_eq!(reached(5.0, &[10, 50, 100, 105, 103]), Some(5));
        assert_eq!(reached(5.0, &[10, 50, 99, 105, 103]), None);
        assert_eq!(reached(0.0, &[7, 7, 7]), Some(3));
        assert_eq!(reached(5.0, &[0, 0, 0, 0]), None);
        assert_eq!(reached(5.0, &[1, 2]), None);
    }

    #[test]
    fn looks_more_often_than_windows_change_nothing() {
        let mut steadiness = Steadiness::within(5.0);
        let looks = (1..40_u64).map(|tenth| Glance {
            elapsed: Duration::from_millis(tenth * 100),
            done: tenth * 10,
            micros: 0,
        });
        let mut reached = looks.filter(|look| steadiness.is_reached(*look));
        let first = reached.next().expect("steady");
        assert_eq!(first.elapsed, Duration::from_secs(3));
    }

    #[test]
    fn rates_and_latencies_between_two_looks() {
        let counters = [Counter::default(), Counter::default()];
        let before = Glance::at(Duration::from_secs(1), &counters);
        for micros in [100, 300] {
            counters[0].count(micros);
        }
        counters[1].count(800);
        let now = Glance::at(Duration::from_secs(3), &counters);
        assert_eq!(now.done, 3);
        assert_eq!(now.rate_since(&before), Some(1.5));
        assert_eq!(now.latency_since(&before), Some(400.0));
        assert_eq!(now.latency_since(&now), None);
        assert_eq!(before.rate_since(&now), None);
    }
}
