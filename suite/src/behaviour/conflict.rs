//! The update of one row by two sessions: whether the second waits or fails, and with which error.

use serde::{Deserialize, Serialize};

use super::level::Level;
use super::script::{step, Answer, Step, Transcript};

/// A way for two sessions to meet at one row.
#[derive(Debug, Clone, Copy)]
pub struct Meeting {
    /// What it is.
    pub title: &'static str,
    /// The steps; session 2 is the one that is looked at.
    pub steps: &'static [Step],
}

/// Every way.
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

/// What came of a meeting at a level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conflict {
    /// The meeting's title.
    pub meeting: String,
    /// The level.
    pub level: Level,
    /// Whether any statement waited.
    pub waited: bool,
    /// The error that session 2 got, if it got one.
    pub error: Option<u16>,
    /// The error that session 1 got, if it got one.
    pub other_error: Option<u16>,
}

impl Conflict {
    /// What was found, from the steps played.
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

    /// In words.
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
