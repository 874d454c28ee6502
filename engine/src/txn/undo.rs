//! Undo records: how a change is taken back, and where a reader finds the version before it.
//!
//! ```text
//! [previous record of the transaction u64] [tree u32] [kind u8] [key length u16] [value length u16]
//! [key] [value]                                                            (little endian)
//! ```
//!
//! `value` is the whole record value that stood in the tree before, its version header included,
//! so that a rollback puts it back byte for byte, and a reader goes on to still older versions.

use super::version::UndoPtr;
use crate::error::{Error, Result};
use crate::ids::{TreeId, MAX_KEY, MAX_VALUE};
use crate::page::{Pool, BODY_SIZE};

const FIXED: usize = 17;
const MARKS_DELETE: u8 = 0x10;

/// Bytes of the longest undo record. It fits a page.
pub(super) const MAX_RECORD: usize = FIXED + MAX_KEY + MAX_VALUE;
const _: () = assert!(MAX_RECORD <= BODY_SIZE);

/// What an undo record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing stood there before.
    Absent,
    /// The value stood there before.
    Previous,
    /// The value is a note for when the transaction is purged.
    PurgeNote,
    /// The value is a note for when the transaction is rolled back.
    RollbackNote,
}

/// An undo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UndoRecord<'a> {
    /// The transaction's record before this one.
    pub previous: UndoPtr,
    pub tree: TreeId,
    pub kind: Kind,
    /// The change wrote a delete mark: purge looks at the key.
    pub marks_delete: bool,
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl<'a> UndoRecord<'a> {
    pub fn len(&self) -> usize {
        FIXED + self.key.len() + self.value.len()
    }

    /// Writes the record into the beginning of `out`; `None` when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Option<()> {
        let kind = match self.kind {
            Kind::Absent => 0,
            Kind::Previous => 1,
            Kind::PurgeNote => 2,
            Kind::RollbackNote => 3,
        } | if self.marks_delete { MARKS_DELETE } else { 0 };
        let out = out.get_mut(..self.len())?;
        let (fixed, rest) = out.split_at_mut(FIXED);
        fixed[..8].copy_from_slice(&self.previous.0.to_le_bytes());
        fixed[8..12].copy_from_slice(&self.tree.0.to_le_bytes());
        fixed[12] = kind;
        let key_len = u16::try_from(self.key.len()).ok()?;
        let value_len = u16::try_from(self.value.len()).ok()?;
        fixed[13..15].copy_from_slice(&key_len.to_le_bytes());
        fixed[15..17].copy_from_slice(&value_len.to_le_bytes());
        let (key, value) = rest.split_at_mut(self.key.len());
        key.copy_from_slice(self.key);
        value.copy_from_slice(self.value);
        Some(())
    }

    /// Reads the record at the beginning of `bytes`.
    pub fn decode(bytes: &'a [u8]) -> Option<UndoRecord<'a>> {
        let (fixed, rest) = bytes.split_at_checked(FIXED)?;
        let (previous, fixed) = fixed.split_first_chunk::<8>()?;
        let (tree, fixed) = fixed.split_first_chunk::<4>()?;
        let (&kind, lengths) = fixed.split_first()?;
        let key_len = usize::from(u16::from_le_bytes([lengths[0], lengths[1]]));
        let value_len = usize::from(u16::from_le_bytes([lengths[2], lengths[3]]));
        let (key, rest) = rest.split_at_checked(key_len)?;
        Some(UndoRecord {
            previous: UndoPtr(u64::from_le_bytes(*previous)),
            tree: TreeId(u32::from_le_bytes(*tree)),
            kind: match kind & !MARKS_DELETE {
                0 => Kind::Absent,
                1 => Kind::Previous,
                2 => Kind::PurgeNote,
                3 => Kind::RollbackNote,
                _ => return None,
            },
            marks_delete: kind & MARKS_DELETE != 0,
            key,
            value: rest.get(..value_len)?,
        })
    }
}

/// Calls `f` with the undo record at `ptr`, its page latched: `f` only copies.
pub(super) fn read<R>(
    pool: &Pool,
    ptr: UndoPtr,
    f: impl FnOnce(&UndoRecord<'_>) -> R,
) -> Result<R> {
    let page = pool.fetch_shared(ptr.page())?;
    let record = page.body().get(ptr.offset()..).and_then(UndoRecord::decode);
    match record {
        Some(record) => Ok(f(&record)),
        None => Err(Error::Internal(format!(
            "no undo record at byte {} of page {}",
            ptr.offset(),
            ptr.page()
        ))),
    }
}

/// An undo record copied out of its page; reused from one to the next.
#[derive(Default)]
pub(super) struct UndoCopy {
    bytes: Vec<u8>,
}

impl UndoCopy {
    /// Copies the record at `ptr`.
    pub fn read(&mut self, pool: &Pool, ptr: UndoPtr) -> Result<UndoRecord<'_>> {
        let bytes = &mut self.bytes;
        read(pool, ptr, |record| {
            bytes.clear();
            bytes.resize(record.len(), 0);
            record.encode(bytes);
        })?;
        UndoRecord::decode(&self.bytes)
            .ok_or_else(|| Error::Internal("an undo record changed while it was copied".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decode_gives_back_what_encode_took(
            previous: u64, tree: u32, kind in 0..4, marks_delete: bool,
            key in proptest::collection::vec(any::<u8>(), 0..300),
            value in proptest::collection::vec(any::<u8>(), 0..300),
            room in 0usize..100,
        ) {
            let record = UndoRecord {
                previous: UndoPtr(previous),
                tree: TreeId(tree),
                kind: [Kind::Absent, Kind::Previous, Kind::PurgeNote, Kind::RollbackNote][kind as usize],
                marks_delete,
                key: &key,
                value: &value,
            };
            let mut bytes = vec![0xaa; record.len() + room];
            prop_assert!(record.encode(&mut bytes).is_some());
            prop_assert_eq!(UndoRecord::decode(&bytes), Some(record));
            prop_assert!(bytes[record.len()..].iter().all(|b| *b == 0xaa));
            prop_assert!(record.encode(&mut bytes[..record.len() - 1]).is_none());
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            if let Some(record) = UndoRecord::decode(&bytes) {
                prop_assert!(record.len() <= bytes.len());
            }
        }
    }
}
