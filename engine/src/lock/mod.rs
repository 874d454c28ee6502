//! Row locks and range locks: the lock table, its queues, and the transactions in them.
//!
//! - `table`, `queue`, `range`: the holders and waiters of each row, and ranges that were searched;
//! - `running_transaction`: what other threads may see of a running transaction and do to it;
//! - `row_name`: the row that an entry means;
//! - `deadlock_report`: the report of a deadlock.
#![forbid(unsafe_code)]

pub(crate) mod deadlock_report;
mod queue;
pub(crate) mod range;
pub(crate) mod row_name;
pub(crate) mod running_transaction;
pub(crate) mod table;

pub use deadlock_report::DeadlockMember;
pub use row_name::RowName;
pub use running_transaction::UndoWork;
pub use table::{KeyLock, LockMode};
