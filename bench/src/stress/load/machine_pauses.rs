//! Pauses of the machine.
//!
//! One thread only sleeps, and measures how late it wakes. Another thread syncs a file of its own, and measures how
//! long that takes.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use peregrine_harness::error::{PathContext, Result};

/// The time for which the sleeping thread sleeps.
const NAP: Duration = Duration::from_millis(1);

/// The syncing thread's pause between two syncs: its syncs are rare compared with those of a log, so they disturb
/// little.
const BETWEEN: Duration = Duration::from_millis(20);

/// A span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

impl Stretch {
    /// The span from a moment until now.
    #[must_use]
    pub fn since(from: Instant) -> Self {
        let to = Instant::now();
        Self { from, to }
    }

    /// Its length.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.to.saturating_duration_since(self.from)
    }

    /// Returns how much of it the others cover; the others must not overlap one another.
    #[must_use]
    pub fn covered_by(&self, others: &[Stretch]) -> Duration {
        others
            .iter()
            .map(|other| {
                self.to
                    .min(other.to)
                    .saturating_duration_since(self.from.max(other.from))
            })
            .sum()
    }
}

/// The findings of the two threads.
#[derive(Debug, Clone, Default)]
pub struct MachinePauses {
    /// Times in which the sleeping thread should have run and did not.
    pub not_run: Vec<Stretch>,
    /// Long syncs of another file on the same file system.
    pub slow_syncs: Vec<Stretch>,
    /// The maximum time for which the sleeping thread did not run.
    pub longest_not_run: Duration,
    /// The maximum time of a sync.
    pub longest_sync: Duration,
}

/// Starts both threads, which end when `stop` is set.
///
/// They keep spans of at least `minimum`.
pub fn watch<'scope, 'env>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    dir: &'env Path,
    minimum: Duration,
    stop: &'env AtomicBool,
) -> Watching<'scope> {
    Watching {
        sleeper: scope.spawn(move || sleep_and_see(minimum, stop)),
        syncer: scope.spawn(move || sync_and_see(&dir.join("control"), minimum, stop)),
    }
}

/// The running threads.
#[derive(Debug)]
pub struct Watching<'scope> {
    sleeper: ScopedJoinHandle<'scope, (Vec<Stretch>, Duration)>,
    syncer: ScopedJoinHandle<'scope, Result<(Vec<Stretch>, Duration)>>,
}

impl Watching<'_> {
    /// Joins the threads and returns their findings; the caller has set `stop`.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn end(self) -> Result<MachinePauses> {
        let (not_run, longest_not_run) = self.sleeper.join().unwrap_or_default();
        let (slow_syncs, longest_sync) = self
            .syncer
            .join()
            .unwrap_or_else(|_| Ok((vec![], Duration::ZERO)))?;
        Ok(MachinePauses {
            not_run,
            slow_syncs,
            longest_not_run,
            longest_sync,
        })
    }
}

fn sleep_and_see(minimum: Duration, stop: &AtomicBool) -> (Vec<Stretch>, Duration) {
    let (mut seen, mut longest) = (Vec::new(), Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let due = Instant::now() + NAP;
        std::thread::sleep(NAP);
        keep(Stretch::since(due), minimum, &mut seen, &mut longest);
    }
    (seen, longest)
}

fn sync_and_see(
    path: &PathBuf,
    minimum: Duration,
    stop: &AtomicBool,
) -> Result<(Vec<Stretch>, Duration)> {
    let (mut seen, mut longest) = (Vec::new(), Duration::ZERO);
    let file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(path)
        .at("cannot create", path)?;
    let block = [0x5a; 4096];
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        // Always the same block, so that only its data has to reach the disk.
        file.write_all_at(&block, 0)
            .and_then(|()| file.sync_data())
            .at("cannot write", path)?;
        keep(Stretch::since(begun), minimum, &mut seen, &mut longest);
        std::thread::sleep(BETWEEN);
    }
    std::fs::remove_file(path).at("cannot remove", path)?;
    Ok((seen, longest))
}

fn keep(stretch: Stretch, minimum: Duration, seen: &mut Vec<Stretch>, longest: &mut Duration) {
    *longest = stretch.length().max(*longest);
    if stretch.length() >= minimum {
        seen.push(stretch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a count of the milliseconds, one by one.
        #[test]
        fn coverage_is_what_both_have(
            gaps in proptest::collection::vec((0u64..30, 0u64..30), 0..10),
            from in 0u64..300, length in 0u64..200,
        ) {
            let zero = Instant::now();
            let at = |ms: u64| zero + Duration::from_millis(ms);
            let mut others = Vec::new();
            let mut end = 0;
            for (gap, length) in gaps {
                others.push((end + gap, end + gap + length));
                end += gap + length;
            }
            let counted = (from..from + length)
                .filter(|ms| others.iter().any(|(a, b)| (*a..*b).contains(ms)))
                .count() as u64;
            let others: Vec<_> = others.iter().map(|(a, b)| Stretch { from: at(*a), to: at(*b) }).collect();
            let one = Stretch { from: at(from), to: at(from + length) };
            prop_assert_eq!(one.covered_by(&others), Duration::from_millis(counted));
        }
    }
}
