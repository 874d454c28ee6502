//! Reading rows: one, many at once, ranges in either direction, and what a range comes to.
#![forbid(unsafe_code)]

mod aggregate;
mod cursor;
mod filter;
mod get;
mod mini_page;
mod multi_get;
pub(crate) mod options;
mod record_cursor;
mod row_batch;
mod row_view;
mod rows;

pub use aggregate::{Aggregate, Aggregated, Comparison, Condition, Group, IndexRange};
pub use cursor::{Cursor, Seek};
pub use filter::{EntryFilter, Verdict};
pub use multi_get::MultiGet;
pub use options::{CursorOptions, RowLock};
pub use row_view::RowView;
pub use rows::Rows;
