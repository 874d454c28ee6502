//! Checks of one table: every tree by itself, then entries against rows.
//!
//! Every live entry must lead to a live row with the same values in the columns that the entry gives back. Of each
//! index, as many live entries must lead to live rows as there are live rows. No two entries of an index lead to one
//! row with the same values, so every row then has its entry. Rows in flight make no difference: a transaction changes
//! a row before its entries, and a rollback restores them in reverse order. This needs no collations, which the
//! checking program may not have.

use std::collections::HashSet;
use std::sync::Arc;

use super::{key_beginning, of_record, Report, TableReport};
use crate::buffer::PoolWithThreads;
use crate::catalog::Definition;
use crate::error::{Error, Result};
use crate::ids::TxId;
use crate::mvcc::Header;
use crate::planted::{is_planted, PlantedFault};
use crate::row::entry::{self, EntryBuffer, EntryRef};
use crate::row::key_bytes::KeyBytes;
use crate::row::layout::{PartForm, PrefixNeed};
use crate::row::payload::{Field, RowRef};
use crate::row::Value;
use crate::table::state::TableState;
use crate::table::{large, Table};
use crate::tree::{LeafImage, Position, Tree};

/// State of the newest version of a record.
enum Newest<'a> {
    Live(&'a [u8]),
    Deleted,
    InFlight,
}

/// Numbers of live entries of an index that are not in flight.
#[derive(Default)]
struct Entries {
    all: u64,
    /// Entries that lead to live rows that are not in flight.
    of_rows: u64,
}

struct Check<'a> {
    table: Table,
    running: &'a HashSet<TxId>,
    report: &'a mut Report,
    deleted: u64,
    /// Records of large values to which live rows refer.
    used_chunks: u64,
}

/// Checks a table; returns the number of pages of its trees.
pub(super) fn check(
    pool: &Arc<PoolWithThreads>,
    definition: &Definition,
    running: &HashSet<TxId>,
    report: &mut Report,
) -> Result<u64> {
    let state = Arc::new(TableState::new(0, 1));
    let table = Table::open(pool, definition, state, None)?;
    let mut found = TableReport {
        name: definition.name.clone(),
        ..TableReport::default()
    };
    let trees = table.trees.load_full();
    let mut pages = 0;
    let mut chunks = 0;
    for tree in trees.all() {
        let counts = tree.verify(&mut |_, value| Header::decode(value).map(|_| ()))?;
        pages += counts.inner_pages + counts.leaf_pages;
        if trees
            .large
            .as_ref()
            .is_some_and(|large| large.id() == tree.id())
        {
            chunks = counts.records;
        }
    }
    let in_flight = report.in_flight;
    let mut check = Check {
        table,
        running,
        report,
        deleted: 0,
        used_chunks: 0,
    };
    found.rows = check.rows(&trees.clustered)?;
    for (n, index) in definition.schema.indexes.iter().enumerate() {
        let Entries { all, of_rows } = check.entries(n + 1, &index.name)?;
        found.indexes.push((index.name.clone(), all));
        let passed_over =
            check.report.in_flight != in_flight && is_planted(PlantedFault::CheckUnchangedTables);
        if of_rows != found.rows && !passed_over {
            check.report.problem(format!(
                "table {}: index {} has {of_rows} entries for {} rows",
                found.name, index.name, found.rows
            ));
        }
    }
    found.deleted = check.deleted;
    found.unused_chunks = chunks.saturating_sub(check.used_chunks);
    report.tables.push(found);
    Ok(pages)
}

impl Check<'_> {
    fn newest<'v>(&self, value: &'v [u8]) -> Result<Newest<'v>> {
        let (header, payload) = Header::decode(value)?;
        Ok(match header.txid() {
            Some(txid) if self.running.contains(&txid) => Newest::InFlight,
            _ if header.deleted => Newest::Deleted,
            _ => Newest::Live(payload),
        })
    }

    fn problem(&mut self, what: &str, index: usize, key: &[u8], error: &Error) {
        let what = format!("table {}{what}", self.table.name());
        let text = of_record(&what, &self.table.layout, index, key, &error.to_string());
        self.report.problem(text);
    }

    /// Decodes every column of every live row, and reads values outside the rows.
    fn rows(&mut self, tree: &Tree) -> Result<u64> {
        let mut rows = 0;
        let mut image = LeafImage::new();
        let mut key = Vec::new();
        let mut more = tree.copy_leaf(Position::First, &mut image)?;
        while more {
            for i in 0..image.count() {
                image.key(i, &mut key);
                match self.newest(image.value(i)) {
                    Ok(Newest::Live(payload)) => {
                        rows += 1;
                        let outcome = check_row(&self.table, &key, payload)
                            .and_then(|()| self.count_chunks(&key, payload));
                        if let Err(error) = outcome {
                            self.problem("", 0, &key, &error);
                        }
                    }
                    Ok(Newest::Deleted) => self.deleted += 1,
                    Ok(Newest::InFlight) => self.report.in_flight += 1,
                    Err(error) => self.problem("", 0, &key, &error),
                }
            }
            more = tree.copy_next_leaf(&mut image)?;
        }
        Ok(rows)
    }

    /// Counts the records of the large values to which a row refers.
    fn count_chunks(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let mut values = Vec::new();
        let trees = self.table.trees.load();
        large::references(&self.table.layout, &trees, key, payload, &mut values)?;
        for value in values {
            self.used_chunks += u64::from(large::chunks(value.len)?);
        }
        Ok(())
    }

    /// Checks every live entry of an index against its row.
    fn entries(&mut self, index: usize, name: &str) -> Result<Entries> {
        let trees = self.table.trees.load_full();
        let tree = trees.index(index)?;
        let what = format!(": index {name}");
        let mut entries = Entries::default();
        let mut image = LeafImage::new();
        let mut key = Vec::new();
        let mut buffer = EntryBuffer::default();
        let mut more = tree.copy_leaf(Position::First, &mut image)?;
        while more {
            for i in 0..image.count() {
                image.key(i, &mut key);
                let outcome = match self.newest(image.value(i)) {
                    Ok(Newest::Live(payload)) => {
                        entries.all += 1;
                        self.entry(index, &key, payload, &mut buffer, &mut entries)
                    }
                    Ok(Newest::Deleted) => {
                        self.deleted += 1;
                        Ok(())
                    }
                    Ok(Newest::InFlight) => {
                        self.report.in_flight += 1;
                        Ok(())
                    }
                    Err(error) => Err(error),
                };
                if let Err(error) = outcome {
                    self.problem(&what, index, &key, &error);
                }
            }
            more = tree.copy_next_leaf(&mut image)?;
        }
        Ok(entries)
    }

    fn entry(
        &mut self,
        index: usize,
        key: &[u8],
        payload: &[u8],
        buffer: &mut EntryBuffer,
        entries: &mut Entries,
    ) -> Result<()> {
        let table = &self.table;
        let trees = table.trees.load();
        let clustered = entry::clustered_key(key, payload)?;
        let wrong = |what: &str| {
            let row = key_beginning(&table.layout, 0, clustered);
            Err(Error::Internal(format!("the entry leads to {what} {row}")))
        };
        let record = trees
            .clustered
            .read(clustered, |value, _| value.map(<[u8]>::to_vec))?;
        let Some(record) = record else {
            return wrong("no row");
        };
        let mut row = match self.newest(&record)? {
            Newest::Live(row) => row.to_vec(),
            Newest::InFlight => {
                self.report.in_flight += 1;
                return Ok(());
            }
            Newest::Deleted => return wrong("a deleted row"),
        };
        entries.of_rows += 1;
        compare(table, index, key, payload, &mut row, buffer)
    }
}

/// Decodes every column of a row, reads values outside it, and compares the row with its key.
pub(super) fn check_row(table: &Table, key: &[u8], payload: &[u8]) -> Result<()> {
    let trees = table.trees.load();
    let mut bytes = payload.to_vec();
    large::bring_inside(&trees, &mut bytes)?;
    let row = RowRef::new(&table.layout, key, &bytes)?;
    for column in 0..table.layout.columns.len() {
        if let Field::Outside(value) = row.field(column)? {
            large::pass_over(&trees, value)?;
        }
    }
    check_key(table, key, row)
}

/// Compares a row's key with its values; without collations only up to the first part that has one.
fn check_key(table: &Table, key: &[u8], row: RowRef<'_>) -> Result<()> {
    if table.layout.hidden || is_planted(PlantedFault::TrustRowKeys) {
        return Ok(());
    }
    let parts = &table.key_layout(0)?.parts;
    let needed = |column| match parts.iter().any(|part| part.column == column) {
        true => table.layout.prefix_need(column),
        false => PrefixNeed::Nothing,
    };
    let (trees, mut buffers) = (table.trees.load(), Vec::new());
    let values = large::needed_values(&table.layout, &trees, row, needed, &mut buffers)?;
    let collations = table.collations();
    let can_encode = |form| collations.is_some() || !matches!(form, PartForm::Collated { .. });
    let mut wanted = Vec::new();
    for part in parts.iter().take_while(|part| can_encode(part.form)) {
        part.encode(values[part.column], collations, &mut wanted)?;
    }
    let is_whole = parts.iter().all(|part| can_encode(part.form));
    if key == wanted || !is_whole && key.starts_with(&wanted) {
        return Ok(());
    }
    let what = "the row's values are not those of its key";
    Err(Error::Internal(what.into()))
}

/// Compares an index entry with the row that it leads to; loads the row if it is stored outside.
pub(super) fn compare(
    table: &Table,
    index: usize,
    key: &[u8],
    payload: &[u8],
    row: &mut Vec<u8>,
    buffer: &mut EntryBuffer,
) -> Result<()> {
    let trees = table.trees.load();
    let clustered = entry::clustered_key(key, payload)?;
    let wrong = |what: &str| {
        let row = key_beginning(&table.layout, 0, clustered);
        Err(Error::Internal(format!("{what} its row {row}")))
    };
    large::bring_inside(&trees, row)?;
    let row = RowRef::new(&table.layout, clustered, row)?;
    let layout = table.key_layout(index)?;
    let collated = |form| matches!(form, PartForm::Collated { .. });
    if table.collations().is_some() || !layout.parts.iter().any(|p| collated(p.form)) {
        let mut buffers = Vec::new();
        let values = large::values(&table.layout, &trees, row, false, &mut buffers)?;
        let (mut want_key, mut want) = (Vec::new(), Vec::new());
        let collations = table.collations();
        entry::encode(
            layout,
            &values,
            clustered,
            collations,
            &mut want_key,
            &mut want,
        )?;
        if want_key != key || want != payload {
            return wrong("the entry differs from");
        }
        return Ok(());
    }
    let key = KeyBytes::Here(key);
    buffer.decode(layout, usize::MAX, key, payload)?;
    let found = EntryRef::new(&table.layout, layout, key, payload, buffer);
    for part in &layout.parts {
        if layout.entry_part(part.column).is_none() {
            continue;
        }
        let (in_entry, in_row) = (found.get(part.column)?, row.get(part.column)?);
        let same = match in_row {
            Value::OutOfRow(len) => {
                matches!(in_entry, Value::Bytes(b) if b.len() as u64 == len)
            }
            _ => in_entry == in_row,
        };
        if !same {
            let column = &table.layout.columns[part.column].column.name;
            return wrong(&format!(
                "column {column} of the entry differs from that of"
            ));
        }
    }
    Ok(())
}
