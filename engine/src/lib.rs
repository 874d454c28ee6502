//! Peregrine: an embeddable transactional storage engine.
#![warn(missing_docs)]

mod broken;
pub mod catalog;
pub mod check;
pub mod checkpoint;
pub mod db;
pub mod dump;
pub mod error;
pub mod hostile;
pub mod ids;
#[doc(hidden)]
pub mod knobs;
pub mod log;
pub mod os;
pub mod page;
mod planted;
mod random;
mod recovery;
mod room;
pub mod row;
mod sessions;
pub mod settings;
pub mod store;
#[doc(hidden)]
pub mod sync;
pub mod table;
pub mod tree;
pub mod txn;

#[cfg(feature = "broken")]
pub use broken::{BrokenRule, VARIABLE as BROKEN_VARIABLE};
pub use db::{Database, Deadlock, Inspection, Lock, NamedRow, Status};
pub use error::{Error, Result};
#[cfg(feature = "broken")]
pub use planted::{plant, PlantedFault};
pub use row::{
    Collations, Column, ColumnType, Index, Key, KeyPart, NumberPlace, OwnedValue, SchemaNames,
    TableSchema, Text, TextPlace, Value,
};
pub use sessions::{Sessions, ToldWaits, Waiting};
pub use settings::{Durability, Isolation, Locking, Options, TableOptions};
pub use table::{
    Aggregate, Aggregated, Comparison, Condition, Cursor, CursorOptions, EntryFilter, Group,
    IndexId, IndexRange, KillHandle, MultiGet, Prepared, RowLock, RowView, Rows, Savepoint, Seek,
    Table, Transaction, Verdict,
};
pub use txn::{DeadlockMember, LockMode, LockWait, TransactionEntry, TransactionState, Xid};
