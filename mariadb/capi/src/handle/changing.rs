//! Inserts, updates and deletes.

use std::sync::Arc;

use peregrine::{RowLock, RowView, Transaction, Value};

use super::{Current, Handle};
use crate::c_types::Code;
use crate::failure::{Failure, Outcome};
use crate::rows::layout::Layout;
use crate::rows::record::{self, has, Values};

impl Handle {
    /// Inserts a record, or locks the duplicate row.
    ///
    /// # Safety
    /// `record` must be a record of the table, its blobs valid.
    pub unsafe fn insert(
        &mut self,
        transaction: &mut Transaction,
        record: *const u8,
        lock: RowLock,
    ) -> Outcome {
        // SAFETY: by the caller's promise.
        let record = unsafe { self.shared.record(record)? };
        let mut values = Values::new();
        // SAFETY: by the caller's promise.
        unsafe { record::values(self.layout(), record, &mut values)? };
        let result = transaction.insert_or_lock(&self.table, &values, lock);
        checked(self.layout(), result)
    }

    /// Makes the rows inserted from here on part of the table: [`Transaction::begin_fill`].
    pub fn begin_fill(&self, transaction: &mut Transaction) -> Outcome {
        Ok(transaction.begin_fill(&self.table)?)
    }

    /// Begins a bulk insert.
    pub fn begin_bulk_insert(&self, transaction: &mut Transaction) {
        transaction.begin_bulk_insert(&self.table);
    }

    /// Ends the transaction's bulk inserts.
    pub fn end_bulk_insert(&self, transaction: &mut Transaction) -> Outcome {
        checked(self.layout(), transaction.end_bulk_insert())
    }

    /// Changes the row last read; false when it has all the values already.
    ///
    /// # Safety
    /// `old` and `new` must be records of the table, their blobs valid; `changed` a bitmap of its
    /// columns.
    pub unsafe fn update(
        &mut self,
        transaction: &mut Transaction,
        old: *const u8,
        new: *const u8,
        changed: *const u64,
    ) -> Outcome<bool> {
        // SAFETY: by the caller's promise.
        let (old, new, changed) = unsafe {
            (
                self.shared.record(old)?,
                self.shared.record(new)?,
                self.shared.bitmap(changed)?,
            )
        };
        let shared = Arc::clone(&self.shared);
        let layout = &shared.layout;
        let mut values = Values::new();
        for &number in &layout.stored {
            let column = &layout.columns[number];
            // Columns that the statement does not set need not have been read: their bytes then mean nothing.
            if has(changed, number) || !record::same_bytes(column, old, new) {
                // SAFETY: by the caller's promise.
                values.push(unsafe { record::value(column, new)? });
            } else {
                values.push(Value::OutOfRow(0));
            }
        }
        let mut key = std::mem::take(&mut self.row_key);
        key.clear();
        key.extend_from_slice(self.current_key()?);
        let result = self.update_kept(transaction, &key, values);
        self.row_key = key;
        result
    }

    /// Updates a row; values given as `Value::OutOfRow` keep their current value.
    fn update_kept(
        &mut self,
        transaction: &mut Transaction,
        key: &[u8],
        mut given: Values<'_>,
    ) -> Outcome<bool> {
        let layout = &self.shared.layout;
        let cursor = match self.current {
            Current::Position => &mut self.positioned,
            _ => &mut self.cursor,
        };
        if let Some((purpose, cursor)) = cursor {
            // The row was read with a lock, so no other transaction has changed it since.
            if purpose.reading.lock == RowLock::Exclusive && !purpose.index_only {
                let now = cursor.row()?;
                if !keep_equal(&mut given, &now)? {
                    return Ok(false);
                }
                let row = with_kept(&given, |column| Ok(now.get(column)?))?;
                checked(layout, transaction.update(&self.table, key, &row))?;
                return Ok(true);
            }
        }
        let read = |now: RowView<'_>| -> Outcome<_> {
            let differs = keep_equal(&mut given, &now)?;
            Ok(if differs {
                Some(now.to_values()?)
            } else {
                None
            })
        };
        let now = transaction
            .get_locked(&self.table, key, RowLock::Exclusive, read)?
            .ok_or_else(|| Failure::new(Code::Internal, "the row to change is gone"))??;
        let Some(now) = now else {
            return Ok(false);
        };
        let row = with_kept(&given, |column| Ok(now[column].as_value()))?;
        checked(layout, transaction.update(&self.table, key, &row))?;
        Ok(true)
    }

    /// Deletes the row last read.
    pub fn delete(&mut self, transaction: &mut Transaction) -> Outcome {
        let result = transaction.delete(&self.table, self.current_key()?);
        checked(self.layout(), result)
    }
}

/// Returns a row in which `Value::OutOfRow` values are replaced by those of another row.
fn with_kept<'a>(
    given: &[Value<'a>],
    kept: impl Fn(usize) -> Outcome<Value<'a>>,
) -> Outcome<Values<'a>> {
    given
        .iter()
        .enumerate()
        .map(|(column, &value)| match value {
            Value::OutOfRow(_) => kept(column),
            value => Ok(value),
        })
        .collect()
}

/// Replaces the given values that equal the row's by `Value::OutOfRow`.
///
/// Returns whether another value is left.
fn keep_equal(given: &mut [Value<'_>], now: &RowView<'_>) -> Outcome<bool> {
    let mut differs = false;
    let mut large = Vec::new();
    for (column, value) in given.iter_mut().enumerate() {
        let same = match (&*value, now.get(column)?) {
            (Value::OutOfRow(_), _) => continue,
            (Value::Bytes(new), Value::OutOfRow(length)) => {
                new.len() as u64 == length && now.get_large(column, &mut large)? && large == *new
            }
            (new, old) => *new == old,
        };
        if same {
            *value = Value::OutOfRow(0);
        }
        differs |= !same;
    }
    Ok(differs)
}

/// Adds the server's number of the key to a duplicate error.
fn checked(layout: &Layout, result: peregrine::Result<()>) -> Outcome {
    result.map_err(|error| {
        let key = match &error {
            peregrine::Error::Duplicate { index } => {
                layout.key_of_index.get(*index).copied().unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        };
        Failure {
            key,
            ..error.into()
        }
    })
}
