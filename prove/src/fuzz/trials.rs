//! Tries inputs one after another on a separate thread, so that an execution that never ends is a finding, too.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{
    RecvTimeoutError, Sender, {self},
};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// How often [`run`] checks the trials.
const LOOK: Duration = Duration::from_millis(100);

/// The limits of the trials; the first one reached ends them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The time for all executions.
    pub duration: Duration,
    /// The number of executions.
    pub executions: u64,
    /// The number of findings.
    pub findings: usize,
    /// The time for one execution; a longer one is a finding, and the last.
    pub one: Duration,
}

/// An input, and its forbidden effect.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The input.
    pub input: Arc<Vec<u8>>,
    /// The effect, as a verb.
    pub what: &'static str,
}

/// The result of the trials.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    /// The number of inputs tried.
    pub executions: u64,
    /// The number of inputs that were accepted.
    pub accepted: u64,
    /// The findings.
    pub findings: Vec<Finding>,
}

/// The state that the thread of the trials shares with [`run`].
#[derive(Default)]
struct Progress {
    executions: AtomicU64,
    accepted: AtomicU64,
    end: AtomicBool,
    /// The current input, and when its execution began.
    trial: Mutex<Option<(Instant, Arc<Vec<u8>>)>>,
}

impl Progress {
    fn set_trial(&self, trial: Option<(Instant, Arc<Vec<u8>>)>) {
        *self.trial.lock().unwrap_or_else(PoisonError::into_inner) = trial;
    }

    fn overdue(&self, limit: Duration) -> Option<Arc<Vec<u8>>> {
        let trial = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, input) = trial.as_ref()?;
        (since.elapsed() > limit).then(|| Arc::clone(input))
    }
}

/// Tries inputs: `make` makes the n-th one, and `execute` returns whether the target accepted it.
///
/// An execution that does not end keeps its thread until the process ends, because nothing can stop a thread.
///
/// # Errors
/// [`HarnessError::Interrupted`].
pub fn run(
    limits: Limits,
    make: impl FnMut(u64) -> Vec<u8> + Send + 'static,
    execute: impl Fn(&[u8]) -> bool + Send + 'static,
) -> Result<Tried> {
    let progress = Arc::new(Progress::default());
    let (send, findings) = mpsc::channel();
    let of_thread = Arc::clone(&progress);
    thread::spawn(move || go_on(limits, &of_thread, &send, make, execute));
    let mut tried = Tried::default();
    loop {
        match findings.recv_timeout(LOOK) {
            Ok(finding) => tried.findings.push(finding),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt::requested() {
            progress.end.store(true, Ordering::Relaxed);
            // The caller keeps what was found, and ends with the next target.
            tried.findings.extend(findings.try_iter());
            if tried.findings.is_empty() {
                return Err(HarnessError::Interrupted);
            }
            break;
        }
        if tried.findings.len() >= limits.findings {
            progress.end.store(true, Ordering::Relaxed);
        }
        if let Some(input) = progress.overdue(limits.one) {
            progress.end.store(true, Ordering::Relaxed);
            let what = "does not end";
            tried.findings.push(Finding { input, what });
            break;
        }
    }
    tried.executions = progress.executions.load(Ordering::Relaxed);
    tried.accepted = progress.accepted.load(Ordering::Relaxed);
    Ok(tried)
}

fn go_on(
    limits: Limits,
    progress: &Progress,
    findings: &Sender<Finding>,
    mut make: impl FnMut(u64) -> Vec<u8>,
    execute: impl Fn(&[u8]) -> bool,
) {
    let began = Instant::now();
    let mut n = 0;
    while n < limits.executions
        && began.elapsed() < limits.duration
        && !progress.end.load(Ordering::Relaxed)
    {
        let input = Arc::new(make(n));
        progress.set_trial(Some((Instant::now(), Arc::clone(&input))));
        let accepted = catch_unwind(AssertUnwindSafe(|| execute(&input)));
        progress.set_trial(None);
        n += 1;
        progress.executions.store(n, Ordering::Relaxed);
        match accepted {
            Ok(accepted) => {
                progress
                    .accepted
                    .fetch_add(u64::from(accepted), Ordering::Relaxed);
            }
            Err(_) => {
                let what = "panics";
                // The receiver is gone if `run` has given up the trials.
                let _ = findings.send(Finding { input, what });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        duration: Duration::from_secs(3600),
        executions: 100,
        findings: 3,
        one: Duration::from_secs(3600),
    };

    fn number(n: u64) -> Vec<u8> {
        n.to_le_bytes().to_vec()
    }

    #[test]
    fn trials_are_counted() {
        let tried = run(LIMITS, number, |input| input[0] % 4 == 0).unwrap();
        assert_eq!((tried.executions, tried.accepted), (100, 25));
        assert!(tried.findings.is_empty());
    }

    #[test]
    fn an_input_that_panics_is_a_finding_and_the_others_are_tried() {
        let tried = run(LIMITS, number, |input| {
            assert!(input[0] != 7, "seven");
            true
        })
        .unwrap();
        assert_eq!((tried.executions, tried.accepted), (100, 99));
        assert_eq!(tried.findings.len(), 1);
        assert_eq!(*tried.findings[0].input, number(7));
    }

    #[test]
    fn an_input_whose_execution_never_ends_is_a_finding() {
        let limits = Limits {
            one: Duration::from_millis(200),
            ..LIMITS
        };
        let tried = run(limits, number, |input| {
            if input[0] == 9 {
                loop {
                    thread::park();
                }
            }
            true
        })
        .unwrap();
        assert_eq!(tried.executions, 9);
        assert_eq!(tried.findings.len(), 1);
        assert_eq!(*tried.findings[0].input, number(9));
    }
}
