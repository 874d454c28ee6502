//! How a deadlock is told.

use crate::lock::row_name::RowName;
use crate::lock::table::LockMode;

/// A transaction of a deadlock. It waits for a row that the next member holds, the last one for a
/// row of the first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadlockMember {
    /// Its number, as in [`crate::txn::TransactionEntry::id`].
    pub id: u64,
    /// What [`crate::txn::TreeTransaction::set_session`] said, or 0.
    pub session: u64,
    /// Undo records: what its rollback costs.
    pub undo_records: u64,
    /// The row it waits for.
    pub row: RowName,
    /// How it wants to lock it.
    pub mode: LockMode,
    /// What it was executing, as [`crate::Sessions`] say.
    pub statement: Option<String>,
}

/// A deadlock that was found and broken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadlockReport {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// The circle, from the transaction that closed it; of long circles the first 16 and the victim.
    pub members: Vec<DeadlockMember>,
    /// How many transactions the circle had.
    pub length: usize,
    /// Which of the members was rolled back.
    pub victim: usize,
}
