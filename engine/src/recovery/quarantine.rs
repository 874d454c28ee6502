//! The file of a quarantined table: damage keeps recovery from bringing the table to its last state, and all other
//! tables can be used.
//!
//! A page that can't be read fails only the statements that need it. But if recovery needs that page, the table can't
//! have the state of the last commit, and must not be read as if it had. Nothing of the table is changed then. Before
//! the log is released, a file gets the changes of its rows, and the transactions that could perhaps not be rolled back
//! in it. `dump` reads that file too. Dropping or truncating the table makes the file void, and the next opening
//! removes it.
//!
//! The files decide whether the changes of their tables are applied. So an opening fails if a file can't be read. A
//! file that can't be decoded may be void: its table is quarantined anew, with the present content of the log, and the
//! file is kept under another name.

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
/// The format before, whose checksum does not cover the format's number.
const FORMAT_WITH_LOOSE_NUMBER: u32 = 3;
/// The first format: it lacks prepared transactions, and the trees to which the file applies. The second format lacks
/// prepared transactions, too.
const FIRST_FORMAT: u32 = 1;
/// Bytes before the serialised value: magic, format, checksum, database.
const HEAD: usize = 24;
/// In the name of a file that can't be decoded: between the table's number and a running number.
pub(super) const DAMAGED: &str = ".damaged-";

/// The changes of one prepared transaction in a quarantined table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undecided {
    /// The numbers of the transaction and of its copy: the log has either.
    pub numbers: Vec<TxId>,
    /// Whether the transaction has committed, if it is not prepared any more.
    pub commits: bool,
    /// The changes, oldest first.
    pub changes: Vec<KeptChange>,
}

impl Undecided {
    /// Returns whether these are changes of this transaction, or of the one that it is a copy of.
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
    /// Uncommitted transactions whose records may still be in the table's trees.
    pub unfinished: Vec<TxId>,
    /// Changes committed since the checkpoint at which recovery began.
    pub changes: Vec<KeptChange>,
    /// The table's clustered tree. A table that was truncated later has another, and the file does not apply to it. See
    /// [`FIRST_FORMAT`].
    pub(super) clustered: Option<TreeId>,
    /// Changes of prepared transactions. The last field: see [`FIRST_FORMAT`].
    pub undecided: Vec<Undecided>,
}

impl QuarantinedTable {
    /// Removes the transactions that have been decided; the changes of committed ones become committed changes.
    pub fn take_decided(&mut self, is_prepared: &dyn Fn(&Undecided) -> bool) {
        for undecided in std::mem::take(&mut self.undecided) {
            if is_prepared(&undecided) {
                self.undecided.push(undecided);
            } else if undecided.commits {
                self.changes.extend(undecided.changes);
            }
        }
    }

    /// Returns whether the file applies to the table as it is, not to its state before it was truncated.
    pub fn is_of(&self, definition: &Definition) -> bool {
        if is_planted(PlantedFault::TruncatedStaysQuarantined) {
            return true;
        }
        let now = definition.trees.first().map(|tree| tree.id);
        self.clustered.is_none() || self.clustered == now
    }

    /// The error for each use of the table.
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

    /// Returns whether the table is quarantined because its file before can't be decoded: the content of that is
    /// missing.
    pub fn lacks_earlier(&self, table: TableId) -> bool {
        let name = Path::new(&self.file).file_name();
        let kept = format!("{table}{DAMAGED}");
        name.is_some_and(|name| name.to_string_lossy().starts_with(&kept))
    }

    /// The entry for a table that meets with an error.
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

    /// Returns whether any bytes decode as such a file, once their checksum is set right.
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
        // A field that an older format lacks at its end is absent or empty: one zero each.
        for _ in format..FORMAT_WITH_LOOSE_NUMBER {
            rest.to_mut().push(0);
        }
        postcard::from_bytes(&rest).map_err(|e| corrupt(&e.to_string()))
    }
}

/// The checksum of a file of this format, from the database's number on. It covers the format's number: otherwise a
/// flipped bit could turn the file into an older one, whose missing fields are empty.
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
            // Above all in the format's number: each format is decoded differently.
            for bit in (8 * 8..12 * 8).chain([flip.index(bytes.len() * 8)]) {
                bytes[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(QuarantinedTable::decode(path, 77, &bytes).is_err());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }

            // As older formats store it.
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
