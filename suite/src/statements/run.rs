//! Lives of servers, one after the other.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::life::Life;
use crate::error::{Result, SuiteError};
use crate::runner::interrupt;
use crate::target::hosted::Hosted;
use crate::target::Engine;

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Statements in all.
    pub statements: u64,
    /// No further life begins after this time.
    pub duration: Duration,
    /// Statements after which a server's life ends.
    pub statements_a_life: u64,
    /// Sessions, every other a judge.
    pub sessions: u32,
    /// The engine of all tables.
    pub engine: Engine,
    /// The first life's; the next ones have the next.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    engine: Option<Engine>,
    seed: u64,
    lives: u64,
    statements: u64,
    judged: u64,
    servers_own: u64,
    refused: u64,
    seconds: f64,
    /// What was wrong, with the seed of the life; in its last one.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Whether nothing was wrong, and something was looked at.
    #[must_use]
    pub fn held(&self) -> bool {
        self.faults.is_empty() && self.judged > 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: statements: {} in {} lives of a server with {}, {} refused; {} answers compared with those by other \
             plans, {} differ with InnoDB, too; {} faults; seed {}, {:.0} s",
            if self.held() { "held" } else { "NOT HELD" },
            self.statements,
            self.lives,
            self.engine.map_or("no engine", Engine::sql_name),
            self.refused,
            self.judged,
            self.servers_own,
            self.faults.len(),
            self.seed,
            self.seconds
        )
    }
}

/// Runs lives until there are enough statements, or one has a fault; `start` starts a server.
///
/// # Errors
/// When a server does not start, or tables can't be made; [`SuiteError::Interrupted`].
pub fn run(
    request: &Request,
    mut start: impl FnMut(&Life) -> Result<Hosted>,
    mut told: impl FnMut(&str),
) -> Result<Outcome> {
    interrupt::flag();
    let begun = Instant::now();
    let mut outcome = Outcome {
        engine: Some(request.engine),
        seed: request.seed,
        ..Outcome::default()
    };
    while outcome.statements < request.statements
        && outcome.faults.is_empty()
        && begun.elapsed() < request.duration
    {
        let life = Life::of(request.seed + outcome.lives, request.engine);
        let mut server = start(&life)?;
        let shared = life.play(request, &mut server)?;
        if interrupt::requested() {
            return Err(SuiteError::Interrupted);
        }
        outcome.lives += 1;
        outcome.statements += shared.statements.load(Ordering::Relaxed);
        outcome.judged += shared.judged.load(Ordering::Relaxed);
        outcome.servers_own += shared.servers_own.load(Ordering::Relaxed);
        outcome.refused += shared.refused.load(Ordering::Relaxed);
        outcome.seconds = begun.elapsed().as_secs_f64();
        let faults = shared.faults.into_inner().unwrap_or_default();
        if faults.is_empty() {
            server.remove()?;
        } else {
            let tail = server.log_tail();
            let seed = life.seed;
            outcome.faults = faults
                .iter()
                .map(|fault| format!("life {seed}: {fault}"))
                .collect();
            outcome
                .faults
                .push(format!("the server's log ends:\n{tail}"));
        }
        told(&format!(
            "{} of {} statements, {} lives",
            outcome.statements, request.statements, outcome.lives
        ));
    }
    Ok(outcome)
}
