//! Scripts of statements that Peregrine once answered wrongly, or lost rows by: each is played on `InnoDB`
//! and on Peregrine in one server, and every answer must be the same.
//!
//! The scripts stand in `cases.sql`; those that are made by a loop stand in [`cases`].

mod cases;
mod play;

use std::fmt;

pub use cases::{names, Case};
pub use play::run;

/// What came of the scripts.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Scripts with the same answers on both engines.
    pub held: usize,
    /// Names of the others.
    pub not_held: Vec<&'static str>,
}

impl Outcome {
    /// Whether all scripts had the same answers, and there was one.
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
