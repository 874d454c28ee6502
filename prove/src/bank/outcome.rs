//! The result of the bank test.

use std::fmt;

use peregrine_harness::engines::Engine;

/// The findings of a bank test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The engine.
    pub engine: Option<Engine>,
    /// Threads that move money.
    pub threads: u32,
    /// Seconds in all.
    pub seconds: f64,
    /// Transfers with an acknowledged commit.
    pub transfers: u64,
    /// Transfers that the server refused (deadlock, conflict, lock wait).
    pub refused: u64,
    /// Audits that saw all of the money.
    pub right: u64,
    /// Wrong sums that audits saw.
    pub wrong: Vec<String>,
    /// Kills of the server.
    pub kills: u32,
    /// Lost acknowledged transfers after a kill, and other faults.
    pub faults: Vec<String>,
    /// The longest restart, recovery included, in seconds.
    pub longest_restart_s: f64,
}

impl Outcome {
    /// Returns whether every audit was right and no acknowledged transfer was lost.
    ///
    /// A run without transfers or audits proves nothing.
    #[must_use]
    pub fn held(&self) -> bool {
        self.wrong.is_empty() && self.faults.is_empty() && self.transfers > 0 && self.right > 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, {} threads moved money {} times in {:.0} s ({} attempts refused): {} audits right, {} wrong",
            if self.held() { "held" } else { "NOT HELD" },
            self.engine.map_or("?", Engine::title),
            self.threads,
            self.transfers,
            self.seconds,
            self.refused,
            self.right,
            self.wrong.len(),
        )?;
        if self.kills > 0 {
            write!(
                f,
                "; {} kills of the server, longest restart {:.1} s",
                self.kills, self.longest_restart_s
            )?;
        }
        if !self.faults.is_empty() {
            write!(f, "; {} faults", self.faults.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_audit_or_no_work_is_not_held() {
        let right = Outcome {
            transfers: 10,
            right: 5,
            ..Outcome::default()
        };
        assert!(right.held());
        let mut wrong = right.clone();
        wrong.wrong.push("99999 instead of 100000".to_owned());
        assert!(!wrong.held());
        let mut lost = right.clone();
        lost.faults
            .push("transfer 7 of teller 3 is lost".to_owned());
        assert!(!lost.held());
        let idle = Outcome { right: 0, ..right };
        assert!(!idle.held());
    }
}
