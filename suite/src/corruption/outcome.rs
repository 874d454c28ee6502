//! What the damage did, counted, and the one line about it.

use std::collections::BTreeMap;
use std::fmt;

/// What became of faults of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Parts that were damaged.
    pub parts: u64,
    /// Faults, one at a time.
    pub faults: u64,
    /// Found.
    pub detected: u64,
    /// Not found, and nothing is different by it.
    pub harmless: u64,
    /// In the last write of the log, where damage can't be told from a write that the crash tore.
    pub as_torn: u64,
    /// Neither.
    pub undetected: u64,
}

impl Count {
    /// Adds another count.
    pub fn add(&mut self, other: Count) {
        self.parts += other.parts;
        self.faults += other.faults;
        self.detected += other.detected;
        self.harmless += other.harmless;
        self.as_torn += other.as_torn;
        self.undetected += other.undetected;
    }
}

/// All counts.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    seed: u64,
    /// Every bit flipped, by kind of part.
    pub flips: BTreeMap<&'static str, Count>,
    /// Stale and misplaced parts, by kind of fault.
    pub moved: BTreeMap<&'static str, Count>,
    /// Faults after which the whole database was looked at.
    pub planted: u64,
    /// What must not be: faults that were not found, wrong rows, rows that are missing though their
    /// pages are whole, tables that suffer from another's damage.
    pub wrong: Vec<String>,
}

impl Outcome {
    /// Nothing damaged yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Outcome {
            seed,
            ..Outcome::default()
        }
    }

    fn undetected(&self) -> u64 {
        let counts = self.flips.values().chain(self.moved.values());
        counts.map(|count| count.undetected).sum()
    }

    /// Whether every fault was found or harmless, and reached no further than it had to.
    #[must_use]
    pub fn held(&self) -> bool {
        self.wrong.is_empty() && self.undetected() == 0
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
                if count.as_torn > 0 {
                    write!(f, ", {} like a torn last write", count.as_torn)?;
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
            "{}: {} faults in {} parts: {} detected, {} harmless, {} in the log's last write and \
             taken for its torn end, {} undetected; {} planted with a look at the whole database, \
             {} wrong; seed {}",
            if self.held() { "held" } else { "NOT HELD" },
            all.faults,
            all.parts,
            all.detected,
            all.harmless,
            all.as_torn,
            all.undetected,
            self.planted,
            self.wrong.len(),
            self.seed
        )
    }
}
