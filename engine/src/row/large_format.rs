//! Large values as bytes: their chunks, the keys of these, and notes about values.
//!
//! `table/large.rs` reads and writes them in trees.

use crate::error::{Error, Result};
use crate::ids::TreeId;
use crate::row::payload::LargeRef;

/// Bytes of a value in one record.
pub(crate) const CHUNK: usize = 3900;

/// The key of a chunk of a value.
pub(crate) fn key(id: u64, chunk: u32) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&id.to_be_bytes());
    key[8..].copy_from_slice(&chunk.to_be_bytes());
    key
}

/// The value number in a key of the tree.
pub(crate) fn id_of(key: &[u8]) -> Option<u64> {
    key.first_chunk::<8>().map(|id| u64::from_be_bytes(*id))
}

/// The number of chunks of a value of this many bytes.
pub(crate) fn chunks(len: u64) -> Result<u32> {
    u32::try_from(len.div_ceil(CHUNK as u64))
        .map_err(|_| Error::TooLarge(format!("a value can't have {len} bytes")))
}

/// A note about a value, which the transaction layer keeps to name the value when it must be freed.
pub(crate) fn note(tree: TreeId, value: LargeRef) -> [u8; 20] {
    let mut note = [0; 20];
    note[..4].copy_from_slice(&tree.0.to_le_bytes());
    note[4..12].copy_from_slice(&value.id.to_le_bytes());
    note[12..].copy_from_slice(&value.len.to_le_bytes());
    note
}

/// The tree and the value of a note.
pub(crate) fn read_note(note: &[u8]) -> Result<(TreeId, LargeRef)> {
    let bad = || Error::Internal("a note about a large value is damaged".into());
    let (tree, rest) = note.split_first_chunk::<4>().ok_or_else(bad)?;
    let (id, rest) = rest.split_first_chunk::<8>().ok_or_else(bad)?;
    let len = rest.try_into().map_err(|_| bad())?;
    let value = LargeRef {
        id: u64::from_le_bytes(*id),
        len: u64::from_le_bytes(len),
    };
    Ok((TreeId(u32::from_le_bytes(*tree)), value))
}
