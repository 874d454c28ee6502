//! The two headers at the data file's beginning, written in turn, and the checkpoint record that the newer one points
//! to. Byte layouts: `docs/format.md`.

use std::path::Path;

use super::place::UNIT;
use crate::error::{Error, Result};
use crate::ids::PAGE_SIZE;

/// Bytes of one header slot; the two slots are the file's first bytes.
pub const HEADER: usize = 4096;
/// Units that the two headers take.
pub const HEADER_UNITS: u64 = (2 * HEADER / UNIT) as u64;
/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"PEREGRIN";
const RECORD_MAGIC: [u8; 4] = *b"PGcp";
const CHUNK_MAGIC: [u8; 4] = *b"PGpt";
const HEADER_USED: usize = 64;
const RECORD_HEADER: usize = 48;
const CHUNK_HEADER: usize = 32;

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The database's random number.
    pub database_id: u64,
    /// Number of the checkpoint; the header is in slot `sequence % 2`.
    pub sequence: u64,
    /// First unit of the checkpoint record.
    pub record_offset: u64,
    /// Bytes of the checkpoint record.
    pub record_len: u64,
}

/// The parts of a checkpoint besides its pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Number of the checkpoint.
    pub sequence: u64,
    /// No image written so far has a higher generation.
    pub generation: u64,
    /// Places of the place table's chunks; 0 for a chunk without pages.
    pub chunks: Vec<u64>,
    /// Bytes that the layers above store with the checkpoint.
    pub meta: Vec<u8>,
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*head))
    }
}

impl Header {
    /// The bytes of the slot, `HEADER` long.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..16].copy_from_slice(&(PAGE_SIZE as u32).to_le_bytes());
        bytes[16..20].copy_from_slice(&(UNIT as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&self.database_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.record_offset.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.record_len.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..HEADER - 4]);
        bytes[HEADER - 4..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads slot number `slot`; `Err` says what is wrong.
    fn decode(bytes: &[u8], slot: u64) -> Result<Header, String> {
        if bytes.len() != HEADER {
            return Err(format!("the header has only {} bytes", bytes.len()));
        }
        if bytes[0..8] != MAGIC {
            return Err(format!(
                "expected {:?} at the header's beginning, found {:02x?}",
                String::from_utf8_lossy(&MAGIC),
                &bytes[0..8]
            ));
        }
        let mut rest = Reader(&bytes[HEADER - 4..]);
        let (expected, found) = (rest.u32(), crc32c::crc32c(&bytes[..HEADER - 4]));
        if expected != Some(found) {
            return Err(format!(
                "the header's checksum says {:#010x}, its bytes give {found:#010x}",
                expected.unwrap_or_default()
            ));
        }
        let mut rest = Reader(&bytes[24..HEADER_USED]);
        let mut next = || rest.u64().unwrap_or_default();
        let header = Header {
            database_id: next(),
            sequence: next(),
            record_offset: next(),
            record_len: next(),
        };
        if header.sequence % 2 != slot {
            return Err(format!(
                "the header of checkpoint {} is in slot {slot}",
                header.sequence
            ));
        }
        Ok(header)
    }
}

/// The format, page size and unit in a slot, if its magic is right. The checksum is not checked.
fn format_of(bytes: &[u8]) -> Option<(u32, u32, u32)> {
    let mut rest = Reader(bytes.strip_prefix(&MAGIC)?);
    Some((rest.u32()?, rest.u32()?, rest.u32()?))
}

/// The file's two headers.
#[derive(Debug)]
pub struct Headers {
    /// The valid ones, the newer one first.
    pub valid: Vec<Header>,
    /// The errors of the others. A slot that was never written is not one.
    pub damage: Vec<Error>,
}

impl Headers {
    /// The newer valid header.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when neither is valid.
    pub fn newest(&self) -> Result<Header> {
        self.valid.first().cloned().ok_or_else(|| {
            let first = self.damage.first().cloned();
            first.unwrap_or_else(|| Error::Internal("a data file without a header".into()))
        })
    }
}

/// Reads the headers, the file's first `2 * HEADER` bytes (fewer when the file is shorter).
///
/// # Errors
/// [`Error::Format`] for a file of a newer version, of another page size or unit, or of another program.
pub fn read(path: &Path, bytes: &[u8]) -> Result<Headers> {
    let cut = bytes.len().min(HEADER);
    let slots = [
        &bytes[..cut],
        &bytes[cut.min(bytes.len())..bytes.len().min(2 * HEADER)],
    ];
    let found = [Header::decode(slots[0], 0), Header::decode(slots[1], 1)];
    let formats = [format_of(slots[0]), format_of(slots[1])];
    let refuse = |what: String| Error::Format {
        file: path.to_owned(),
        what,
    };
    if formats == [None, None] {
        return Err(refuse(
            "this is not a Peregrine data file (its headers begin with something else)".into(),
        ));
    }
    let ours = (FORMAT, PAGE_SIZE as u32, UNIT as u32);
    let is_ours = |slot: usize| formats[slot] == Some(ours) && found[slot].is_ok();
    // A valid header of our format beside a damaged one means damage, not another format.
    if !is_ours(0) && !is_ours(1) || found.iter().all(Result::is_ok) {
        for (format, page, unit) in formats.into_iter().flatten() {
            if format > FORMAT {
                return Err(refuse(newer(format)));
            }
            if (page, unit) != (ours.1, ours.2) && found.iter().any(Result::is_ok) {
                return Err(refuse(format!(
                    "pages of {page} bytes in units of {unit}, this version reads {PAGE_SIZE} in {UNIT}"
                )));
            }
        }
    }
    let mut headers = Headers {
        valid: Vec::new(),
        damage: Vec::new(),
    };
    for (slot, header) in found.into_iter().enumerate() {
        match header {
            Ok(header) if formats[slot] == Some(ours) => headers.valid.push(header),
            Ok(_) => {}
            Err(_) if slots[slot].iter().all(|&byte| byte == 0) => {}
            Err(what) => headers.damage.push(Error::Corrupt {
                file: path.to_owned(),
                offset: (slot * HEADER) as u64,
                page: None,
                what,
            }),
        }
    }
    headers
        .valid
        .sort_by_key(|header| std::cmp::Reverse(header.sequence));
    Ok(headers)
}

fn newer(format: u32) -> String {
    format!(
        "the file has format {format}, this version of Peregrine reads formats up to {FORMAT}; \
         open it with a newer version (it was left untouched)"
    )
}

impl Record {
    /// The record's bytes.
    pub fn encode(&self, database_id: u64) -> Vec<u8> {
        let len = RECORD_HEADER + self.chunks.len() * 8 + self.meta.len();
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&RECORD_MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&database_id.to_le_bytes());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&(self.chunks.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&(self.meta.len() as u64).to_le_bytes());
        for place in &self.chunks {
            bytes.extend_from_slice(&place.to_le_bytes());
        }
        bytes.extend_from_slice(&self.meta);
        let checksum = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the record that `header` points to; `Err` says what is wrong.
    pub fn decode(bytes: &[u8], header: &Header) -> Result<Record, String> {
        let body = open(bytes, RECORD_MAGIC, "checkpoint record")?;
        let mut rest = Reader(body);
        let fields = [(); 5].map(|()| rest.u64().unwrap_or_default());
        let [database_id, sequence, generation, chunks, meta] = fields;
        if (database_id, sequence) != (header.database_id, header.sequence) {
            return Err(format!(
                "expected the record of checkpoint {} of database {:016x}, found {sequence} of {database_id:016x}",
                header.sequence, header.database_id
            ));
        }
        let sound = (chunks.checked_mul(8)).and_then(|len| len.checked_add(meta));
        if sound != Some(rest.0.len() as u64) {
            return Err(format!(
                "{chunks} chunks and {meta} bytes of meta do not make up {} bytes",
                rest.0.len()
            ));
        }
        let (places, meta) = rest.0.split_at(chunks as usize * 8);
        let mut places = Reader(places);
        Ok(Record {
            sequence,
            generation,
            chunks: std::iter::from_fn(|| places.u64()).collect(),
            meta: meta.to_vec(),
        })
    }
}

/// The bytes of chunk `index` of the place table, without trailing empty entries.
pub fn encode_chunk(index: usize, generation: u64, entries: &[u64]) -> Vec<u8> {
    let count = entries
        .iter()
        .rposition(|&entry| entry != 0)
        .map_or(0, |last| last + 1);
    let mut bytes = Vec::with_capacity(CHUNK_HEADER + count * 8);
    bytes.extend_from_slice(&CHUNK_MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(index as u64).to_le_bytes());
    bytes.extend_from_slice(&generation.to_le_bytes());
    bytes.extend_from_slice(&(count as u64).to_le_bytes());
    for entry in &entries[..count] {
        bytes.extend_from_slice(&entry.to_le_bytes());
    }
    bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
    let checksum = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Reads chunk `index`; returns its generation and entries. `Err` says what is wrong.
pub fn decode_chunk(bytes: &[u8], index: usize) -> Result<(u64, Vec<u64>), String> {
    let mut rest = Reader(open(bytes, CHUNK_MAGIC, "chunk of the place table")?);
    let [found, generation, count] = [(); 3].map(|()| rest.u64().unwrap_or_default());
    if found != index as u64 {
        return Err(format!(
            "expected chunk {index} of the place table, found {found}"
        ));
    }
    if count > super::table::CHUNK as u64 || (rest.0.len() as u64) < count * 8 {
        return Err(format!("{count} entries in {} bytes", rest.0.len()));
    }
    let entries = std::iter::from_fn(|| rest.u64()).take(count as usize);
    Ok((generation, entries.collect()))
}

/// Checks the magic, and the checksum at bytes 4..8 over the bytes that follow; returns those bytes.
fn open<'a>(bytes: &'a [u8], magic: [u8; 4], what: &str) -> Result<&'a [u8], String> {
    let mut rest = Reader(bytes);
    let (found, checksum) = (rest.u32(), rest.u32());
    if found.map(u32::to_le_bytes) != Some(magic) || bytes.len() < CHUNK_HEADER {
        return Err(format!(
            "expected a {what}, which begins with {magic:02x?}, found {:02x?}",
            &bytes[..bytes.len().min(4)]
        ));
    }
    let computed = crc32c::crc32c(rest.0);
    if checksum != Some(computed) {
        return Err(format!(
            "the checksum of the {what} says {:#010x}, its bytes give {computed:#010x}",
            checksum.unwrap_or_default()
        ));
    }
    Ok(rest.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(sequence: u64) -> Header {
        Header {
            database_id: 77,
            sequence,
            record_offset: 1000,
            record_len: 99,
        }
    }

    fn file(a: &Header, b: &Header) -> Vec<u8> {
        [a.encode(), b.encode()].concat()
    }

    fn choose(path: &Path, bytes: &[u8]) -> Result<Header> {
        read(path, bytes)?.newest()
    }

    #[test]
    fn the_newer_valid_header_is_chosen_whichever_bit_of_the_other_flips() {
        let path = Path::new("data");
        let good = file(&header(4), &header(5));
        assert_eq!(choose(path, &good).unwrap().sequence, 5);
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let expected = if bit / 8 < HEADER { 5 } else { 4 };
            assert_eq!(
                choose(path, &bytes).unwrap().sequence,
                expected,
                "bit {bit}"
            );
        }
        assert_eq!(choose(path, &good[..HEADER]).unwrap().sequence, 4);
    }

    #[test]
    fn a_newer_format_is_refused_with_the_numbers() {
        let reseal = |slot: &mut [u8]| {
            let checksum = crc32c::crc32c(&slot[..HEADER - 4]);
            slot[HEADER - 4..].copy_from_slice(&checksum.to_le_bytes());
        };
        let mut bytes = file(&header(4), &header(5));
        bytes[HEADER + 8] = 9;
        reseal(&mut bytes[HEADER..]);
        let Err(Error::Format { what, .. }) = choose(Path::new("data"), &bytes) else {
            panic!("one header of a newer format");
        };
        assert!(
            what.contains("format 9") && what.contains("up to 1"),
            "{what}"
        );
        bytes[8] = 9;
        assert!(matches!(
            choose(Path::new("data"), &bytes),
            Err(Error::Format { .. })
        ));
        for other in [&b""[..], b"something else", &[0; 2 * HEADER]] {
            assert!(matches!(
                choose(Path::new("data"), other),
                Err(Error::Format { .. })
            ));
        }
        let mut bytes = file(&header(4), &header(5));
        bytes[100] ^= 1;
        bytes[HEADER + 100] ^= 1;
        assert!(matches!(
            choose(Path::new("data"), &bytes),
            Err(Error::Corrupt { .. })
        ));
    }

    proptest! {
        #[test]
        fn records_and_chunks_come_back_and_flips_are_found(
            chunks in proptest::collection::vec(any::<u64>(), 0..40),
            meta in proptest::collection::vec(any::<u8>(), 0..200),
            generation: u64,
            flip: proptest::sample::Index,
        ) {
            let record = Record { sequence: 5, generation, chunks: chunks.clone(), meta };
            let mut bytes = record.encode(77);
            prop_assert_eq!(Record::decode(&bytes, &header(5)), Ok(record));
            prop_assert!(Record::decode(&bytes, &header(7)).is_err());
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Record::decode(&bytes, &header(5)).is_err());

            let mut bytes = encode_chunk(3, generation, &chunks);
            let (found, mut entries) = decode_chunk(&bytes, 3).unwrap();
            prop_assert_eq!(found, generation);
            entries.resize(chunks.len(), 0);
            prop_assert_eq!(entries, chunks);
            prop_assert!(decode_chunk(&bytes, 4).is_err());
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(decode_chunk(&bytes, 3).is_err());
        }
    }
}
