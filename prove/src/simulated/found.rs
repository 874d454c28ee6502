//! The tables of a database, read through every index and compared with the model.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, Result, Seek, Table, Transaction, Value, Xid,
};

use super::model::{print, Kind, State, TableState, CODE, GROUP, ID, LARGE, PAD};

/// The contents of a table.
#[derive(Debug, PartialEq, Eq)]
struct FoundTable {
    kind: Option<Kind>,
    /// Key and fingerprint of each row, in the order of the clustered index.
    rows: Vec<(u64, u64)>,
    /// For each secondary index, in its order: the value of its column and the key of the row.
    indexes: Vec<Vec<(u64, u64)>>,
    next_auto: u64,
}

/// The contents of a database.
#[derive(Debug)]
pub struct Found {
    tables: BTreeMap<String, FoundTable>,
    prepared: BTreeSet<Xid>,
}

/// The difference between the contents and the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Rows, tables and prepared transactions that are missing or older than they must be.
    pub lost: u64,
    /// Rows and tables that no transaction committed, and prepared transactions that no session prepared.
    pub phantom: u64,
    /// Rows that differ from their index entries.
    pub unsound: u64,
    /// The first difference.
    pub first: String,
}

impl Difference {
    fn note(&mut self, what: impl FnOnce() -> String) {
        if self.first.is_empty() {
            self.first = what();
        }
    }

    fn total(&self) -> u64 {
        self.lost + self.phantom + self.unsound
    }
}

fn number(value: Value<'_>) -> Result<u64> {
    match value {
        Value::UInt(number) => Ok(number),
        other => Err(Error::Internal(format!("{other:?} where a number stood"))),
    }
}

fn walk(
    table: &Arc<Table>,
    txn: &mut Transaction,
    index: usize,
    mut see: impl FnMut(peregrine::RowView<'_>) -> Result<()>,
) -> Result<()> {
    let mut cursor = Cursor::new(table, index, CursorOptions::default());
    let mut more = cursor.seek(txn, &[], Seek::First)?;
    while more {
        see(cursor.row()?)?;
        more = cursor.next(txn)?;
    }
    Ok(())
}

fn read_table(table: &Arc<Table>, txn: &mut Transaction) -> Result<FoundTable> {
    let kinds = [(false, false), (false, true), (true, false), (true, true)];
    let kind = kinds
        .map(|(large, indexes)| Kind { large, indexes })
        .into_iter()
        .find(|kind| kind.schema() == *table.schema());
    let has_large = table.schema().columns.len() > LARGE;
    let mut rows = Vec::new();
    let (mut pad, mut large) = (Vec::new(), Vec::new());
    walk(table, txn, 0, |row| {
        let id = number(row.get(ID)?)?;
        row.get_large(PAD, &mut pad)?;
        let has = has_large && row.get_large(LARGE, &mut large)?;
        let (group, code) = (number(row.get(GROUP)?)?, number(row.get(CODE)?)?);
        rows.push((id, print(id, group, code, &pad, has.then_some(&large[..]))));
        Ok(())
    })?;
    let mut indexes = Vec::new();
    for (index, definition) in (1..).zip(&table.schema().indexes) {
        let column = definition.parts[0].column;
        let mut entries = Vec::new();
        walk(table, txn, index, |row| {
            entries.push((number(row.get(column)?)?, number(row.get(ID)?)?));
            Ok(())
        })?;
        indexes.push(entries);
    }
    Ok(FoundTable {
        kind,
        rows,
        indexes,
        next_auto: table.next_auto_increment(),
    })
}

impl Found {
    /// Reads all tables.
    ///
    /// # Errors
    /// The engine's errors.
    pub fn read(db: &Database) -> Result<Found> {
        let mut tables = BTreeMap::new();
        let mut txn = db.begin(Isolation::RepeatableRead);
        for name in db.table_names() {
            let table = db.table(&name)?;
            tables.insert(name, read_table(&table, &mut txn)?);
        }
        let prepared = db.prepared().into_iter().map(|p| p.xid).collect();
        Ok(Found { tables, prepared })
    }

    /// Reads the tables of a state, as a transaction sees them.
    ///
    /// # Errors
    /// The engine's errors.
    pub fn seen(db: &Database, txn: &mut Transaction, state: &State) -> Result<Found> {
        let mut tables = BTreeMap::new();
        for name in state.tables.keys() {
            let table = db.table(name)?;
            tables.insert(name.clone(), read_table(&table, txn)?);
        }
        Ok(Found {
            tables,
            prepared: BTreeSet::new(),
        })
    }

    /// Returns the difference from a state; `None` if there is none.
    #[must_use]
    pub fn against(&self, state: &State) -> Option<Difference> {
        let mut difference = Difference::default();
        for (name, expected) in &state.tables {
            match self.tables.get(name) {
                Some(found) => found.against(name, expected, &mut difference),
                None => {
                    difference.lost += 1;
                    difference.note(|| format!("table {name} is missing"));
                }
            }
        }
        for name in self.tables.keys() {
            if !state.tables.contains_key(name) {
                difference.phantom += 1;
                difference.note(|| format!("table {name} should not be there"));
            }
        }
        for xid in state.prepared.keys() {
            if !self.prepared.contains(xid) {
                difference.lost += 1;
                difference.note(|| format!("prepared transaction {xid} is missing"));
            }
        }
        for xid in &self.prepared {
            if !state.prepared.contains_key(xid) {
                difference.phantom += 1;
                difference.note(|| format!("prepared transaction {xid} should not be there"));
            }
        }
        (difference.total() > 0).then_some(difference)
    }
}

impl FoundTable {
    fn against(&self, name: &str, expected: &TableState, difference: &mut Difference) {
        if self.kind != Some(expected.kind) {
            difference.unsound += 1;
            difference.note(|| format!("table {name} has another definition"));
        }
        let found: BTreeMap<u64, u64> = self.rows.iter().copied().collect();
        if found.len() != self.rows.len() || !self.rows.is_sorted() {
            difference.unsound += 1;
            difference.note(|| format!("table {name}: rows twice, or out of order"));
        }
        for (id, row) in &expected.rows {
            match found.get(id) {
                Some(print) if *print == row.print => {}
                Some(_) => {
                    difference.lost += 1;
                    difference.note(|| format!("table {name}: row {id} has other content"));
                }
                None => {
                    difference.lost += 1;
                    difference.note(|| format!("table {name}: row {id} is missing"));
                }
            }
        }
        for id in found.keys().filter(|id| !expected.rows.contains_key(id)) {
            difference.phantom += 1;
            difference.note(|| format!("table {name}: row {id} should not be there"));
        }
        if difference.total() == 0 {
            self.check_indexes(name, expected, difference);
        }
        if self.next_auto < expected.least_auto {
            difference.lost += 1;
            difference.note(|| {
                format!(
                    "table {name}: the auto-increment counter is {}, {} was used",
                    self.next_auto,
                    expected.least_auto - 1
                )
            });
        }
    }

    fn check_indexes(&self, name: &str, expected: &TableState, difference: &mut Difference) {
        let rows = || expected.rows.iter();
        let mut groups: Vec<(u64, u64)> = rows()
            .map(|(id, row)| (u64::from(row.group), *id))
            .collect();
        let mut codes: Vec<(u64, u64)> = rows().map(|(id, row)| (row.code, *id)).collect();
        groups.sort_unstable();
        codes.sort_unstable();
        for (found, expected) in self.indexes.iter().zip([groups, codes]) {
            if *found != expected {
                difference.unsound += 1;
                difference.note(|| format!("table {name}: an index differs from the rows"));
            }
        }
    }
}
