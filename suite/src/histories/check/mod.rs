//! The checker: what a history shows that its isolation level forbids.

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
use crate::behaviour::level::Level;

/// Descriptions kept of each kind of violation.
const EXAMPLES: usize = 3;

/// What no level, or not this one, allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Violation {
    /// G0, or a write over what was not committed.
    DirtyWrite,
    /// G1a.
    AbortedRead,
    /// A version was seen before its writer asked to commit.
    DirtyRead,
    /// G1b.
    IntermediateRead,
    /// G1c.
    CircularFlow,
    /// Something older was seen than what had been committed before.
    StaleRead,
    /// A transaction did not see what it had itself written.
    OwnWrite,
    /// P4: a committed write was overwritten by one that did not know of it.
    LostUpdate,
    /// A statement under READ COMMITTED saw more than one state.
    TornStatement,
    /// G-single and its like: a cycle without two consecutive anti-dependencies.
    ReadSkew,
    /// G2: any other cycle.
    WriteSkew,
    /// A scan returned what is not in its predicate, or missed what is.
    Predicate,
    /// After a crash a transaction was there in part.
    Torn,
    /// The target gave an error that can't be.
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

/// Violations found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// How many of each kind, and the first of them in words.
    pub violations: BTreeMap<Violation, (u64, Vec<String>)>,
    /// Committed transactions that saw a commit that was not yet durable and was lost in a crash.
    pub seen_and_lost: u64,
    /// Transactions that count as committed.
    pub committed: u64,
    /// Of those whose commit a crash left unanswered: kept.
    pub kept: u64,
    /// The same: undone.
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

    /// Adds what was found in another window.
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

    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }
}

/// Checks a window's history against a level. READ UNCOMMITTED is checked as READ COMMITTED, which is
/// what Peregrine runs it as.
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

/// The worst cycle, if there is any that the level forbids.
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

/// A cycle in words.
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
