//! Reads all rows of a table through one of its indexes.

use std::cmp::Ordering;
use std::sync::Arc;

use peregrine::{Cursor, CursorOptions, Database, Isolation, Result, Seek, Table, Transaction};

use super::rows::{Row, Rows, VARIED};
use crate::schedules::plan::OWNERS;

/// Returns all rows that the transaction sees, in the order of an index, or in reverse order.
///
/// # Errors
/// The engine's errors.
pub fn all(
    txn: &mut Transaction,
    table: &Arc<Table>,
    index: usize,
    backwards: bool,
) -> Result<Vec<Row>> {
    let cursor = Cursor::new(table, index, CursorOptions::default());
    to_the_end(txn, cursor, backwards)
}

/// Returns all rows that a cursor finds, in its order or in reverse order.
///
/// # Errors
/// The engine's errors.
pub(super) fn to_the_end(
    txn: &mut Transaction,
    mut cursor: Cursor,
    backwards: bool,
) -> Result<Vec<Row>> {
    let first = if backwards { Seek::Last } else { Seek::First };
    let mut rows = Vec::new();
    let mut more = cursor.seek(txn, &[], first)?;
    while more {
        rows.push(Row::read(&cursor.row()?)?);
        more = match backwards {
            true => cursor.prev(txn)?,
            false => cursor.next(txn)?,
        };
    }
    Ok(rows)
}

/// Returns a session's committed rows.
///
/// # Errors
/// The engine's errors.
pub fn own_rows(db: &Database, session: u64) -> Result<Rows> {
    let table = db.table(VARIED)?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    let found = all(&mut txn, &table, 0, false)?;
    let own = found.into_iter().filter(|row| row.id % OWNERS == session);
    Ok(own.map(|row| (row.id, row)).collect())
}

/// Returns whether the rows are in the order of an index, or in reverse order, none of them twice.
#[must_use]
pub fn in_order(rows: &[Row], index: usize, backwards: bool) -> bool {
    let wanted = match backwards {
        true => Ordering::Greater,
        false => Ordering::Less,
    };
    rows.windows(2)
        .all(|pair| pair[0].order(&pair[1], index) == wanted)
}
