//! The row, or index entry, that a read returns.

use crate::error::{Error, Result};
use crate::fallible;
use crate::row::entry::EntryRef;
use crate::row::key_bytes::KeyBytes;
use crate::row::payload::{Field, RowRef};
use crate::row::Value;
use crate::table::large;
use crate::table::open_table::Table;

/// A row, or an index entry.
///
/// Decodes a column when the caller asks for it.
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

    /// The value of a column; [`Value::OutOfRow`] if it is stored outside the row.
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

    /// The row's bytes as the table stores them (docs/format.md); of an index entry, its payload.
    ///
    /// For callers that hash, count or copy whole rows; [`RowView::get`] reads columns.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        match &self.bytes {
            Bytes::Row(row) => row.payload(),
            Bytes::Entry(entry) => entry.payload(),
        }
    }

    /// Puts the bytes of a bytes column, inside or outside the row, into `out` (cleared first); returns false for NULL.
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

    /// All columns, copied; reads values that are stored outside the row.
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
