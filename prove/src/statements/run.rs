//! Lives of servers, one after the other.

use std::fmt;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::life::Life;
use super::request::Request;
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::Result;
use peregrine_harness::interrupt;

/// The maximum number of differing answers that may stay undecided: a redefinition at the wrong moment loses the rows.
const FEW_UNDECIDED: u64 = 2;
/// In a long run, one undecided answer is allowed for this many decided ones.
const DECIDED_TO_UNDECIDED: u64 = 10;

/// The outcome of a run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    engine: Option<Engine>,
    seed: u64,
    lives: u64,
    statements: u64,
    judged: u64,
    servers_own: u64,
    /// See [`Shared::undecided`](super::shared::Shared::undecided).
    pub undecided: Vec<String>,
    refused: u64,
    seconds: f64,
    /// Whether the user stopped it early.
    pub interrupted: bool,
    /// The faults of the last life, with its seed.
    pub faults: Vec<String>,
}

impl Outcome {
    /// Returns whether there was no fault, answers were judged, and few stayed undecided.
    #[must_use]
    pub fn held(&self) -> bool {
        let undecided = self.undecided.len() as u64;
        let few = FEW_UNDECIDED.max(self.servers_own / DECIDED_TO_UNDECIDED);
        self.faults.is_empty() && self.judged > 0 && undecided <= few
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.held() {
            _ if self.interrupted && self.faults.is_empty() => "interrupted",
            true => "held",
            false => "NOT HELD",
        };
        write!(
            f,
            "{verdict}: statements: {} in {} lives of a server with {}, {} refused; {} answers compared with those by other \
             plans, {} differ with InnoDB, too, {} differ and could not be asked again; {} faults; seed {}, {:.0} s",
            self.statements,
            self.lives,
            self.engine.map_or("no engine", Engine::sql_name),
            self.refused,
            self.judged,
            self.servers_own,
            self.undecided.len(),
            self.faults.len(),
            self.seed,
            self.seconds
        )
    }
}

/// Runs lives until there are enough statements, a life has a fault, or the user stops it; `start` starts a server.
///
/// A life that the user stops ends early, with all checks.
///
/// # Errors
/// When a server does not start, or tables can't be created.
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
        && !outcome.interrupted
        && begun.elapsed() < request.duration
    {
        let life = Life::of(request.seed + outcome.lives, request.engine);
        let mut server = start(&life)?;
        let shared = life.play(request, &mut server)?;
        outcome.lives += 1;
        outcome.statements += shared.statements.load(Ordering::Relaxed);
        outcome.judged += shared.judged.load(Ordering::Relaxed);
        outcome.servers_own += shared.servers_own.load(Ordering::Relaxed);
        outcome.refused += shared.refused.load(Ordering::Relaxed);
        outcome.seconds = begun.elapsed().as_secs_f64();
        for told in server.engine_errors() {
            shared.wrong(told);
        }
        let undecided = shared.undecided.into_inner().unwrap_or_default();
        for what in &undecided {
            told(&format!("life {}, undecided: {what}", life.seed));
        }
        outcome.undecided.extend(undecided);
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
        outcome.interrupted = interrupt::requested();
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_nobody_could_judge_are_few_or_it_does_not_hold() {
        let mut outcome = Outcome {
            judged: 1_000,
            undecided: vec!["a query".into(); 2],
            ..Outcome::default()
        };
        assert!(outcome.held());
        outcome.undecided.push("another".into());
        assert!(!outcome.held());
        assert!(outcome.to_string().contains("3 differ and could not"));
        outcome.servers_own = 30;
        assert!(outcome.held(), "one in ten");
        outcome.judged = 0;
        assert!(!outcome.held());
    }

    #[test]
    fn what_is_interrupted_tells_a_fault_all_the_same() {
        let mut outcome = Outcome {
            judged: 1_000,
            interrupted: true,
            ..Outcome::default()
        };
        assert!(outcome.to_string().starts_with("interrupted: "));
        outcome.faults.push("an answer".into());
        assert!(outcome.to_string().starts_with("NOT HELD: "));
    }
}
