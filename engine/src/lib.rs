//! Peregrine: an embeddable transactional storage engine.
#![warn(missing_docs)]

mod broken;
pub mod buffer;
pub mod catalog;
pub mod check;
pub mod checkpoint;
pub mod db;
pub mod dump;
pub mod error;
mod fallible;
pub mod fuzz_entry;
pub mod ids;
#[doc(hidden)]
pub mod knobs;
mod leaf_cache;
mod lock;
pub mod log;
mod mvcc;
mod node;
pub mod os;
mod planted;
mod random;
mod read;
mod recovery;
pub mod row;
mod session;
mod sessions;
pub mod settings;
pub mod store;
#[doc(hidden)]
pub mod sync;
pub mod table;
pub mod tree;
pub mod txn;
mod undo;
mod write;

#[cfg(feature = "broken")]
pub use broken::{IsolationFault, VARIABLE as BROKEN_VARIABLE};
pub use db::{Database, Deadlock, Inspection, Lock, NamedRow, Status};
pub use error::{Error, Result};
pub use lock::{DeadlockMember, LockMode};
#[cfg(feature = "broken")]
pub use planted::{plant, PlantedFault};
pub use read::{
    Aggregate, Aggregated, Comparison, Condition, Cursor, CursorOptions, EntryFilter, Group,
    IndexRange, MultiGet, RowLock, RowView, Rows, Seek, Verdict,
};
pub use row::{
    Collations, Column, ColumnType, Index, Key, KeyPart, NumberPlace, OwnedValue, SchemaNames,
    TableSchema, Text, TextPlace, Value,
};
pub use session::{KillHandle, Savepoint, Transaction};
pub use sessions::{Sessions, ToldWaits, Waiting};
pub use settings::{Durability, Isolation, Locking, Options, TableOptions};
pub use table::{IndexId, Prepared, Table};
pub use txn::{LockWait, TransactionEntry, TransactionState, Xid};
