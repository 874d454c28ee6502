//! How many spare segments the log's pace needs.
//!
//! A checkpoint releases all segments before it at once, and under load new ones are needed within seconds. A new
//! segment costs allocation, and syncs that take twice as long. Without load, spares only take space from other files.

use std::time::Instant;

use crate::ids::Lsn;
use crate::knobs;

/// The pace of the log.
#[derive(Debug)]
pub struct Demand {
    end: Lsn,
    at: Instant,
    /// Bytes a second: the highest recent pace, which decays.
    pace: f64,
}

impl Demand {
    /// Begins with the log's end at `end`.
    pub fn new(end: Lsn, now: Instant) -> Self {
        Demand {
            end,
            at: now,
            pace: 0.0,
        }
    }

    /// Returns how many spares of `capacity` bytes to keep when the log ends at `end`.
    pub fn spares(&mut self, end: Lsn, now: Instant, capacity: u64) -> usize {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        if passed > 0.0 {
            let latest = end.0.saturating_sub(self.end.0) as f64 / passed;
            let sunk = self.pace * 0.5f64.powf(passed / knobs::log_pace_half_life().as_secs_f64());
            self.pace = latest.max(sunk);
            (self.end, self.at) = (end, now);
        }
        if self.pace < knobs::log_slow_pace() {
            return 0;
        }
        (self.pace * knobs::spare_log_time().as_secs_f64() / capacity as f64).ceil() as usize
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use proptest::prelude::*;

    const SEGMENT: u64 = 64 << 20;

    #[test]
    fn a_steady_pace_keeps_ten_seconds_of_it_and_quiet_keeps_nothing() {
        if crate::knobs::SHAKEN {
            // The figures are those of production's knobs.
            return;
        }
        let mut now = Instant::now();
        let mut end = Lsn(0);
        let mut demand = Demand::new(end, now);
        let mut kept = 0;
        for _ in 0..20 {
            now += Duration::from_secs(1);
            end.0 += SEGMENT;
            kept = demand.spares(end, now, SEGMENT);
        }
        assert_eq!(kept, 10);
        let mut seconds = 0;
        while kept > 0 {
            now += Duration::from_secs(1);
            let then = demand.spares(end, now, SEGMENT);
            assert!(then <= kept, "quiet asks for no more");
            kept = then;
            seconds += 1;
            assert!(seconds < 60, "quiet is found out");
        }
        assert!(seconds > 5, "a pause of some seconds costs no spares");
    }

    proptest! {
        /// Whatever the pace, at most ten seconds' worth of the fastest.
        #[test]
        fn spares_are_bounded_by_the_fastest_pace(
            steps in proptest::collection::vec((1u64..5_000, 0u64..1 << 32), 1..50),
        ) {
            let (mut now, mut end) = (Instant::now(), Lsn(7));
            let mut demand = Demand::new(end, now);
            let mut fastest = 0.0f64;
            for (millis, bytes) in steps {
                now += Duration::from_millis(millis);
                end.0 += bytes;
                fastest = fastest.max(bytes as f64 * 1000.0 / millis as f64);
                let kept = demand.spares(end, now, SEGMENT) as f64;
                prop_assert!(kept <= (fastest * 10.0 / SEGMENT as f64 + 1.0).ceil());
            }
        }
    }
}
