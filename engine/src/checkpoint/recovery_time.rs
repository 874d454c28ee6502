//! How much log may come together so that an open after a crash takes no longer than asked.
//!
//! An open's time is nearly all replay and the checkpoint behind it, and both grow with the log. How
//! fast that goes depends on the machine, the rows and the cache; so every open that had enough to
//! replay is measured, and what it measured is kept with the checkpoints.

use std::time::Duration;

/// Bytes of log that an open works off in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayPace(u64);

/// Taken until an open was measured. On two cores, 30 MB/s were found with all data in the cache, and
/// 3.5 MB/s with one random row a transaction and a cache of a quarter of the data.
const ASSUMED: u64 = 8 << 20;
/// Whatever was measured, the pace is taken to be between these: a machine that was busy with other
/// things at one open must not make checkpoints follow one another without end.
const SLOWEST: u64 = 512 << 10;
const FASTEST: u64 = 1 << 30;
/// A shorter log says little: opening files and the first reads of pages take most of the time.
const ENOUGH: u64 = 4 << 20;
/// Of the target, the part that replay may take; the rest is for what was not foreseen.
const SHARE: f64 = 0.6;

impl Default for ReplayPace {
    fn default() -> Self {
        ReplayPace(ASSUMED)
    }
}

impl ReplayPace {
    /// As it was stored.
    pub fn from_stored(bytes_per_second: u64) -> Self {
        ReplayPace(bytes_per_second.clamp(SLOWEST, FASTEST))
    }

    /// Bytes a second.
    pub fn bytes_per_second(self) -> u64 {
        self.0
    }

    /// An open worked off `bytes` of log in `took`: what is slower counts at once, what is faster by
    /// half.
    pub fn measured(self, bytes: u64, took: Duration) -> Self {
        if bytes < ENOUGH {
            return self;
        }
        let latest = (bytes as f64 / took.as_secs_f64().max(1e-3)) as u64;
        let latest = latest.clamp(SLOWEST, FASTEST);
        ReplayPace(latest.min((self.0 + latest) / 2))
    }

    /// Bytes of log after which a checkpoint must begin, so that recovery takes at most `target`;
    /// `meanwhile` is what came together while the last one ran, and will again: until a checkpoint is
    /// complete, recovery begins at the one before.
    pub fn log_limit(self, target: Duration, meanwhile: u64) -> u64 {
        let allowed = (self.0 as f64 * target.as_secs_f64() * SHARE) as u64;
        allowed.saturating_sub(meanwhile).max(allowed / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A machine of any steady pace: after two opens, the log that is allowed is replayed in time.
        #[test]
        fn the_target_is_kept_once_the_pace_is_known(
            pace in SLOWEST..FASTEST, target in 1u64..3600, meanwhile in 0u64..64 << 20,
        ) {
            let mut known = ReplayPace::default();
            for _ in 0..40 {
                known = known.measured(64 << 20, Duration::from_secs_f64((64u64 << 20) as f64 / pace as f64));
                let limit = known.log_limit(Duration::from_secs(target), meanwhile);
                let allowed = known.log_limit(Duration::from_secs(target), 0);
                let longest = limit + meanwhile.min(allowed / 4 * 3);
                prop_assert!(longest as f64 / pace as f64 <= target as f64 * 0.61 + 0.1);
                prop_assert!(limit > 0);
            }
            // And not much less than is allowed, in the long run.
            prop_assert!(known.bytes_per_second() as f64 > pace as f64 * 0.99 - 1.0);
        }

        #[test]
        fn short_logs_and_strange_figures_do_no_harm(stored: u64, bytes: u64, nanos: u64) {
            let pace = ReplayPace::from_stored(stored).measured(bytes, Duration::from_nanos(nanos));
            prop_assert!((SLOWEST..=FASTEST).contains(&pace.bytes_per_second()));
            prop_assert!(pace.log_limit(Duration::from_secs(1), bytes) > 0);
        }
    }
}
