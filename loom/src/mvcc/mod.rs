//! Snapshots, and the order of commits.

pub mod commits;
#[path = "../../../engine/src/mvcc/live_snapshots.rs"]
mod live_snapshots;
#[path = "../../../engine/src/mvcc/order.rs"]
mod order;
#[path = "../../../engine/src/mvcc/snapshot.rs"]
mod snapshot;
pub mod snapshots;
#[cfg(feature = "broken")]
#[path = "../../../engine/src/mvcc/stale.rs"]
mod stale;
#[path = "../../../engine/src/mvcc/status.rs"]
mod status;
#[path = "../../../engine/src/mvcc/undo_reclamation.rs"]
mod undo_reclamation;
#[path = "../../../engine/src/mvcc/version.rs"]
mod version;
