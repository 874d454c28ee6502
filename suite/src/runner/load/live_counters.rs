//! What clients have done so far, seen while they run: for whoever looks on, and to tell when a warm-up is
//! steady.
//!
//! Each client counts for itself on a cache line of its own, so that being watched costs it two stores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::arithmetic;

/// What one client has done so far.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counter {
    done: AtomicU64,
    micros: AtomicU64,
}

impl Counter {
    /// One more is done, which took so many microseconds. Only the client itself counts here.
    pub fn count(&self, micros: u64) {
        let add = |to: &AtomicU64, more: u64| {
            let so_far = to.load(Ordering::Relaxed);
            to.store(so_far.wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.done, 1);
        add(&self.micros, micros);
    }
}

/// What all clients have done up to a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Glance {
    /// Since they began.
    pub elapsed: Duration,
    /// Transactions done.
    pub done: u64,
    /// Their latencies together, in microseconds.
    pub micros: u64,
}

impl Glance {
    /// What `counters` say after so long.
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

    /// Transactions a second since an earlier look.
    #[must_use]
    pub fn rate_since(&self, before: &Self) -> Option<f64> {
        let time = self.elapsed.checked_sub(before.elapsed)?.as_secs_f64();
        arithmetic::ratio(self.done.wrapping_sub(before.done) as f64, time)
    }

    /// Their mean latency, in microseconds; `None` when none was done.
    #[must_use]
    pub fn latency_since(&self, before: &Self) -> Option<f64> {
        let done = self.done.wrapping_sub(before.done);
        arithmetic::ratio(self.micros.wrapping_sub(before.micros) as f64, done as f64)
    }
}

/// How long a window is in which the rate is looked at.
const WINDOW: Duration = Duration::from_secs(1);
/// How many windows are compared.
const WINDOWS: usize = 3;

/// Tells when the rate has become steady: that of the last three seconds, each by itself, differs by no
/// more than some percent of the highest.
#[derive(Debug, Clone)]
pub struct Steadiness {
    /// Percent.
    within: f64,
    begun: Glance,
    rates: Vec<f64>,
}

impl Steadiness {
    /// Steady means: within so many percent.
    #[must_use]
    pub fn within(percent: f64) -> Self {
        Self {
            within: percent,
            begun: Glance::default(),
            rates: Vec::new(),
        }
    }

    /// Whether it is steady, by another look.
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
        // Nothing done is no rate that could be steady.
        most > 0.0 && apart <= most * self.within / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks a second apart at clients with these rates.
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
        // 100 to 105 are 4.8 % of 105; 99 to 105 are 5.7 %.
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
