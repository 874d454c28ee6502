//! Logical redo: the encoding of row changes in log records.
//!
//! A transaction collects its changes in its own buffer, and appends them at commit as one record of kind
//! [`KIND_COMMIT`]. Beyond 256 KiB, and when it is prepared, it appends parts before, of kind [`KIND_CHANGES`]. No
//! part ends within a row operation. A transaction that rolls back has no commit record. It appends nothing more,
//! unless it was prepared (`end/prepare.rs`).
//!
//! ```text
//! payload: [txid varint] then per change:
//!          [operation u8: 1 put, 2 delete] [table varint] [key length varint] [key]
//!          put only: [payload length varint] [payload]
//! ```
//!
//! **Replay** reads the log twice from `Captured::redo_from`. First it learns which transactions have a commit record
//! *after* the checkpoint's position. Then it applies the changes of those, in log order, as frozen writes. Log order
//! is right for every row: a transaction appends a row's changes while it holds the row's lock, and its commit record
//! before it releases the lock. The same holds for changes that it rolled back to a savepoint: if a part with them is
//! in the log, their keys stay locked (`end/rollback.rs`).

use crate::error::{Error, Result};
use crate::fallible;
use crate::ids::{TableId, TxId};

/// Log record kind: changes of a transaction that is still running.
pub const KIND_CHANGES: u8 = 1;
/// Log record kind: a transaction's remaining changes, and its commit.
pub const KIND_COMMIT: u8 = 2;

/// The most bytes of a change besides its key and its payload.
const HEAD: usize = 1 + 5 + 10 + 10;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// A logical row change, as read back from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeRecord<'a> {
    /// The table.
    pub table: TableId,
    /// The clustered key.
    pub key: &'a [u8],
    /// The change of the row.
    pub change: Change<'a>,
}

/// A change of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// It was inserted or replaced; this is the payload given to [`RedoBuffer::put`], parts joined.
    Put(&'a [u8]),
    /// It was deleted.
    Delete,
}

/// A transaction's changes that are not in the log yet.
#[derive(Default)]
pub struct RedoBuffer {
    bytes: Vec<u8>,
}

impl RedoBuffer {
    /// Adds a change: the row of `key` becomes `payload` (parts are joined; large values included).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing is added then.
    pub fn put(&mut self, table: TableId, key: &[u8], payload: &[&[u8]]) -> Result<()> {
        let len: usize = payload.iter().map(|part| part.len()).sum();
        fallible::reserve(&mut self.bytes, HEAD + key.len() + len, "the redo of a row")?;
        self.begin(PUT, table, key);
        put_varint(&mut self.bytes, len as u64);
        for part in payload {
            self.bytes.extend_from_slice(part);
        }
        Ok(())
    }

    /// Adds a change: the row of `key` is deleted.
    pub fn delete(&mut self, table: TableId, key: &[u8]) {
        self.begin(DELETE, table, key);
    }

    fn begin(&mut self, operation: u8, table: TableId, key: &[u8]) {
        self.bytes.push(operation);
        put_varint(&mut self.bytes, u64::from(table.0));
        put_varint(&mut self.bytes, key.len() as u64);
        self.bytes.extend_from_slice(key);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// Empties the buffer, and shrinks it to 4 KiB if it has grown larger.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(4096);
    }
}

/// The beginning of a log record's payload: the transaction that made the changes.
pub(super) fn encode_owner(txid: TxId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(7);
    put_varint(&mut bytes, txid.0);
    bytes
}

/// Reads the changes of one log record of kind [`KIND_CHANGES`] or [`KIND_COMMIT`].
pub struct ChangeReader<'a> {
    rest: &'a [u8],
}

impl<'a> ChangeReader<'a> {
    /// Returns the transaction and its changes.
    ///
    /// # Errors
    /// [`Error::Internal`] if the bytes are not such a record.
    pub fn new(payload: &'a [u8]) -> Result<(TxId, ChangeReader<'a>)> {
        let mut rest = payload;
        let txid = take_varint(&mut rest).ok_or_else(malformed)?;
        Ok((TxId(txid), ChangeReader { rest }))
    }

    fn take(&mut self) -> Option<ChangeRecord<'a>> {
        let (&operation, rest) = self.rest.split_first()?;
        self.rest = rest;
        let table = u32::try_from(take_varint(&mut self.rest)?).ok()?;
        let key = take_bytes(&mut self.rest)?;
        let change = match operation {
            PUT => Change::Put(take_bytes(&mut self.rest)?),
            DELETE => Change::Delete,
            _ => return None,
        };
        Some(ChangeRecord {
            table: TableId(table),
            key,
            change,
        })
    }
}

impl<'a> Iterator for ChangeReader<'a> {
    type Item = Result<ChangeRecord<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let change = self.take().ok_or_else(malformed);
        if change.is_err() {
            self.rest = &[];
        }
        Some(change)
    }
}

#[cold]
fn malformed() -> Error {
    Error::Internal("a log record of row changes does not decode".into())
}

pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take_varint(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Table, key, and a put's payload in two parts.
    type Written = (u32, Vec<u8>, Option<(Vec<u8>, Vec<u8>)>);

    proptest! {
        #[test]
        fn changes_come_back_in_order(
            txid: u64,
            changes: Vec<Written>,
        ) {
            let mut redo = RedoBuffer::default();
            for (table, key, payload) in &changes {
                match payload {
                    Some((a, b)) => redo.put(TableId(*table), key, &[a, b]).unwrap(),
                    None => redo.delete(TableId(*table), key),
                }
            }
            let bytes = [encode_owner(TxId(txid)), redo.bytes().to_vec()].concat();
            let (owner, reader) = ChangeReader::new(&bytes).unwrap();
            prop_assert_eq!(owner, TxId(txid));
            let read: Vec<_> = reader.map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), changes.len());
            for (read, (table, key, payload)) in read.iter().zip(&changes) {
                prop_assert_eq!(read.table, TableId(*table));
                prop_assert_eq!(read.key, &key[..]);
                let joined = payload.as_ref().map(|(a, b)| [&a[..], b].concat());
                match (&read.change, &joined) {
                    (Change::Put(read), Some(written)) => prop_assert_eq!(*read, &written[..]),
                    (Change::Delete, None) => {}
                    _ => prop_assert!(false, "another operation came back"),
                }
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            if let Ok((_, reader)) = ChangeReader::new(&bytes) {
                prop_assert!(reader.count() <= bytes.len());
            }
        }
    }
}
