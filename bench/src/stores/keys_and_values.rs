//! How a store of keys and values answers questions.
//!
//! It has rows by their ids in one tree, and entries of the index on country, state and city in another. Columns that
//! the entry has are not read from the row.

use std::ops::ControlFlow;

use super::question::{give_day, Question, Wanted};
use super::row_bytes::{
    Entry, {self},
};
use peregrine_harness::engines::{RowSink, Value};
use peregrine_harness::error::{HarnessError, Result};

/// A snapshot of a store.
///
/// It passes the stored bytes to functions, without a copy.
pub trait KeysAndValues {
    /// Passes the row with this id, if there is one, to `see`.
    fn row(&self, id: u32, see: impl FnMut(&[u8])) -> Result<()>;

    /// Passes every row with an id in this range, or every row, to `see`.
    fn rows(&self, ids: Option<(u32, u32)>, see: impl FnMut(&[u8])) -> Result<()>;

    /// Counts the ids in a range without reading the rows.
    fn count(&self, ids: (u32, u32)) -> Result<u64>;

    /// Passes every key of the index from `first` to `last` to `see`, until `see` breaks.
    fn entries(
        &self,
        first: &[u8],
        last: &[u8],
        see: impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()>;
}

fn no_row() -> HarnessError {
    HarnessError::Server("what a store has under a row's key is no row".to_owned())
}

/// Answers a question by one snapshot.
///
/// # Errors
/// The store's errors, or when its bytes are not those of a row.
pub fn answer(
    store: &impl KeysAndValues,
    question: &Question,
    rows: &mut dyn RowSink,
) -> Result<()> {
    match *question {
        Question::Name { id } => give_name(store, id, rows),
        Question::Id { id } => store.row(id, |_| rows.row(&[Value::Integer(id.into())])),
        // An empty range. Some stores accept only a lower bound that is not above the upper one.
        Question::FirstBirthDay {
            ids: Some((first, last)),
        } if first > last => {
            give_day(None, rows);
            Ok(())
        }
        Question::Count { ids: (first, last) } if first > last => {
            rows.row(&[Value::Integer(0)]);
            Ok(())
        }
        Question::InCountry {
            states: Some((first, last)),
            ..
        } if first > last => Ok(()),
        Question::FirstBirthDay { ids } => {
            // NULL is above all days.
            let mut first = Some(row_bytes::NULL);
            store.rows(ids, |row| first = first.min(row_bytes::birth_day(row)))?;
            let first = first.ok_or_else(no_row)?;
            give_day(Some(first).filter(|day| *day != row_bytes::NULL), rows);
            Ok(())
        }
        Question::Count { ids } => {
            rows.row(&[Value::Integer(store.count(ids)?)]);
            Ok(())
        }
        Question::InCountry {
            wanted,
            country,
            states,
            limit,
        } => {
            let (first, last) = row_bytes::country_range(country, states);
            let mut left = limit.unwrap_or(usize::MAX);
            store.entries(&first, &last, |key| {
                let Entry { state, city, id } = row_bytes::entry(key).ok_or_else(no_row)?;
                match wanted {
                    Wanted::Name => give_name(store, id, rows)?,
                    Wanted::State => rows.row(&[Value::Integer(state.into())]),
                    Wanted::City => rows.row(&[Value::Bytes(city)]),
                }
                left -= 1;
                Ok(match left {
                    0 => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                })
            })
        }
    }
}

fn give_name(store: &impl KeysAndValues, id: u32, rows: &mut dyn RowSink) -> Result<()> {
    let mut whole = true;
    store.row(id, |row| match row_bytes::name(row) {
        Some(name) => rows.row(&[Value::Bytes(name)]),
        None => whole = false,
    })?;
    if whole {
        Ok(())
    } else {
        Err(no_row())
    }
}
