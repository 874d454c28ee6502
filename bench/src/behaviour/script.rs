//! A script: statements of several sessions in a fixed order, and the answers after it was played.

/// The statement that a session runs at a step of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The session, from 1.
    pub session: usize,
    /// The statement; every session has begun a transaction before its first step.
    pub statement: &'static str,
}

/// Creates a step of `session`.
#[must_use]
pub const fn step(session: usize, statement: &'static str) -> Step {
    Step { session, statement }
}

impl Step {
    /// Returns whether the statement ends its session's transaction.
    #[must_use]
    pub fn ends(&self) -> bool {
        matches!(self.statement, "commit" | "rollback")
    }
}

/// Rows of table `test`: id and value.
pub type Rows = Vec<(i64, i64)>;

/// The server's answer to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The rows of a SELECT.
    Rows(Rows),
    /// The number of rows that another statement changed.
    Changed(u64),
    /// An error, after which the player rolls the transaction back.
    Failed {
        /// The server's error number, 0 when the connection broke.
        code: u16,
        /// The error's text.
        message: String,
    },
    /// The player did not run the step, because the session's transaction had failed before.
    Skipped,
}

/// A step and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// The step.
    pub step: Step,
    /// The server's answer.
    pub answer: Answer,
    /// Whether it was proven to wait for another session.
    pub waited: bool,
    /// When its thread sent the statement, in milliseconds since the script began.
    pub begun_ms: f64,
    /// Time from sending the statement to its answer, in milliseconds.
    pub ms: f64,
}

/// A played script.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The steps, in the script's order.
    pub steps: Vec<Played>,
    /// The table after all sessions had ended.
    pub finally: Rows,
}

impl Transcript {
    fn of(&self, session: usize) -> impl Iterator<Item = &Played> {
        self.steps
            .iter()
            .filter(move |played| played.step.session == session)
    }

    /// Returns whether the session's COMMIT succeeded.
    #[must_use]
    pub fn committed(&self, session: usize) -> bool {
        self.of(session).any(|played| {
            played.step.statement == "commit" && matches!(played.answer, Answer::Changed(_))
        })
    }

    /// Returns the rows of every SELECT that the session ran, in order.
    #[must_use]
    pub fn reads(&self, session: usize) -> Vec<&Rows> {
        self.of(session)
            .filter_map(|played| match &played.answer {
                Answer::Rows(rows) => Some(rows),
                _ => None,
            })
            .collect()
    }

    /// Returns the rows of the session's `number`th SELECT, counted from 1, if it ran.
    #[must_use]
    pub fn read(&self, session: usize, number: usize) -> Option<&Rows> {
        self.reads(session).get(number.checked_sub(1)?).copied()
    }

    /// Returns the rows changed by the session's first statement with this beginning, if it ran.
    #[must_use]
    pub fn changed(&self, session: usize, beginning: &str) -> Option<u64> {
        self.of(session)
            .find(|played| played.step.statement.starts_with(beginning))
            .and_then(|played| match played.answer {
                Answer::Changed(count) => Some(count),
                _ => None,
            })
    }

    /// Returns the numbers of all errors, in order.
    #[must_use]
    pub fn errors(&self) -> Vec<u16> {
        self.steps
            .iter()
            .filter_map(|played| match played.answer {
                Answer::Failed { code, .. } => Some(code),
                _ => None,
            })
            .collect()
    }

    /// Returns whether any statement waited.
    #[must_use]
    pub fn waited(&self) -> bool {
        self.steps.iter().any(|played| played.waited)
    }

    /// Describes each step in one line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let shown = |rows: &Rows| {
            let rows: Vec<String> = rows.iter().map(|(id, v)| format!("{id}=>{v}")).collect();
            format!("({})", rows.join(", "))
        };
        let mut lines: Vec<String> = self
            .steps
            .iter()
            .map(|played| {
                let answer = match &played.answer {
                    Answer::Rows(rows) => shown(rows),
                    Answer::Changed(count) if played.step.ends() => {
                        let _ = count;
                        "done".to_owned()
                    }
                    Answer::Changed(count) => format!("{count} rows"),
                    Answer::Failed { code, message } => format!("error {code}: {message}"),
                    Answer::Skipped => "not run".to_owned(),
                };
                let waited = if played.waited { " [waits]" } else { "" };
                format!(
                    "T{} {}{waited} → {answer}",
                    played.step.session, played.step.statement
                )
            })
            .collect();
        lines.push(format!("finally {}", shown(&self.finally)));
        lines
    }
}
