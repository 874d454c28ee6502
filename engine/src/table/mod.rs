//! Tables: row operations over a clustered tree and its secondary trees, cursors, aggregates,
//! statistics.
#![forbid(unsafe_code)]

mod aggregate;
mod cached_statistics;
mod cursor;
pub(crate) mod ddl;
mod deferred_entries;
mod fetch;
mod filter;
mod guard;
mod held_guards;
mod key_prefix;
pub(crate) mod large;
mod large_format;
mod leave;
mod multi_get;
mod narrow;
mod open_table;
mod prepared;
pub(crate) mod prepared_transactions;
mod read;
mod read_options;
pub(crate) mod registry;
pub(crate) mod replay;
mod revive;
pub(crate) mod row_text;
mod row_view;
mod rows;
mod scratch;
pub(crate) mod shared;
pub(crate) mod state;
mod statistics;
mod transaction;
mod unwound;
mod used;
mod users;
mod walk;
mod write;

pub use aggregate::{Aggregate, Aggregated, Comparison, Condition, Group, IndexRange};
pub use cursor::{Cursor, Seek};
pub use filter::{EntryFilter, Verdict};
pub use multi_get::MultiGet;
pub use open_table::{IndexId, Table};
pub use prepared_transactions::Prepared;
pub use read_options::{CursorOptions, RowLock};
pub use row_view::RowView;
pub use rows::Rows;
pub use transaction::{KillHandle, Savepoint, Transaction};
