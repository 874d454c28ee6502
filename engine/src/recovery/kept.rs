//! What the log has of quarantined tables: it goes into their files.
//!
//! All of it, also what was applied to the trees before damage was met: that is in memory alone, and an opening that
//! does not come to its checkpoint loses it. The next one finds the file, and changes nothing of the table any more.
//! A change says what a row is afterwards, so nothing is wrong where the trees have it, too.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::outcomes;
use crate::error::Result;
use crate::fallible;
use crate::ids::{Lsn, TableId, TxId};
use crate::log::Log;
use crate::planted::{is_planted, PlantedFault};
use crate::txn::{Change, ChangeReader, KIND_CHANGES, KIND_COMMIT};

/// Clustered key, and the row as the log has it, if it is one.
pub(crate) type KeptChange = (Vec<u8>, Option<Vec<u8>>);

/// What is to be kept of a change.
pub(super) fn kept(key: &[u8], change: Change<'_>) -> Result<KeptChange> {
    let row = match change {
        Change::Put(row) => Some(fallible::copy(row, "a row of a quarantined table")?),
        Change::Delete => None,
    };
    Ok((key.to_vec(), row))
}

/// What of the log has been committed.
#[derive(Debug)]
pub(crate) struct Committed {
    /// The log is read from here on.
    pub from: Lsn,
    /// Changes of definitions count from here on.
    pub checkpoint: Lsn,
    /// The transactions.
    pub transactions: HashSet<TxId>,
    /// See [`super::TransactionOutcomes`].
    pub void_before: HashMap<TableId, Lsn>,
}

impl Committed {
    /// Whether a change that stands in the log at `at` is void.
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
