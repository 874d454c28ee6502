//! The metadata that a checkpoint holds besides pages.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::checkpoint::ReplayPace;
use crate::error::{Error, Result};
use crate::ids::{Lsn, PageId, TableId};
use crate::planted::{is_planted, PlantedFault};
use crate::table::ddl::Numbers;
use crate::txn::Captured;

/// First byte of a serialised [`Meta`]. Version 1 has the same content. Programs that write it do not know prepared
/// transactions, and would lose those in the log.
const VERSION: u8 = 2;

/// The metadata that a checkpoint holds besides pages: a version byte, then this (postcard).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// The log's position inside the checkpoint's barrier: the pages have all that committed before.
    pub checkpoint: Lsn,
    /// The root of the catalog's tree.
    pub catalog: PageId,
    /// The next numbers of tables and trees.
    pub numbers: Numbers,
    /// Running transactions, and ended ones that are not purged.
    pub transactions: Captured,
    /// Counters of each table.
    pub counters: Vec<Counters>,
    /// The pace of openings as last measured. Stored behind the rest; older records lack it.
    #[serde(skip)]
    pub replay_pace: ReplayPace,
    /// Whether its version is this program's. Programs of an earlier version do not know all records of the log.
    #[serde(skip)]
    pub is_current: bool,
}

/// A table's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counters {
    pub table: TableId,
    pub rows: i64,
    pub next_auto: u64,
}

impl Meta {
    /// Serialises it.
    pub fn encode(&self) -> Result<Vec<u8>> {
        postcard::to_extend(self, vec![VERSION])
            .and_then(|bytes| postcard::to_extend(&self.replay_pace.thousandths(), bytes))
            .map_err(|e| Error::Internal(format!("serialising a checkpoint's record: {e}")))
    }

    /// Decodes the metadata from the data file `file`.
    ///
    /// # Errors
    /// [`Error::Format`] for a record of a newer version; [`Error::Internal`] if it does not decode.
    pub fn decode(bytes: &[u8], file: &Path) -> Result<Self> {
        match bytes.split_first() {
            Some((&version @ (1 | VERSION), rest)) => {
                let (mut meta, rest) = postcard::take_from_bytes::<Meta>(rest).map_err(|e| {
                    Error::Internal(format!("the checkpoint's record can't be read: {e}"))
                })?;
                if let Ok(stored) = postcard::from_bytes(rest) {
                    meta.replay_pace = ReplayPace::from_stored(stored);
                }
                meta.is_current = version == VERSION;
                Ok(meta)
            }
            Some((version, _)) => Err(Error::Format {
                file: file.to_owned(),
                what: format!(
                    "the checkpoint's record has version {version}; this program knows versions \
                     up to {VERSION}"
                ),
            }),
            None => Err(Error::Internal("the checkpoint's record is empty".into())),
        }
    }

    /// The log position at which recovery begins to read.
    pub fn log_from(&self) -> Lsn {
        match is_planted(PlantedFault::ReplayFromCheckpoint) {
            false => self.transactions.redo_from(self.checkpoint),
            true => self.checkpoint,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_newer_version_is_told_with_its_file() {
        let file = Path::new("/db/data");
        let refused = Meta::decode(&[VERSION + 1], file).unwrap_err();
        assert!(matches!(&refused, Error::Format { file: named, .. } if named == file));
    }

    #[test]
    fn it_says_whether_it_is_of_this_version() {
        let file = Path::new("/db/data");
        let meta = Meta {
            checkpoint: Lsn(1),
            catalog: PageId(1),
            numbers: Numbers::default(),
            transactions: Captured::default(),
            counters: Vec::new(),
            replay_pace: ReplayPace::default(),
            is_current: true,
        };
        let mut bytes = meta.encode().unwrap();
        assert!(Meta::decode(&bytes, file).unwrap().is_current);
        bytes[0] = 1;
        assert!(!Meta::decode(&bytes, file).unwrap().is_current);
    }
}
