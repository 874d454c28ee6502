//! The result of random histories.

use std::fmt;

use super::check::Found;
use peregrine_harness::level::Level;

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The target, in words.
    pub target: String,
    /// The level.
    pub level: Level,
    /// The seed.
    pub seed: u64,
    /// The number of threads or sessions.
    pub threads: u32,
    /// The number of windows with fresh keys.
    pub windows: u32,
    /// Transactions rolled back, deliberately or because the target refused them.
    pub aborted: u64,
    /// The number of crashes.
    pub crashes: u32,
    /// Lock waits and deadlocks, if the target reports them.
    pub conflicts: Option<u64>,
    /// Seconds in all.
    pub seconds: f64,
    /// The checker's findings.
    pub found: Found,
    /// The requested number of transactions; 0 if the request limits the duration.
    pub asked: u64,
}

impl Outcome {
    /// Returns whether the level was kept; a run with too few commits proves nothing.
    #[must_use]
    pub fn held(&self) -> bool {
        self.found.is_clean() && self.found.committed > 0 && self.found.committed >= self.asked
    }

    /// Returns the number of violations of all kinds.
    #[must_use]
    pub fn violations(&self) -> u64 {
        self.found.violations.values().map(|(count, _)| count).sum()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} at {}, seed {}: {} transactions committed and {} rolled back by {} threads in {} windows, \
             {} dependencies, {} anomalies",
            if self.held() { "held" } else { "NOT HELD" },
            self.target,
            self.level.sql(),
            self.seed,
            self.found.committed,
            self.aborted,
            self.threads,
            self.windows,
            self.found.dependencies,
            self.violations(),
        )?;
        if let Some(conflicts) = self.conflicts {
            write!(f, ", {conflicts} lock waits and deadlocks")?;
        }
        if self.crashes > 0 {
            write!(
                f,
                ", {} crashes ({} commits under way kept, {} undone; {} readers saw a commit before it was durable and lost)",
                self.crashes, self.found.kept, self.found.undone, self.found.seen_and_lost
            )?;
        }
        write!(f, ", {:.1} s", self.seconds)?;
        for (violation, (count, examples)) in &self.found.violations {
            write!(f, "\n  {violation}: {count}")?;
            for example in examples {
                write!(f, "\n    {example}")?;
            }
        }
        Ok(())
    }
}
