//! Many schedules, in several processes.
//!
//! A process draws its knobs once, and the leftovers of a failed schedule end with its process.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::Signal;

use super::plan::Ending;
use super::play::play;
use peregrine_harness::error::{HarnessError, PathContext, Result};
use peregrine_harness::errors_told;
use peregrine_harness::interrupt;

/// The interval between progress messages.
const TELL: Duration = Duration::from_secs(10);
/// The maximum number of failures that are kept with their text.
const MOST_FAILURES: usize = 20;

/// A request to play schedules.
#[derive(Clone, Debug)]
pub struct Request {
    /// The seed: the knobs and schedules of each process follow from it.
    pub seed: u64,
    /// No process starts after this many schedules.
    pub schedules: u64,
    /// No process starts after this time.
    pub duration: Duration,
    /// Schedules of one process.
    pub in_process: u64,
    /// The number of the first process: a run goes on where an earlier one with the same seed was interrupted.
    pub first_process: u64,
    /// The number of processes at a time.
    pub processes: u32,
    /// Whether to stop at the first failure.
    pub stop_when_found: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Schedules that passed or failed.
    pub schedules: u64,
    /// Schedules with a power loss, whether after a failed call or not.
    pub crashes: u64,
    /// The schedule points that they passed.
    pub points: u64,
    /// How often the turn passed to another thread.
    pub turns: u64,
    /// How often a fault occurred at a point of the engine.
    pub struck: u64,
    /// Schedules that failed.
    pub failed: u64,
    /// The first failures, with the command that repeats each.
    pub failures: Vec<String>,
    /// The number of the first process that did not end.
    pub next_process: u64,
    /// The elapsed time.
    pub took: Duration,
}

impl Outcome {
    /// Returns whether nothing failed and at least one schedule was played.
    #[must_use]
    pub fn held(&self) -> bool {
        self.failed == 0 && self.schedules > 0
    }

    /// Counts a schedule that passed or failed.
    fn played(&mut self, seed: u64) {
        self.schedules += 1;
        self.crashes += u64::from(Ending::of(seed) != Ending::Closed);
    }

    fn fail(&mut self, text: String) {
        self.failed += 1;
        if self.failures.len() < MOST_FAILURES {
            self.failures.push(text);
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: schedules: {} of the whole engine, {} of them with a crash, {} failed; {} points, {} turns, {} \
             failures at points; seed {}; {:.0} s",
            if self.held() { "held" } else { "NOT HELD" },
            self.schedules,
            self.crashes,
            self.failed,
            self.points,
            self.turns,
            self.struck,
            self.seed,
            self.took.as_secs_f64()
        )
    }
}

/// Plays schedules in processes of this program, until there are as many as asked for, the time is over, or the user
/// interrupts the run.
///
/// # Errors
/// [`HarnessError::Io`] when no process can be started.
pub fn run(request: &Request, mut told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let begun = Instant::now();
    let all = Mutex::new(Outcome {
        seed: request.seed,
        ..Outcome::default()
    });
    let next = AtomicU64::new(request.first_process);
    let unfinished = Mutex::new(BTreeSet::new());
    let is_over = || {
        let all = all.lock();
        interrupt::requested()
            || begun.elapsed() >= request.duration
            || all.schedules >= request.schedules
            || request.stop_when_found && all.failed > 0
    };
    let work = |processor: u32| -> Result<()> {
        while !is_over() {
            let process = next.fetch_add(1, Ordering::Relaxed);
            unfinished.lock().insert(process);
            if one_process(request, process, processor, &all)? {
                unfinished.lock().remove(&process);
            }
        }
        Ok(())
    };
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..request.processes.max(1))
            .map(|processor| scope.spawn(move || work(processor)))
            .collect();
        let (mut last, mut known) = (Instant::now(), 0);
        while !workers.iter().all(|worker| worker.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            for failure in &all.lock().failures[known..] {
                told(&format!("  {failure}"));
                known += 1;
            }
            if last.elapsed() >= TELL {
                let mut all = all.lock();
                all.took = begun.elapsed();
                told(&format!("so far {all}"));
                last = Instant::now();
            }
        }
        workers.into_iter().try_for_each(|worker| {
            let outcome = worker.join();
            outcome.unwrap_or_else(|_| Err(HarnessError::Workload("a worker panicked".into())))
        })
    })?;
    let mut outcome = all.into_inner();
    let first = unfinished.into_inner().first().copied();
    outcome.next_process = first.unwrap_or(next.into_inner());
    outcome.took = begun.elapsed();
    Ok(outcome)
}

/// Returns the seed of the knobs and of the first schedule of a process.
fn seeds(request: &Request, process: u64) -> (u64, u64) {
    let knobs = request.seed.wrapping_mul(1_000_003).wrapping_add(process);
    (knobs, knobs.wrapping_mul(1_000_000))
}

fn start(request: &Request, knobs: u64, first: u64, processor: u32) -> Result<Child> {
    let program =
        std::env::current_exe().at("cannot find", std::path::Path::new("this program"))?;
    Command::new(&program)
        .arg("schedules-here")
        .args(["--first", &first.to_string()])
        .args(["--schedules", &request.in_process.to_string()])
        .args(["--processor", &processor.to_string()])
        .env("PEREGRINE_SHAKEN", knobs.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .at("cannot start", &program)
}

/// Runs one process, which plays its schedules and ends after the first that fails.
///
/// Returns false if the user's interrupt ended it.
fn one_process(
    request: &Request,
    process: u64,
    processor: u32,
    all: &Mutex<Outcome>,
) -> Result<bool> {
    let (knobs, first) = seeds(request, process);
    let mut child = start(request, knobs, first, processor)?;
    let mut current = first;
    // Only this build has the action.
    let program = std::env::current_exe().unwrap_or_else(|_| "peregrine-prove".into());
    let again = |seed: u64| {
        let program = program.display();
        format!("PEREGRINE_SHAKEN={knobs} {program} schedules-here --first {seed}")
    };
    let lines = child.stdout.take().map(BufReader::new);
    for line in lines
        .into_iter()
        .flat_map(BufRead::lines)
        .map_while(std::io::Result::ok)
    {
        if interrupt::requested() {
            let _ = child.kill();
        }
        let mut words = line.splitn(5, ' ');
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        let mut all = all.lock();
        match line.as_bytes().first() {
            Some(b'0'..=b'9') => current = number().unwrap_or(current),
            Some(b' ') => {
                all.played(current);
                let _ = number();
                all.points += number().unwrap_or(0);
                all.turns += number().unwrap_or(0);
                all.struck += number().unwrap_or(0);
            }
            _ => {
                all.played(current);
                all.fail(format!("{}\n    {line}", again(current)));
            }
        }
    }
    let status = child
        .wait()
        .at("cannot wait for", std::path::Path::new("a process"))?;
    // The terminal interrupts all processes of the run, perhaps this one last.
    let by_user = [Signal::INT, Signal::TERM].map(|signal| Some(signal.as_raw()));
    let interrupted = interrupt::requested() || by_user.contains(&status.signal());
    let told = status.code().is_some_and(|code| code <= 1);
    if !told && !interrupted {
        let mut all = all.lock();
        all.played(current);
        all.fail(format!("{}\n    ended by {status}", again(current)));
    }
    Ok(told || !interrupted)
}

/// Binds this process to one processor, if there are so many, so that passing the turn wakes no other processor.
pub fn stay_on(processor: u32) {
    let mut only = rustix::thread::CpuSet::new();
    only.set(processor as usize);
    // Without binding, the schedules are as right, but slower.
    let _ = rustix::thread::sched_setaffinity(None, &only);
}

/// Plays schedules in this process, and ends after the first that fails.
///
/// Returns whether all passed.
///
/// For each schedule it reports the seed at the beginning, and at the end the points, turns and faults, or the error.
pub fn here(first: u64, schedules: u64, mut told: impl FnMut(&str)) -> bool {
    errors_told::keep();
    for seed in first..first.saturating_add(schedules) {
        told(&seed.to_string());
        match play(seed) {
            Ok(passed) => told(&format!(
                " {} {} {} {:016x}",
                passed.points, passed.turns, passed.struck, passed.trace
            )),
            Err(wrong) => {
                told(&format!("failed: {}", wrong.replace('\n', "; ")));
                return false;
            }
        }
    }
    true
}
