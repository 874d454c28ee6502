//! Reading rows: one, many at once, ranges in either direction, and what a range comes to.
#![forbid(unsafe_code)]

mod aggregate;
mod cursor;
mod fetch;
mod filter;
mod get;
mod multi_get;
mod narrow;
pub(crate) mod options;
mod row_view;
mod rows;
mod walk;

pub use aggregate::{Aggregate, Aggregated, Comparison, Condition, Group, IndexRange};
pub use cursor::{Cursor, Seek};
pub use filter::{EntryFilter, Verdict};
pub use multi_get::MultiGet;
pub use options::{CursorOptions, RowLock};
pub use row_view::RowView;
pub use rows::Rows;
