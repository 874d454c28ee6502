//! Hostile input: arbitrary bytes for every decoder of the formats and for the whole engine.
//!
//! Whatever the bytes are, the engine must return an error or a value. It must not panic, and must not run forever.
//!
//! Inputs are mutations of a real database's bytes and of the inputs in `prove/corpus/`. Inputs that were findings stay
//! there.

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
use peregrine_harness::error::{PathContext, Result};

/// The target for whole files, which is no decoder: the files are checked, dumped, opened and read.
pub const FILES: &str = "files";
/// The time after which an execution counts as a loop that does not end.
const TOO_LONG: Duration = Duration::from_secs(60);
/// The number of findings after which a target is given up.
const MOST_FINDINGS: usize = 20;

/// The names of all targets.
pub fn targets() -> impl Iterator<Item = &'static str> {
    fuzz_entry::TARGETS.into_iter().chain([FILES])
}

/// A request for fuzzing.
#[derive(Clone, Debug)]
pub struct Request {
    /// One of [`targets`].
    pub target: &'static str,
    /// The longest time.
    pub duration: Duration,
    /// The most executions.
    pub executions: u64,
    /// The seed of the mutations.
    pub seed: u64,
    /// The directory of kept inputs, with one directory for each target.
    pub corpus: PathBuf,
    /// The directory for inputs that are findings.
    pub findings: PathBuf,
}

/// The result of fuzzing.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    target: &'static str,
    seed: u64,
    /// The number of inputs tried.
    pub executions: u64,
    /// The number of inputs that the target accepted.
    pub accepted: u64,
    /// The number of inputs that mutations started from.
    pub begun_with: usize,
    seconds: f64,
    /// The path of each input that is a finding, and its effect.
    pub findings: Vec<String>,
}

impl Outcome {
    /// Returns whether there were executions and no findings.
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
/// [`Interrupted`](peregrine_harness::error::HarnessError::Interrupted); when the inputs can't be read or a finding can't be written.
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
        // Each input is first tried unchanged.
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

/// Returns the directory of kept inputs in this checkout.
#[must_use]
pub fn corpus_directory() -> PathBuf {
    PathBuf::from("prove/corpus")
}

/// Writes inputs from a database for `prove/corpus/`: of every target, about one input for each length.
///
/// # Errors
/// Those of the engine and of the file system.
pub fn write_corpus(dir: &Path) -> Result<usize> {
    corpus::write(dir)
}
