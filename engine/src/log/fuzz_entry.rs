//! The decoder of a log record, fed with arbitrary bytes.

use super::record::{mark_payload, Header, RECORD_HEADER};

/// Decodes a record: header and payload.
pub fn record(bytes: &[u8]) -> bool {
    let _ = mark_payload(bytes);
    let Some((head, payload)) = bytes.split_first_chunk::<RECORD_HEADER>() else {
        return false;
    };
    let (header, checksum) = Header::decode(head);
    header.matches(checksum, payload)
}
