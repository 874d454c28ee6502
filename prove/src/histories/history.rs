//! The operations of transactions, and their results.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a key within a window.
pub type Key = u32;

/// The number of a version, made from its transaction's number and the operation's number; 0 is the initial version.
pub type Version = u32;

/// The most operations of a transaction.
pub const MOST_OPERATIONS: u32 = 8;

/// Returns the version that operation `operation` of transaction `transaction` writes.
#[must_use]
pub fn version(transaction: u32, operation: u32) -> Version {
    (transaction + 1) * MOST_OPERATIONS + operation
}

/// Returns the transaction that wrote a version, or `None` for the initial version.
#[must_use]
pub fn writer(version: Version) -> Option<usize> {
    (version / MOST_OPERATIONS)
        .checked_sub(1)
        .map(|t| t as usize)
}

/// A group of places.
pub type Group = u8;

/// The number of groups.
pub const GROUPS: Group = 3;

/// The number of keys of each kind in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// Registers, which transactions read and overwrite.
    pub registers: u32,
    /// Places: rows that transactions put into groups, move and remove.
    pub places: u32,
    /// Lists in use at the same time.
    pub lists: u32,
    /// All lists; a new list replaces a list that has grown long.
    pub all_lists: u32,
}

/// The key of the first place.
pub const FIRST_PLACE: Key = 1_000;

/// The key of the first list.
pub const FIRST_LIST: Key = 2_000;

/// The number of keys that each window reserves.
pub const KEYS_OF_A_WINDOW: Key = 10_000;

/// Returns the group in which a place begins, or `None` if it begins without a row.
#[must_use]
pub fn first_group(place: Key) -> Option<Group> {
    let turn = u8::try_from(place % u32::from(GROUPS + 1)).unwrap_or(0);
    (turn < GROUPS).then_some(turn)
}

/// Counts calls; a smaller number belongs to an earlier call.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Returns the next number, from 1.
    pub fn tick(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}

/// The beginning and end of an operation, by the [`Clock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// A number from before the beginning.
    pub from: u64,
    /// A number from after the end.
    pub to: u64,
}

/// The condition of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Predicate {
    /// The rows of a group, through its index.
    In(Group),
    /// All existing rows, by the primary key.
    Present,
}

impl Predicate {
    /// Returns whether the predicate selects a row in this state.
    #[must_use]
    pub fn matches(self, state: Option<Group>) -> bool {
        match self {
            Self::In(group) => state == Some(group),
            Self::Present => state.is_some(),
        }
    }
}

/// An operation and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// A read of a register.
    Read {
        /// The register.
        key: Key,
        /// The version found.
        found: Version,
    },
    /// A write to a register, or a change of a place's row.
    Write {
        /// The register or place.
        key: Key,
        /// The version written.
        written: Version,
        /// The version replaced, read back.
        before: Version,
        /// For places: the group of the row after the write, if the row exists.
        state: Option<Group>,
    },
    /// A read of a list.
    ReadList {
        /// The list.
        key: Key,
        /// Its elements, each the number of a version.
        found: Vec<Version>,
    },
    /// An append to a list.
    Append {
        /// The list.
        key: Key,
        /// The appended element.
        written: Version,
        /// The elements before it, read back.
        before: Vec<Version>,
    },
    /// A read of the rows that a predicate selects.
    Scan {
        /// The predicate.
        predicate: Predicate,
        /// Places and their versions.
        found: Vec<(Key, Version)>,
    },
}

/// An operation and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The operation and its result.
    pub deed: Deed,
    /// Its beginning and end.
    pub span: Span,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its commit was acknowledged.
    Committed,
    /// It was rolled back.
    Aborted,
    /// The session had asked to commit when the target crashed, so the commit may be there or not.
    Unknown,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// A number from before it began.
    pub began: u64,
    /// A number from before it asked to commit; 0 if it did not ask.
    pub commit_asked: u64,
    /// A number from after it had ended.
    pub ended: u64,
    /// Its ending.
    pub ending: Ending,
    /// Its operations, without one that failed.
    pub operations: Vec<Operation>,
}

/// All transactions of a window, each at the index of its number.
///
/// The last one read every key after all others had ended.
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
