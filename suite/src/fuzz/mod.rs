//! Hostile input: bytes that nobody ever wrote, given to every decoder of the formats and to the whole
//! engine. Whatever they are, the answer is an error or a value: no panic, and no end that never comes.
//!
//! Inputs are mutations of what a real database has, and of the inputs that are kept in
//! `suite/corpus/`: what once was a finding stays there.

mod corpus;
mod files;
mod mutation;
mod trials;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::fuzz_entry;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use self::trials::Limits;
use crate::error::{PathContext, Result};

/// The target that is no decoder: whole files, opened, checked, dumped and read.
pub const FILES: &str = "files";
/// An execution that takes longer has found something: a loop that does not end.
const TOO_LONG: Duration = Duration::from_secs(60);
/// Findings after which a target is given up.
const MOST_FINDINGS: usize = 20;

/// The names of all targets.
pub fn targets() -> impl Iterator<Item = &'static str> {
    fuzz_entry::TARGETS.into_iter().chain([FILES])
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
/// [`Interrupted`](crate::error::SuiteError::Interrupted); when the inputs can't be read or a finding can't be written.
pub fn run(request: &Request) -> Result<Outcome> {
    let began = Instant::now();
    let kept = corpus::kept(&request.corpus.join(request.target))?;
    let mut random = ChaCha8Rng::seed_from_u64(request.seed);
    let mut outcome = Outcome {
        target: request.target,
        seed: request.seed,
        ..Outcome::default()
    };
    let limits = Limits {
        duration: request.duration,
        executions: request.executions,
        findings: MOST_FINDINGS,
        one: TOO_LONG,
    };
    let tried = if request.target == FILES {
        let sound = Arc::new(files::Sound::make()?);
        let damaged = Arc::clone(&sound);
        outcome.begun_with = 1;
        let make = move |n| match kept.get(n as usize) {
            Some(input) => input.clone(),
            None => files::damage(&sound, &mut random),
        };
        trials::run(limits, make, move |input| files::try_out(&damaged, input))?
    } else {
        let mut inputs = kept;
        inputs.extend(corpus::of_a_database(request.target)?);
        outcome.begun_with = inputs.len();
        // Each input once as it is.
        let make = move |n| match inputs.get(n as usize) {
            Some(input) => input.clone(),
            None => mutation::of(&inputs, &mut random),
        };
        let target = request.target;
        trials::run(limits, make, move |input| fuzz_entry::decode(target, input))?
    };
    outcome.seconds = began.elapsed().as_secs_f64();
    outcome.executions = tried.executions;
    outcome.accepted = tried.accepted;
    for (n, finding) in tried.findings.iter().enumerate() {
        let path = keep(&request.findings, request.target, n, &finding.input)?;
        let text = format!("{} {}", path.display(), finding.what);
        outcome.findings.push(text);
    }
    Ok(outcome)
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
