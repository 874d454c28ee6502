//! Recovery: from the last checkpoint and the log to the state of the last commit.
//!
//! 1. The checkpoint's pages and its [`Meta`]: catalog, counters, transactions.
//! 2. Recovery reads the log, to learn which transactions committed after the checkpoint, and which tables are dropped
//!    or emptied: it changes nothing in these until then.
//! 3. Transactions that were running at the checkpoint are rolled back, and ended ones are purged. Recovery reads the
//!    log again, and applies changes of rows and of table definitions in the log's order.
//! 4. Prepared transactions without a decision are restored as running ones.
//! 5. Tables that damage keeps from their last state are quarantined (`quarantining.rs`). `quarantine.rs` has the
//!    format of their files, `quarantine_files.rs` the files.
//! 6. The caller takes a new checkpoint, so that none of this is needed again.
#![forbid(unsafe_code)]

mod kept;
mod meta;
mod outcomes;
mod quarantine;
mod quarantine_files;
mod quarantining;
mod restore;
mod undecided;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

pub(crate) use kept::{Committed, KeptChange};
pub(crate) use meta::{Counters, Meta};
pub(crate) use outcomes::TransactionOutcomes;
pub(crate) use quarantine::{QuarantinedTable, Undecided};
pub(crate) use quarantine_files::QuarantineFiles;
pub(crate) use restore::restore;

use self::quarantining::Quarantine;
use crate::catalog::{DdlRecord, KIND_COUNTER, KIND_DDL};
use crate::error::{Error, Result};
use crate::ids::{Lsn, TableId};
use crate::log::Log;
use crate::planted::{is_planted, PlantedFault};
use crate::table::ddl::Tables;
use crate::table::registry::Registry;
use crate::table::{replay, Table};
use crate::txn::{
    is_damage, Change, ChangeReader, ChangeRecord, PreparedRecord, TransactionManager,
    KIND_CHANGES, KIND_COMMIT,
};

/// The outcome of a replay.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub transactions: u64,
    pub changes: u64,
    /// Bytes of log that held the changes.
    pub bytes: u64,
    /// Undo records that rollback applied.
    pub undo_records: u64,
    /// Prepared transactions that are neither committed nor rolled back, for [`restore()`].
    pub prepared: Vec<PreparedRecord>,
    /// The committed part of the log, for [`restore()`].
    pub committed: Committed,
    /// Tables with an invalid definition, for [`restore()`].
    pub lost: BTreeMap<TableId, Error>,
}

/// The state that recovery begins with.
pub(crate) struct Recoverable<'a> {
    pub meta: &'a Meta,
    pub files: Arc<QuarantineFiles>,
    /// Tables with a quarantine file, and the file's content or error.
    pub quarantine: BTreeMap<TableId, Result<QuarantinedTable>>,
    /// Tables with an invalid definition.
    pub damaged: BTreeMap<TableId, Error>,
    /// See [`crate::Options::drop_on_open`].
    pub drop_on_open: Option<&'a str>,
}

/// Changes that are not replayed, as their tables are dropped or emptied. Until then, the pages of these tables need
/// not be readable.
struct LeftOut<'a> {
    /// Tables that the log drops, perhaps before the commit of the transaction that used them.
    dropped: HashSet<TableId>,
    /// Prefix of the names of tables that are dropped once all is replayed. Such a table may lack rows that its changes
    /// build upon.
    drop_on_open: Option<&'a str>,
    /// The last names of tables that the log renames.
    renamed: HashMap<TableId, String>,
    /// Tables of both kinds that existed at the checkpoint.
    alone: HashSet<TableId>,
    /// Tables that the log empties, and where.
    emptied: HashMap<TableId, Lsn>,
}

impl LeftOut<'_> {
    fn is_dropped(&self, table: TableId) -> bool {
        self.dropped.contains(&table) && !is_planted(PlantedFault::DroppedIsDamage)
    }

    fn ends_with_process(&self, table: TableId, name: &str) -> bool {
        let Some(prefix) = self.drop_on_open else {
            return false;
        };
        if is_planted(PlantedFault::ReplayEndedTables) {
            return false;
        }
        let last = self.renamed.get(&table).map_or(name, String::as_str);
        last.starts_with(prefix)
    }

    /// The table, and its name, if a change of definitions gives it a name with which tables are dropped on opening.
    fn names_ended<'r>(&self, record: &'r DdlRecord) -> Option<(TableId, &'r str)> {
        let (id, name) = match record {
            DdlRecord::Create(made) | DdlRecord::CreateCounted(made, _) => (made.id, &made.name),
            DdlRecord::Rename(id, name) => (*id, name),
            _ => return None,
        };
        let prefix = self.drop_on_open?;
        name.starts_with(prefix).then_some((id, name.as_str()))
    }

    /// Returns whether changes of a table are not replayed. Tables that the log creates are checked in [`apply`].
    fn has(&self, table: TableId) -> bool {
        self.is_dropped(table) || self.alone.contains(&table)
    }

    /// Keeps rollback and purge from changing tables that exist, and are about to be dropped or emptied.
    fn leave_alone(&mut self, registry: &Registry) -> Result<()> {
        if is_planted(PlantedFault::NeedDroppedRoots) {
            return Ok(());
        }
        for name in registry.names() {
            let table = registry.id_of(&name)?;
            if self.is_dropped(table) || self.ends_with_process(table, &name) {
                registry.leave_alone(table);
                self.alone.insert(table);
            } else if self.emptied.contains_key(&table) {
                // Once it has new trees, it is like any other table.
                registry.leave_alone(table);
            }
        }
        Ok(())
    }
}

/// A table with changes in the log.
struct Changed {
    table: Arc<Table>,
    left_out: bool,
}

/// Rolls back and purges transactions of the checkpoint, then replays committed transactions from the log.
pub(crate) fn recover(
    transactions: &Arc<TransactionManager>,
    tables: &Tables,
    log: &Log,
    state: Recoverable<'_>,
) -> Result<Replayed> {
    let Recoverable {
        meta,
        files,
        quarantine: asides,
        damaged,
        drop_on_open,
    } = state;
    let running = meta.transactions.running().collect();
    let mut quarantine = Quarantine::new(&files, asides, &tables.registry, running, damaged)?;
    let mut ends = TransactionOutcomes::default();
    let from = meta.log_from();
    for record in log.read_from(from)? {
        ends.take(&record?, meta.checkpoint)?;
    }
    let TransactionOutcomes {
        committed: mut by_number,
        last_commit,
        prepared,
        highest,
        dropped,
        renamed,
        emptied,
        void_before,
    } = ends;
    let mut left_out = LeftOut {
        dropped,
        drop_on_open,
        renamed,
        alone: HashSet::new(),
        emptied,
    };
    left_out.leave_alone(&tables.registry)?;
    let undo_records = transactions.roll_back_losers(&meta.transactions)?;
    quarantine.take_damaged();
    if is_planted(PlantedFault::DropLastCommit) {
        by_number.remove(&last_commit);
    }
    let committed = Committed {
        from,
        checkpoint: meta.checkpoint,
        transactions: by_number,
        void_before,
    };
    let mut replayed = Replayed {
        transactions: committed.transactions.len() as u64,
        changes: 0,
        bytes: 0,
        undo_records,
        prepared: prepared.into_values().collect(),
        committed,
        lost: BTreeMap::new(),
    };
    replay_all(tables, log, &left_out, &mut quarantine, &mut replayed)?;
    if is_planted(PlantedFault::ReplayTwice) {
        replay_all(tables, log, &left_out, &mut quarantine, &mut replayed)?;
    }
    transactions.raise_txid(highest);
    replayed.lost = quarantine.finish(log, &replayed.committed)?;
    Ok(replayed)
}

/// Applies changes of committed transactions, and changes of definitions, in the log's order.
fn replay_all(
    tables: &Tables,
    log: &Log,
    left_out: &LeftOut<'_>,
    quarantine: &mut Quarantine,
    replayed: &mut Replayed,
) -> Result<()> {
    let mut last: Option<Changed> = None;
    for record in log.read_from(replayed.committed.from)? {
        let record = record?;
        match record.kind {
            KIND_CHANGES | KIND_COMMIT => {
                let (txid, changes) = ChangeReader::new(&record.payload)?;
                if !replayed.committed.transactions.contains(&txid) {
                    continue;
                }
                replayed.bytes += record.end.0.saturating_sub(record.start.0);
                for change in changes {
                    let change = change?;
                    replayed.changes += 1;
                    if left_out.has(change.table)
                        || replayed.committed.is_void(change.table, record.start)
                        || quarantine.has(change.table)
                    {
                        continue;
                    }
                    let is_old = record.start < replayed.committed.checkpoint;
                    if let Err(error) = apply(tables, left_out, &mut last, &change, is_old) {
                        // An invalid record would make each later opening fail, too.
                        let stops = matches!(error, Error::Internal(_))
                            && is_planted(PlantedFault::NonsenseStopsReplay);
                        let is_known = tables.registry.state(change.table).is_some();
                        if stops || !is_damage(&error) || !is_known {
                            return Err(error);
                        }
                        last = None;
                        quarantine.quarantine(change.table, &error);
                    }
                }
            }
            KIND_DDL | KIND_COUNTER if record.start >= replayed.committed.checkpoint => {
                last = None;
                let record = DdlRecord::decode(&record.payload)?;
                let made = match &record {
                    DdlRecord::Create(made) | DdlRecord::CreateCounted(made, _) => Some(made.id),
                    DdlRecord::Truncate(definition) => {
                        quarantine.forget(definition.id);
                        Some(definition.id)
                    }
                    DdlRecord::Drop(id) => {
                        quarantine.forget(*id);
                        None
                    }
                    _ => None,
                };
                if !quarantine.is_lost(&record) {
                    if let Some((id, name)) = left_out.names_ended(&record) {
                        tables.remove_unlogged(name, id)?;
                    }
                    tables.apply(record)?;
                } else if let DdlRecord::Drop(id) = record {
                    if !is_planted(PlantedFault::KeepLostTables) {
                        tables.forget_lost(id)?;
                        quarantine.forget_lost(id);
                    }
                }
                if let Some(table) = made {
                    quarantine.made(table);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Applies a change again. `is_old`: its record is before the checkpoint in the log.
fn apply(
    tables: &Tables,
    left_out: &LeftOut<'_>,
    last: &mut Option<Changed>,
    change: &ChangeRecord<'_>,
    is_old: bool,
) -> Result<()> {
    let changed = match last {
        Some(changed) if changed.table.id() == change.table => changed,
        _ => match tables.registry.table_of(change.table)? {
            Some(table) => last.insert(Changed {
                left_out: left_out.ends_with_process(table.id(), &table.name()),
                table,
            }),
            // An earlier opening dropped the table, and a full disk kept it from logging that. The change is of a
            // transaction that was prepared then.
            None if is_old && !is_planted(PlantedFault::NeedOldTables) => return Ok(()),
            None => {
                return Err(Error::Internal(format!(
                    "the log has changes of table {}, which does not exist",
                    change.table
                )))
            }
        },
    };
    match change.change {
        _ if changed.left_out => Ok(()),
        Change::Put(row) => replay::apply_put(&changed.table, change.key, row),
        Change::Delete => replay::apply_delete(&changed.table, change.key),
    }
}
