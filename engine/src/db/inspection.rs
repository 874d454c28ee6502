//! Running transactions, row locks and waits, with the names of tables and indexes.

use std::sync::Arc;

use super::Database;
use crate::lock::{DeadlockMember, LockMode, RowName};
use crate::table::Table;
use crate::txn::{tree_of_counter, LockExtent, LockWait, TransactionEntry};

/// About the most locks that an [`Inspection`] lists.
const MOST_LOCKS: usize = 100_000;

/// A row by its table, index and key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedRow {
    /// The table's name; empty if the table was dropped.
    pub table: String,
    /// The index: "PRIMARY" for the clustered one.
    ///
    /// Empty for the lock of the table's auto-increment counter, whose key is "AUTO_INC".
    pub index: String,
    /// The values of the key, separated by commas: bytes that are no text in hexadecimal, "…" for the end of a long
    /// key.
    pub key: String,
}

/// A lock that a transaction holds or waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lock {
    /// The lock's number: that of its row.
    pub lock: u64,
    /// The transaction, by its [`TransactionEntry::id`].
    pub transaction: u64,
    /// The row.
    ///
    /// For a range, the key describes the keys within, as in "5 <= key < 10".
    pub row: NamedRow,
    /// Whether it locks a range of keys, including keys that do not exist.
    pub is_range: bool,
    /// Shared or exclusive.
    pub mode: LockMode,
    /// Whether the transaction holds it, rather than waits for it.
    pub granted: bool,
}

/// Result of [`Database::inspect`].
///
/// Each part is true for a moment, but not all for the same one: work goes on meanwhile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Transactions that have a snapshot, have locked or have written, by number.
    pub transactions: Vec<TransactionEntry>,
    /// Row locks in the lock table.
    ///
    /// A row that a transaction has locked only by writing it is listed if another transaction waits for it.
    pub locks: Vec<Lock>,
    /// The transactions that wait, and those that they wait for.
    pub waits: Vec<LockWait>,
    /// Whether there are more than 100,000 locks; the others are not listed.
    pub truncated: bool,
}

/// A deadlock that was found and resolved.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Deadlock {
    /// The time, in microseconds since 1970.
    pub at_us: u64,
    /// Each member waits for a row that the next one holds, and the last for a row of the first.
    ///
    /// Of a longer circle, the first 16 members and the victim.
    pub members: Vec<(DeadlockMember, NamedRow)>,
    /// The number of transactions in the circle.
    pub length: usize,
    /// The member that was rolled back.
    pub victim: usize,
}

impl Database {
    /// Lists running transactions, row locks and waits.
    pub fn inspect(&self) -> Inspection {
        let found = self.shared.transactions.inspect(MOST_LOCKS);
        let mut last: Option<Arc<Table>> = None;
        let locks = found.locks.into_iter().map(|lock| Lock {
            lock: lock.lock,
            transaction: lock.transaction,
            row: match lock.extent {
                LockExtent::Row => self.named(&lock.row, &mut last),
                LockExtent::Range(end) => self.named_range(&lock.row, end.as_ref(), &mut last),
            },
            is_range: lock.extent != LockExtent::Row,
            mode: lock.mode,
            granted: lock.granted,
        });
        Inspection {
            locks: locks.collect(),
            transactions: found.transactions,
            waits: found.waits,
            truncated: found.truncated,
        }
    }

    /// The latest deadlock since the database was opened.
    pub fn latest_deadlock(&self) -> Option<Deadlock> {
        let report = self.shared.transactions.latest_deadlock()?;
        let mut last = None;
        let members = report.members.iter();
        Some(Deadlock {
            at_us: report.at_us,
            members: members
                .map(|member| (member.clone(), self.named(&member.row, &mut last)))
                .collect(),
            length: report.length,
            victim: report.victim,
        })
    }

    fn named_range(
        &self,
        from: &RowName,
        to: Option<&RowName>,
        last: &mut Option<Arc<Table>>,
    ) -> NamedRow {
        let begin = self.named(from, last);
        let end = to.map(|to| self.named(to, last).key);
        let key = match (from.key().is_empty(), end) {
            (true, None) => "all keys".into(),
            (true, Some(end)) => format!("key < {end}"),
            (false, None) => format!("{} <= key", begin.key),
            (false, Some(end)) => format!("{} <= key < {end}", begin.key),
        };
        NamedRow { key, ..begin }
    }

    /// `last` has the table found last: rows of one table often follow one another.
    fn named(&self, row: &RowName, last: &mut Option<Arc<Table>>) -> NamedRow {
        let counter = tree_of_counter(row.tree());
        let tree = counter.unwrap_or(row.tree());
        let known = last
            .as_ref()
            .is_some_and(|table| table.index_name(tree).is_some());
        if !known {
            // An error of opening the table matters to its users; here the table only has no name.
            *last = self.shared.registry.table_of_tree(tree).ok().flatten();
        }
        match last {
            Some(table) if counter.is_some() => NamedRow {
                table: table.name(),
                index: String::new(),
                key: "AUTO_INC".into(),
            },
            Some(table) => NamedRow {
                table: table.name(),
                index: table.index_name(row.tree()).unwrap_or_default(),
                key: table.key_text(row.tree(), row.key(), row.is_cut()),
            },
            None => NamedRow {
                table: String::new(),
                index: String::new(),
                key: String::new(),
            },
        }
    }
}
