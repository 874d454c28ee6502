//! Peregrine: a transactional storage engine for tables, to be embedded in a program.
//!
//! A [`Database`] is a directory. It holds tables with columns, a primary key and further indexes. A [`Transaction`]
//! reads and changes rows of any of them; as many threads as you like have one each.
//!
//! - **Isolation** is chosen by transaction ([`Isolation`]): READ COMMITTED, REPEATABLE READ as a snapshot in which a
//!   conflicting change is refused, or SERIALIZABLE. A read without a lock never waits for a writer.
//! - **Durability**: [`Transaction::commit`] returns once the log is synced ([`Durability`] has weaker choices).
//!   After a crash [`Database::open`] restores what was durably committed, and transactions that are prepared.
//! - **Memory**: [`Options::pool_bytes`] bounds the pages in memory; data may be many times larger.
//! - **Errors** are values ([`Error`]). An operation that fails is undone; its transaction goes on, or says that it
//!   must be rolled back.
//!
//! ```
//! use peregrine::{
//!     Column, ColumnType, CursorOptions, Database, Index, Isolation, Key, Options, TableSchema, Value,
//! };
//!
//! # fn main() -> peregrine::Result<()> {
//! # let scratch = tempfile::tempdir().unwrap();
//! # let dir = scratch.path();
//! let db = Database::open(dir, Options::default())?;
//! let number = |bytes| ColumnType::Int { bytes, signed: false };
//! let schema = TableSchema {
//!     columns: vec![
//!         Column::new("id", number(4)),
//!         Column::new("name", ColumnType::VarBytes { max: 64 }),
//!         Column::new("born", number(2)),
//!     ],
//!     primary: Some(Key::new(&[0])),
//!     indexes: vec![Index::new("born", &[2])],
//!     user: vec![],
//! };
//! let people = db.create_table("people", &schema)?;
//!
//! // All of it or nothing.
//! let mut txn = db.begin(Isolation::RepeatableRead);
//! for (id, name, born) in [(1u32, "Ada", 1815u16), (2, "Grace", 1906), (3, "Edsger", 1930)] {
//!     txn.insert(&people, &[id.into(), name.into(), born.into()])?;
//! }
//! txn.commit()?;
//!
//! // A row by its key, in a snapshot.
//! let mut txn = db.begin(Isolation::RepeatableRead);
//! let key = people.encode_key(0, &[Value::UInt(2)])?;
//! let name = txn.get(&people, &key, |row| row.get(1).map(|name| name.to_owned()))?;
//! assert_eq!(name.unwrap()?.as_value(), Value::Bytes(b"Grace"));
//! txn.commit()?;
//! # Ok(())
//! # }
//! ```
//!
//! The example `quick_start` goes further: ranges, rollback, reopening. A [`Cursor`] moves along an index.
//! [`Transaction::rows`] reads very many rows of one snapshot with the least work a row, and [`MultiGet`] reads the rows
//! of many keys together. The engine computes an [`Aggregate`] in the pages. [`check`](fn@check) verifies the files of a
//! closed database; [`Dump`] reads what is left of a damaged one.
#![deny(missing_docs)]

mod broken;
mod catalog;
mod checkpoint;
mod db;
mod error;
mod fallible;
mod leaf_cache;
mod lock;
mod mvcc;
mod node;
mod planted;
mod random;
mod read;
mod recovery;
mod session;
mod sessions;
mod settings;
mod table;
mod undo;
mod write;

// What tools, proofs and measurements of the engine itself name. It may change with any version.
#[doc(hidden)]
pub mod buffer;
#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod dump;
#[doc(hidden)]
pub mod fuzz_entry;
#[doc(hidden)]
pub mod ids;
#[doc(hidden)]
pub mod knobs;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod os;
#[doc(hidden)]
pub mod row;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod sync;
#[doc(hidden)]
pub mod tree;
#[doc(hidden)]
pub mod txn;

#[cfg(feature = "broken")]
pub use broken::{IsolationFault, VARIABLE as BROKEN_VARIABLE};
pub use check::{check, Report, TableReport};
pub use db::{Database, Deadlock, Inspection, Lock, NamedRow, Status};
pub use dump::{Dump, Missing};
pub use error::{Error, Result};
pub use ids::{PageId, TableId, TxId};
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
pub use settings::{Durability, Isolation, Locking, Options, TableOptions, MOST_SCAN_THREADS};
pub use table::{IndexId, Prepared, Table};
pub use txn::{LockWait, TransactionEntry, TransactionState, Xid};
