//! From the last checkpoint and the log to the state of the last commit.
//!
//! 1. The checkpoint's pages and its [`Meta`]: catalog, counters, transactions.
//! 2. The log is read, to learn which transactions committed after the checkpoint, and which tables are
//!    dropped or emptied: until then these are left alone.
//! 3. Transactions that were running at the checkpoint are rolled back, what had ended is purged.
//!    The log is read again, to apply changes, and those of table definitions, in its order.
//! 4. Transactions that are prepared and not decided are made again, as running ones.
//! 5. Tables in which damage was in the way are quarantined (`quarantining.rs`). `quarantine.rs` has the format of what is
//!    kept of them, `quarantine_files.rs` the files.
//! 6. A new checkpoint (taken by the caller), so that none of this is needed again.
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

/// What a replay did.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub transactions: u64,
    pub changes: u64,
    /// Bytes of log that the changes took.
    pub bytes: u64,
    /// Records of undo that were taken back.
    pub undo_records: u64,
    /// Transactions that are prepared, and neither committed nor rolled back: for [`restore()`].
    pub prepared: Vec<PreparedRecord>,
    /// What was replayed: for [`restore()`], too.
    pub committed: Committed,
    /// Tables whose definition makes no sense: for [`restore()`], too.
    pub lost: BTreeMap<TableId, Error>,
}

/// What recovery begins with.
pub(crate) struct Recoverable<'a> {
    pub meta: &'a Meta,
    pub files: Arc<QuarantineFiles>,
    /// What the files say.
    pub quarantine: BTreeMap<TableId, Result<QuarantinedTable>>,
    /// Tables whose definition makes no sense.
    pub damaged: BTreeMap<TableId, Error>,
    /// See [`crate::Options::drop_on_open`].
    pub drop_on_open: Option<&'a str>,
}

/// Changes that need not be made again, for their tables are dropped or emptied. Nor need the pages be readable that
/// the tables have until then.
struct LeftOut<'a> {
    /// Dropped in the log: by the transaction that used them, it may be, before it committed.
    dropped: HashSet<TableId>,
    /// The names begin so of those that are dropped once all is replayed. Such a table may lack rows that its changes
    /// build upon.
    drop_on_open: Option<&'a str>,
    /// The names that tables have then, where they are renamed.
    renamed: HashMap<TableId, String>,
    /// Tables of both kinds that were there at the checkpoint.
    alone: HashSet<TableId>,
    /// Tables that the log empties.
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

    /// The table that a change of definitions gives a name with which tables are dropped on opening, and the name.
    fn names_ended<'r>(&self, record: &'r DdlRecord) -> Option<(TableId, &'r str)> {
        let (id, name) = match record {
            DdlRecord::Create(made) | DdlRecord::CreateCounted(made, _) => (made.id, &made.name),
            DdlRecord::Rename(id, name) => (*id, name),
            _ => return None,
        };
        let prefix = self.drop_on_open?;
        name.starts_with(prefix).then_some((id, name.as_str()))
    }

    /// Whether changes of a table are not made again. There may be others, of tables that the log makes.
    fn has(&self, table: TableId) -> bool {
        self.is_dropped(table) || self.alone.contains(&table)
    }

    /// Lets nothing change tables any more that are there, and about to go or to be emptied: neither rollback nor
    /// purge.
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
                // With its new trees it is like any other.
                registry.leave_alone(table);
            }
        }
        Ok(())
    }
}

/// A table of which the log has changes.
struct Changed {
    table: Arc<Table>,
    left_out: bool,
}

/// Rolls back and purges what the checkpoint holds of transactions, then replays what the log has of
/// committed ones.
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

/// Applies the changes of committed transactions, and those of definitions, in the log's order.
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
                        // A record that makes no sense would be in the way of each opening.
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

/// Makes a change again. `is_old`: it stands in the log before the checkpoint.
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
            // An opening has dropped it, and the log had no room to say so: of a transaction that was prepared then.
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
