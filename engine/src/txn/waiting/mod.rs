//! Transactions that wait for rows, names and counters; deadlocks; and how the program is told of waits.

mod counter_lock;
mod deadlock;
mod latest_deadlock;
mod name_lock;
pub(crate) mod row_locks;
mod waits_told;

pub use counter_lock::tree_of_counter;
pub use row_locks::{Conflict, LockRow};
