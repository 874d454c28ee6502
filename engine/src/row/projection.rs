//! Some columns of a row, in few bytes: mini-pages store these of rows.
//!
//! ```text
//! per column of the set, in order: varint 0 for NULL, else 1 + the number of its bytes; the bytes, as in
//! the row's payload
//! ```
//! Widened again, it is a payload of all columns. The missing ones count as stored outside the row, without a
//! reference: a read of one of them gets an error, never a wrong value.

use super::layout::Layout;
use super::payload::{put_bitmap, RowRef, Stored, HAS_NULLS, HAS_OUTSIDE};
use super::varint;
use crate::error::Result;

/// A set of a table's first 64 columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnSet(pub u64);

impl ColumnSet {
    /// The set of these columns; `None` if one of them is behind the first 64.
    pub fn of(columns: &[usize]) -> Option<ColumnSet> {
        columns
            .iter()
            .try_fold(0, |bits, &column| (column < 64).then(|| bits | 1 << column))
            .map(ColumnSet)
    }

    /// Whether the set has all of `columns`; `None` means all columns of the table.
    pub fn holds(self, columns: Option<ColumnSet>) -> bool {
        columns.is_some_and(|columns| columns.0 & !self.0 == 0)
    }

    fn has(self, column: usize) -> bool {
        column < 64 && self.0 >> column & 1 == 1
    }
}

/// Appends the columns of a payload; returns false if that is not possible.
///
/// It returns false if the row, or one of these values, is stored outside. It also does if the row was written before
/// the table got its last column.
///
/// # Errors
/// [`crate::Error::Internal`] when the bytes are no row.
pub(crate) fn project(
    layout: &Layout,
    payload: &[u8],
    columns: ColumnSet,
    out: &mut Vec<u8>,
) -> Result<bool> {
    if payload.first() == Some(&0) {
        return Ok(false);
    }
    let row = RowRef::new(layout, &[], payload)?;
    if row.columns() < layout.columns.len() {
        return Ok(false);
    }
    for column in (0..row.columns()).filter(|column| columns.has(*column)) {
        match row.stored(column)? {
            Stored::Null => varint::put(0, out),
            Stored::Here(bytes) => {
                varint::put(bytes.len() as u64 + 1, out);
                out.extend_from_slice(bytes);
            }
            Stored::Outside => return Ok(false),
        }
    }
    Ok(true)
}

/// The bytes of a column in the output of [`project`]; `Some(None)` for NULL, `None` if the column is not in it.
#[inline]
pub(crate) fn kept(
    mut projected: &[u8],
    columns: ColumnSet,
    column: usize,
) -> Option<Option<&[u8]>> {
    if !columns.has(column) {
        return None;
    }
    // Skip the columns before it.
    let before = (columns.0 & ((1 << column) - 1)).count_ones();
    for _ in 0..before {
        let bytes = varint::take(&mut projected)?.saturating_sub(1);
        projected = projected.get(bytes as usize..)?;
    }
    match varint::take(&mut projected)?.checked_sub(1) {
        None => Some(None),
        Some(bytes) => projected.get(..bytes as usize).map(Some),
    }
}

/// Appends the payload of a row of `count` columns that has only these; `None` if [`project`] did not write the bytes.
///
/// After `None`, `out` may have got bytes.
pub(crate) fn widen(
    count: usize,
    mut projected: &[u8],
    columns: ColumnSet,
    out: &mut Vec<u8>,
) -> Option<()> {
    let whole = projected;
    let mut nulls = 0u64;
    let mut len = 0;
    for column in (0..count.min(64)).filter(|column| columns.has(*column)) {
        match varint::take(&mut projected)?.checked_sub(1) {
            None => nulls |= 1 << column,
            Some(bytes) => {
                len += bytes as usize;
                projected = projected.get(bytes as usize..)?;
            }
        }
    }
    let width = match len {
        0..=0xff => 1,
        _ => 2,
    };
    out.push(width | HAS_OUTSIDE | if nulls == 0 { 0 } else { HAS_NULLS });
    varint::put(count as u64, out);
    if nulls != 0 {
        put_bitmap(
            (0..count).map(|n| n < 64 && nulls >> n & 1 == 1),
            count,
            out,
        );
    }
    put_bitmap((0..count).map(|n| !columns.has(n)), count, out);
    let offsets = out.len();
    out.resize(offsets + count * usize::from(width), 0);
    let mut projected = whole;
    let mut end = 0;
    for column in 0..count {
        if columns.has(column) {
            if let Some(bytes) = varint::take(&mut projected)?.checked_sub(1) {
                let (value, rest) = projected.split_at_checked(bytes as usize)?;
                out.extend_from_slice(value);
                projected = rest;
                end += value.len();
            }
        }
        if width == 1 {
            out[offsets + column] = end as u8;
        } else {
            let at = offsets + 2 * column;
            out[at..at + 2].copy_from_slice(&u16::try_from(end).ok()?.to_le_bytes());
        }
    }
    Some(())
}
