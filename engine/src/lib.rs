//! Peregrine: an embeddable transactional storage engine.
#![warn(missing_docs)]

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
pub mod settings;
pub mod store;
#[doc(hidden)]
pub mod sync;
pub mod table;
pub mod tree;
pub mod txn;

pub use db::{Database, Deadlock, Inspection, Lock, NamedRow, Status};
pub use error::{Error, Result};
#[cfg(feature = "broken")]
pub use planted::{plant, PlantedFault};
pub use row::{
    Collations, Column, ColumnType, Index, Key, KeyPart, NumberPlace, OwnedValue, SchemaNames,
    TableSchema, Text, TextPlace, Value,
};
pub use settings::{Durability, Isolation, Locking, Options, TableOptions};
pub use table::{
    Aggregate, Aggregated, Comparison, Condition, Cursor, CursorOptions, EntryFilter, Group,
    IndexId, IndexRange, KillHandle, MultiGet, Prepared, RowLock, RowView, Rows, Savepoint, Seek,
    Table, Transaction, Verdict,
};
#[cfg(feature = "broken")]
pub use txn::{BrokenRule, BROKEN_VARIABLE};
pub use txn::{
    DeadlockMember, LockMode, LockWait, Sessions, ToldWaits, TransactionEntry, TransactionState,
    Waiting, Xid,
};
