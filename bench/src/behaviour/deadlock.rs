//! A deadlock of two sessions: which session gets which error, and how soon.

use serde::{Deserialize, Serialize};

use super::player::Player;
use super::script::{step, Answer, Step, Transcript};
use peregrine_harness::error::Result;

/// Each session locks a row and wants the other's; T2 closes the cycle.
const STEPS: [Step; 6] = [
    step(1, "update test set value = 11 where id = 1"),
    step(2, "update test set value = 21 where id = 2"),
    step(1, "update test set value = 12 where id = 2"),
    step(2, "update test set value = 22 where id = 1"),
    step(1, "commit"),
    step(2, "commit"),
];

/// The step that closes the cycle.
const CLOSING: usize = 3;

/// One deadlock and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deadlock {
    /// The session that got an error, 0 when none did.
    pub victim: usize,
    /// The error's number.
    pub error: u16,
    /// Time from the statement that closes the cycle to the error, in milliseconds.
    pub ms: f64,
    /// Whether the other session went on and committed.
    pub other_committed: bool,
}

impl Deadlock {
    /// Extracts the result from the played steps.
    #[must_use]
    pub fn of(transcript: &Transcript) -> Self {
        let closing = transcript.steps.get(CLOSING).map_or(0.0, |s| s.begun_ms);
        // More than one session may fail; the first error counts.
        let mut failed: Vec<(f64, usize, u16)> = transcript
            .steps
            .iter()
            .filter_map(|played| match played.answer {
                Answer::Failed { code, .. } => {
                    Some((played.begun_ms + played.ms, played.step.session, code))
                }
                _ => None,
            })
            .collect();
        failed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (at, victim, error) = failed.first().copied().unwrap_or((closing, 0, 0));
        Self {
            victim,
            error,
            ms: (at - closing).max(0.0),
            other_committed: (1..=2).any(|s| s != victim && transcript.committed(s)),
        }
    }
}

/// Plays the deadlock `times` times, each time on a new table.
///
/// # Errors
/// Those of the player and of `make_table`.
pub fn probe(
    player: &mut Player,
    times: u32,
    mut make_table: impl FnMut() -> Result<()>,
) -> Result<Vec<Deadlock>> {
    (0..times)
        .map(|_| {
            make_table()?;
            Ok(Deadlock::of(&player.play(&STEPS)?))
        })
        .collect()
}

/// Returns the median and the longest time to the error, in milliseconds.
#[must_use]
pub fn times(deadlocks: &[Deadlock]) -> Option<(f64, f64)> {
    let mut ms: Vec<f64> = deadlocks.iter().map(|deadlock| deadlock.ms).collect();
    ms.sort_by(f64::total_cmp);
    Some((*ms.get(ms.len() / 2)?, *ms.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::script::Played;

    fn transcript(answers: [(f64, f64, Answer); 6]) -> Transcript {
        Transcript {
            steps: STEPS
                .iter()
                .zip(answers)
                .map(|(step, (begun_ms, ms, answer))| Played {
                    step: *step,
                    answer,
                    waited: false,
                    begun_ms,
                    ms,
                })
                .collect(),
            finally: Vec::new(),
        }
    }

    fn failed(code: u16) -> Answer {
        Answer::Failed {
            code,
            message: String::new(),
        }
    }

    #[test]
    fn time_counts_from_the_statement_that_closed_the_circle() {
        let one = Answer::Changed(1);
        let second = transcript([
            (0.0, 1.0, one.clone()),
            (2.0, 1.0, one.clone()),
            (4.0, 205.0, one.clone()),
            (200.0, 0.5, failed(1213)),
            (210.0, 1.0, Answer::Changed(0)),
            (0.0, 0.0, Answer::Skipped),
        ]);
        let found = Deadlock::of(&second);
        assert_eq!((found.victim, found.error), (2, 1213));
        assert!((found.ms - 0.5).abs() < 1e-9 && found.other_committed);

        let first = transcript([
            (0.0, 1.0, one.clone()),
            (2.0, 1.0, one.clone()),
            (4.0, 199.0, failed(1205)),
            (200.0, 4.0, one),
            (0.0, 0.0, Answer::Skipped),
            (210.0, 1.0, Answer::Changed(0)),
        ]);
        let found = Deadlock::of(&first);
        assert_eq!((found.victim, found.error), (1, 1205));
        assert!((found.ms - 3.0).abs() < 1e-9 && found.other_committed);
    }
}
