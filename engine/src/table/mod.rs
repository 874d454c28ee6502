//! Tables: a clustered tree and its secondary trees under one name; their definitions, counters, large values and
//! statistics.
#![forbid(unsafe_code)]

mod cached_statistics;
pub(crate) mod ddl;
pub(crate) mod key_prefix;
pub(crate) mod large;
pub(crate) mod open_table;
pub(crate) mod prepared_transactions;
pub(crate) mod registry;
pub(crate) mod replay;
pub(crate) mod row_text;
pub(crate) mod shared;
pub(crate) mod state;
mod statistics;
pub(crate) mod table_use;
mod users;

pub use open_table::{IndexId, Table};
pub use prepared_transactions::Prepared;
