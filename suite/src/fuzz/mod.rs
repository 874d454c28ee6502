//! Hostile input: bytes that nobody ever wrote, given to every decoder of the formats and to the whole
//! engine. Whatever they are, the answer is an error or a value: no panic, and no end that never comes.
//!
//! Inputs are mutations of what a real database has, and of the inputs that are kept in
//! `suite/corpus/`: what once was a finding stays there.

mod corpus;
mod files;
mod mutation;

use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use peregrine::hostile;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::error::{PathContext, Result, SuiteError};
use crate::runner::interrupt;

/// The target that is no decoder: whole files, opened, checked, dumped and read.
pub const FILES: &str = "files";
/// An execution that takes longer has found something: a loop that does not end.
const TOO_LONG: Duration = Duration::from_secs(60);
/// Findings after which a target is given up.
const MOST_FINDINGS: usize = 20;

/// The names of all targets.
pub fn targets() -> impl Iterator<Item = &'static str> {
    hostile::TARGETS.into_iter().chain([FILES])
}

/// What to do.
#[derive(Clone, Debug)]
pub struct Request {
    /// One of [`targets`].
    pub target: &'static str,
    /// Ends after so long.
    pub duration: Duration,
    /// Ends after so many executions, if not before.
    pub executions: u64,
    /// Of the mutations.
    pub seed: u64,
    /// The directory of kept inputs, with one directory a target.
    pub corpus: PathBuf,
    /// Where inputs that are findings go.
    pub findings: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    target: &'static str,
    seed: u64,
    /// Inputs tried.
    pub executions: u64,
    /// Of these, how many were not refused at once.
    pub accepted: u64,
    /// Inputs that mutations began with.
    pub begun_with: usize,
    seconds: f64,
    /// Where the inputs are that were findings, and what they did.
    pub findings: Vec<String>,
}

impl Outcome {
    /// Whether nothing was found.
    #[must_use]
    pub fn held(&self) -> bool {
        self.findings.is_empty() && self.executions > 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: fuzz {}: {} executions in {:.0} s from {} inputs, {} accepted, {} findings; seed {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.target,
            self.executions,
            self.seconds,
            self.begun_with,
            self.accepted,
            self.findings.len(),
            self.seed
        )
    }
}

/// Runs one target.
///
/// # Errors
/// [`SuiteError::Interrupted`]; when the inputs can't be read or a finding can't be written.
pub fn run(request: &Request) -> Result<Outcome> {
    let began = Instant::now();
    let kept = corpus::kept(&request.corpus.join(request.target))?;
    let mut random = ChaCha8Rng::seed_from_u64(request.seed);
    let mut outcome = Outcome {
        target: request.target,
        seed: request.seed,
        ..Outcome::default()
    };
    if request.target == FILES {
        let sound = files::Sound::make()?;
        outcome.begun_with = 1;
        go_on(request, began, &mut outcome, |first| {
            let damage = match kept.get(first as usize) {
                Some(input) => input.clone(),
                None => files::damage(&sound, &mut random),
            };
            let accepted = catch_unwind(AssertUnwindSafe(|| files::try_out(&sound, &damage)));
            (damage, accepted.ok())
        })?;
    } else {
        let mut inputs = kept;
        inputs.extend(corpus::of_a_database(request.target)?);
        outcome.begun_with = inputs.len();
        go_on(request, began, &mut outcome, |n| {
            // Each input once as it is.
            let input = match inputs.get(n as usize) {
                Some(input) => input.clone(),
                None => mutation::of(&inputs, &mut random),
            };
            let accepted = catch_unwind(|| hostile::decode(request.target, &input));
            (input, accepted.ok())
        })?;
    }
    outcome.seconds = began.elapsed().as_secs_f64();
    Ok(outcome)
}

/// Executes until it is time to end. `execute` gives the input, and whether it was accepted; nothing
/// where it panicked.
fn go_on(
    request: &Request,
    began: Instant,
    outcome: &mut Outcome,
    mut execute: impl FnMut(u64) -> (Vec<u8>, Option<bool>),
) -> Result<()> {
    while outcome.executions < request.executions
        && began.elapsed() < request.duration
        && outcome.findings.len() < MOST_FINDINGS
    {
        if interrupt::requested() {
            return Err(SuiteError::Interrupted);
        }
        let start = Instant::now();
        let (input, accepted) = execute(outcome.executions);
        outcome.executions += 1;
        let what = match accepted {
            None => "panics",
            Some(_) if start.elapsed() > TOO_LONG => "takes more than a minute",
            Some(accepted) => {
                outcome.accepted += u64::from(accepted);
                continue;
            }
        };
        let path = keep(
            &request.findings,
            request.target,
            outcome.findings.len(),
            &input,
        )?;
        outcome.findings.push(format!("{} {what}", path.display()));
    }
    Ok(())
}

fn keep(dir: &Path, target: &str, n: usize, input: &[u8]) -> Result<PathBuf> {
    std::fs::create_dir_all(dir).at("cannot create", dir)?;
    let path = dir.join(format!("{target}-{n}"));
    std::fs::write(&path, input).at("cannot write", &path)?;
    Ok(path)
}

/// The kept inputs' directory in this checkout.
#[must_use]
pub fn corpus_directory() -> PathBuf {
    PathBuf::from("suite/corpus")
}

/// Writes inputs of every target taken from a database, for `suite/corpus/`: of each length about one.
///
/// # Errors
/// Those of the engine and of writing.
pub fn write_corpus(dir: &Path) -> Result<usize> {
    corpus::write(dir)
}
