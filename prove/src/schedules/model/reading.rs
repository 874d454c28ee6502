//! Reads a table's rows through one of its indexes.

use std::sync::Arc;

use peregrine::{Cursor, CursorOptions, Error, Result, RowView, Seek, Table, Transaction, Value};

use crate::simulated::model::{print, Row, CODE, GROUP, ID, LARGE, PAD};

/// A row as a session reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The row's key.
    pub id: u64,
    /// See `Row::group`.
    pub group: u64,
    /// See `Row::code`.
    pub code: u64,
    /// The row's fingerprint, from `print`.
    pub print: u64,
}

/// Converts a row of the model into the form in which it is read.
#[must_use]
pub fn as_read(id: u64, row: &Row) -> Read {
    Read {
        id,
        group: u64::from(row.group),
        code: row.code,
        print: row.print,
    }
}

fn number(value: Value<'_>) -> Result<u64> {
    match value {
        Value::UInt(number) => Ok(number),
        other => Err(Error::Internal(format!("{other:?} where a number stood"))),
    }
}

/// Reads a row's values.
///
/// # Errors
/// The engine's errors, also for large values.
pub fn read(row: &RowView<'_>, has_large: bool) -> Result<Read> {
    let (mut pad, mut large) = (Vec::new(), Vec::new());
    let id = number(row.get(ID)?)?;
    row.get_large(PAD, &mut pad)?;
    let has = has_large && row.get_large(LARGE, &mut large)?;
    let (group, code) = (number(row.get(GROUP)?)?, number(row.get(CODE)?)?);
    Ok(Read {
        id,
        group,
        code,
        print: print(id, group, code, &pad, has.then_some(&large[..])),
    })
}

/// Returns all rows that the transaction sees, in the order of an index, or in reverse order.
///
/// # Errors
/// The engine's errors.
pub fn rows(
    txn: &mut Transaction,
    table: &Arc<Table>,
    index: usize,
    backwards: bool,
) -> Result<Vec<Read>> {
    let has_large = table.schema().columns.len() > LARGE;
    let mut cursor = Cursor::new(table, index, CursorOptions::default());
    let mut rows = Vec::new();
    let first = if backwards { Seek::Last } else { Seek::First };
    let mut more = cursor.seek(txn, &[], first)?;
    while more {
        rows.push(read(&cursor.row()?, has_large)?);
        more = match backwards {
            true => cursor.prev(txn)?,
            false => cursor.next(txn)?,
        };
    }
    if backwards {
        rows.reverse();
    }
    Ok(rows)
}

/// Returns the key of a row in an index.
#[must_use]
pub fn key_of(row: &Read, index: usize) -> (u64, u64) {
    match index {
        0 => (row.id, 0),
        1 => (row.group, row.id),
        _ => (row.code, row.id),
    }
}

/// Returns whether the rows are in the index's order, none of them twice.
#[must_use]
pub fn in_order(rows: &[Read], index: usize) -> bool {
    rows.windows(2)
        .all(|pair| key_of(&pair[0], index) < key_of(&pair[1], index))
}
