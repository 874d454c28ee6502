//! Reading rows: one, many at once, ranges in either direction, and what a range comes to.
#![forbid(unsafe_code)]

mod aggregate;
mod cursor;
mod row_batch;
mod filter;
mod get;
mod multi_get;
mod mini_page;
pub(crate) mod options;
mod row_view;
mod rows;
mod record_cursor;

pub use aggregate::{Aggregate, Aggregated, Comparison, Condition, Group, IndexRange};
pub use cursor::{Cursor, Seek};
pub use filter::{EntryFilter, Verdict};
pub use multi_get::MultiGet;
pub use options::{CursorOptions, RowLock};
pub use row_view::RowView;
pub use rows::Rows;
