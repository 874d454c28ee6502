//! Estimates how much log may accumulate so that an opening after a crash takes no longer than asked.
//!
//! An opening spends nearly all its time on replay and on the checkpoint behind it. Both grow with the log, and with
//! the pages that replay has to read: once per page if all data fits the cache, nearly once per change with a small
//! cache. So the estimate counts both. As machines differ, each opening with enough to replay is measured; the ratio of
//! measured to estimated time is stored with the checkpoints.

use std::time::Duration;

use crate::ids::PAGE_SIZE;
use crate::knobs;

/// The work of an opening after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayWork {
    /// Bytes of log to replay.
    pub log_bytes: u64,
    /// Pages to read.
    pub page_reads: u64,
    /// Bytes of log that are read, but not replayed.
    pub skipped_bytes: u64,
    /// Undo records to apply.
    pub undo_records: u64,
}

/// Estimated time for a MiB of log that is replayed: 24 MiB a second.
const NANOS_A_MEBIBYTE: u64 = 1_000_000_000 / 24;
/// Estimated time for a MiB of log that is only read, three times in all: 512 MiB a second.
const NANOS_A_SKIPPED_MEBIBYTE: u64 = 1_000_000_000 / 512;
/// Estimated time for an undo record whose page is in memory.
const NANOS_AN_UNDO_RECORD: u64 = 700;
/// Estimated time for a page that is read, and for the write of another page that makes room for it.
const NANOS_A_PAGE: u64 = 100_000;
/// No logged change is shorter than this. So replay reads at most one page per so many bytes, whatever else has been
/// read since.
const SHORTEST_CHANGE: u64 = 64;
/// The part of the target that replay may take; the rest is for what the estimate does not foresee.
const SHARE: f64 = 0.6;

impl ReplayWork {
    /// The work for `log_bytes` of log, with the pages read, and made dirty, since that log began.
    pub fn since(log_bytes: u64, reads: u64, dirty: u64) -> Self {
        ReplayWork {
            log_bytes,
            page_reads: (reads + dirty).min(log_bytes / SHORTEST_CHANGE),
            ..ReplayWork::default()
        }
    }

    /// The work that an opening has done: replayed log, undo records applied, and all its page reads. Of the page
    /// reads, no more are counted than the other two can have caused.
    pub fn done(log_bytes: u64, undo_records: u64, reads: u64) -> Self {
        ReplayWork {
            log_bytes,
            undo_records,
            page_reads: reads.min(log_bytes / SHORTEST_CHANGE + 2 * undo_records),
            ..ReplayWork::default()
        }
    }

    /// Adds a rollback of `records` undo records in `bytes` bytes of undo, which move to another leaf `leaves` times.
    /// The pool holds `frames` pages, and the data file has `pages`. As many pages as fit the pool are read once.
    #[must_use]
    pub fn and_rollback(
        self,
        records: u64,
        bytes: u64,
        leaves: u64,
        frames: u64,
        pages: u64,
    ) -> Self {
        let leaves = leaves.min(records);
        let fits = frames.min(pages).min(leaves);
        let missed = 1.0 - frames as f64 / pages.max(1) as f64;
        let again = (leaves - fits) as f64 * missed.max(0.0);
        ReplayWork {
            page_reads: self.page_reads + bytes.div_ceil(PAGE_SIZE as u64) + fits + again as u64,
            undo_records: self.undo_records + records,
            ..self
        }
    }

    /// Adds `bytes` of log whose pages a rollback has read before.
    #[must_use]
    pub fn and_again(self, bytes: u64) -> Self {
        ReplayWork {
            log_bytes: self.log_bytes + bytes,
            ..self
        }
    }

    /// Adds the reading of `bytes` of log in all; the log that is replayed is part of them.
    #[must_use]
    pub fn and_reading(self, bytes: u64) -> Self {
        ReplayWork {
            skipped_bytes: bytes.saturating_sub(self.log_bytes),
            ..self
        }
    }

    fn reckoned(self) -> Duration {
        let replayed = u128::from(self.log_bytes) * u128::from(NANOS_A_MEBIBYTE);
        let skipped = u128::from(self.skipped_bytes) * u128::from(NANOS_A_SKIPPED_MEBIBYTE);
        let log = (replayed + skipped) >> 20;
        let undo = u128::from(self.undo_records) * u128::from(NANOS_AN_UNDO_RECORD);
        let pages = u128::from(self.page_reads) * u128::from(NANOS_A_PAGE);
        Duration::from_nanos(u64::try_from(log + undo + pages).unwrap_or(u64::MAX))
    }
}

/// How long openings take relative to the estimate, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayPace(u64);

/// The pace is limited to this range, whatever was measured: one opening on a busy machine must not make checkpoints
/// follow one another without end.
const FASTEST: u64 = 100;
const SLOWEST: u64 = 10_000;

impl Default for ReplayPace {
    fn default() -> Self {
        ReplayPace(1_000)
    }
}

impl ReplayPace {
    /// The pace from a stored number.
    pub fn from_stored(thousandths: u64) -> Self {
        ReplayPace(thousandths.clamp(FASTEST, SLOWEST))
    }

    /// The number to be stored.
    pub fn thousandths(self) -> u64 {
        self.0
    }

    /// The pace after an opening that did `work` in `took`: a slower one counts at once, a faster one by half.
    pub fn measured(self, work: ReplayWork, took: Duration) -> Self {
        let told_from = ReplayWork::since(knobs::replay_told_from(), 0, 0);
        if work.reckoned() < told_from.reckoned() {
            return self;
        }
        let latest = took.as_secs_f64() / work.reckoned().as_secs_f64().max(1e-6);
        let latest = ((latest * 1e3) as u64).clamp(FASTEST, SLOWEST);
        ReplayPace(latest.max((self.0 + latest).div_ceil(2)))
    }

    /// The estimated time of an opening.
    pub fn time_of(self, work: ReplayWork) -> Duration {
        work.reckoned().mul_f64(self.0 as f64 / 1e3)
    }

    /// Returns whether a checkpoint must begin so that recovery takes at most `target`. `meanwhile` is the work that
    /// came together while the last checkpoint ran, and will again: recovery begins at the checkpoint before until one
    /// is complete. `standing` is the work that remains right after a checkpoint: a checkpoint that gains little over
    /// it is not worth its writes.
    pub fn is_due(
        self,
        target: Duration,
        work: ReplayWork,
        meanwhile: ReplayWork,
        standing: ReplayWork,
    ) -> bool {
        let allowed = target.mul_f64(SHARE);
        let takes = self.time_of(work);
        let gained = takes.saturating_sub(self.time_of(standing));
        takes + self.time_of(meanwhile) >= allowed && gained >= allowed / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    proptest! {
        /// On a machine of any steady pace, once an opening was measured: a log that makes no checkpoint due is
        /// replayed within the target.
        #[test]
        fn the_target_is_kept_once_the_pace_is_known(
            slowness in FASTEST..SLOWEST, target in 1u64..3600,
            first in (4 * MIB..512 * MIB, 0u64..1_000_000),
            then in (0u64..4096 * MIB, 0u64..1_000_000),
        ) {
            let truth = ReplayPace(slowness);
            let target = Duration::from_secs(target);
            let work = |(bytes, pages)| ReplayWork::since(bytes, pages, 0);
            let nothing = ReplayWork::default();
            let mut known = ReplayPace::default();
            for _ in 0..30 {
                known = known.measured(work(first), truth.time_of(work(first)));
                let takes = truth.time_of(work(then));
                if !known.is_due(target, work(then), nothing, nothing) {
                    prop_assert!(takes <= target.mul_f64(0.62), "{takes:?} of {target:?}");
                }
            }
            // And no checkpoint is due much earlier than it must be.
            let takes = truth.time_of(work(then));
            if known.is_due(target, work(then), nothing, nothing) {
                prop_assert!(takes >= target.mul_f64(0.55), "{takes:?} of {target:?}");
            }
        }

        /// Beside a long transaction, recovery takes at most the target, or a quarter of it more than the transaction
        /// alone. No checkpoint is taken that gains less than that quarter.
        #[test]
        fn checkpoints_beside_a_long_transaction_are_in_time_and_gain_something(
            target in 1u64..3600, bytes in 0u64..4096 * MIB, kept in 0u64..64 * 1024 * MIB,
            records in 0u64..100_000_000, leaves in 0u64..1_000_000,
        ) {
            let allowed = Duration::from_secs(target).mul_f64(SHARE);
            let (pace, nothing) = (ReplayPace::default(), ReplayWork::default());
            let beside = |work: ReplayWork| {
                work.and_reading(kept).and_rollback(records, 20 * records, leaves, 8_000, 1_000_000)
            };
            let (standing, work) = (beside(nothing), beside(ReplayWork::since(bytes, 0, 0)));
            let (alone, takes) = (pace.time_of(standing), pace.time_of(work));
            if pace.is_due(Duration::from_secs(target), work, nothing, standing) {
                prop_assert!(takes >= alone + allowed / 4, "{takes:?}, {alone:?} of {target} s");
            } else {
                let most = allowed.max(alone + allowed / 4);
                prop_assert!(takes <= most, "{takes:?}, {alone:?} of {target} s");
            }
        }

        #[test]
        fn short_logs_and_strange_figures_do_no_harm(
            stored: u64, bytes in 0u64..1 << 60, pages in 0u64..1 << 60, nanos: u64,
        ) {
            let work = ReplayWork::since(bytes, pages, pages);
            let pace = ReplayPace::from_stored(stored).measured(work, Duration::from_nanos(nanos));
            prop_assert!((FASTEST..=SLOWEST).contains(&pace.thousandths()));
            // Work during checkpoints alone never makes the next one due at once.
            prop_assert!(!pace.is_due(Duration::from_secs(1), ReplayWork::default(), work, work));
        }
    }
}
