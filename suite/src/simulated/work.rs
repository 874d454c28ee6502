//! How the proofs go through their workloads: shared out among threads, with progress and totals.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::image::Wrong;
use super::workload::Plan;
use crate::error::{Result, SuiteError};
use crate::runner::interrupt;

/// How often progress is told.
const TELL: Duration = Duration::from_secs(5);
/// Failures that are kept with their text.
const MOST_FAILURES: usize = 20;

/// The workloads of a proof, and who goes through them.
#[derive(Clone, Debug)]
pub struct Workloads {
    /// At least so many.
    pub count: u64,
    /// Only the workload of this number.
    pub only: Option<u64>,
    /// Seed of everything.
    pub seed: u64,
    /// Length of each, in percent.
    pub size: u32,
    /// Threads that work beside each other.
    pub threads: u32,
    /// Stops at the first failure.
    pub stop_when_found: bool,
}

impl Workloads {
    /// Whether the proof of a workload is to go on, with what it has found so far.
    ///
    /// # Errors
    /// [`SuiteError::Interrupted`] when the user wants to stop.
    pub fn go_on<F>(&self, outcome: &Outcome<F>) -> Result<bool> {
        match interrupt::requested() {
            true => Err(SuiteError::Interrupted),
            false => Ok(!self.found(&outcome.totals)),
        }
    }

    /// The options of a command that goes through this workload again.
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

/// What one proof counts, beside the [`Totals`] that all count.
pub trait Findings: Default + Send {
    /// The proof's name.
    const NAME: &'static str;
    /// What it tries.
    const TRIED: &'static str;

    /// Adds what other workloads gave.
    fn add(&mut self, other: Self);

    /// How much was tried.
    fn tried(&self) -> u64;

    /// Whether enough was tried to say anything.
    fn conclusive(&self) -> bool {
        self.tried() > 0
    }

    /// What was tried and what came of it, in a line.
    fn line(&self, totals: &Totals) -> String;
}

/// What all proofs count.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Workloads that ran.
    pub workloads: u64,
    /// Things tried that went wrong.
    pub wrong: u64,
    /// Those in which the engine panicked.
    pub panics: u64,
    /// Rows and tables that were lost in them.
    pub lost: u64,
    /// Rows and tables in them that nobody committed.
    pub phantom: u64,
    /// The first of them, with how to see them again.
    pub failures: Vec<String>,
}

/// What came of a proof.
#[derive(Clone, Debug, Default)]
pub struct Outcome<F> {
    /// What all proofs count.
    pub totals: Totals,
    /// What this one counts.
    pub findings: F,
    /// How long it took.
    pub took: Duration,
}

impl<F> Outcome<F> {
    /// Counts something that went wrong.
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
    /// Whether nothing was wrong, and enough was tried.
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

/// Calls `look` with one workload after the other, from several threads, until there are as many as
/// asked for and `enough` says so; tells how far it is every few seconds.
///
/// # Errors
/// The first of `look`; [`SuiteError::Interrupted`] when the user wants to stop.
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

/// Calls `work` with 0, 1, 2, … from several threads until `done`, asked with the next number, says
/// so; tells `progress` every few seconds.
fn share_out(
    threads: u32,
    done: impl Fn(u64) -> bool + Sync,
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
        None if interrupt::requested() => Err(SuiteError::Interrupted),
        None => Ok(()),
    }
}
