//! The limit of a run of kills.

use std::time::{Duration, Instant};

/// The limit after which no further round begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// After this many kills.
    Kills(u32),
    /// After the round in which this time has passed.
    Time(Duration),
}

impl Limit {
    /// Returns whether the run ends before `round`, counted from 1.
    #[must_use]
    pub fn reached(self, round: u32, begun: Instant) -> bool {
        match self {
            Limit::Kills(kills) => round > kills,
            Limit::Time(time) => round > 1 && begun.elapsed() >= time,
        }
    }
}
