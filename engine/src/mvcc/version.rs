//! The version header in front of every record value of every tree.
//!
//! ```text
//! [flags u8] [txid u48, little endian] [undo pointer u64, little endian] [payload]
//!            '--- forms 1 and 2 ----'  '----------- form 2 -----------'
//! flags: bits 0-1 form, bit 2 DELETED
//! ```
//!
//! Form 0 is *frozen*: every snapshot sees it. Form 1 was inserted by `txid` where there was no record before. Form 2
//! was written by `txid` over an older version; the undo pointer leads to that version. The tree has the newest
//! version, undo records have the older ones (as in OrioleDB and InnoDB). So a reader of a page whose changes are all
//! old needs neither header nor undo.

use crate::error::{Error, Result};
use crate::ids::{TxId, UndoPtr, MAX_VALUE};

const FORM_MASK: u8 = 0b011;
const FORM_FROZEN: u8 = 0;
const FORM_INSERTED: u8 = 1;
const FORM_CHAINED: u8 = 2;
const DELETED: u8 = 0b100;

/// Bytes of the longest header.
pub const MAX_HEADER: usize = 15;

/// The longest payload a versioned record can carry, in bytes.
pub const MAX_PAYLOAD: usize = MAX_VALUE - MAX_HEADER;

/// The writer of a record, and the version before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Written by a transaction that every snapshot sees.
    Frozen,
    /// Inserted by this transaction; no snapshot needs a version before.
    Inserted(TxId),
    /// Written by this transaction over the version in the undo record.
    Chained(TxId, UndoPtr),
}

/// A decoded version header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The writer of the record, and the version before.
    pub origin: Origin,
    /// Whether the record is a delete mark; its payload is then empty.
    pub deleted: bool,
}

impl Header {
    /// The writing transaction, or `None` when frozen.
    pub fn txid(&self) -> Option<TxId> {
        match self.origin {
            Origin::Frozen => None,
            Origin::Inserted(txid) | Origin::Chained(txid, _) => Some(txid),
        }
    }

    /// The undo record of the version before this one.
    pub fn older(&self) -> Option<UndoPtr> {
        match self.origin {
            // The pointer is none if the older versions were pruned.
            Origin::Chained(_, ptr) => Some(ptr).filter(|ptr| !ptr.is_none()),
            _ => None,
        }
    }

    /// Changes the undo pointer in a record value's header in place; returns false if the header has none.
    pub(crate) fn set_older(value: &mut [u8], to: UndoPtr) -> bool {
        match (value.first(), value.get(7..15)) {
            (Some(flags), Some(_)) if flags & FORM_MASK == FORM_CHAINED => {
                value[7..15].copy_from_slice(&to.0.to_le_bytes());
                true
            }
            _ => false,
        }
    }

    /// Splits a record value into header and payload.
    ///
    /// # Errors
    /// [`Error::Internal`] if the bytes are not a versioned record.
    #[inline]
    pub fn decode(value: &[u8]) -> Result<(Header, &[u8])> {
        let Some((&flags, rest)) = value.split_first() else {
            return Err(malformed(value));
        };
        if flags == 0 {
            let header = Header {
                origin: Origin::Frozen,
                deleted: false,
            };
            return Ok((header, rest));
        }
        Self::decode_unfrozen(flags, rest).ok_or_else(|| malformed(value))
    }

    fn decode_unfrozen(flags: u8, rest: &[u8]) -> Option<(Header, &[u8])> {
        if flags & !(FORM_MASK | DELETED) != 0 {
            return None;
        }
        let (origin, payload) = match flags & FORM_MASK {
            FORM_FROZEN => (Origin::Frozen, rest),
            FORM_INSERTED => {
                let (txid, payload) = rest.split_at_checked(6)?;
                (Origin::Inserted(read_txid(txid)), payload)
            }
            FORM_CHAINED => {
                let (txid, rest) = rest.split_at_checked(6)?;
                let (ptr, payload) = rest.split_first_chunk::<8>()?;
                let ptr = UndoPtr(u64::from_le_bytes(*ptr));
                (Origin::Chained(read_txid(txid), ptr), payload)
            }
            _ => return None,
        };
        let deleted = flags & DELETED != 0;
        Some((Header { origin, deleted }, payload))
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let deleted = if self.deleted { DELETED } else { 0 };
        match self.origin {
            Origin::Frozen => out.push(FORM_FROZEN | deleted),
            Origin::Inserted(txid) => {
                out.push(FORM_INSERTED | deleted);
                out.extend_from_slice(&txid.0.to_le_bytes()[..6]);
            }
            Origin::Chained(txid, ptr) => {
                out.push(FORM_CHAINED | deleted);
                out.extend_from_slice(&txid.0.to_le_bytes()[..6]);
                out.extend_from_slice(&ptr.0.to_le_bytes());
            }
        }
    }
}

/// Writes a frozen, live record value, as recovery and bulk load put into trees.
pub fn encode_frozen(payload: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.push(FORM_FROZEN);
    out.extend_from_slice(payload);
}

/// Returns the payload of a record on a page where every record is visible; `None` for a delete mark.
///
/// That is a page whose `max_txid` is below the view's `low`.
///
/// # Errors
/// [`Error::Internal`] if the bytes are not a versioned record.
#[inline]
pub fn live_payload(value: &[u8]) -> Result<Option<&[u8]>> {
    // Scans call this for every row. Of a header that is not a delete mark, only the length matters.
    let header = match value.first() {
        Some(&FORM_FROZEN) => 1,
        Some(&FORM_INSERTED) => 7,
        Some(&FORM_CHAINED) => MAX_HEADER,
        _ => 0,
    };
    if header != 0 {
        if let Some(payload) = value.get(header..) {
            return Ok(Some(payload));
        }
    }
    let (header, payload) = Header::decode(value)?;
    Ok((!header.deleted).then_some(payload))
}

fn read_txid(bytes: &[u8]) -> TxId {
    let mut word = [0; 8];
    word[..6].copy_from_slice(&bytes[..6]);
    TxId(u64::from_le_bytes(word))
}

#[cold]
fn malformed(value: &[u8]) -> Error {
    Error::Internal(format!(
        "a tree record of {} bytes has no valid version header (first bytes {:02x?})",
        value.len(),
        &value[..value.len().min(MAX_HEADER)]
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PageId;
    use proptest::prelude::*;

    fn origins() -> impl Strategy<Value = Origin> {
        prop_oneof![
            Just(Origin::Frozen),
            (0..1u64 << 48).prop_map(|t| Origin::Inserted(TxId(t))),
            (0..1u64 << 48, any::<u64>()).prop_map(|(t, p)| Origin::Chained(TxId(t), UndoPtr(p))),
        ]
    }

    proptest! {
        #[test]
        fn decode_gives_back_what_encode_took(
            origin in origins(), deleted: bool, payload: Vec<u8>,
        ) {
            let header = Header { origin, deleted };
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            prop_assert!(bytes.len() <= MAX_HEADER);
            bytes.extend_from_slice(&payload);
            prop_assert_eq!(Header::decode(&bytes).unwrap(), (header, &payload[..]));
            prop_assert_eq!(live_payload(&bytes).unwrap().is_none(), deleted);
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            if let Ok((header, payload)) = Header::decode(&bytes) {
                let mut again = Vec::new();
                header.encode(&mut again);
                again.extend_from_slice(payload);
                prop_assert_eq!(again, bytes);
            }
        }

        #[test]
        fn undo_pointer_keeps_page_and_offset(page in 1u64..1 << 48, offset: u16) {
            let ptr = UndoPtr::new(PageId(page), offset);
            prop_assert_eq!(ptr.page(), PageId(page));
            prop_assert_eq!(ptr.offset(), usize::from(offset));
            prop_assert!(!ptr.is_none());
        }
    }
}
