//! Row locks and range locks: the lock table, its queues, and who waits in them.
//!
//! - `table`, `queue`, `range`: who holds what, who is granted it next, and ranges that were looked at;
//! - `running_transaction`: what other threads may see and do to a running transaction; `row_name`: what row an entry means;
//! - `deadlock_report`: how a deadlock is told.
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
