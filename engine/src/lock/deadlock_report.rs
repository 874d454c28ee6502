//! The report of a deadlock.

use crate::lock::row_name::RowName;
use crate::lock::table::LockMode;

/// A transaction of a deadlock.
///
/// It waits for a row that the next member holds; the last member waits for a row of the first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadlockMember {
    /// Its number, as in [`crate::txn::TransactionEntry::id`].
    pub id: u64,
    /// The number from [`crate::txn::TreeTransaction::set_session`], or 0.
    pub session: u64,
    /// Its undo records: the cost of its rollback.
    pub undo_records: u64,
    /// The row it waits for.
    pub row: RowName,
    /// The mode in which it wants to lock the row.
    pub mode: LockMode,
    /// The statement that it was executing, from [`crate::Sessions`].
    pub statement: Option<String>,
}

/// A deadlock that was found and broken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadlockReport {
    /// When the deadlock was found, in microseconds since 1970.
    pub at_us: u64,
    /// The circle, from the transaction that closed it; of a circle longer than 16, the first 16 and the victim.
    pub members: Vec<DeadlockMember>,
    /// The number of transactions in the circle.
    pub length: usize,
    /// The place in `members` of the transaction that was rolled back.
    pub victim: usize,
}
