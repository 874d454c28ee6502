//! Counters that all clients of an engine share: the newest values of columns.

use std::sync::atomic::{AtomicI64, Ordering};

/// The newest value of each counter of a workload, on one engine.
#[derive(Debug, Default)]
pub struct Counters(Vec<AtomicI64>);

impl Counters {
    /// Creates counters with these values.
    #[must_use]
    pub fn new(newest: Vec<i64>) -> Self {
        Self(newest.into_iter().map(AtomicI64::new).collect())
    }

    /// Returns the next value of a counter, which no other client gets.
    #[must_use]
    pub fn next(&self, counter: usize) -> i64 {
        self.0.get(counter).map_or(0, |value| {
            value.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
        })
    }

    /// Returns the newest value of a counter.
    #[must_use]
    pub fn newest(&self, counter: usize) -> i64 {
        self.0
            .get(counter)
            .map_or(0, |value| value.load(Ordering::Relaxed))
    }
}
