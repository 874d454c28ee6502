//! The checks at the end and after a crash.

use std::collections::BTreeSet;
use std::ops::Range;

use peregrine::{Cursor, CursorOptions, Database, Error, Isolation, Result, Seek, Value};

use super::counted::{
    COUNTED, {self},
};
use super::reading::{all, in_order, own_rows};
use super::rows::{as_read, for_ledger, schema, Row, BY_NAME, VARIED};
use crate::schedules::model::ledger::Ledger;
use crate::schedules::model::reading::Read;
use crate::schedules::plan::OWNERS;
use crate::schedules::tables::OF_ONE_SESSION;

/// Creates the tables.
///
/// # Errors
/// The engine's errors.
pub fn create(db: &Database) -> Result<()> {
    db.create_table(VARIED, &schema())?;
    db.create_table(COUNTED, &counted::schema()).map(drop)
}

/// Returns a ledger that begins with a session's rows.
///
/// # Errors
/// The engine's errors.
pub fn ledger(db: &Database, session: u64) -> Result<Ledger> {
    let ledger = Ledger::default();
    ledger.begins(&for_ledger(&own_rows(db, session)?), &[], &[]);
    ledger.acknowledge();
    Ok(ledger)
}

/// Returns the automatic values that rows have, and the next one.
///
/// # Errors
/// The engine's errors.
pub fn values(db: &Database) -> Result<(BTreeSet<u64>, u64)> {
    let table = db.table(COUNTED)?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    let mut values = BTreeSet::new();
    let mut more = cursor.seek(&mut txn, &[], Seek::First)?;
    while more {
        match cursor.row()?.get(0)? {
            Value::UInt(value) => values.insert(value),
            other => return Err(Error::Internal(format!("{other:?} where a number stood"))),
        };
        more = cursor.next(&mut txn)?;
    }
    Ok((values, table.next_auto_increment()))
}

/// Checks through all indexes that the rows are those of the ledgers after one of the commits.
///
/// Also checks that the counter is above all values that rows have.
///
/// # Errors
/// The difference, in words.
pub fn compare(
    db: &Database,
    ledgers: &[Ledger],
    commits: Option<&[Range<usize>]>,
) -> std::result::Result<(), String> {
    let failed = |error: Error| format!("reading: {error}");
    let table = db.table(VARIED).map_err(failed)?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    let first = all(&mut txn, &table, 0, false).map_err(failed)?;
    for index in 0..=BY_NAME {
        for backwards in [false, true] {
            let mut found = all(&mut txn, &table, index, backwards).map_err(failed)?;
            if !in_order(&found, index, backwards) {
                return Err(format!(
                    "varied, index {index}: rows twice, or out of order"
                ));
            }
            found.sort_unstable_by(|a, b| a.order(b, 0));
            if found != first {
                return Err(format!(
                    "varied, index {index} has other rows than the table"
                ));
            }
        }
    }
    for (n, row) in first.iter().enumerate() {
        if first[..n].iter().any(|other| other.excludes(row)) {
            return Err(format!(
                "varied: {row:?} is there beside another of its kind"
            ));
        }
    }
    for (session, ledger) in (0_u64..).zip(ledgers) {
        let own = first.iter().filter(|row| row.id % OWNERS == session);
        let own: Vec<Read> = own.map(as_read).collect();
        let (_, acknowledged) = ledger.position();
        let range = match commits {
            None => acknowledged..acknowledged + 1,
            Some(commits) => commits[session as usize].clone(),
        };
        if !ledger.was(&own, range.clone()) {
            let rows: Vec<&Row> = first
                .iter()
                .filter(|row| row.id % OWNERS == session)
                .collect();
            return Err(format!(
                "rows of varied session {session} are {rows:?}, and not those after one of the commits {range:?}"
            ));
        }
    }
    let (values, next) = values(db).map_err(failed)?;
    match values.last() {
        Some(last) if *last >= next => Err(format!(
            "the counter of automatic values stands at {next}, and a row has {last}"
        )),
        _ => Ok(()),
    }
}

/// Checks that the tables of one session ended with the process.
///
/// # Errors
/// The name of a table that is still there.
pub fn of_one_session_are_gone(db: &Database) -> std::result::Result<(), String> {
    let mut names = db.table_names().into_iter();
    match names.find(|name| name.starts_with(OF_ONE_SESSION)) {
        Some(name) => Err(format!("table {name} is there after another opening")),
        None => Ok(()),
    }
}
