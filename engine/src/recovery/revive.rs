//! Prepared transactions that nobody has decided about: each lives on as a running transaction, with
//! the locks of the rows that it changed.
//!
//! It gets a new number, and its changes and its record stand in the log anew, under that number. So
//! the log need not be kept from where they stood before, and the next recovery does the same again.
//! A crash on the way leaves the old record or both; the new one names the old one, which is void then.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::ids::{Lsn, TxId};
use crate::settings::{Durability, Isolation};
use crate::table::shared::Shared;
use crate::table::{Table, Transaction};
use crate::txn::{ChangeReader, PreparedRecord, KIND_CHANGES};

/// Makes the transactions of these records, whose changes the log has from `from` on. Nothing else
/// runs, and everything that was committed is in the trees.
pub(crate) fn revive(shared: &Arc<Shared>, from: Lsn, records: Vec<PreparedRecord>) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let mut alive: HashMap<TxId, Transaction> = HashMap::new();
    for record in &records {
        let mut transaction = Transaction::new(shared.clone(), Isolation::ReadCommitted);
        // They had their locks all at once before, so none is in the way of another.
        transaction.set_lock_wait_timeout(Duration::ZERO);
        alive.insert(record.txid, transaction);
    }
    let mut last: Option<Arc<Table>> = None;
    for record in shared.log.read_from(from)? {
        let record = record?;
        if record.kind != KIND_CHANGES {
            continue;
        }
        let (txid, changes) = ChangeReader::new(&record.payload)?;
        let Some(transaction) = alive.get_mut(&txid) else {
            continue;
        };
        for change in changes {
            let change = change?;
            if shared.registry.is_set_aside(change.table) {
                // Nobody can use it, and nothing of it is changed any more.
                continue;
            }
            let table = match &last {
                Some(table) if table.id() == change.table => table,
                _ => match shared.registry.table_of(change.table)? {
                    Some(table) => last.insert(table),
                    // Dropped on opening (`Options::drop_on_open`), or by the transaction itself.
                    None => continue,
                },
            };
            transaction
                .repeat(table, change.key, change.change)
                .map_err(|error| in_the_way(txid, error))?;
        }
    }
    for record in records {
        if let Some(mut transaction) = alive.remove(&record.txid) {
            transaction.prepare_as(&record.xid, Some(record.txid), Durability::SyncAtCommit)?;
            transaction.detach();
        }
    }
    Ok(())
}

/// Errors that say that the log contradicts itself are bugs; others pass.
fn in_the_way(txid: TxId, error: Error) -> Error {
    match error {
        Error::LockNotAvailable
        | Error::RowChanged
        | Error::Duplicate { .. }
        | Error::NotFound { what: "row", .. } => Error::Internal(format!(
            "a change of prepared transaction {txid} can't be made again: {error}"
        )),
        error => error,
    }
}
