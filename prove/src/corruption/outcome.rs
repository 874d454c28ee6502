//! Counts the effects of the damage, and summarizes them in one line.

use std::collections::BTreeMap;
use std::fmt;

/// The effects of faults of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Damaged parts.
    pub parts: u64,
    /// Faults; each was tried alone.
    pub faults: u64,
    /// Faults that the engine found.
    pub detected: u64,
    /// Faults that the engine did not find and that change nothing.
    pub harmless: u64,
    /// Faults that removed the last record of the log completely, so nothing shows that the log had it.
    pub last_lost: u64,
    /// All other faults.
    pub undetected: u64,
}

impl Count {
    /// Adds another count.
    pub fn add(&mut self, other: Count) {
        self.parts += other.parts;
        self.faults += other.faults;
        self.detected += other.detected;
        self.harmless += other.harmless;
        self.last_lost += other.last_lost;
        self.undetected += other.undetected;
    }
}

/// All counts.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    seed: u64,
    /// Faults of one flipped bit, by kind of part.
    pub flips: BTreeMap<&'static str, Count>,
    /// Stale and misplaced parts, by kind of fault.
    pub moved: BTreeMap<&'static str, Count>,
    /// Faults after which the whole database was tested.
    pub planted: u64,
    /// Failures: faults that were not found, wrong rows, missing rows of undamaged pages, and tables that suffer from
    /// another table's damage.
    pub wrong: Vec<String>,
}

impl Outcome {
    /// Creates an outcome without faults.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Outcome {
            seed,
            ..Outcome::default()
        }
    }

    fn undetected(&self) -> u64 {
        let counts = self.flips.values().chain(self.moved.values());
        let undetected: u64 = counts.map(|count| count.undetected).sum();
        // A single flipped bit leaves enough of the log's last write to detect the fault, so `last_lost` is a failure
        // here.
        let flips = self.flips.values().map(|count| count.last_lost);
        undetected + flips.sum::<u64>()
    }

    /// Returns whether there were faults, every fault was found or harmless, and none reached further than it had to.
    #[must_use]
    pub fn held(&self) -> bool {
        let mut counts = self.flips.values().chain(self.moved.values());
        let tried = self.planted > 0 || counts.any(|count| count.faults > 0);
        tried && self.wrong.is_empty() && self.undetected() == 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, counts) in [("bits flipped", &self.flips), ("moved", &self.moved)] {
            for (kind, count) in counts {
                write!(
                    f,
                    "{what}: {kind}: {} parts, {} faults, {} detected, {} harmless",
                    count.parts, count.faults, count.detected, count.harmless
                )?;
                if count.last_lost > 0 {
                    write!(f, ", {} took the log's last block", count.last_lost)?;
                }
                writeln!(f, ", {} undetected", count.undetected)?;
            }
        }
        let mut all = Count::default();
        for count in self.flips.values().chain(self.moved.values()) {
            all.add(*count);
        }
        write!(
            f,
            "{}: {} faults in {} parts: {} detected, {} harmless, {} took the log's \
             last block (undetectable by design), {} undetected; {} planted with a look at the whole database, \
             {} wrong; seed {}",
            if self.held() { "held" } else { "NOT HELD" },
            all.faults,
            all.parts,
            all.detected,
            all.harmless,
            all.last_lost,
            self.undetected(),
            self.planted,
            self.wrong.len(),
            self.seed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_was_tried_nothing_was_shown() {
        let mut outcome = Outcome::new(1);
        assert!(!outcome.held());
        outcome.planted = 1;
        assert!(outcome.held());
        outcome.wrong.push("a row is missing".to_owned());
        assert!(!outcome.held());
        let mut outcome = Outcome::new(1);
        let count = Count {
            faults: 1,
            ..Count::default()
        };
        outcome.moved.insert("stale page", count);
        assert!(outcome.held());
    }
}
