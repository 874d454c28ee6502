//! The changes that the log has as committed after the checkpoint.
//!
//! As in recovery, the log is read twice, and names rows, not pages. Here the changes stay in memory, by table and key;
//! a row's state is computed when it is asked for.

use std::collections::{BTreeMap, HashSet};

use super::{unnamed, Missing};
use crate::catalog::{DdlRecord, Definition, KIND_COUNTER, KIND_DDL};
use crate::error::{Error, Result};
use crate::fallible;
use crate::ids::{Lsn, TableId, TxId};
use crate::log::{LogReader, LogRecord};
use crate::planted::{is_planted, PlantedFault};
use crate::recovery::{
    Counters, KeptChange, Meta, QuarantinedTable, TransactionOutcomes, Undecided,
};
use crate::row::layout::Layout;
use crate::row::payload::RowRef;
use crate::txn::{Change, ChangeReader, KIND_CHANGES, KIND_COMMIT};

/// The changes of a row after the checkpoint.
#[derive(Debug, Default)]
pub(super) struct RowChange {
    /// Whether the checkpoint's row does not matter: it was deleted, or replaced as a whole.
    pub replaces: bool,
    /// Payloads put since then, oldest first; without any, the row is deleted.
    ///
    /// A value that none of them has is that of the row before.
    pub puts: Vec<Vec<u8>>,
}

/// The changes of a table after the checkpoint.
#[derive(Debug, Default)]
pub(super) struct TableChanges {
    /// Whether the checkpoint's rows are gone: the table was truncated, or created later.
    pub emptied: bool,
    /// By clustered key.
    pub rows: BTreeMap<Vec<u8>, RowChange>,
    /// Transactions that did not commit, and that may still have records in the table, which was quarantined.
    pub unfinished: HashSet<TxId>,
    /// The auto-increment counter; 0 or 1 if no value was given.
    pub next_auto: u64,
}

/// Takes the next record of the log, after decoding all of it: the dump must not have only a part of a transaction.
fn understand(record: &LogRecord, checkpoint: Lsn, ends: &mut TransactionOutcomes) -> Result<()> {
    let content = || -> Result<()> {
        match record.kind {
            KIND_CHANGES | KIND_COMMIT => {
                for change in ChangeReader::new(&record.payload)?.1 {
                    change?;
                }
            }
            KIND_COUNTER if record.start >= checkpoint => {
                DdlRecord::decode(&record.payload)?;
            }
            _ => {}
        }
        Ok(())
    };
    content()
        .and_then(|()| ends.take(record, checkpoint))
        .map_err(|why| Error::Invalid(format!("the log's record at {}: {why}", record.start)))
}

struct Entry {
    definition: Definition,
    layout: Layout,
    changes: TableChanges,
}

/// The tables after the changes of the log.
pub(super) struct Changes {
    tables: BTreeMap<TableId, Entry>,
    /// Numbers of changes of tables without a definition.
    lost: BTreeMap<TableId, u64>,
    /// Definitions that are damaged.
    refused: Vec<Missing>,
    /// Changes of quarantined tables whose transactions were prepared at that time.
    undecided: Vec<(TableId, Undecided)>,
    /// Committed changes of these, for tables that the log creates later: stored until the definition comes.
    decided: BTreeMap<TableId, Vec<KeptChange>>,
    /// The number of committed transactions in the log.
    pub transactions: usize,
    /// The number of transactions that are prepared, and neither committed nor rolled back: the dump leaves them out.
    pub prepared: usize,
}

impl Changes {
    /// No changes yet; `counters` are those of the checkpoint.
    pub fn new(definitions: BTreeMap<TableId, Definition>, counters: &[Counters]) -> Changes {
        let mut changes = Changes {
            tables: BTreeMap::new(),
            lost: BTreeMap::new(),
            refused: Vec::new(),
            undecided: Vec::new(),
            decided: BTreeMap::new(),
            transactions: 0,
            prepared: 0,
        };
        for definition in definitions.into_values() {
            changes.add(definition, TableChanges::default());
        }
        for counters in counters {
            changes.counter(counters.table, counters.next_auto);
        }
        changes
    }

    fn add(&mut self, definition: Definition, changes: TableChanges) {
        match Layout::new(&definition.schema) {
            Ok(layout) => {
                let entry = Entry {
                    definition,
                    layout,
                    changes,
                };
                self.tables.insert(entry.definition.id, entry);
            }
            Err(why) => self.refused.push(Missing {
                what: format!("table {}", definition.name),
                why,
            }),
        }
    }

    /// Adds the stored changes of tables that recovery had to quarantine.
    pub fn add_quarantined(
        &mut self,
        quarantine: BTreeMap<TableId, Result<QuarantinedTable>>,
        missing: &mut Vec<Missing>,
    ) {
        for (table, quarantined) in quarantine {
            let name = self.tables.get(&table).map(|entry| &entry.definition.name);
            let name = name.map_or_else(|| unnamed(table), |name| format!("table {name}"));
            let quarantined = match quarantined {
                Ok(quarantined) => quarantined,
                Err(why) => {
                    let what = format!("the last changes of {name}");
                    missing.push(Missing { what, why });
                    continue;
                }
            };
            if let Some(entry) = self.tables.get_mut(&table) {
                if !quarantined.is_of(&entry.definition) {
                    continue;
                }
                if quarantined.lacks_earlier(table) {
                    let what = format!("earlier changes of {name}");
                    let why = quarantined.error();
                    missing.push(Missing { what, why });
                }
                entry.changes.unfinished.extend(quarantined.unfinished);
            }
            for (key, row) in quarantined.changes {
                let change = row.as_deref().map_or(Change::Delete, Change::Put);
                if let Err(why) = self.row(table, &key, change) {
                    let what = format!("a change of {}", unnamed(table));
                    missing.push(Missing { what, why });
                }
            }
            let undecided = quarantined.undecided.into_iter();
            self.undecided.extend(undecided.map(|one| (table, one)));
        }
    }

    /// Adds changes of transactions that were prepared, and have committed since.
    ///
    /// `is_whole`: the whole log was read, so the end of every transaction is known.
    fn add_decided(&mut self, ends: &TransactionOutcomes, is_whole: bool) -> Result<()> {
        for (table, undecided) in std::mem::take(&mut self.undecided) {
            let is_prepared = ends.prepared.values().any(|record| undecided.is_of(record));
            if is_prepared || !undecided.commits {
                continue;
            }
            // Beyond the readable part of the log, it may still be prepared: the file notes a commit before the log has
            // it.
            let mut numbers = undecided.numbers.iter();
            let is_told = is_whole || numbers.any(|number| ends.committed.contains(number));
            if !is_told && !is_planted(PlantedFault::DecideByPart) {
                self.undecided.push((table, undecided));
                continue;
            }
            if !self.tables.contains_key(&table) && !is_planted(PlantedFault::LoseDecidedOfYoung) {
                let decided = self.decided.entry(table).or_default();
                decided.extend(undecided.changes);
                continue;
            }
            for (key, row) in undecided.changes {
                let change = row.as_deref().map_or(Change::Delete, Change::Put);
                self.row(table, &key, change)?;
            }
        }
        Ok(())
    }

    /// Makes a table's auto-increment counter at least `next`.
    fn counter(&mut self, table: TableId, next: u64) {
        if let Some(entry) = self.tables.get_mut(&table) {
            let counter = &mut entry.changes.next_auto;
            *counter = next.max(*counter);
        }
    }

    /// Reads the log, which `open` opens at a position; adds the changes of committed transactions.
    ///
    /// If a record can't be read or decoded, the log ends there, and this returns the error.
    ///
    /// # Errors
    /// If records that were read can't be read again, or if there is no memory for them.
    pub fn read(
        &mut self,
        meta: &Meta,
        open: &dyn Fn(Lsn) -> Result<LogReader>,
    ) -> Result<Option<Error>> {
        let from = meta.log_from();
        let mut ends = TransactionOutcomes::default();
        let mut understood = 0;
        let mut stopped = None;
        let log = match open(from) {
            Ok(log) => log,
            Err(why) => return Ok(Some(why)),
        };
        for record in log {
            match record.and_then(|record| understand(&record, meta.checkpoint, &mut ends)) {
                Ok(()) => understood += 1,
                Err(why) if is_planted(PlantedFault::ForgetBeforeUnread) => return Ok(Some(why)),
                Err(why) => {
                    stopped = Some(why);
                    break;
                }
            }
        }
        self.transactions = ends.committed.len();
        self.prepared = ends.prepared.len();
        self.add_decided(&ends, stopped.is_none())?;
        // The second reading must end where the first did.
        for record in open(from)?.take(understood) {
            let record = record?;
            match record.kind {
                KIND_CHANGES | KIND_COMMIT => {
                    let (txid, changes) = ChangeReader::new(&record.payload)?;
                    if ends.committed.contains(&txid) {
                        for change in changes {
                            let change = change?;
                            if ends.is_void(change.table, record.start) {
                                continue;
                            }
                            self.row(change.table, change.key, change.change)?;
                        }
                    }
                }
                KIND_DDL | KIND_COUNTER if record.start >= meta.checkpoint => {
                    self.definition(DdlRecord::decode(&record.payload)?)?;
                }
                _ => {}
            }
        }
        if !is_planted(PlantedFault::DroppedIsMissing) {
            // A transaction may have dropped a table that it used: the log has the drop before the transaction's
            // changes.
            self.lost.retain(|table, _| !ends.dropped.contains(table));
            self.decided
                .retain(|table, _| !ends.dropped.contains(table));
        }
        Ok(stopped)
    }

    fn row(&mut self, table: TableId, key: &[u8], change: Change<'_>) -> Result<()> {
        let Some(entry) = self.tables.get_mut(&table) else {
            *self.lost.entry(table).or_default() += 1;
            return Ok(());
        };
        let row = entry.changes.rows.entry(key.to_vec()).or_default();
        match change {
            Change::Delete => *row = RowChange::default(),
            Change::Put(payload) => {
                // A payload with all values replaces everything before it.
                let whole = RowRef::new(&entry.layout, key, payload)
                    .is_ok_and(|row| row.references().next().is_none());
                if whole {
                    row.replaces = true;
                    row.puts.clear();
                }
                row.puts.push(fallible::copy(payload, "a row of the log")?);
                return Ok(());
            }
        }
        row.replaces = true;
        Ok(())
    }

    /// Adds a table without rows, except for the stored changes in `decided`.
    fn empty(&mut self, definition: Definition, next_auto: u64) -> Result<()> {
        let id = definition.id;
        let changes = TableChanges {
            emptied: true,
            next_auto,
            ..TableChanges::default()
        };
        self.lost.remove(&id);
        self.add(definition, changes);
        for (key, row) in self.decided.remove(&id).unwrap_or_default() {
            let change = row.as_deref().map_or(Change::Delete, Change::Put);
            self.row(id, &key, change)?;
        }
        Ok(())
    }

    fn definition(&mut self, record: DdlRecord) -> Result<()> {
        match record {
            DdlRecord::Create(definition) | DdlRecord::Truncate(definition) => {
                self.empty(definition, 1)?;
            }
            DdlRecord::CreateCounted(definition, next) => self.empty(definition, next)?,
            DdlRecord::Drop(id) => {
                self.tables.remove(&id);
                self.lost.remove(&id);
                self.decided.remove(&id);
            }
            DdlRecord::Rename(id, name) => {
                if let Some(entry) = self.tables.get_mut(&id) {
                    entry.definition.name = name;
                }
            }
            DdlRecord::Names(id, names) => {
                let Some(entry) = self.tables.get_mut(&id) else {
                    return Ok(());
                };
                match entry.definition.schema.named(&names) {
                    Ok(schema) => entry.definition.schema = schema,
                    Err(why) => self.refused.push(Missing {
                        what: format!("the new names in table {}", entry.definition.name),
                        why,
                    }),
                }
            }
            DdlRecord::User(id, user) => {
                if let Some(entry) = self.tables.get_mut(&id) {
                    entry.definition.schema.user = user;
                }
            }
            DdlRecord::Counter(..) | DdlRecord::Locking(..)
                if is_planted(PlantedFault::OptionsOfCheckpoint) => {}
            DdlRecord::Counter(id, next) => self.counter(id, next),
            DdlRecord::Locking(id, locking) => {
                if let Some(entry) = self.tables.get_mut(&id) {
                    entry.definition.locking = locking;
                }
            }
        }
        Ok(())
    }

    /// The tables and their changes; reports changes without a table to `missing`.
    pub fn into_tables(self, missing: &mut Vec<Missing>) -> Vec<(Definition, TableChanges)> {
        missing.extend(self.refused);
        if !self.undecided.is_empty() {
            missing.push(Missing {
                what: "changes of quarantined tables by transactions that were prepared".into(),
                why: Error::Internal("the log does not tell whether they have committed".into()),
            });
        }
        let mut lost = self.lost;
        for (table, changes) in self.decided {
            *lost.entry(table).or_default() += changes.len() as u64;
        }
        for (table, changes) in lost {
            let why = Error::NotFound {
                what: "definition of a table",
                name: table.to_string(),
            };
            let what = format!("{changes} changes in the log of {}", unnamed(table));
            missing.push(Missing { what, why });
        }
        self.tables
            .into_values()
            .map(|entry| (entry.definition, entry.changes))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::TreeRoot;
    use crate::ids::{PageId, TreeId};
    use crate::row::{Column, ColumnType, TableSchema};
    use crate::settings::Locking;

    /// The file of the quarantined table has noted both commits.
    #[test]
    fn changes_of_what_may_be_prepared_still_are_missing() {
        let table = TableId(1);
        let mut changes = Changes::new(BTreeMap::new(), &[]);
        for number in [7, 8] {
            let undecided = Undecided {
                numbers: vec![TxId(number)],
                commits: true,
                changes: vec![(vec![1], None)],
            };
            changes.undecided.push((table, undecided));
        }
        let mut ends = TransactionOutcomes::default();
        ends.committed.insert(TxId(8));
        changes.add_decided(&ends, false).unwrap();
        assert_eq!(changes.undecided.len(), 1);
        assert_eq!(changes.undecided[0].1.numbers, [TxId(7)]);
        assert_eq!(changes.decided[&table].len(), 1, "changes that were taken");
        changes.add_decided(&ends, true).unwrap();
        assert!(changes.undecided.is_empty());
        assert_eq!(changes.decided[&table].len(), 2);
        let mut missing = Vec::new();
        assert!(changes.into_tables(&mut missing).is_empty());
        let told = missing[0].to_string();
        assert!(told.starts_with("2 changes in the log of"), "{told}");
    }

    /// The table's definition is in the log, and not in the checkpoint.
    #[test]
    fn what_was_decided_of_a_quarantined_table_comes_to_it_where_the_log_creates_it() {
        let tree = TreeRoot {
            id: TreeId(16),
            root: PageId(1),
        };
        let definition = Definition {
            id: TableId(1),
            name: "young".into(),
            schema: TableSchema {
                columns: vec![Column::new("a", ColumnType::Double)],
                ..TableSchema::default()
            },
            trees: vec![tree],
            large: None,
            locking: Locking::default(),
        };
        let mut changes = Changes::new(BTreeMap::new(), &[]);
        let undecided = Undecided {
            numbers: vec![TxId(7)],
            commits: true,
            changes: vec![(vec![1], Some(vec![0; 9]))],
        };
        changes.undecided.push((definition.id, undecided));
        changes
            .add_decided(&TransactionOutcomes::default(), true)
            .unwrap();
        let create = DdlRecord::Create(definition);
        changes.definition(create).unwrap();
        let mut missing = Vec::new();
        let tables = changes.into_tables(&mut missing);
        assert_eq!(tables[0].1.rows.len(), 1, "{missing:?}");
        assert!(missing.is_empty(), "{missing:?}");
    }
}
