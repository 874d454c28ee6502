//! Tables that damage keeps recovery from bringing up to date: they are quarantined, so that all others
//! can be used.
//!
//! A page of a table that can't be read is an error of the statements that need it, and nothing else.
//! But when recovery needs it, the table can't have the state of the last commit, and must not be
//! read as if it had. Then nothing of the table is changed any more; what the log says of its rows,
//! and which transactions could perhaps not be taken back in it, goes into a file of its own before
//! the log goes. `dump` reads that file too. Dropping or truncating the table makes it void: the next
//! opening removes it.
//!
//! What a file tells decides whether the table's changes are applied. So an opening fails where a file can't be
//! read. One that can't be understood may be void: its table is quarantined anew, with what the log has now, and
//! the file is kept under another name.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::kept::KeptChange;
use crate::catalog::Definition;
use crate::error::{Error, Result};
use crate::ids::{PageId, TableId, TreeId, TxId};
use crate::planted::{is_planted, PlantedFault};
use crate::txn::PreparedRecord;

const MAGIC: [u8; 8] = *b"PGASIDE\0";
const FORMAT: u32 = 4;
/// The format before, whose checksum has nothing of the format's number.
const FORMAT_WITH_LOOSE_NUMBER: u32 = 3;
/// The first, which has nothing of prepared transactions, and does not say of which trees it tells. The second has
/// nothing of prepared transactions either.
const FIRST_FORMAT: u32 = 1;
/// Bytes in front of what is serialised: magic, format, checksum, database.
const HEAD: usize = 24;
/// Between a table's number and another one, in the name of a file that can't be understood.
pub(super) const DAMAGED: &str = ".damaged-";

/// What one prepared transaction has changed in a quarantined table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undecided {
    /// The transaction's number, and that of its copy: the log has the one or the other.
    pub numbers: Vec<TxId>,
    /// If it is not prepared any more, it has committed.
    pub commits: bool,
    /// The changes, oldest first.
    pub changes: Vec<KeptChange>,
}

impl Undecided {
    /// Whether it is of this transaction, or of the one of which this is a copy.
    pub fn is_of(&self, record: &PreparedRecord) -> bool {
        self.numbers.contains(&record.txid)
            || (record.replaces != TxId(0) && self.numbers.contains(&record.replaces))
    }
}

/// A quarantined table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct QuarantinedTable {
    pub(super) file: String,
    offset: u64,
    page: Option<PageId>,
    what: String,
    /// Transactions that did not commit, of which records may still stand in the table's trees.
    pub unfinished: Vec<TxId>,
    /// What was committed since the checkpoint at which recovery began.
    pub changes: Vec<KeptChange>,
    /// The table's clustered tree: a table that was truncated since has another, and nothing of this
    /// is true of it. See [`FIRST_FORMAT`].
    pub(super) clustered: Option<TreeId>,
    /// What prepared transactions have changed. The last field: see [`FIRST_FORMAT`].
    pub undecided: Vec<Undecided>,
}

impl QuarantinedTable {
    /// Takes what has been decided about: what was committed is now.
    pub fn take_decided(&mut self, is_prepared: &dyn Fn(&Undecided) -> bool) {
        for undecided in std::mem::take(&mut self.undecided) {
            if is_prepared(&undecided) {
                self.undecided.push(undecided);
            } else if undecided.commits {
                self.changes.extend(undecided.changes);
            }
        }
    }

    /// Whether it tells of the table as it is: not of what it was before it was truncated.
    pub fn is_of(&self, definition: &Definition) -> bool {
        if is_planted(PlantedFault::TruncatedStaysQuarantined) {
            return true;
        }
        let now = definition.trees.first().map(|tree| tree.id);
        self.clustered.is_none() || self.clustered == now
    }

    /// The error that whoever wants to use the table gets.
    pub fn error(&self) -> Error {
        Error::Corrupt {
            file: self.file.clone().into(),
            offset: self.offset,
            page: self.page,
            what: format!(
                "{}; the table was quarantined when the database was opened: `peregrine dump` reads \
                 what is left of it, and dropping it is possible",
                self.what
            ),
        }
    }

    /// Whether the table is quarantined because its file before can't be understood: what that told is missing.
    pub fn lacks_earlier(&self, table: TableId) -> bool {
        let name = Path::new(&self.file).file_name();
        let kept = format!("{table}{DAMAGED}");
        name.is_some_and(|name| name.to_string_lossy().starts_with(&kept))
    }

    /// Of a table that meets with an error.
    pub fn of(error: &Error, unfinished: Vec<TxId>, clustered: Option<TreeId>) -> QuarantinedTable {
        let quarantined = QuarantinedTable {
            unfinished,
            clustered,
            ..QuarantinedTable::default()
        };
        match error {
            Error::Corrupt {
                file,
                offset,
                page,
                what,
            } => QuarantinedTable {
                file: file.display().to_string(),
                offset: *offset,
                page: *page,
                what: what.clone(),
                ..quarantined
            },
            error => QuarantinedTable {
                what: error.to_string(),
                ..quarantined
            },
        }
    }

    pub(super) fn encode(&self, database_id: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; HEAD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..HEAD].copy_from_slice(&database_id.to_le_bytes());
        let mut bytes = postcard::to_extend(self, bytes)
            .map_err(|e| Error::Internal(format!("serialising a quarantined table: {e}")))?;
        let checksum = checksum(FORMAT, &bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    /// Whether any bytes are such a file, once their checksum is made right.
    pub fn decode_any(path: &Path, bytes: &[u8]) -> bool {
        let mut bytes = bytes.to_vec();
        if bytes.len() < HEAD {
            return false;
        }
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..HEAD].fill(0);
        let checksum = checksum(FORMAT, &bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        QuarantinedTable::decode(path, 0, &bytes).is_ok()
    }

    pub(super) fn decode(path: &Path, database_id: u64, bytes: &[u8]) -> Result<QuarantinedTable> {
        let corrupt = |what: &str| Error::Corrupt {
            file: path.to_owned(),
            offset: 0,
            page: None,
            what: what.into(),
        };
        let u32_at = |at: usize| {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            word.map_or(0, |word| u32::from_le_bytes(*word))
        };
        if bytes.len() < HEAD || bytes[..8] != MAGIC {
            return Err(corrupt("expected the changes of a quarantined table"));
        }
        let format = u32_at(8);
        if checksum(format, &bytes[16..]) != u32_at(12) {
            return Err(corrupt("the checksum is wrong"));
        }
        let known = (FIRST_FORMAT..=FORMAT).contains(&format);
        if !known || bytes[16..HEAD] != database_id.to_le_bytes() {
            return Err(Error::Format {
                file: path.to_owned(),
                what: format!(
                    "format {format} of another database or version; this version reads formats up \
                     to {FORMAT}"
                ),
            });
        }
        let mut rest = Cow::Borrowed(&bytes[HEAD..]);
        // What a format lacks at its end is absent, or empty: a zero each.
        for _ in format..FORMAT_WITH_LOOSE_NUMBER {
            rest.to_mut().push(0);
        }
        postcard::from_bytes(&rest).map_err(|e| corrupt(&e.to_string()))
    }
}

/// The checksum of a file of this format, from its database on. The number is part of it: else a flipped bit could
/// make it an older one, whose missing fields are empty.
fn checksum(format: u32, bytes: &[u8]) -> u32 {
    let sum = crc32c::crc32c(bytes);
    match format < FORMAT {
        true => sum,
        false => crc32c::crc32c_append(sum, &format.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_file_comes_back_and_every_flip_is_found(
            what in ".*",
            unfinished: Vec<u64>,
            clustered: Option<u32>,
            changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
            undecided: Vec<(u64, bool)>,
            flip: proptest::sample::Index,
        ) {
            let quarantined = QuarantinedTable {
                what,
                unfinished: unfinished.into_iter().map(TxId).collect(),
                changes,
                clustered: clustered.map(TreeId),
                undecided: undecided
                    .into_iter()
                    .map(|(number, commits)| Undecided {
                        numbers: vec![TxId(number)],
                        commits,
                        changes: vec![(vec![1], None)],
                    })
                    .collect(),
                ..QuarantinedTable::default()
            };
            let path = Path::new("aside/7");
            let mut bytes = quarantined.encode(77).unwrap();
            prop_assert_eq!(&QuarantinedTable::decode(path, 77, &bytes).unwrap(), &quarantined);
            prop_assert!(QuarantinedTable::decode(path, 78, &bytes).is_err());
            // The number of the format above all: each has its own way of reading.
            for bit in (8 * 8..12 * 8).chain([flip.index(bytes.len() * 8)]) {
                bytes[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(QuarantinedTable::decode(path, 77, &bytes).is_err());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }

            // As the formats before have it.
            let mut quarantined = QuarantinedTable { undecided: Vec::new(), ..quarantined };
            for format in (FIRST_FORMAT..FORMAT).rev() {
                if format == FIRST_FORMAT {
                    quarantined.clustered = None;
                }
                let mut bytes = quarantined.encode(77).unwrap();
                bytes.truncate(bytes.len() - (FORMAT_WITH_LOOSE_NUMBER - format) as usize);
                bytes[8..12].copy_from_slice(&format.to_le_bytes());
                let checksum = checksum(format, &bytes[16..]);
                bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
                prop_assert_eq!(&QuarantinedTable::decode(path, 77, &bytes).unwrap(), &quarantined);
            }
        }
    }
}
