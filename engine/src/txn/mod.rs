//! Transactions over trees: snapshots, versions, row locks, undo, commit, rollback, purge.
//!
//! [`System`] is what all transactions of a database share. [`Transaction`] is one of them. Both
//! know trees and keys, not tables: `table/` composes row operations from the versioned operations
//! here, all of them on `&Tree`:
//!
//! ```text
//! loop {
//!     let outcome = {
//!         let inside = system.gate().enter();
//!         txn.try_put(&inside, tree, key, payload, PutMode::Update, None)?
//!     };                                    // the gate is left before any wait
//!     match outcome {
//!         Put::Conflict(conflict) => txn.wait(&conflict)?,   // then again, from the top
//!         Put::Changed => return Err(txn.changed_since(tree.id())),
//!         Put::Done { .. } | Put::Duplicate | Put::Missing => break,
//!     }
//! }
//! ```
#![forbid(unsafe_code)]

mod abandoned;
mod capture;
mod commit;
mod committed;
mod counter_lock;
mod deadlock;
mod deadlock_report;
mod gate;
mod grace;
mod inspect;
mod last_committed;
mod latest_deadlock;
mod live_snapshots;
mod lock;
mod lock_queue;
mod name_lock;
mod order;
mod participant;
mod prepare;
mod prune;
mod prune_chain;
mod pruning;
mod purge;
mod purge_thread;
mod range;
mod read;
mod recovery_tally;
mod recovery_work;
mod redo;
mod rollback;
mod row_name;
mod savepoint;
mod settle;
mod snapshot;
#[cfg(feature = "broken")]
mod stale;
mod standing;
mod state;
mod status;
mod system;
mod transaction;
mod undo;
mod undo_stream;
mod undo_streams;
mod version;
mod wait;
mod waits_told;
mod write;
mod xid;

#[cfg(test)]
pub(crate) mod tests;

pub use capture::Captured;
pub use commit::Committed;
pub(crate) use committed::committed_version;
pub use counter_lock::tree_of_counter;
pub use deadlock_report::{DeadlockMember, DeadlockReport};
pub use gate::{ClosedGate, Gate, GateGuard};
pub use inspect::{
    Inspection, LockEntry, LockExtent, LockWait, TransactionEntry, TransactionState,
};
pub use last_committed::LastCommitted;
pub use lock::LockMode;
pub use name_lock::KeyLock;
pub use participant::UndoWork;
pub(crate) use purge::is_damage;
pub use read::{Copied, Reader, Versions};
pub use recovery_tally::RecoveryWork;
pub use redo::{Change, ChangeReader, ChangeRecord, RedoBuffer, KIND_CHANGES, KIND_COMMIT};
pub use row_name::RowName;
pub use savepoint::Savepoint;
pub use settle::ForAll;
pub use snapshot::ReadView;
pub use system::{Replayed, System, SystemStats, Trees};
pub use transaction::{KillHandle, RangeLocker, Transaction};
pub use version::{encode_settled, live_payload, Header, Origin, MAX_HEADER, MAX_PAYLOAD};
pub use wait::{Conflict, LockRow};
pub use write::{Delete, Put, PutMode};
pub use xid::{decode_rolled_back, PreparedRecord, Xid, KIND_PREPARED, KIND_ROLLED_BACK};
