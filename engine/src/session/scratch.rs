//! The buffers of row operations.

use crate::error::{Error, Result};
use crate::mvcc::MAX_PAYLOAD;
use crate::row::layout::KeyLayout;
use crate::row::payload::RowEncoder;
use crate::row::{entry, Value};
use crate::table::open_table::{check_key, Table};

/// Buffers that a transaction keeps from row to row.
#[derive(Default)]
pub(crate) struct Scratch {
    pub encoder: RowEncoder,
    /// The clustered key of the row last written.
    pub key: Vec<u8>,
    /// The payload for the clustered tree.
    pub payload: Vec<u8>,
    /// The payload for the log, if it differs (values inside).
    pub redo: Vec<u8>,
    /// The old payload in the clustered tree.
    pub old: Vec<u8>,
    /// The conflicting entry of a unique index; then the clustered key of its row.
    pub found: Vec<u8>,
    pub entry: EntryBytes,
    pub old_entry: EntryBytes,
}

/// Buffers for one index entry.
#[derive(Default)]
pub(crate) struct EntryBytes {
    pub key: Vec<u8>,
    pub payload: Vec<u8>,
}

impl EntryBytes {
    pub fn encode(
        &mut self,
        table: &Table,
        index: &KeyLayout,
        row: &[Value<'_>],
        clustered_key: &[u8],
    ) -> Result<()> {
        self.key.clear();
        self.payload.clear();
        entry::encode(
            index,
            row,
            clustered_key,
            table.collations(),
            &mut self.key,
            &mut self.payload,
        )?;
        check_key(&self.key)?;
        if self.payload.len() > MAX_PAYLOAD {
            return Err(Error::TooLarge(format!(
                "an index entry keeps at most {MAX_PAYLOAD} bytes beside its key, not {}",
                self.payload.len()
            )));
        }
        Ok(())
    }

    /// The key and the payload.
    pub fn both(&self) -> (&[u8], &[u8]) {
        (&self.key, &self.payload)
    }
}
