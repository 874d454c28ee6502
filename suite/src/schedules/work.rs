//! Many schedules, in processes: knobs are drawn once in a process, and what a failed schedule leaves behind goes
//! with its process.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::plan::Ending;
use super::play::play;
use crate::error::{PathContext, Result, SuiteError};
use crate::errors_told;
use crate::runner::interrupt;

/// How often progress is told.
const TELL: Duration = Duration::from_secs(10);
/// Failures that are kept with their text.
const MOST_FAILURES: usize = 20;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// Seed of all: each process has knobs and schedules that follow from it.
    pub seed: u64,
    /// No process begins after so many schedules.
    pub schedules: u64,
    /// No process begins after this time.
    pub duration: Duration,
    /// Schedules of one process.
    pub in_process: u64,
    /// Processes beside each other.
    pub processes: u32,
    /// Ends with the first failure.
    pub stop_when_found: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Schedules that went through or failed.
    pub schedules: u64,
    /// Those in which power was lost, after a call had failed or without.
    pub crashes: u64,
    /// Points that they passed.
    pub points: u64,
    /// How often the turn went to another thread.
    pub turns: u64,
    /// How often something failed at a point of the engine.
    pub struck: u64,
    /// How many failed.
    pub failed: u64,
    /// The first of them, with how to see them again.
    pub failures: Vec<String>,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// Whether nothing failed, and something was tried.
    #[must_use]
    pub fn held(&self) -> bool {
        self.failed == 0 && self.schedules > 0
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

/// Plays schedules in processes of this program, until there are as many as asked for, or time is over.
///
/// # Errors
/// [`SuiteError::Io`] when no process can be started; [`SuiteError::Interrupted`] when the user wants to stop.
pub fn run(request: &Request, mut told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let begun = Instant::now();
    let all = Mutex::new(Outcome {
        seed: request.seed,
        ..Outcome::default()
    });
    let next = AtomicU64::new(0);
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
            one_process(request, process, processor, &all)?;
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
            outcome.unwrap_or_else(|_| Err(SuiteError::Workload("a worker panicked".into())))
        })
    })?;
    if interrupt::requested() {
        return Err(SuiteError::Interrupted);
    }
    let mut outcome = all.into_inner();
    outcome.took = begun.elapsed();
    Ok(outcome)
}

/// The knobs and the first schedule of a process.
fn seeds(request: &Request, process: u64) -> (u64, u64) {
    let knobs = request.seed.wrapping_mul(1_000_003).wrapping_add(process);
    (knobs, knobs.wrapping_mul(1_000_000))
}

fn start(request: &Request, knobs: u64, first: u64, processor: u32) -> Result<Child> {
    let program = std::env::current_exe().at("find", std::path::Path::new("this program"))?;
    Command::new(&program)
        .args(["bench", "schedules-here"])
        .args(["--first", &first.to_string()])
        .args(["--schedules", &request.in_process.to_string()])
        .args(["--processor", &processor.to_string()])
        .env("PEREGRINE_SHAKEN", knobs.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .at("start", &program)
}

/// Lets one process play its schedules; the first that fails ends it.
fn one_process(
    request: &Request,
    process: u64,
    processor: u32,
    all: &Mutex<Outcome>,
) -> Result<()> {
    let (knobs, first) = seeds(request, process);
    let mut child = start(request, knobs, first, processor)?;
    let mut current = first;
    let again = |seed: u64| {
        format!("PEREGRINE_SHAKEN={knobs} peregrine bench schedules-here --first {seed}")
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
            Some(b'0'..=b'9') => {
                current = number().unwrap_or(current);
                all.schedules += 1;
                all.crashes += u64::from(Ending::of(current) != Ending::Closed);
            }
            Some(b' ') => {
                let _ = number();
                all.points += number().unwrap_or(0);
                all.turns += number().unwrap_or(0);
                all.struck += number().unwrap_or(0);
            }
            _ => all.fail(format!("{}\n    {line}", again(current))),
        }
    }
    let status = child
        .wait()
        .at("wait for", std::path::Path::new("a process"))?;
    let told = status.code().is_some_and(|code| code <= 1);
    if !told && !interrupt::requested() {
        all.lock()
            .fail(format!("{}\n    ended by {status}", again(current)));
    }
    Ok(())
}

/// Keeps this process on one processor, where there are so many: who passes the turn then need not wake another one.
pub fn stay_on(processor: u32) {
    let mut only = rustix::thread::CpuSet::new();
    only.set(processor as usize);
    // Without it all is as right, and slower.
    let _ = rustix::thread::sched_setaffinity(None, &only);
}

/// Plays schedules in this process, and tells of each: its seed before; points, turns and failures at points after, or
/// what is wrong. Whether all went through; the first that does not ends it.
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
