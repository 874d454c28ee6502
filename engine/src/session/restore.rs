//! Repeats the changes of a prepared transaction on recovery, as those of a running one.
//!
//! So its rows are locked, and it can still be committed or rolled back.

use crate::error::Result;
use crate::row::key::row_id;
use crate::row::payload::{Field, RowRef};
use crate::row::Value;
use crate::session::transaction::Transaction;
use crate::sync::atomic::Ordering;
use crate::table::open_table::Table;
use crate::txn::Change;

impl Transaction {
    /// Repeats a logged change of the row of `key`.
    ///
    /// The transaction had locked every row that it changed, so no other has changed it since: no lock is in the way.
    pub(crate) fn repeat(&mut self, table: &Table, key: &[u8], change: Change<'_>) -> Result<()> {
        let redo = match change {
            Change::Delete => return self.delete(table, key),
            Change::Put(redo) => redo,
        };
        let redo = RowRef::new(&table.layout, key, redo)?;
        let mut row = Vec::with_capacity(table.layout.columns.len());
        for column in 0..table.layout.columns.len() {
            row.push(match redo.field(column)? {
                Field::Value(value) => value,
                // In the log this means: as in the row before.
                Field::Outside(at) => Value::OutOfRow(at.len),
            });
        }
        match self.get(table, key, |_| ())? {
            Some(()) => self.update(table, key, &row),
            None => {
                if let (true, Some(id)) = (table.layout.hidden, row_id(key)) {
                    let next = &table.state.next_row_id;
                    next.fetch_max(id + 1, Ordering::Relaxed);
                }
                self.insert_at(table, key, &row)
            }
        }
    }
}
