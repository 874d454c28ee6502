//! Row locks.

pub mod locks;
#[path = "../../../engine/src/lock/participant.rs"]
pub(crate) mod participant;
#[path = "../../../engine/src/lock/queue.rs"]
mod queue;
#[path = "../../../engine/src/lock/range.rs"]
mod range;
#[path = "../../../engine/src/lock/row_name.rs"]
mod row_name;
#[path = "../../../engine/src/lock/table/mod.rs"]
mod table;

use std::sync::Arc;

use self::participant::RunningTransaction;

/// A transaction, as others see it.
pub(crate) fn participant() -> Arc<RunningTransaction> {
    RunningTransaction::new(Arc::default())
}
