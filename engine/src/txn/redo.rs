//! Logical redo: the encoding of row changes in log records.
//!
//! A transaction collects its changes locally and appends them at commit as one record
//! ([`KIND_COMMIT`]); beyond 256 KiB it appends parts before ([`KIND_CHANGES`]). Replay applies
//! the changes of transactions that have a commit record, in log order.

use crate::error::Result;
use crate::ids::{TableId, TxId};

/// Log record kind: changes of a transaction that is still running.
pub const KIND_CHANGES: u8 = 1;
/// Log record kind: a transaction's remaining changes, and its commit.
pub const KIND_COMMIT: u8 = 2;

/// One logical row change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The row now has this payload (inserted or replaced).
    Put,
    /// The row is gone.
    Delete,
}

/// A change as read back from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRecord<'a> {
    /// The table.
    pub table: TableId,
    /// What happened.
    pub change: Change,
    /// The clustered key.
    pub key: &'a [u8],
    /// The payload given to `Transaction::log_put`, parts joined; empty for [`Change::Delete`].
    pub payload: &'a [u8],
}

/// Reads the changes of one log record of kind [`KIND_CHANGES`] or [`KIND_COMMIT`].
pub struct ChangeReader<'a> {
    _bytes: &'a [u8],
}

impl<'a> ChangeReader<'a> {
    /// The transaction and its changes.
    ///
    /// # Errors
    /// `Error::Internal` when the bytes are no such record.
    pub fn new(_payload: &'a [u8]) -> Result<(TxId, ChangeReader<'a>)> {
        todo!()
    }
}

impl<'a> Iterator for ChangeReader<'a> {
    type Item = Result<ChangeRecord<'a>>;
    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}
