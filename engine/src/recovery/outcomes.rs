//! The outcomes of the transactions in the log.

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

/// The result of the first pass over the log.
#[derive(Debug, Default)]
pub(crate) struct TransactionOutcomes {
    /// Transactions that committed after the checkpoint.
    pub committed: HashSet<TxId>,
    /// The last of them.
    pub last_commit: TxId,
    /// Prepared transactions that are neither committed nor rolled back. Records before the checkpoint count, too: the
    /// log keeps all records of a transaction that has not ended.
    pub prepared: BTreeMap<TxId, PreparedRecord>,
    /// The highest number seen.
    pub highest: TxId,
    /// Tables that were dropped, before or after the checkpoint. The transaction that used such a table may have
    /// dropped it, so the log may have changes of it that are not needed.
    pub dropped: HashSet<TableId>,
    /// The last names of tables that were renamed.
    pub renamed: HashMap<TableId, String>,
    /// Where tables were last emptied, after the checkpoint.
    pub emptied: HashMap<TableId, Lsn>,
    /// Where tables were last emptied, before the checkpoint or after: changes of the table before that are void. A
    /// prepared transaction without a copy in the log can have such changes, of a table that was quarantined.
    pub void_before: HashMap<TableId, Lsn>,
}

/// Returns whether the change at `at` in the log is void, as its table was emptied later.
pub(super) fn is_void(void_before: &HashMap<TableId, Lsn>, table: TableId, at: Lsn) -> bool {
    void_before.get(&table).is_some_and(|&last| at < last)
}

impl TransactionOutcomes {
    /// Returns whether the change at `at` in the log is void.
    pub fn is_void(&self, table: TableId, at: Lsn) -> bool {
        is_void(&self.void_before, table, at)
    }

    /// Takes the next record of the log; `checkpoint` is the checkpoint's position in it.
    ///
    /// # Errors
    /// If a record does not decode.
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
