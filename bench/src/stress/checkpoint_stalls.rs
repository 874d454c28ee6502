//! Pauses of foreground work while checkpoints follow one another under full write load.
//!
//! A pause is a transaction that takes long. Some pauses are the machine's: its processors or its disk were busy with
//! other work. Two threads that do not use the engine measure these ([`super::load::machine_pauses`]); the other pauses
//! are the engine's.

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::load::machine_pauses::{
    MachinePauses, Stretch, {self},
};
use super::load::write_load::WriteLoad;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// The upper limit of the histograms, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// A request to measure pauses.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The number of writers.
    pub writers: u32,
    /// The length of the measurement.
    pub duration: Duration,
    /// The time from the end of a checkpoint to the beginning of the next.
    pub between: Duration,
    /// A transaction that takes longer than this is a pause.
    pub limit: Duration,
    /// A directory on the database's disk, for the control thread's file.
    pub dir: &'a Path,
}

/// The number of pauses by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pauses {
    /// Pauses of the engine.
    pub engine: u32,
    /// Pauses of which half or more fell into times when a thread that only sleeps did not run.
    pub not_run: u32,
    /// Pauses of which half or more fell into slow syncs of another file.
    pub slow_disk: u32,
}

/// The outcome of a measurement.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The library or the server.
    pub title: String,
    /// The number of writers.
    pub writers: u32,
    /// The length of the measurement, in seconds.
    pub seconds: f64,
    /// The number of completed checkpoints.
    pub checkpoints: u32,
    /// The part of the time in which a checkpoint ran.
    pub checkpointing: f64,
    /// A transaction that takes longer than this is a pause.
    pub limit: Duration,
    /// Times of the transactions during which a checkpoint was seen, in microseconds.
    pub inside: Histogram<u64>,
    /// Times of the other transactions.
    pub outside: Histogram<u64>,
    /// Pauses during which a checkpoint was seen.
    pub pauses_inside: Pauses,
    /// The other pauses.
    pub pauses_outside: Pauses,
    /// The parts of the time in which the control thread waited for a slow sync: while checkpoints ran, and otherwise.
    pub slow_disk: [f64; 2],
    /// The findings of the control threads.
    pub machine: MachinePauses,
}

impl Outcome {
    /// Returns whether the engine causes the slow syncs: other files' syncs are slow too, but mostly while checkpoints
    /// run.
    #[must_use]
    pub fn disk_is_ours(&self) -> bool {
        let [inside, outside] = self.slow_disk;
        inside > 2.0 * outside + 0.01
    }

    /// Returns whether all pauses are the machine's, and whether there were enough checkpoints and transactions for a
    /// result.
    #[must_use]
    pub fn held(&self) -> bool {
        let disk = if self.disk_is_ours() {
            self.pauses_inside.slow_disk
        } else {
            0
        };
        self.checkpoints >= 3
            && self.inside.len() >= 1_000
            && self.pauses_inside.engine + disk == 0
            && self.pauses_outside.engine == 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |us: u64| us as f64 / 1e3;
        let spread = |h: &Histogram<u64>| {
            format!(
                "median {:.2}, 99 % {:.1}, 99.9 % {:.1}, longest {:.1} ms",
                ms(h.value_at_quantile(0.5)),
                ms(h.value_at_quantile(0.99)),
                ms(h.value_at_quantile(0.999)),
                ms(h.max())
            )
        };
        let pauses = |p: &Pauses| {
            format!(
                "{} (and {} while no thread ran, {} while the disk was slow for others too)",
                p.engine, p.not_run, p.slow_disk
            )
        };
        write!(
            f,
            "{}: {}, {} writers for {:.0} s, {} checkpoints in {:.0} % of the time: {:.0} transactions a second; beside \
             checkpoints {}, otherwise {}; pauses over {:.0} ms beside checkpoints: {}, otherwise: {}; the machine: \
             longest not run {:.0} ms, longest sync of another file {:.0} ms, slow for {:.1} % of the time beside \
             checkpoints and {:.1} % otherwise",
            if self.held() { "held" } else { "NOT HELD" },
            self.title,
            self.writers,
            self.seconds,
            self.checkpoints,
            self.checkpointing * 100.0,
            (self.inside.len() + self.outside.len()) as f64 / self.seconds.max(1e-9),
            spread(&self.inside),
            spread(&self.outside),
            self.limit.as_secs_f64() * 1e3,
            pauses(&self.pauses_inside),
            pauses(&self.pauses_outside),
            self.machine.longest_not_run.as_secs_f64() * 1e3,
            self.machine.longest_sync.as_secs_f64() * 1e3,
            self.slow_disk[0] * 100.0,
            self.slow_disk[1] * 100.0,
        )
    }
}

/// The findings of a writer: the times of its transactions, and its pauses.
struct Seen {
    /// Transactions during which a checkpoint ran.
    inside: Histogram<u64>,
    outside: Histogram<u64>,
    pauses: Vec<(Stretch, bool)>,
}

/// Runs the measurement.
///
/// # Errors
/// When the engine returns an error; [`HarnessError::Interrupted`].
pub fn run(
    load: &dyn WriteLoad,
    request: &Request<'_>,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    let stop = AtomicBool::new(false);
    // Begins and ends of checkpoints.
    let turns = AtomicU64::new(0);
    let mut writers = Vec::new();
    for number in 0..request.writers {
        writers.push(load.writer(u64::from(number))?);
    }
    let begun = Instant::now();
    let (checkpoints, seen, machine) = std::thread::scope(|scope| {
        let watching = machine_pauses::watch(scope, request.dir, request.limit / 4, &stop);
        let threads: Vec<_> = writers
            .into_iter()
            .map(|mut write| {
                let (stop, turns) = (&stop, &turns);
                scope.spawn(move || write_and_see(&mut write, request.limit, stop, turns))
            })
            .collect();
        let checkpoints = checkpoints(load, request, &turns, &mut told);
        stop.store(true, Ordering::Relaxed);
        let seen: Result<Vec<Seen>> = threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(HarnessError::Server("a writer panicked".to_owned())))
            })
            .collect();
        Ok::<_, HarnessError>((checkpoints?, seen?, watching.end()?))
    })?;
    let whole = Stretch::since(begun);
    let mut outcome = Outcome {
        title: load.title(),
        writers: request.writers,
        seconds: whole.length().as_secs_f64(),
        checkpoints: u32::try_from(checkpoints.len()).unwrap_or(u32::MAX),
        checkpointing: 0.0,
        limit: request.limit,
        inside: histogram()?,
        outside: histogram()?,
        pauses_inside: Pauses::default(),
        pauses_outside: Pauses::default(),
        slow_disk: [0.0; 2],
        machine,
    };
    let inside = whole.covered_by(&checkpoints);
    outcome.checkpointing = inside.as_secs_f64() / outcome.seconds;
    let slow = |within: &[Stretch]| -> Duration {
        let syncs = &outcome.machine.slow_syncs;
        let long = syncs
            .iter()
            .filter(|sync| sync.length() >= request.limit / 2);
        long.map(|sync| sync.covered_by(within)).sum()
    };
    let (slow_inside, slow_all) = (slow(&checkpoints), slow(&[whole]));
    outcome.slow_disk = [
        slow_inside.as_secs_f64() / inside.as_secs_f64().max(1e-9),
        (slow_all - slow_inside).as_secs_f64() / (whole.length() - inside).as_secs_f64().max(1e-9),
    ];
    for one in seen {
        // All histograms have the same bounds, so adding them does not fail.
        let added = outcome
            .inside
            .add(&one.inside)
            .and_then(|()| outcome.outside.add(&one.outside));
        added.map_err(|error| HarnessError::Report(error.to_string()))?;
        for (pause, met) in one.pauses {
            let of = if met {
                &mut outcome.pauses_inside
            } else {
                &mut outcome.pauses_outside
            };
            let half = pause.length() / 2;
            if pause.covered_by(&outcome.machine.not_run) >= half {
                of.not_run += 1;
            } else if pause.covered_by(&outcome.machine.slow_syncs) >= half {
                of.slow_disk += 1;
            } else {
                of.engine += 1;
            }
        }
    }
    Ok(outcome)
}

fn histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1, LONGEST_US, 3)
        .map_err(|error| HarnessError::Report(error.to_string()))
}

/// Returns whether a checkpoint ran at this count of their begins and ends.
fn is_running(turns: u64) -> bool {
    turns % 2 == 1
}

fn write_and_see(
    write: &mut dyn FnMut() -> Result<()>,
    limit: Duration,
    stop: &AtomicBool,
    turns: &AtomicU64,
) -> Result<Seen> {
    let mut seen = Seen {
        inside: histogram()?,
        outside: histogram()?,
        pauses: Vec::new(),
    };
    while !stop.load(Ordering::Relaxed) {
        let before = turns.load(Ordering::SeqCst);
        let begun = Instant::now();
        write()?;
        let took = Stretch::since(begun);
        // One that began and ended meanwhile counts, too.
        let met = is_running(before) || turns.load(Ordering::SeqCst) != before;
        let times = if met {
            &mut seen.inside
        } else {
            &mut seen.outside
        };
        times.saturating_record(u64::try_from(took.length().as_micros()).unwrap_or(u64::MAX));
        if took.length() > limit {
            seen.pauses.push((took, met));
        }
    }
    Ok(seen)
}

/// Takes checkpoint after checkpoint until the time is over, and returns when each ran.
fn checkpoints(
    load: &dyn WriteLoad,
    request: &Request<'_>,
    turns: &AtomicU64,
    told: &mut dyn FnMut(&str),
) -> Result<Vec<Stretch>> {
    let until = Instant::now() + request.duration;
    let mut all = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        interrupt::sleep(request.between.min(left))?;
        if Instant::now() >= until {
            return Ok(all);
        }
        let begun = Instant::now();
        turns.fetch_add(1, Ordering::SeqCst);
        load.checkpoint()?;
        turns.fetch_add(1, Ordering::SeqCst);
        let stretch = Stretch::since(begun);
        told(&format!(
            "checkpoint {} took {:.2} s, {:.0} s left",
            all.len() + 1,
            stretch.length().as_secs_f64(),
            until.saturating_duration_since(stretch.to).as_secs_f64()
        ));
        all.push(stretch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stress::load::write_load::Writer;

    /// Writers that wait as long as a checkpoint runs.
    struct Waits {
        checkpoint: std::sync::RwLock<()>,
        takes: Duration,
    }

    impl WriteLoad for Waits {
        fn title(&self) -> String {
            "test".to_owned()
        }

        fn writer(&self, _number: u64) -> Result<Writer<'_>> {
            Ok(Box::new(|| {
                let _waited = self.checkpoint.read();
                std::thread::sleep(Duration::from_micros(200));
                Ok(())
            }))
        }

        fn checkpoint(&self) -> Result<()> {
            let _stopped = self.checkpoint.write();
            std::thread::sleep(self.takes);
            Ok(())
        }
    }

    fn outcome(takes: Duration, limit: Duration) -> Outcome {
        let dir = tempfile::tempdir().expect("a directory");
        let load = Waits {
            checkpoint: std::sync::RwLock::default(),
            takes,
        };
        let request = Request {
            writers: 2,
            duration: Duration::from_secs(3),
            between: Duration::from_millis(100),
            limit,
            dir: dir.path(),
        };
        run(&load, &request, |_| {}).expect("it runs")
    }

    #[test]
    fn an_engine_that_stops_writers_is_found_out() {
        let outcome = outcome(Duration::from_millis(400), Duration::from_millis(100));
        assert!(outcome.pauses_inside.engine > 0, "{outcome}");
        assert!(!outcome.held(), "{outcome}");
        assert!(outcome.to_string().starts_with("NOT HELD"));
    }

    #[test]
    fn a_checkpoint_that_begins_and_ends_within_a_transaction_counts() {
        let (stop, turns) = (AtomicBool::new(false), AtomicU64::new(0));
        let mut write = || {
            turns.fetch_add(2, Ordering::SeqCst);
            stop.store(true, Ordering::Relaxed);
            Ok(())
        };
        let seen = write_and_see(&mut write, Duration::ZERO, &stop, &turns).expect("it runs");
        assert_eq!((seen.inside.len(), seen.outside.len()), (1, 0));
    }

    #[test]
    fn what_is_within_the_limit_is_no_pause() {
        // A limit that no machine exceeds, however busy.
        let outcome = outcome(Duration::from_millis(5), Duration::from_secs(60));
        let none = Pauses::default();
        assert_eq!(
            (outcome.pauses_inside, outcome.pauses_outside),
            (none, none)
        );
        assert!(outcome.checkpoints > 0 && !outcome.outside.is_empty());
    }
}
