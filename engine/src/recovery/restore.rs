//! Restores prepared transactions without a decision: each becomes a running transaction again, with the locks of the
//! rows that it changed.
//!
//! A restored transaction gets a new number, and its changes and its record are logged again under that number. So the
//! log need not be kept from their first place on, and the next recovery does the same again. A crash meanwhile leaves
//! the old record or both; the new one names the old one, which is void then. On a full disk the log has no space for
//! copies: the old records stay valid, the log is kept, and the transaction ends under its old number. Changes of
//! quarantined tables are not applied again, but kept (`undecided.rs`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::kept::{kept, Committed, KeptChange};
use super::quarantine::{QuarantinedTable, Undecided};
use super::quarantine_files::QuarantineFiles;
use super::undecided::InFiles;
use super::Replayed;
use crate::error::{Error, Result};
use crate::ids::{Lsn, TableId, TxId};
use crate::planted::{is_planted, PlantedFault};
use crate::session::Transaction;
use crate::settings::{Durability, Isolation};
use crate::table::shared::Shared;
use crate::table::Table;
use crate::txn::{ChangeReader, PreparedRecord, KIND_CHANGES};

/// A transaction that is being restored.
struct Alive {
    transaction: Transaction,
    /// Its changes of quarantined tables.
    quarantined: BTreeMap<TableId, Vec<KeptChange>>,
}

/// Damage that restoring met in a table.
struct Damage {
    error: Error,
    /// Transactions whose records may be in the table's trees.
    unfinished: Vec<TxId>,
    /// Committed changes of the table, which its trees have in memory only.
    changes: Vec<KeptChange>,
}

/// Restores the prepared transactions. Nothing else runs, and the trees have all committed changes.
pub(crate) fn restore(
    shared: &Arc<Shared>,
    files: &Arc<QuarantineFiles>,
    replayed: &Replayed,
) -> Result<()> {
    let (committed, records) = (&replayed.committed, &replayed.prepared[..]);
    let lost = &replayed.lost;
    let mut damaged = BTreeMap::new();
    // Set if the log has no space for copies: the old records stay valid then.
    let mut stands = false;
    let mut alive = loop {
        let mut alive = BTreeMap::new();
        for record in records {
            let mut transaction = Transaction::new(shared.clone(), Isolation::ReadCommitted);
            // They held all these locks at the same time before, so none waits for another.
            transaction.set_lock_wait_timeout(Duration::ZERO);
            if stands {
                transaction.stand_as(record.txid, committed.from);
            }
            let quarantined = BTreeMap::new();
            alive.insert(
                record.txid,
                Alive {
                    transaction,
                    quarantined,
                },
            );
        }
        let repeated = match repeat_all(shared, committed, lost, &mut alive) {
            Err(Error::NoSpace { .. })
                if !stands && !is_planted(PlantedFault::NeedRoomToRestore) =>
            {
                stands = true;
                for mut alive in alive.into_values() {
                    alive.transaction.rollback()?;
                }
                continue;
            }
            repeated => repeated?,
        };
        let Some((table, error)) = repeated else {
            break alive;
        };
        // All are rolled back, and restored once more without that table.
        let name = shared.registry.name_told(table);
        tracing::error!(table = name, %error, "the table is damaged, and quarantined");
        let quarantined = QuarantinedTable::of(&error, Vec::new(), None);
        shared.registry.refuse(table, quarantined.error());
        let mut unfinished = Vec::new();
        for Alive {
            mut transaction, ..
        } in alive.into_values()
        {
            unfinished.push(transaction.number());
            transaction.rollback()?;
        }
        let damage = Damage {
            error,
            unfinished,
            changes: Vec::new(),
        };
        damaged.insert(table, damage);
    };
    let mut changes = committed.changes_of(&shared.log, damaged.keys().copied())?;
    for (table, damage) in &mut damaged {
        damage.changes = changes.remove(table).unwrap_or_default();
    }
    let tables = keep_undecided(shared, files, replayed, &mut alive, damaged)?;
    for record in records {
        if let Some(Alive {
            mut transaction, ..
        }) = alive.remove(&record.txid)
        {
            let number = transaction.number();
            prepare(&mut transaction, record, committed.from, stands)?;
            if let Some(tables) = tables.get(&record.txid) {
                transaction.set_changed_in_quarantine(Box::new(InFiles {
                    files: files.clone(),
                    tables: tables.clone(),
                    number,
                    commits: false,
                }));
            }
            transaction.detach();
        }
    }
    Ok(())
}

/// Prepares a restored transaction. If it `stands` under its old number, or the log has no space for a copy, its old
/// records stay valid: the log is kept from `from` on.
fn prepare(
    transaction: &mut Transaction,
    record: &PreparedRecord,
    from: Lsn,
    stands: bool,
) -> Result<()> {
    if !stands {
        let replaces = Some(record.txid);
        match transaction.prepare_as(&record.xid, replaces, Durability::SyncAtCommit) {
            Err(Error::NoSpace { .. })
                if !transaction.is_prepared() && !is_planted(PlantedFault::NeedRoomToRestore) => {}
            prepared => return prepared,
        }
    }
    tracing::warn!(xid = %record.xid, "the log has no room for a copy of a prepared transaction");
    transaction.stand_as(record.txid, from);
    transaction.prepare_standing(&record.xid)
}

/// Returns whether a table is not changed any more. A `lost` table is not in the registry.
fn is_quarantined(shared: &Shared, lost: &BTreeMap<TableId, Error>, table: TableId) -> bool {
    let is_lost = lost.contains_key(&table) && !is_planted(PlantedFault::ForgetLostUndecided);
    is_lost || shared.registry.is_refused(table)
}

/// Applies the changes of these transactions again, from the log. Ends early, and returns the table and the error, when
/// it meets damage in a table.
fn repeat_all(
    shared: &Arc<Shared>,
    committed: &Committed,
    lost: &BTreeMap<TableId, Error>,
    alive: &mut BTreeMap<TxId, Alive>,
) -> Result<Option<(TableId, Error)>> {
    if alive.is_empty() {
        return Ok(None);
    }
    let mut last: Option<Arc<Table>> = None;
    for record in shared.log.read_from(committed.from)? {
        let record = record?;
        if record.kind != KIND_CHANGES {
            continue;
        }
        let (txid, changes) = ChangeReader::new(&record.payload)?;
        let Some(Alive {
            transaction,
            quarantined: aside,
        }) = alive.get_mut(&txid)
        else {
            continue;
        };
        for change in changes {
            let change = change?;
            if committed.is_void(change.table, record.start) {
                continue;
            }
            if is_quarantined(shared, lost, change.table) {
                // The table is not changed any more, so a dump of it needs the change.
                if !is_planted(PlantedFault::ForgetUndecided) {
                    let of_table = aside.entry(change.table).or_default();
                    of_table.push(kept(change.key, change.change)?);
                }
                continue;
            }
            let repeated = (|| {
                let table = match &last {
                    Some(table) if table.id() == change.table => table,
                    _ => match shared.registry.table_of(change.table)? {
                        Some(table) => last.insert(table),
                        // `Options::drop_on_open` or the transaction itself dropped it.
                        None => return Ok(()),
                    },
                };
                transaction.repeat(table, change.key, change.change)
            })();
            match repeated {
                Err(error @ Error::Corrupt { .. })
                    if !is_planted(PlantedFault::DamageStopsRestore) =>
                {
                    return Ok(Some((change.table, error)));
                }
                Err(error)
                    if is_in_the_way(&error)
                        && !is_planted(PlantedFault::ContradictionStopsRestore) =>
                {
                    let what = format!(
                        "a change of prepared transaction {txid} can't be made again: {error}"
                    );
                    return Ok(Some((change.table, Error::Internal(what))));
                }
                repeated => repeated?,
            }
        }
    }
    Ok(None)
}

/// Writes changes of quarantined tables to their files, before the log has the transactions' new numbers. Returns the
/// quarantined tables that each transaction has changed.
fn keep_undecided(
    shared: &Arc<Shared>,
    files: &Arc<QuarantineFiles>,
    replayed: &Replayed,
    alive: &mut BTreeMap<TxId, Alive>,
    mut damaged: BTreeMap<TableId, Damage>,
) -> Result<HashMap<TxId, BTreeSet<TableId>>> {
    let (records, lost) = (&replayed.prepared[..], &replayed.lost);
    let mut changed: HashMap<TxId, BTreeSet<TableId>> = HashMap::new();
    let mut tables: BTreeSet<TableId> = damaged.keys().copied().collect();
    tables.extend(alive.values().flat_map(|alive| alive.quarantined.keys()));
    for (table, aside) in files.load()? {
        match aside {
            Err(_) if is_planted(PlantedFault::ForgetUnreadUndecided) => {
                tables.remove(&table);
            }
            _ if !is_quarantined(shared, lost, table) => {}
            // Recovery has just read or written this file; another opening finds out what is wrong.
            Err(error) => return Err(error),
            Ok(aside) if !aside.undecided.is_empty() => {
                tables.insert(table);
            }
            Ok(_) => {}
        }
    }
    for table in tables {
        let definition = shared.registry.definition(table).ok();
        let clustered = definition.and_then(|now| Some(now.trees.first()?.id));
        files.update(table, |before| {
            let damage = damaged.remove(&table);
            let mut quarantined = match (before, damage) {
                (Some(aside), None) => aside,
                (_, Some(damage)) => {
                    let mut quarantined =
                        QuarantinedTable::of(&damage.error, damage.unfinished, clustered);
                    quarantined.changes = damage.changes;
                    quarantined
                }
                (None, None) => lost
                    .get(&table)
                    .map_or_else(QuarantinedTable::default, |error| {
                        QuarantinedTable::of(error, Vec::new(), clustered)
                    }),
            };
            quarantined
                .take_decided(&|undecided| records.iter().any(|record| undecided.is_of(record)));
            for record in records {
                let Some(alive) = alive.get_mut(&record.txid) else {
                    continue;
                };
                let known = quarantined.undecided.iter().position(|u| u.is_of(record));
                let undecided = match (known, alive.quarantined.remove(&table)) {
                    (Some(at), _) => &mut quarantined.undecided[at],
                    (None, Some(changes)) => {
                        quarantined.undecided.push(Undecided {
                            changes,
                            ..Undecided::default()
                        });
                        match quarantined.undecided.last_mut() {
                            Some(last) => last,
                            None => continue,
                        }
                    }
                    (None, None) => continue,
                };
                undecided.numbers = vec![record.txid, alive.transaction.number()];
                undecided.commits = false;
                changed.entry(record.txid).or_default().insert(table);
            }
            quarantined
        })?;
    }
    Ok(changed)
}

/// Returns whether an error says that the log and the table contradict each other. In logs of earlier versions a
/// transaction can have half of a refused change of a key. The row's state is unknown then; a dump of the table
/// contains the changes.
fn is_in_the_way(error: &Error) -> bool {
    matches!(
        error,
        Error::LockNotAvailable
            | Error::RowChanged
            | Error::Duplicate { .. }
            | Error::NotFound { what: "row", .. }
    )
}
