//! The header of a log record. Byte layout: `docs/format.md`, "Log record".

use crate::planted::{is_planted, PlantedFault};

/// Bytes before a record's payload.
pub const RECORD_HEADER: usize = 21;
/// The longest payload: a row with the longest value that the server can make, 1 GiB, and nearly as much besides.
pub const MAX_PAYLOAD: usize = 2 << 30;
/// The first of the record kinds that the log keeps for itself.
pub const FIRST_OWN_KIND: u8 = 0xF0;
/// A mark: begins each write. Its payload says up to where the log was durable at that time. A bad record before that
/// position is damage; it is not the torn end of the log.
pub const MARK: u8 = 0xF0;
/// The first record after the log was opened: a mark that also holds the epoch before.
pub const OPENED: u8 = 0xF1;
/// Payload bytes of a [`MARK`].
pub const MARK_PAYLOAD: usize = 8;
/// Payload bytes of an [`OPENED`].
pub const OPENED_PAYLOAD: usize = 12;

/// A record's header, read or to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Random number of the log's opening that wrote the record. So a reader does not take a record of an earlier
    /// opening, never acknowledged, for the successor of a newer record before it.
    pub epoch: u32,
    /// The record's position. So a reader does not take an old record of a recycled segment for a new one.
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    /// The kind of the payload.
    pub kind: u8,
}

impl Header {
    fn fields(&self) -> [u8; RECORD_HEADER - 4] {
        let mut bytes = [0; RECORD_HEADER - 4];
        bytes[0..4].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.start.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16] = self.kind;
        bytes
    }

    /// The header's bytes; `payload_crc` is the payload's CRC-32C. The checksum covers the payload first and the header
    /// last, so that the payload's part can be computed before the record's place is known.
    pub fn encode(&self, payload_crc: u32) -> [u8; RECORD_HEADER] {
        let fields = self.fields();
        let mut bytes = [0; RECORD_HEADER];
        let checksum = crc32c::crc32c_append(payload_crc, &fields);
        bytes[0..4].copy_from_slice(&checksum.to_le_bytes());
        bytes[4..].copy_from_slice(&fields);
        bytes
    }

    /// Takes the fields and the checksum out of `bytes`, unchecked.
    pub fn decode(bytes: &[u8; RECORD_HEADER]) -> (Header, u32) {
        let u32_at = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let header = Header {
            epoch: u32_at(4),
            start: u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32,
            len: u32_at(16),
            kind: bytes[20],
        };
        (header, u32_at(0))
    }

    /// Returns whether `checksum` is that of this header and `payload`.
    pub fn matches(&self, checksum: u32, payload: &[u8]) -> bool {
        crc32c::crc32c_append(crc32c::crc32c(payload), &self.fields()) == checksum
            || is_planted(PlantedFault::IgnoreLogChecksum)
    }
}

/// A whole [`MARK`].
pub fn mark(epoch: u32, start: u64, durable: u64) -> [u8; RECORD_HEADER + MARK_PAYLOAD] {
    let payload = durable.to_le_bytes();
    let header = Header {
        epoch,
        start,
        len: MARK_PAYLOAD as u32,
        kind: MARK,
    };
    let mut bytes = [0; RECORD_HEADER + MARK_PAYLOAD];
    bytes[..RECORD_HEADER].copy_from_slice(&header.encode(crc32c::crc32c(&payload)));
    bytes[RECORD_HEADER..].copy_from_slice(&payload);
    bytes
}

/// A whole [`OPENED`].
pub fn opened(
    epoch: u32,
    start: u64,
    durable: u64,
    before: u32,
) -> [u8; RECORD_HEADER + OPENED_PAYLOAD] {
    let mut payload = [0; OPENED_PAYLOAD];
    payload[..8].copy_from_slice(&durable.to_le_bytes());
    payload[8..].copy_from_slice(&before.to_le_bytes());
    let header = Header {
        epoch,
        start,
        len: OPENED_PAYLOAD as u32,
        kind: OPENED,
    };
    let mut bytes = [0; RECORD_HEADER + OPENED_PAYLOAD];
    bytes[..RECORD_HEADER].copy_from_slice(&header.encode(crc32c::crc32c(&payload)));
    bytes[RECORD_HEADER..].copy_from_slice(&payload);
    bytes
}

/// Writes the first record of a write at the front of its bytes, where room was left: an [`OPENED`] if `before`, the
/// epoch before, is given, otherwise a [`MARK`].
pub fn begin(bytes: &mut [u8], epoch: u32, start: u64, durable: u64, before: Option<u32>) {
    match before {
        None => {
            let mark = mark(epoch, start, durable);
            bytes[..mark.len()].copy_from_slice(&mark);
        }
        Some(before) => {
            let opened = opened(epoch, start, durable, before);
            bytes[..opened.len()].copy_from_slice(&opened);
        }
    }
}

/// Reads a mark's payload: how far the log was durable, and the epoch before, if the mark holds it.
pub fn mark_payload(payload: &[u8]) -> Option<(u64, Option<u32>)> {
    let (durable, rest) = payload.split_first_chunk::<8>()?;
    let before = rest
        .first_chunk::<4>()
        .map(|before| u32::from_le_bytes(*before));
    Some((u64::from_le_bytes(*durable), before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_come_back_and_every_flip_is_found(
            epoch: u32, start: u64, kind: u8, payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let header = Header { epoch, start, len: payload.len() as u32, kind };
            let mut bytes = header.encode(crc32c::crc32c(&payload));
            let (back, checksum) = Header::decode(&bytes);
            prop_assert_eq!(back, header);
            prop_assert!(back.matches(checksum, &payload));
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                let (back, checksum) = Header::decode(&bytes);
                prop_assert!(!back.matches(checksum, &payload));
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
