//! The runner of the proofs: distributes the workloads to threads, and reports progress and totals.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::image::Wrong;
use super::workload::Plan;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// The interval between progress messages.
const TELL: Duration = Duration::from_secs(5);
/// The maximum number of failures that are kept with their text.
const MOST_FAILURES: usize = 20;

/// The workloads of a proof, and the threads that run them.
#[derive(Clone, Debug)]
pub struct Workloads {
    /// The minimum number of workloads.
    pub count: u64,
    /// Only the workload with this number.
    pub only: Option<u64>,
    /// The seed of everything.
    pub seed: u64,
    /// The length of each workload, in percent.
    pub size: u32,
    /// The number of threads.
    pub threads: u32,
    /// Whether to stop at the first failure.
    pub stop_when_found: bool,
}

impl Workloads {
    /// Returns whether the proof of a workload should continue after its findings so far.
    ///
    /// # Errors
    /// [`HarnessError::Interrupted`] when the user stops it.
    pub fn go_on<F>(&self, outcome: &Outcome<F>) -> Result<bool> {
        match interrupt::requested() {
            true => Err(HarnessError::Interrupted),
            false => Ok(!self.found(&outcome.totals)),
        }
    }

    /// Returns the options of a command that runs this workload again.
    #[must_use]
    pub fn again(&self, plan: &Plan) -> String {
        format!(
            "--seed {} --size {} --workload {}",
            self.seed, self.size, plan.number
        )
    }

    fn found(&self, totals: &Totals) -> bool {
        self.stop_when_found && totals.wrong > 0
    }
}

/// The counts of one proof, in addition to the [`Totals`] of all proofs.
pub trait Findings: Default + Send {
    /// The proof's name.
    const NAME: &'static str;
    /// The unit that it counts, for messages.
    const TRIED: &'static str;

    /// Adds the findings from other workloads.
    fn add(&mut self, other: Self);

    /// Returns how much the proof has tried.
    fn tried(&self) -> u64;

    /// Returns whether the proof has tried enough for a result.
    fn conclusive(&self) -> bool {
        self.tried() > 0
    }

    /// Returns one line with the counts.
    fn line(&self, totals: &Totals) -> String;
}

/// The counts of every proof.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Workloads that ran.
    pub workloads: u64,
    /// Attempts that failed.
    pub wrong: u64,
    /// Failures in which the engine panicked.
    pub panics: u64,
    /// Rows and tables lost in the failures.
    pub lost: u64,
    /// Rows and tables in the failures that no transaction committed.
    pub phantom: u64,
    /// The first failures, with the command that repeats each.
    pub failures: Vec<String>,
}

/// The outcome of a proof.
#[derive(Clone, Debug, Default)]
pub struct Outcome<F> {
    /// The counts of every proof.
    pub totals: Totals,
    /// The counts of this proof.
    pub findings: F,
    /// The elapsed time.
    pub took: Duration,
}

impl<F> Outcome<F> {
    /// Counts a failure.
    pub fn fail(&mut self, wrong: &Wrong, text: impl FnOnce() -> String) {
        let totals = &mut self.totals;
        totals.wrong += 1;
        match wrong {
            Wrong::Panics(_) => totals.panics += 1,
            Wrong::Differs(difference) => {
                totals.lost += difference.lost;
                totals.phantom += difference.phantom;
            }
            Wrong::Fails(_) | Wrong::Unsound(_) => {}
        }
        if totals.failures.len() < MOST_FAILURES {
            totals.failures.push(text());
        }
    }
}

impl<F: Findings> Outcome<F> {
    /// Returns whether nothing failed and enough was tried.
    #[must_use]
    pub fn held(&self) -> bool {
        self.totals.wrong == 0 && self.findings.conclusive()
    }

    fn add(&mut self, other: Self) {
        let (totals, others) = (&mut self.totals, other.totals);
        totals.workloads += others.workloads;
        totals.wrong += others.wrong;
        totals.panics += others.panics;
        totals.lost += others.lost;
        totals.phantom += others.phantom;
        totals.failures.extend(others.failures);
        totals.failures.truncate(MOST_FAILURES);
        self.findings.add(other.findings);
    }

    fn progress(&self) -> String {
        format!(
            "{} {} of {} workloads so far, {} wrong",
            self.findings.tried(),
            F::TRIED,
            self.totals.workloads,
            self.totals.wrong
        )
    }
}

impl<F: Findings> fmt::Display for Outcome<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: {}; {:.0} s",
            if self.held() { "held" } else { "NOT HELD" },
            F::NAME,
            self.findings.line(&self.totals),
            self.took.as_secs_f64()
        )
    }
}

/// Calls `look` with one workload after the other, from several threads, until there are as many as requested and
/// `enough` returns true.
///
/// Reports progress every few seconds.
///
/// # Errors
/// The first error of `look`; [`HarnessError::Interrupted`] when the user stops it.
pub fn prove<F: Findings>(
    workloads: &Workloads,
    enough: impl Fn(&F) -> bool + Sync,
    look: impl Fn(&Plan, &mut Outcome<F>) -> Result<()> + Sync,
    told: impl FnMut(&str),
) -> Result<Outcome<F>> {
    interrupt::flag();
    let begun = Instant::now();
    let all = Mutex::new(Outcome::default());
    let done = |number: u64| {
        let all = all.lock();
        workloads.found(&all.totals)
            || match workloads.only {
                Some(_) => number > 0,
                None => number >= workloads.count && enough(&all.findings),
            }
    };
    let work = |number: u64| {
        let number = workloads.only.unwrap_or(number);
        let mut outcome = Outcome::default();
        outcome.totals.workloads = 1;
        look(
            &Plan::new(workloads.seed, number, workloads.size),
            &mut outcome,
        )?;
        all.lock().add(outcome);
        Ok(())
    };
    let progress = || all.lock().progress();
    share_out(workloads.threads, done, work, progress, told)?;
    let mut outcome = all.into_inner();
    outcome.took = begun.elapsed();
    Ok(outcome)
}

/// Calls `work` with 0, 1, 2, … from several threads until `done` returns true for the next number.
///
/// Reports `progress` every few seconds.
fn share_out(
    threads: u32,
    done: impl Fn(u64) -> bool + Sync,
    work: impl Fn(u64) -> Result<()> + Sync,
    progress: impl Fn() -> String,
    mut told: impl FnMut(&str),
) -> Result<()> {
    let next = AtomicU64::new(0);
    let failed: Mutex<Option<HarnessError>> = Mutex::new(None);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                scope.spawn(|| loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if done(number) || interrupt::requested() || failed.lock().is_some() {
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
        None if interrupt::requested() => Err(HarnessError::Interrupted),
        None => Ok(()),
    }
}
