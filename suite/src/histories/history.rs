//! What transactions saw and did.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a key within a window.
pub type Key = u32;

/// The number of a version: the transaction that wrote it and which of its operations. 0 is what the
/// window began with.
pub type Version = u32;

/// Operations of a transaction, at most.
pub const MOST_OPERATIONS: u32 = 8;

/// The version that operation `operation` of transaction `transaction` writes.
#[must_use]
pub fn version(transaction: u32, operation: u32) -> Version {
    (transaction + 1) * MOST_OPERATIONS + operation
}

/// The transaction that wrote a version; `None` for what the window began with.
#[must_use]
pub fn writer(version: Version) -> Option<usize> {
    (version / MOST_OPERATIONS)
        .checked_sub(1)
        .map(|t| t as usize)
}

/// A group that rows with a place belong to.
pub type Group = u8;

/// How many groups there are.
pub const GROUPS: Group = 3;

/// Keys of each kind in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Registers: read and overwritten.
    pub registers: u32,
    /// Rows that are put into groups, moved and removed.
    pub places: u32,
    /// Lists that are appended to at the same time.
    pub lists: u32,
    /// All lists: a list that has grown long is left for a new one.
    pub all_lists: u32,
}

/// The first of the places.
pub const FIRST_PLACE: Key = 1_000;

/// The first of the lists.
pub const FIRST_LIST: Key = 2_000;

/// Keys that a window has numbers for.
pub const KEYS_OF_A_WINDOW: Key = 10_000;

/// The group in which a place stands when its window begins; `None`: there is no row.
#[must_use]
pub fn first_group(place: Key) -> Option<Group> {
    let turn = u8::try_from(place % u32::from(GROUPS + 1)).unwrap_or(0);
    (turn < GROUPS).then_some(turn)
}

/// Hands out numbers in the order in which it is asked: who got the smaller one asked first.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// The next number, from 1.
    pub fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// When something began and ended, by the [`Clock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Before it began.
    pub from: u64,
    /// After it ended.
    pub to: u64,
}

/// Which rows a scan asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicate {
    /// Those of a group, through its index.
    In(Group),
    /// All that are there, by the primary key.
    Present,
}

impl Predicate {
    /// Whether a row in this state is asked for.
    #[must_use]
    pub fn matches(self, state: Option<Group>) -> bool {
        match self {
            Self::In(group) => state == Some(group),
            Self::Present => state.is_some(),
        }
    }
}

/// What an operation saw and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Read a register.
    Read {
        /// Which.
        key: Key,
        /// The version found.
        found: Version,
    },
    /// Wrote a register, or put a place's row somewhere.
    Write {
        /// Which.
        key: Key,
        /// The version written.
        written: Version,
        /// The version replaced, read back.
        before: Version,
        /// For places: the group in which the row stands now, if it does.
        state: Option<Group>,
    },
    /// Read a list.
    ReadList {
        /// Which.
        key: Key,
        /// Its elements, each the number of a version.
        found: Vec<Version>,
    },
    /// Appended to a list.
    Append {
        /// Which.
        key: Key,
        /// The element.
        written: Version,
        /// The elements before it, read back.
        before: Vec<Version>,
    },
    /// Read the rows that a predicate asks for.
    Scan {
        /// The predicate.
        predicate: Predicate,
        /// Places and their versions.
        found: Vec<(Key, Version)>,
    },
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// What was seen and done.
    pub deed: Deed,
    /// When.
    pub span: Span,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its commit was acknowledged.
    Committed,
    /// It was rolled back.
    Aborted,
    /// Its commit was asked for when the target crashed.
    Unknown,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Before it began.
    pub began: u64,
    /// Before its commit was asked for; 0 when it was not.
    pub commit_asked: u64,
    /// After it had ended.
    pub ended: u64,
    /// How.
    pub ending: Ending,
    /// What it saw and did; the operation that failed is not among it.
    pub operations: Vec<Operation>,
}

/// All transactions of a window, each at the place of its number. The last one read every key when
/// all others had ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The transactions.
    pub transactions: Vec<Transaction>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_leads_back_to_its_writer() {
        assert_eq!(writer(0), None);
        for transaction in [0, 1, 77, 400_000] {
            for operation in 0..MOST_OPERATIONS {
                let number = version(transaction, operation);
                assert_eq!(writer(number), Some(transaction as usize));
            }
        }
    }

    #[test]
    fn places_begin_in_every_group_and_outside() {
        let begun: Vec<_> = (FIRST_PLACE..FIRST_PLACE + 8).map(first_group).collect();
        for state in [None, Some(0), Some(1), Some(2)] {
            assert!(begun.contains(&state));
        }
    }
}
