//! A row that a cursor or a get stands on.

use crate::error::{Error, Result};
use crate::fallible;
use crate::row::entry::EntryRef;
use crate::row::key_bytes::KeyBytes;
use crate::row::payload::{Field, RowRef};
use crate::row::Value;
use crate::table::large;
use crate::table::open_table::Table;

/// A row, or an index entry, whose columns are decoded one at a time, when asked for.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    table: &'a Table,
    bytes: Bytes<'a>,
}

#[derive(Clone, Copy)]
enum Bytes<'a> {
    Row(RowRef<'a>),
    Entry(EntryRef<'a>),
}

impl<'a> RowView<'a> {
    #[inline(always)]
    pub(super) fn row(table: &'a Table, key: KeyBytes<'a>, payload: &'a [u8]) -> Result<Self> {
        Ok(RowView {
            table,
            bytes: Bytes::Row(RowRef::with_key_of(&table.layout, key, payload)?),
        })
    }

    pub(super) fn entry(table: &'a Table, entry: EntryRef<'a>) -> Self {
        RowView {
            table,
            bytes: Bytes::Entry(entry),
        }
    }

    /// The value of a column. A value that stands outside the row is [`Value::OutOfRow`].
    ///
    /// # Errors
    /// `Error::NotFound` for a column that the table, or the index of an index-only cursor, does
    /// not have; `Error::Internal` when the bytes are no row.
    #[inline(always)]
    pub fn get(&self, column: usize) -> Result<Value<'a>> {
        match &self.bytes {
            Bytes::Row(row) => row.get(column),
            Bytes::Entry(entry) => entry.get(column),
        }
    }

    /// The row's bytes as the table keeps them (docs/format.md), for whoever hashes, counts or copies rows
    /// whole: columns are read by [`RowView::get`]. Of an index entry, what stands beside its key.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        match &self.bytes {
            Bytes::Row(row) => row.payload(),
            Bytes::Entry(entry) => entry.payload(),
        }
    }

    /// Puts the bytes of a bytes column, inside or outside the row, into `out` (cleared first);
    /// false for NULL.
    ///
    /// # Errors
    /// As [`RowView::get`], and those of reading pages; [`Error::OutOfMemory`]; `Error::Invalid`
    /// when it is no bytes column.
    pub fn get_large(&self, column: usize, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let field = match &self.bytes {
            Bytes::Row(row) => row.field(column)?,
            Bytes::Entry(entry) => Field::Value(entry.get(column)?),
        };
        match field {
            Field::Outside(value) => large::read(&self.table.trees.load(), value, u64::MAX, out)?,
            Field::Value(Value::Null) => return Ok(false),
            Field::Value(Value::Bytes(bytes)) => {
                fallible::reserve(out, bytes.len(), "a value")?;
                out.extend_from_slice(bytes);
            }
            Field::Value(_) => {
                return Err(Error::Invalid(format!(
                    "column {} has no bytes: its type is {:?}",
                    self.table.layout.columns[column].column.name,
                    self.table.layout.columns[column].column.ty
                )))
            }
        }
        Ok(true)
    }

    /// All columns, copied; values outside the row are brought in.
    ///
    /// # Errors
    /// As [`RowView::get_large`].
    pub fn to_values(&self) -> Result<Vec<crate::OwnedValue>> {
        (0..self.table.layout.columns.len())
            .map(|column| match self.get(column)? {
                Value::OutOfRow(_) => {
                    let mut bytes = Vec::new();
                    self.get_large(column, &mut bytes)?;
                    Ok(crate::OwnedValue::Bytes(bytes))
                }
                value => Ok(value.to_owned()),
            })
            .collect()
    }
}
