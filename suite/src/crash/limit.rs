//! How long killing goes on.

use std::time::{Duration, Instant};

/// When the rounds end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// After so many kills.
    Kills(u32),
    /// After the round in which this time has passed.
    Time(Duration),
}

impl Limit {
    /// Whether `round`, counted from 1, is not to be begun any more.
    #[must_use]
    pub fn reached(self, round: u32, begun: Instant) -> bool {
        match self {
            Limit::Kills(kills) => round > kills,
            Limit::Time(time) => round > 1 && begun.elapsed() >= time,
        }
    }
}
