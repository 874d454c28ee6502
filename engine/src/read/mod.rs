//! Reading rows: single rows, many at once, ranges in either direction, and aggregates over a range.
//!
//! - `get`: one row by its clustered key; `multi_get`: the rows of many clustered keys at once; `rows`: many reads of
//!   one table in one snapshot, with little work for each;
//! - `cursor`: positions in an index, with seeks, steps, locks and filters; `record_cursor`: the visible records of one
//!   tree, on which cursors are built; `row_batch`: index entries that a cursor reads ahead, with their rows;
//! - `aggregate`: counts, sums, minima and maxima over a range, by several threads where many leaves must be read;
//! - `mini_page`: reads and makes mini-pages, the cached columns of leaves that are not in memory;
//! - `row_view`: a row or an index entry, decoded column by column; `filter`: index condition pushdown; `options`: the
//!   locks and options of a cursor.
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
