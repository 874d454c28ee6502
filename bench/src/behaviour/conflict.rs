//! Two sessions update one row: the tests find whether the second waits or fails, and with which error.

use serde::{Deserialize, Serialize};

use super::script::{step, Answer, Step, Transcript};
use peregrine_harness::level::Level;

/// A script in which two sessions update one row.
#[derive(Debug, Clone, Copy)]
pub struct Meeting {
    /// Its name in words.
    pub title: &'static str,
    /// The steps; session 2 is the one under test.
    pub steps: &'static [Step],
}

/// Every script.
pub const ALL: [Meeting; 3] = [
    Meeting {
        title: "update of a row that another session has updated, which then commits",
        steps: &[
            step(1, "update test set value = 11 where id = 1"),
            step(2, "update test set value = 12 where id = 1"),
            step(1, "commit"),
            step(2, "commit"),
        ],
    },
    Meeting {
        title: "update of a row that another session has updated, which then rolls back",
        steps: &[
            step(1, "update test set value = 11 where id = 1"),
            step(2, "update test set value = 12 where id = 1"),
            step(1, "rollback"),
            step(2, "commit"),
        ],
    },
    Meeting {
        title: "update of a row that another session has updated and committed since it was read",
        steps: &[
            step(2, "select * from test where id = 1"),
            step(1, "update test set value = 11 where id = 1"),
            step(1, "commit"),
            step(2, "update test set value = 12 where id = 1"),
            step(2, "commit"),
        ],
    },
];

/// The result of a meeting at a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The title of the [`Meeting`].
    pub meeting: String,
    /// The level.
    pub level: Level,
    /// Whether any statement waited.
    pub waited: bool,
    /// The error that session 2 got, if any.
    pub error: Option<u16>,
    /// The error that session 1 got, if any.
    pub other_error: Option<u16>,
}

impl Conflict {
    /// Extracts the result from the played steps.
    #[must_use]
    pub fn of(meeting: &Meeting, level: Level, transcript: &Transcript) -> Self {
        let error = |session| {
            transcript
                .steps
                .iter()
                .find_map(|played| match played.answer {
                    Answer::Failed { code, .. } if played.step.session == session => Some(code),
                    _ => None,
                })
        };
        Self {
            meeting: meeting.title.to_owned(),
            level,
            waited: transcript.waited(),
            error: error(2),
            other_error: error(1),
        }
    }

    /// Returns the result in words.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = match (self.waited, self.error) {
            (true, None) => "waits, goes on".to_owned(),
            (true, Some(code)) => format!("waits, error {code}"),
            (false, None) => "goes on".to_owned(),
            (false, Some(code)) => format!("error {code}"),
        };
        if let Some(code) = self.other_error {
            text.push_str(&format!("; the other gets error {code}"));
        }
        text
    }
}
