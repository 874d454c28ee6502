//! The transactions in each second of a run, to show whether the rate was even.

use std::time::Duration;

use crate::results::record::Second;

/// The transactions in each second since the beginning.
#[derive(Debug, Clone, Default)]
pub struct Seconds {
    all: Vec<Sum>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    done: u64,
    micros: u64,
    max_us: u64,
}

impl Seconds {
    /// Counts a transaction that ended at this time after the beginning.
    pub fn count(&mut self, after: Duration, micros: u64) {
        let Ok(second) = usize::try_from(after.as_secs()) else {
            return;
        };
        if self.all.len() <= second {
            self.all.resize(second + 1, Sum::default());
        }
        if let Some(sum) = self.all.get_mut(second) {
            sum.done += 1;
            sum.micros = sum.micros.saturating_add(micros);
            sum.max_us = sum.max_us.max(micros);
        }
    }

    /// Adds the counts of another client.
    pub fn merge(&mut self, other: &Self) {
        if self.all.len() < other.all.len() {
            self.all.resize(other.all.len(), Sum::default());
        }
        for (sum, more) in self.all.iter_mut().zip(&other.all) {
            sum.done += more.done;
            sum.micros = sum.micros.saturating_add(more.micros);
            sum.max_us = sum.max_us.max(more.max_us);
        }
    }

    /// Returns the whole seconds of a run of this length, also those without transactions.
    #[must_use]
    pub fn whole(&self, time: Duration) -> Vec<Second> {
        let count = usize::try_from(time.as_secs()).unwrap_or(usize::MAX);
        let mut all = self.all.clone();
        all.resize(count, Sum::default());
        all.iter()
            .map(|sum| Second {
                done: sum.done,
                mean_us: sum.micros.checked_div(sum.done).unwrap_or(0),
                max_us: sum.max_us,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_has_its_own_and_empty_ones_are_kept() {
        let mut one = Seconds::default();
        let mut other = Seconds::default();
        one.count(Duration::from_millis(10), 100);
        one.count(Duration::from_millis(999), 300);
        other.count(Duration::from_millis(500), 800);
        other.count(Duration::from_millis(2_000), 7);
        // After the third second: no whole second, so it is left out.
        other.count(Duration::from_millis(3_100), 9_999);
        one.merge(&other);
        let second = |done, mean_us, max_us| Second {
            done,
            mean_us,
            max_us,
        };
        let expected = [second(3, 400, 800), second(0, 0, 0), second(1, 7, 7)];
        assert_eq!(one.whole(Duration::from_millis(3_900)), expected);
        assert!(one.whole(Duration::from_millis(900)).is_empty());
        assert_eq!(Seconds::default().whole(Duration::from_secs(2)).len(), 2);
    }
}
