//! Workloads shared out among threads, with progress, until there is enough.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::{Result, SuiteError};
use crate::runner::interrupt;

/// How often progress is told.
const TELL: Duration = Duration::from_secs(5);

/// Calls `work` with 0, 1, 2, … from several threads until `enough`, asked with the next number, says
/// so; tells `progress` every few seconds.
///
/// # Errors
/// The first of `work`; [`SuiteError::Interrupted`] when the user wants to stop.
pub fn share_out(
    threads: u32,
    enough: impl Fn(u64) -> bool + Sync,
    work: impl Fn(u64) -> Result<()> + Sync,
    progress: impl Fn() -> String,
    mut told: impl FnMut(&str),
) -> Result<()> {
    let next = AtomicU64::new(0);
    let failed: Mutex<Option<SuiteError>> = Mutex::new(None);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if enough(number) || interrupt::requested() || failed.lock().is_some() {
                        return;
                    }
                    if let Err(error) = work(number) {
                        failed.lock().get_or_insert(error);
                    }
                })
            })
            .collect();
        let mut last = Instant::now();
        while !workers.iter().all(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            if last.elapsed() >= TELL {
                told(&progress());
                last = Instant::now();
            }
        }
    });
    match failed.into_inner() {
        Some(error) => Err(error),
        None if interrupt::requested() => Err(SuiteError::Interrupted),
        None => Ok(()),
    }
}
