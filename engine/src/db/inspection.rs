//! Who runs, who holds which row, who waits for whom: with the names of tables and indexes.

use std::sync::Arc;

use super::Database;
use crate::lock::{DeadlockMember, LockMode, RowName};
use crate::table::Table;
use crate::txn::{tree_of_counter, LockExtent, LockWait, TransactionEntry};

/// How many locks an [`Inspection`] lists at most, about.
const MOST_LOCKS: usize = 100_000;

/// A row by its table, index and key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedRow {
    /// The table's name; empty when it is dropped by now.
    pub table: String,
    /// The index: "PRIMARY" for the clustered one; empty for the lock of the table's auto-increment
    /// counter, whose key reads "AUTO_INC".
    pub index: String,
    /// The values of the key, separated by commas; what is not text is in hexadecimal; "…" stands
    /// for the end of a long key.
    pub key: String,
}

/// A lock held or waited for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Lock {
    /// The lock's number: that of its row.
    pub lock: u64,
    /// Whose it is: a [`TransactionEntry::id`].
    pub transaction: u64,
    /// The row. A range's key says which keys are within, as in "5 <= key < 10".
    pub row: NamedRow,
    /// Whether it locks a range of keys, those that do not exist among them.
    pub is_range: bool,
    /// Shared or exclusive.
    pub mode: LockMode,
    /// Held, or only waited for.
    pub granted: bool,
}

/// What [`Database::inspect`] gives. Its parts are each true for a moment, but not all for the same
/// one: work goes on meanwhile.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Transactions that have a snapshot, have locked or have written, by number.
    pub transactions: Vec<TransactionEntry>,
    /// Row locks that stand in the lock table. A row that its writer holds just by having written
    /// it is listed when somebody waits for it.
    pub locks: Vec<Lock>,
    /// Who waits for whom.
    pub waits: Vec<LockWait>,
    /// There are more than 100,000 locks; the others are not listed.
    pub truncated: bool,
}

/// A deadlock that was found and broken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Deadlock {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// Each waits for a row that the next one holds, and the last for one of the first. Of long
    /// circles the first 16 and the victim.
    pub members: Vec<(DeadlockMember, NamedRow)>,
    /// How many transactions the circle had.
    pub length: usize,
    /// Which of the members was rolled back.
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

    /// `last` keeps the table found last: rows of one table often follow one another.
    fn named(&self, row: &RowName, last: &mut Option<Arc<Table>>) -> NamedRow {
        let counter = tree_of_counter(row.tree());
        let tree = counter.unwrap_or(row.tree());
        let known = last
            .as_ref()
            .is_some_and(|table| table.index_name(tree).is_some());
        if !known {
            // An error of opening it is one of that table's users; here it just has no name.
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
