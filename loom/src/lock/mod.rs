//! Row locks.

pub mod locks;
#[path = "../../../engine/src/lock/queue.rs"]
mod queue;
#[path = "../../../engine/src/lock/range.rs"]
mod range;
#[path = "../../../engine/src/lock/row_name.rs"]
mod row_name;
#[path = "../../../engine/src/lock/running_transaction.rs"]
pub(crate) mod running_transaction;
#[path = "../../../engine/src/lock/table/mod.rs"]
mod table;

use std::sync::Arc;

use self::running_transaction::RunningTransaction;

/// Returns a new running transaction.
pub(crate) fn running() -> Arc<RunningTransaction> {
    RunningTransaction::new(Arc::default())
}
