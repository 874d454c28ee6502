//! The header block of a segment file. Byte layout: `docs/format.md`, "Log segment".

use crate::error::{Error, Result};
use crate::os::File;

/// Bytes of a segment's header, and the unit of the log's writes.
pub const BLOCK: u64 = 4096;
const MAGIC: [u8; 8] = *b"PGREDO\0\0";
const FORMAT: u32 = 1;
/// Sizes stay below this, and numbers below another limit, so that positions fit in 63 bits.
pub(super) const LARGEST_SEGMENT: u64 = 1 << 32;

/// A segment's header block.
pub(super) fn encode(database_id: u64, number: u64, segment_bytes: u64) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK as usize];
    bytes[0..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&database_id.to_le_bytes());
    bytes[24..32].copy_from_slice(&number.to_le_bytes());
    bytes[32..40].copy_from_slice(&segment_bytes.to_le_bytes());
    let at = bytes.len() - 4;
    let checksum = crc32c::crc32c(&bytes[..at]);
    bytes[at..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads a segment's header; returns the segment's size.
pub(super) fn check(file: &dyn File, database_id: u64, number: u64) -> Result<u64> {
    let mut bytes = vec![0; BLOCK as usize];
    let found = file.read_at(&mut bytes, 0)?;
    let corrupt = |what: String| Error::Corrupt {
        file: file.path().to_owned(),
        offset: 0,
        page: None,
        what,
    };
    let format = |what: String| Error::Format {
        file: file.path().to_owned(),
        what,
    };
    let u64_at = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    if bytes[0..8] != MAGIC {
        return Err(corrupt(format!(
            "expected a log segment, which begins with {MAGIC:02x?}, found {:02x?}",
            &bytes[0..8]
        )));
    }
    let at = bytes.len() - 4;
    let expected = u64_at(at - 4) >> 32;
    let computed = u64::from(crc32c::crc32c(&bytes[..at]));
    if found < bytes.len() || expected != computed {
        return Err(corrupt(format!(
            "the checksum of the segment's header says {expected:#010x}, its bytes give {computed:#010x}"
        )));
    }
    let version = u64_at(8) as u32;
    if version > FORMAT {
        return Err(format(format!(
            "the log has format {version}, this version of Peregrine reads formats up to {FORMAT}; \
             open it with a newer version (it was left untouched)"
        )));
    }
    let (id, found, size) = (u64_at(16), u64_at(24), u64_at(32));
    if id != database_id {
        return Err(format(format!(
            "this is a log of database {id:016x}, expected {database_id:016x}"
        )));
    }
    if found != number {
        return Err(corrupt(format!("expected segment {number}, found {found}")));
    }
    if !is_size(size) {
        return Err(corrupt(format!("segments of {size} bytes can't be")));
    }
    Ok(size)
}

/// Returns whether segments may have that size.
pub(super) fn is_size(segment_bytes: u64) -> bool {
    segment_bytes % BLOCK == 0 && (4 * BLOCK..=LARGEST_SEGMENT).contains(&segment_bytes)
}
