//! Scripts of statements for which Peregrine once gave wrong answers or lost rows.
//!
//! Each script runs on `InnoDB` and on Peregrine in one server, and every answer must be the same. The scripts are in
//! `cases.sql`; [`cases`] makes some of them by a loop.

mod cases;
mod play;

use std::fmt;

pub use cases::{names, Case};
pub use play::run;

/// The result of the scripts.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Scripts with the same answers on both engines.
    pub held: usize,
    /// Names of the scripts with different answers.
    pub not_held: Vec<&'static str>,
}

impl Outcome {
    /// Returns whether all scripts had the same answers, and there was at least one script.
    #[must_use]
    pub fn held(&self) -> bool {
        self.not_held.is_empty() && self.held > 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: answers: {} scripts played on InnoDB and on Peregrine, {} with the same answers, {} not",
            if self.held() { "held" } else { "NOT HELD" },
            self.held + self.not_held.len(),
            self.held,
            self.not_held.len()
        )?;
        if !self.not_held.is_empty() {
            write!(f, " ({})", self.not_held.join(", "))?;
        }
        Ok(())
    }
}
