//! The committed changes of quarantined tables in the log, for their files.
//!
//! They include the changes applied to the trees before damage was met: these are in memory only, and an opening that
//! does not reach its checkpoint loses them. The next opening finds the file, and changes nothing in the table. A
//! change holds the row's later state, so applying it twice does no harm.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::outcomes;
use crate::error::Result;
use crate::fallible;
use crate::ids::{Lsn, TableId, TxId};
use crate::log::Log;
use crate::planted::{is_planted, PlantedFault};
use crate::txn::{Change, ChangeReader, KIND_CHANGES, KIND_COMMIT};

/// Clustered key, and the row as the log has it; `None` if it was deleted.
pub(crate) type KeptChange = (Vec<u8>, Option<Vec<u8>>);

/// The part of a change that is kept.
pub(super) fn kept(key: &[u8], change: Change<'_>) -> Result<KeptChange> {
    let row = match change {
        Change::Put(row) => Some(fallible::copy(row, "a row of a quarantined table")?),
        Change::Delete => None,
    };
    Ok((key.to_vec(), row))
}

/// The committed part of the log.
#[derive(Debug)]
pub(crate) struct Committed {
    /// The position from which the log is read.
    pub from: Lsn,
    /// Changes of definitions are applied from here on.
    pub checkpoint: Lsn,
    /// The committed transactions.
    pub transactions: HashSet<TxId>,
    /// See [`super::TransactionOutcomes::void_before`].
    pub void_before: HashMap<TableId, Lsn>,
}

impl Committed {
    /// Returns whether the change at `at` in the log is void.
    pub fn is_void(&self, table: TableId, at: Lsn) -> bool {
        outcomes::is_void(&self.void_before, table, at)
    }

    /// The committed changes of these tables, oldest first.
    ///
    /// # Errors
    /// Those of the log; [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub(super) fn changes_of(
        &self,
        log: &Log,
        tables: impl IntoIterator<Item = TableId>,
    ) -> Result<BTreeMap<TableId, Vec<KeptChange>>> {
        let mut changes: BTreeMap<_, Vec<_>> = tables
            .into_iter()
            .map(|table| (table, Vec::new()))
            .collect();
        if changes.is_empty() {
            return Ok(changes);
        }
        for record in log.read_from(self.from)? {
            let record = record?;
            if !matches!(record.kind, KIND_CHANGES | KIND_COMMIT) {
                continue;
            }
            let (txid, of_it) = ChangeReader::new(&record.payload)?;
            if !self.transactions.contains(&txid) {
                continue;
            }
            for change in of_it {
                let change = change?;
                if self.is_void(change.table, record.start) {
                    continue;
                }
                if let Some(of_table) = changes.get_mut(&change.table) {
                    of_table.push(kept(change.key, change.change)?);
                }
            }
        }
        if is_planted(PlantedFault::KeepFromDamage) {
            changes.values_mut().for_each(|of_table| {
                of_table.drain(..of_table.len().min(1));
            });
        }
        Ok(changes)
    }
}
