//! A row that a cursor or a get stands on.

use crate::error::{Error, Result};
use crate::row::Value;

/// A row, or an index entry, whose columns are decoded one at a time, when asked for.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    _bytes: &'a [u8],
}

impl<'a> RowView<'a> {
    /// The value of a column. A value that stands outside the row is [`Value::OutOfRow`].
    ///
    /// # Errors
    /// `Error::NotFound` for a column that the table, or the index of an index-only cursor, does
    /// not have; `Error::Corrupt`/`Internal` when the bytes are no row.
    pub fn get(&self, _column: usize) -> Result<Value<'a>> {
        Err(Error::Internal("not yet".into()))
    }

    /// Puts the bytes of a bytes column, inside or outside the row, into `out` (cleared first);
    /// false for NULL.
    ///
    /// # Errors
    /// As [`RowView::get`], and those of reading pages.
    pub fn get_large(&self, _column: usize, _out: &mut Vec<u8>) -> Result<bool> {
        Err(Error::Internal("not yet".into()))
    }
}
