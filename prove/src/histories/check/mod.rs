//! The checker: finds the parts of a history that its isolation level forbids.

mod chains;
pub mod cycles;
mod dependencies;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use self::chains::Chains;
use self::cycles::{Edge, Kind};
use self::dependencies::Dependencies;
use super::history::{Ending, History};
use peregrine_harness::level::Level;

/// The number of descriptions kept for each kind of violation.
const EXAMPLES: usize = 3;

/// A violation that no level allows, or that the checked level does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Violation {
    /// G0, or a write over an uncommitted version.
    DirtyWrite,
    /// G1a.
    AbortedRead,
    /// A transaction saw a version before its writer asked to commit.
    DirtyRead,
    /// G1b.
    IntermediateRead,
    /// G1c.
    CircularFlow,
    /// A transaction saw a version older than one committed before.
    StaleRead,
    /// A transaction did not see its own write.
    OwnWrite,
    /// P4: a write replaced a committed version without having seen it.
    LostUpdate,
    /// A statement under READ COMMITTED saw more than one state.
    TornStatement,
    /// G-single and similar ones: a cycle without two consecutive anti-dependencies.
    ReadSkew,
    /// G2: any other cycle.
    WriteSkew,
    /// A scan returned a row outside its predicate, or missed one inside it.
    Predicate,
    /// A crash kept only a part of a transaction.
    Torn,
    /// The target returned an error that must not occur.
    Impossible,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DirtyWrite => "dirty write (G0)",
            Self::AbortedRead => "aborted read (G1a)",
            Self::DirtyRead => "dirty read",
            Self::IntermediateRead => "intermediate read (G1b)",
            Self::CircularFlow => "circular information flow (G1c)",
            Self::StaleRead => "stale read",
            Self::OwnWrite => "own write not seen",
            Self::LostUpdate => "lost update (P4)",
            Self::TornStatement => "statement that saw two states",
            Self::ReadSkew => "read skew (G-single)",
            Self::WriteSkew => "write skew (G2)",
            Self::Predicate => "wrong rows for a predicate",
            Self::Torn => "transaction kept in part",
            Self::Impossible => "impossible error",
        })
    }
}

/// The violations found, and counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The count of each kind, and the descriptions of the first ones.
    pub violations: BTreeMap<Violation, (u64, Vec<String>)>,
    /// Reads that saw a commit that was not yet durable and that a crash lost.
    pub seen_and_lost: u64,
    /// Transactions that count as committed.
    pub committed: u64,
    /// Commits that a crash left unanswered and that were kept.
    pub kept: u64,
    /// Commits that a crash left unanswered and that were undone.
    pub undone: u64,
    /// Dependencies between transactions.
    pub dependencies: u64,
}

impl Found {
    /// Counts a violation.
    pub fn add(&mut self, violation: Violation, text: impl FnOnce() -> String) {
        let (count, examples) = self.violations.entry(violation).or_default();
        *count += 1;
        if examples.len() < EXAMPLES {
            examples.push(text());
        }
    }

    /// Adds the findings of another window.
    pub fn join(&mut self, other: Self) {
        for (violation, (count, examples)) in other.violations {
            let mine = self.violations.entry(violation).or_default();
            mine.0 += count;
            let room = EXAMPLES.saturating_sub(mine.1.len());
            mine.1.extend(examples.into_iter().take(room));
        }
        self.seen_and_lost += other.seen_and_lost;
        self.committed += other.committed;
        self.kept += other.kept;
        self.undone += other.undone;
        self.dependencies += other.dependencies;
    }

    /// Returns whether there are no violations.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Checks a window's history against a level.
///
/// READ UNCOMMITTED is checked as READ COMMITTED, because Peregrine runs it so.
#[must_use]
pub fn check(history: &History, level: Level) -> Found {
    let mut found = Found::default();
    let chains = Chains::new(history, &mut found);
    for (transaction, committed) in history.transactions.iter().zip(&chains.committed) {
        found.committed += u64::from(*committed);
        if transaction.ending == Ending::Unknown {
            found.kept += u64::from(*committed);
            found.undone += u64::from(!*committed);
        }
    }
    let dependencies = Dependencies::new(history, &chains, level, &mut found);
    found.dependencies = dependencies.edges.len() as u64;
    cycle(&dependencies, level, &mut found);
    found
}

/// Reports the worst cycle that the level forbids, if there is one.
fn cycle(dependencies: &Dependencies<'_>, level: Level, found: &mut Found) {
    let Dependencies { nodes, edges, .. } = dependencies;
    let told = |cycle: Vec<Edge>| move || told(dependencies, &cycle);
    if let Some(cycle) = cycles::any(*nodes, edges, |kind| kind == Kind::Ww) {
        found.add(Violation::DirtyWrite, told(cycle));
    } else if let Some(cycle) = cycles::any(*nodes, edges, |kind| kind != Kind::Rw) {
        found.add(Violation::CircularFlow, told(cycle));
    } else if let Some(cycle) = cycles::without_consecutive_rw(*nodes, edges) {
        let kind = if level < Level::RepeatableRead {
            Violation::TornStatement
        } else {
            Violation::ReadSkew
        };
        found.add(kind, told(cycle));
    } else if level == Level::Serializable {
        if let Some(cycle) = cycles::any(*nodes, edges, |_| true) {
            found.add(Violation::WriteSkew, told(cycle));
        }
    }
}

/// Describes a cycle in words.
fn told(dependencies: &Dependencies<'_>, cycle: &[Edge]) -> String {
    let transactions = dependencies.nodes - dependencies.scans.len();
    let name = |node: usize| match dependencies.scans.get(node.wrapping_sub(transactions)) {
        Some(owner) => format!("a scan of T{owner}"),
        None => format!("T{node}"),
    };
    let steps: Vec<String> = cycle
        .iter()
        .map(|edge| {
            let (from, to, key) = (name(edge.from), name(edge.to), edge.key);
            match edge.kind {
                Kind::Ww => format!("{from} wrote {key} before {to} did"),
                Kind::Wr => format!("{from} wrote {key}, which {to} saw"),
                Kind::Rw => format!("{from} saw {key} before {to} wrote it"),
            }
        })
        .collect();
    steps.join("; ")
}
