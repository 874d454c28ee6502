//! Transactions over trees: reading and writing versions, waiting, commit, rollback, purge.
//!
//! [`TransactionManager`] has everything that the transactions of a database share. [`TreeTransaction`] is one
//! transaction. Both know trees and keys, not tables. `write/` composes row operations from the versioned operations
//! here, all of them on `&Tree`:
//! ```text
//! loop {
//!     let outcome = {
//!         let inside = transactions.barrier().enter();
//!         txn.try_put(&inside, tree, key, payload, PutMode::Update, None)?
//!     };                                    // the barrier is left before any wait
//!     match outcome {
//!         Put::Conflict(conflict) => txn.wait(&conflict)?,   // then again, from the top
//!         Put::Changed => return Err(txn.changed_since(tree.id())),
//!         Put::Done { .. } | Put::Duplicate | Put::Missing => break,
//!     }
//! }
//! ```
#![forbid(unsafe_code)]

mod abandoned;
mod checkpoint_barrier;
mod end;
mod inspect;
mod last_committed;
mod purge;
mod read;
mod recovery;
mod recovery_tally;
mod redo;
mod savepoint;
mod standing;
mod state;
mod transaction;
mod transaction_manager;
mod waiting;
mod write;
mod xid;

#[cfg(test)]
pub(crate) mod tests;

pub use checkpoint_barrier::{BarrierGuard, CheckpointBarrier, ClosedBarrier};
pub use end::Committed;
pub use inspect::{
    Inspection, LockEntry, LockExtent, LockWait, TransactionEntry, TransactionState,
};
pub use last_committed::LastCommitted;
pub(crate) use purge::is_damage;
pub use read::{Copied, SnapshotReader, VersionResolver};
pub use recovery::Captured;
pub use recovery_tally::RecoveryWork;
pub use redo::{Change, ChangeReader, ChangeRecord, RedoBuffer, KIND_CHANGES, KIND_COMMIT};
pub use savepoint::Savepoint;
pub use transaction::{KillHandle, RangeLocker, TreeTransaction};
pub use transaction_manager::{Replayed, SystemStats, TransactionManager, UndoOwner};
pub use waiting::{tree_of_counter, Conflict, LockRow};
pub use write::{Delete, Put, PutMode};
pub use xid::{decode_rolled_back, PreparedRecord, Xid, KIND_PREPARED, KIND_ROLLED_BACK};
