//! Names of transactions in two-phase commit, and the log records that hold them.
//!
//! ```text
//! kind 3, prepared:    [txid varint] [replaced txid varint, 0: none] [format i64]
//!                      [length of the global part u8] [length of the branch u8] [both]
//! kind 4, rolled back: [txid varint]
//! ```

use std::fmt;

use super::redo::{encode_owner, put_varint, take_varint};
use crate::error::{Error, Result};
use crate::ids::TxId;

/// Log record kind: a transaction's changes are in the log, and its coordinator decides about them.
pub const KIND_PREPARED: u8 = 3;
/// Log record kind: a prepared transaction rolls back.
pub const KIND_ROLLED_BACK: u8 = 4;

/// The most bytes of each part of a name.
const MOST_BYTES: usize = 64;

/// The name that a coordinator gives to its transaction in this database: X/Open's XID
/// (Distributed Transaction Processing: The XA Specification, 1991).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Xid {
    format: i64,
    global: u8,
    /// The global part, then the branch.
    bytes: Box<[u8]>,
}

impl Xid {
    /// Makes a name of the coordinator's format number, the global transaction's name and the branch's name.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a part of more than 64 bytes.
    pub fn new(format: i64, global: &[u8], branch: &[u8]) -> Result<Xid> {
        for (what, part) in [("global part", global), ("branch", branch)] {
            if part.len() > MOST_BYTES {
                return Err(Error::Invalid(format!(
                    "the {what} of a transaction's name has at most {MOST_BYTES} bytes, not {}",
                    part.len()
                )));
            }
        }
        Ok(Xid {
            format,
            global: global.len() as u8,
            bytes: [global, branch].concat().into(),
        })
    }

    /// The format number.
    pub fn format(&self) -> i64 {
        self.format
    }

    /// The global transaction's name.
    pub fn global(&self) -> &[u8] {
        &self.bytes[..self.global.into()]
    }

    /// The branch's name.
    pub fn branch(&self) -> &[u8] {
        &self.bytes[self.global.into()..]
    }
}

/// The three parts as SQL writes them: `X'6162',X'01',1`.
impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [self.global(), self.branch()] {
            f.write_str("X'")?;
            part.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            f.write_str("',")?;
        }
        self.format.fmt(f)
    }
}

impl fmt::Debug for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A record of kind [`KIND_PREPARED`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedRecord {
    /// The transaction.
    pub txid: TxId,
    /// The earlier transaction that this one repeats after an opening; 0: none.
    pub replaces: TxId,
    /// Its name.
    pub xid: Xid,
}

impl PreparedRecord {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = encode_owner(self.txid);
        put_varint(&mut bytes, self.replaces.0);
        bytes.extend_from_slice(&self.xid.format.to_le_bytes());
        bytes.push(self.xid.global);
        bytes.push(self.xid.branch().len() as u8);
        bytes.extend_from_slice(&self.xid.bytes);
        bytes
    }

    /// Reads the record.
    ///
    /// # Errors
    /// [`Error::Internal`] if the bytes are not such a record.
    pub fn decode(mut payload: &[u8]) -> Result<PreparedRecord> {
        let rest = &mut payload;
        let decoded = (|| {
            let (txid, replaces) = (take_varint(rest)?, take_varint(rest)?);
            let (format, rest) = rest.split_first_chunk::<8>()?;
            let (&[global, branch], bytes) = rest.split_first_chunk::<2>()?;
            let (global, branch) = bytes
                .split_at_checked(global.into())
                .filter(|(_, rest)| rest.len() == branch.into())?;
            Some(PreparedRecord {
                txid: TxId(txid),
                replaces: TxId(replaces),
                xid: Xid::new(i64::from_le_bytes(*format), global, branch).ok()?,
            })
        })();
        decoded.ok_or_else(|| {
            Error::Internal("a record of a prepared transaction does not decode".into())
        })
    }
}

/// Reads the transaction of a record of kind [`KIND_ROLLED_BACK`].
///
/// # Errors
/// [`Error::Internal`] if the bytes are not such a record.
pub fn decode_rolled_back(mut payload: &[u8]) -> Result<TxId> {
    match take_varint(&mut payload) {
        Some(txid) if payload.is_empty() => Ok(TxId(txid)),
        _ => Err(Error::Internal(
            "a record of a rollback does not decode".into(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_come_back_from_the_log(
            txid in 0u64..1 << 48,
            replaces in 0u64..1 << 48,
            format: i64,
            global in vec(any::<u8>(), 0..=MOST_BYTES),
            branch in vec(any::<u8>(), 0..=MOST_BYTES),
        ) {
            let xid = Xid::new(format, &global, &branch).unwrap();
            prop_assert_eq!((xid.format(), xid.global(), xid.branch()), (format, &global[..], &branch[..]));
            let record = PreparedRecord { txid: TxId(txid), replaces: TxId(replaces), xid };
            prop_assert_eq!(PreparedRecord::decode(&record.encode()).unwrap(), record);
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes: Vec<u8>) {
            if let Ok(record) = PreparedRecord::decode(&bytes) {
                prop_assert_eq!(PreparedRecord::decode(&record.encode()).unwrap(), record);
            }
            let _ = decode_rolled_back(&bytes);
        }
    }

    #[test]
    fn a_part_that_is_too_long_is_refused() {
        assert!(Xid::new(1, &[0; 65], b"").is_err());
        assert!(Xid::new(1, b"", &[0; 65]).is_err());
        assert_eq!(
            Xid::new(7, b"ab", b"\x01").unwrap().to_string(),
            "X'6162',X'01',7"
        );
    }
}
