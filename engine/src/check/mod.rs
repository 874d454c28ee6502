//! Checks of a closed database, or of a table in use (`open_table`): checksums, tree order, and that rows and index
//! entries agree.
//!
//! A check reads the state of the last checkpoint, from which recovery starts, and checks that the log behind it can be
//! read and decoded. It checks rows and entries that a transaction was changing at the checkpoint ("in flight") as
//! records, but not against each other: recovery rolls them back first.
#![forbid(unsafe_code)]

mod open_table;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

pub(crate) use self::open_table::check_open_table;
use crate::buffer::PoolWithThreads;
use crate::catalog::{Catalog, DdlRecord, KIND_COUNTER};
use crate::error::{Error, Result, MOST_KEY_BYTES};
use crate::ids::{Lsn, TableId, TxId, PAGE_SIZE};
use crate::log::{Log, LogRecord, LOG_DIR};
use crate::os::{Os, RealOs};
use crate::planted::{is_planted, PlantedFault};
use crate::recovery::{Meta, QuarantineFiles, QuarantinedTable, TransactionOutcomes};
use crate::row::layout::Layout;
use crate::store::Store;
use crate::table::row_text::key_text;
use crate::txn::{ChangeReader, KIND_CHANGES, KIND_COMMIT};

/// Bytes of the buffer pool that a check uses.
const POOL_BYTES: usize = 64 << 20;
/// The most problems that a report lists; the others are counted.
const MOST_PROBLEMS: usize = 1000;

/// Result of [`check`].
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Per table: its name, and the number of entries of its clustered and secondary indexes.
    pub tables: Vec<TableReport>,
    /// Pages read and verified.
    pub pages: u64,
    /// Pages that no tree and no undo stream uses: lost space, not damage.
    pub unused_pages: u64,
    /// Records of the log after the last checkpoint.
    pub log_records: u64,
    /// Rows and index entries that a transaction was changing at the last checkpoint.
    pub in_flight: u64,
    /// Descriptions of the damage found; empty for a sound database.
    pub problems: Vec<String>,
    /// Harmless damage: of the older of the two headers, which a crash may tear.
    ///
    /// The next checkpoint rewrites it.
    pub notes: Vec<String>,
    /// Problems beyond those in [`Report::problems`].
    pub more_problems: u64,
}

/// Counts of [`check`] for a table.
#[derive(Clone, Debug, Default)]
pub struct TableReport {
    /// The table's name.
    pub name: String,
    /// Its rows.
    pub rows: u64,
    /// Per secondary index: its name and entries.
    pub indexes: Vec<(String, u64)>,
    /// Rows and entries that are marked as deleted: purge removes them once no snapshot needs them.
    pub deleted: u64,
    /// Records of large values to which no row's newest version refers; purge removes them, too.
    pub unused_chunks: u64,
}

impl Report {
    /// Whether the report has no problems.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, text: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(text);
        } else {
            self.more_problems += 1;
        }
    }
}

/// Verifies the database in a directory. Opens it read-only and changes nothing.
///
/// # Errors
/// Those of opening: no database there, in use, another format, a damaged header. Damage found
/// after that goes into the report.
pub fn check(dir: impl AsRef<Path>, report: &mut Report) -> Result<()> {
    check_on(RealOs::new(), dir, report)
}

/// As [`check`], on another implementation of the operating system.
///
/// # Errors
/// As [`check`].
#[doc(hidden)]
pub fn check_on(os: Arc<dyn Os>, dir: impl AsRef<Path>, report: &mut Report) -> Result<()> {
    let dir = dir.as_ref();
    let (store, meta) = Store::open_read_only(os.clone(), dir)?;
    let damaged = store.damaged_headers()?;
    report.notes.extend(damaged.iter().map(Error::to_string));
    let mut page = vec![0; PAGE_SIZE];
    for id in store.pages() {
        match store.read_page(id, &mut page) {
            Ok(()) => report.pages += 1,
            Err(error) => report.problem(error.to_string()),
        }
    }
    if meta.is_empty() {
        // Its creation ended before the first checkpoint.
        return Ok(());
    }
    let meta = match Meta::decode(&meta, store.path()) {
        Ok(meta) => meta,
        Err(error) => {
            report.problem(error.to_string());
            return Ok(());
        }
    };
    let database = store.database_id();
    let quarantine = QuarantineFiles::new(os.clone(), dir, database).load()?;
    match Log::read_only(os, &dir.join(LOG_DIR), database, meta.log_from()) {
        Ok(records) => {
            let mut ends = TransactionOutcomes::default();
            for record in records {
                match record {
                    Ok(record) => {
                        report.log_records += 1;
                        if let Err(error) = decode(&record, meta.checkpoint, &mut ends) {
                            let start = record.start;
                            report.problem(format!("the log's record at {start}: {error}"));
                        }
                    }
                    Err(error) => report.problem(error.to_string()),
                }
            }
        }
        Err(error) => report.problem(error.to_string()),
    }
    let pool = PoolWithThreads::without_thread(POOL_BYTES, Arc::new(store))?;
    if let Err(error) = check_trees(&pool, &meta, &quarantine, report) {
        report.problem(error.to_string());
    }
    Ok(())
}

/// Decodes a record of the log: a record that can't be decoded prevents an opening.
fn decode(record: &LogRecord, checkpoint: Lsn, ends: &mut TransactionOutcomes) -> Result<()> {
    if is_planted(PlantedFault::CountLogRecords) {
        return Ok(());
    }
    ends.take(record, checkpoint)?;
    match record.kind {
        KIND_CHANGES | KIND_COMMIT => {
            let (_, mut changes) = ChangeReader::new(&record.payload)?;
            changes.try_for_each(|change| change.map(drop))
        }
        KIND_COUNTER => DdlRecord::decode(&record.payload).map(drop),
        _ => Ok(()),
    }
}

/// Describes a problem of a record of index number `index`.
///
/// The key comes last, since programs may cut the end of a long text.
fn of_record(what: &str, layout: &Layout, index: usize, key: &[u8], text: &str) -> String {
    if is_planted(PlantedFault::WholeKeysFirst) {
        return format!("{what}: key {key:02x?}: {text}");
    }
    let key = key_beginning(layout, index, key);
    format!("{what}: {text}; key {key}")
}

/// A key of index number `index` as text; of a long key the beginning.
fn key_beginning(layout: &Layout, index: usize, key: &[u8]) -> String {
    let beginning = &key[..key.len().min(MOST_KEY_BYTES)];
    key_text(layout, index, beginning, beginning.len() < key.len())
}

/// The log position from which recovery would read; 0 if the creation of the database did not end.
///
/// # Errors
/// As [`check`].
pub fn log_position(os: Arc<dyn Os>, dir: impl AsRef<Path>) -> Result<Lsn> {
    let (store, meta) = Store::open_read_only(os, dir.as_ref())?;
    if meta.is_empty() {
        return Ok(Lsn(0));
    }
    Ok(Meta::decode(&meta, store.path())?.log_from())
}

fn check_trees(
    pool: &Arc<PoolWithThreads>,
    meta: &Meta,
    quarantine: &BTreeMap<TableId, Result<QuarantinedTable>>,
    report: &mut Report,
) -> Result<()> {
    let running: HashSet<TxId> = meta.transactions.running().collect();
    let catalog = Catalog::open(pool, meta.catalog)?;
    let counts = catalog.tree().verify(&mut |_, _| Ok(()))?;
    let mut used = counts.inner_pages + counts.leaf_pages;
    used += meta.transactions.undo_pages().len() as u64;
    let mut damaged = BTreeMap::new();
    let mut definitions = Vec::new();
    catalog.load(&mut damaged, &mut |definition| {
        definitions.push(definition);
        Ok(())
    })?;
    for (table, quarantined) in quarantine {
        let definition = definitions.iter().find(|found| found.id == *table);
        let error = match (quarantined, definition) {
            (_, None) if !damaged.contains_key(table) => continue,
            (Ok(quarantined), Some(now)) if !quarantined.is_of(now) => continue,
            (Ok(quarantined), _) => quarantined.error(),
            (Err(error), _) => error.clone(),
        };
        report.problem(format!("table number {table}: {error}"));
    }
    for (table, error) in damaged {
        report.problem(format!("table number {table}: {error}"));
    }
    for definition in definitions {
        let name = definition.name.clone();
        match table::check(pool, &definition, &running, report) {
            Ok(pages) => used += pages,
            Err(error) => report.problem(format!("table {name}: {error}")),
        }
    }
    report.tables.sort_by(|a, b| a.name.cmp(&b.name));
    if report.is_sound() {
        report.unused_pages = report.pages.saturating_sub(used);
    }
    Ok(())
}
