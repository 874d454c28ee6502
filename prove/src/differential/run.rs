//! Runs many scripts and sums up the results.

use std::fmt;

use super::author::Author;
use super::interleaved::{interleaved, tables_of_sessions};
use super::pair::Played;
use super::play::play;
use super::schema::{tables, Table};
use super::shrink::shrunk;
use super::{KILL, STOP};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::Hosted;
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::interrupt;

/// The approximate number of statements in a script.
const SCRIPT: usize = 120;
/// In one of this many scripts, the server is killed or stopped twice.
const RESTARTED: u64 = 40;
/// How often a shortened script is tried.
const TRIES: u32 = 400;
/// At least one in this many statements must succeed, or the comparison says little.
const LEAST_DONE: u64 = 3;

/// Of the statements of sessions, at most one in `MOST_MET` may be refused because of another session.
///
/// At most one in `MOST_MET_IN_PEREGRINE`, and `FEW` more, may be refused by Peregrine alone. Above the first limit,
/// too few transactions reach their end. Above the second one, Peregrine may lock more than it should.
const MOST_MET: u64 = 4;
const MOST_MET_IN_PEREGRINE: u64 = 50;
const FEW: u64 = 5;

/// The number of statements, and the seed.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The number of statements.
    pub statements: u64,
    /// The seed of tables and statements.
    pub seed: u64,
    /// The number of the first script; a script's number reproduces it.
    pub first: u64,
    /// The number of scripts with a difference after which the run ends.
    pub most_different: u32,
}

/// The result of the run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    played: Played,
    scripts: u64,
    seed: u64,
    /// For each difference, its description and then the statements of its script.
    pub different: Vec<Vec<String>>,
}

impl Outcome {
    /// Returns whether nothing differs, and enough statements succeeded to prove it.
    #[must_use]
    pub fn held(&self) -> bool {
        let Played {
            statements,
            refused,
            changed,
            rows,
            by_index,
            of_sessions,
            met_in_both,
            met_in_innodb,
            met_in_peregrine,
            ..
        } = self.played;
        let done = statements - refused;
        let is_enough = changed > 0 && rows > 0 && by_index > 0;
        let met = met_in_both + met_in_innodb + met_in_peregrine;
        let is_apart = met <= of_sessions / MOST_MET;
        let is_by_locks = met_in_peregrine <= of_sessions / MOST_MET_IN_PEREGRINE + FEW;
        self.different.is_empty()
            && is_enough
            && is_apart
            && is_by_locks
            && done >= statements / LEAST_DONE
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let played = &self.played;
        write!(
            f,
            "{}: differential: {} scripts with tables of their own, {} statements on InnoDB and on Peregrine, {} by the binary \
             protocol, {} refused by both, {} kills and stops, {} rows changed, {} rows compared, {} readings by an \
             index; {} statements of three sessions, {} refused for another session by both engines, {} by InnoDB alone, {} by \
             Peregrine alone; {} answers where InnoDB \
             is against the manual; {} differences; seed {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.scripts,
            played.statements,
            played.binary,
            played.refused,
            played.restarts,
            played.changed,
            played.rows,
            played.by_index,
            played.of_sessions,
            played.met_in_both,
            played.met_in_innodb,
            played.met_in_peregrine,
            played.by_manual,
            self.different.len(),
            self.seed
        )
    }
}

/// Returns a script and its tables.
fn script(seed: u64, number: u64) -> (Vec<Table>, Vec<String>) {
    let mut dice = Dice::new(seed, number);
    let has_restarts = number % RESTARTED == RESTARTED - 1;
    // Half of the scripts with restarts have several sessions, too.
    let has_sessions = (number + number / RESTARTED) % 2 == 1;
    let (tables, mut script) = match has_sessions {
        true => tables_of_sessions(&mut dice),
        false => tables(&mut dice),
    };
    let begin = script.len() as u32;
    if has_sessions {
        script.extend(interleaved(&mut dice, &tables, SCRIPT));
    }
    let mut author = Author {
        dice: &mut dice,
        tables: &tables,
        session: None,
        // Only after a restart is InnoDB's counter above the value that a refused statement gave.
        raises_counters: !has_restarts,
    };
    while script.len() < SCRIPT {
        script.extend(author.unit());
    }
    if has_restarts {
        for _ in 0..2 {
            let at = begin + dice.below(script.len() as u32 - begin);
            let how = if dice.below(3) == 0 { STOP } else { KILL };
            script.insert(at as usize, how.to_owned());
        }
    }
    (tables, script)
}

/// Runs scripts on a server that has just been started.
///
/// # Errors
/// When the server does not answer; [`HarnessError::Interrupted`].
pub fn run(request: &Request, server: &mut Hosted, mut told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let mut outcome = Outcome {
        seed: request.seed,
        ..Outcome::default()
    };
    while outcome.played.statements < request.statements {
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        let before = outcome.played.statements / 10_000;
        let number = request.first + outcome.scripts;
        let (tables, script) = script(request.seed, number);
        outcome.scripts += 1;
        let found = play(server, &script, &tables, &mut outcome.played);
        if let Err(error) = &found {
            told(&format!("script {number}: {error}"));
        }
        if let Some(found) = found? {
            told(&format!("script {number}: {}", found.told));
            let until = &script[..=found.at];
            let mut last = found.told;
            let short = shrunk(until, TRIES, |some| {
                let found = play(server, some, &tables, &mut Played::default())?;
                if let Some(found) = &found {
                    last.clone_from(&found.told);
                }
                Ok(found.is_some())
            })?;
            let lines: Vec<String> = std::iter::once(last).chain(short).collect();
            lines.iter().for_each(|line| told(&format!("  {line}")));
            outcome.different.push(lines);
            if outcome.different.len() as u32 >= request.most_different {
                break;
            }
        }
        let statements = outcome.played.statements;
        if statements / 10_000 > before {
            told(&format!(
                "{statements} of {} statements",
                request.statements
            ));
        }
    }
    let errors = server.engine_errors();
    if !errors.is_empty() {
        errors.iter().for_each(|line| told(line));
        outcome.different.push(errors);
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_script_again() {
        for number in 0..50 {
            let (_, one) = script(7, number);
            let (_, other) = script(7, number);
            assert_eq!(one, other);
            assert_ne!(one, script(8, number).1);
        }
    }

    #[test]
    fn a_run_that_does_little_does_not_hold() {
        let mut outcome = Outcome::default();
        assert!(!outcome.held());
        outcome.played = Played {
            statements: 90,
            refused: 60,
            changed: 1,
            rows: 1,
            by_index: 1,
            ..Played::default()
        };
        assert!(outcome.held());
        outcome.played.refused = 61;
        assert!(!outcome.held());
        outcome.played.refused = 0;
        outcome.played.by_index = 0;
        assert!(!outcome.held(), "no index was read");
        outcome.played.by_index = 1;
        outcome.different.push(vec!["a row".into()]);
        assert!(!outcome.held());
    }
}
