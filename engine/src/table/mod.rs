//! Tables: row operations over a clustered tree and its secondary trees, cursors, statistics.

mod cursor;
mod row_view;
mod table_handle;
mod transaction;

pub use cursor::{Cursor, CursorOptions, RowLock, Seek};
pub use row_view::RowView;
pub use table_handle::{IndexId, Table};
pub use transaction::{KillHandle, Savepoint, Transaction};
