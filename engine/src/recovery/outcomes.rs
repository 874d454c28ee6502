//! How the transactions of which the log tells have ended.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::catalog::{DdlRecord, KIND_DDL};
use crate::error::Result;
use crate::ids::{Lsn, TableId, TxId};
use crate::log::LogRecord;
use crate::planted::{is_planted, PlantedFault};
use crate::txn::{
    decode_rolled_back, ChangeReader, PreparedRecord, KIND_CHANGES, KIND_COMMIT, KIND_PREPARED,
    KIND_ROLLED_BACK,
};

/// What the first reading of the log finds out.
#[derive(Debug, Default)]
pub(crate) struct TransactionOutcomes {
    /// Transactions that committed after the checkpoint.
    pub committed: HashSet<TxId>,
    /// The last of them.
    pub last_commit: TxId,
    /// Transactions that are prepared, and neither committed nor rolled back. Wherever the records
    /// stand: of a transaction that has not ended the log has all.
    pub prepared: BTreeMap<TxId, PreparedRecord>,
    /// The highest number seen.
    pub highest: TxId,
    /// Tables that were dropped, before or after the checkpoint: by the transaction that used them, it may
    /// be, so that the log has changes of them that nobody needs.
    pub dropped: HashSet<TableId>,
    /// The last names of tables that were renamed.
    pub renamed: HashMap<TableId, String>,
    /// Where tables were last emptied, after the checkpoint.
    pub emptied: HashMap<TableId, Lsn>,
    /// The same, before it or after: what the log has of a table before that is void. A prepared transaction that has
    /// no copy in the log can have such changes, of a table that was quarantined.
    pub void_before: HashMap<TableId, Lsn>,
}

/// Whether a change that stands in the log at `at` is void, since its table has been emptied behind it.
pub(super) fn is_void(void_before: &HashMap<TableId, Lsn>, table: TableId, at: Lsn) -> bool {
    void_before.get(&table).is_some_and(|&last| at < last)
}

impl TransactionOutcomes {
    /// Whether a change that stands in the log at `at` is void.
    pub fn is_void(&self, table: TableId, at: Lsn) -> bool {
        is_void(&self.void_before, table, at)
    }

    /// Takes the next record of the log; `checkpoint` is the checkpoint's position.
    ///
    /// # Errors
    /// A record does not decode.
    pub fn take(&mut self, record: &LogRecord, checkpoint: Lsn) -> Result<()> {
        match record.kind {
            KIND_CHANGES | KIND_COMMIT => {
                let (txid, _) = ChangeReader::new(&record.payload)?;
                self.highest = self.highest.max(txid);
                if record.kind == KIND_COMMIT {
                    self.prepared.remove(&txid);
                    if record.start >= checkpoint {
                        self.last_commit = txid;
                        self.committed.insert(txid);
                    }
                }
            }
            KIND_PREPARED => {
                let record = PreparedRecord::decode(&record.payload)?;
                self.highest = self.highest.max(record.txid);
                self.prepared.remove(&record.replaces);
                self.prepared.insert(record.txid, record);
            }
            KIND_ROLLED_BACK => {
                self.prepared.remove(&decode_rolled_back(&record.payload)?);
            }
            KIND_DDL => match DdlRecord::decode(&record.payload)? {
                DdlRecord::Drop(id) => {
                    self.dropped.insert(id);
                }
                DdlRecord::Rename(id, name) => {
                    self.renamed.insert(id, name);
                }
                DdlRecord::Truncate(definition) => {
                    if record.start >= checkpoint {
                        self.emptied.insert(definition.id, record.start);
                    }
                    if record.start >= checkpoint || !is_planted(PlantedFault::FillEmptied) {
                        self.void_before.insert(definition.id, record.start);
                    }
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }
}
