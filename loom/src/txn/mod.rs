//! Snapshots, the order of commits, row locks.

pub mod commits;
#[path = "../../../engine/src/txn/grace.rs"]
mod grace;
#[path = "../../../engine/src/txn/live_snapshots.rs"]
mod live_snapshots;
#[path = "../../../engine/src/txn/lock.rs"]
mod lock;
#[path = "../../../engine/src/txn/lock_queue.rs"]
mod lock_queue;
pub mod locks;
#[path = "../../../engine/src/txn/order.rs"]
mod order;
#[path = "../../../engine/src/txn/participant.rs"]
mod participant;
#[path = "../../../engine/src/txn/range.rs"]
mod range;
#[path = "../../../engine/src/txn/row_name.rs"]
mod row_name;
#[path = "../../../engine/src/txn/snapshot.rs"]
mod snapshot;
pub mod snapshots;
#[cfg(feature = "broken")]
#[path = "../../../engine/src/txn/stale.rs"]
mod stale;
#[path = "../../../engine/src/txn/status.rs"]
mod status;
#[path = "../../../engine/src/txn/version.rs"]
mod version;

use std::sync::Arc;

use self::participant::Participant;

/// A transaction, as others see it.
fn participant() -> Arc<Participant> {
    Participant::new(Arc::default())
}
