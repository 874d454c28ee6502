//! The catalog: the definitions of all tables, stored in a tree of its own.
//!
//! Key: table number (u32, big-endian), chunk number (u16, big-endian). Value: a frozen record
//! with up to [`CHUNK`] bytes of the serialised [`Definition`], which begins with a version byte.
//! Changes are made inside the barrier and logged as [`DdlRecord`]s, so a checkpoint and a replay have each as a whole
//! or not at all.
#![forbid(unsafe_code)]

mod definition;
mod packed;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use definition::{DdlRecord, Definition, TreeRoot, KIND_COUNTER, KIND_DDL};
pub use packed::PackedDefinition;

use crate::buffer::PoolWithThreads;
use crate::error::{Error, Result};
use crate::ids::{PageId, TableId, TreeId};
use crate::mvcc::{encode_frozen, live_payload};
use crate::planted::{is_planted, PlantedFault};
use crate::tree::{LeafImage, Position, RecordEdit, Tree};

/// The catalog's own tree.
pub const CATALOG_TREE: TreeId = TreeId(1);
/// The first number for trees of tables.
pub const FIRST_TREE: TreeId = TreeId(16);
/// Bytes of a definition in one record.
const CHUNK: usize = 3900;

/// The catalog's tree.
pub struct Catalog {
    tree: Tree,
}

/// Progress of writing a definition.
#[derive(Debug, Default)]
pub struct Written {
    /// The number of records written.
    chunks: u16,
    /// All are written; surplus records of the definition before are removed next.
    all: bool,
}

fn key(table: TableId, chunk: u16) -> [u8; 6] {
    let mut key = [0; 6];
    key[..4].copy_from_slice(&table.0.to_be_bytes());
    key[4..].copy_from_slice(&chunk.to_be_bytes());
    key
}

/// The number of records that a definition takes.
fn count_chunks(bytes: &[u8]) -> Result<u16> {
    u16::try_from(bytes.chunks(CHUNK).len()).map_err(|_| {
        Error::TooLarge(format!(
            "a table's definition has at most {} bytes, not {}",
            CHUNK * usize::from(u16::MAX),
            bytes.len()
        ))
    })
}

/// The chunks of a definition, as the catalog has them one after another.
struct Chunks {
    table: TableId,
    /// The number that the next chunk must have.
    next: u16,
    /// Whether no chunk was missing so far.
    whole: bool,
    bytes: Vec<u8>,
}

impl Chunks {
    fn of(table: TableId) -> Chunks {
        Chunks {
            table,
            next: 0,
            whole: true,
            bytes: Vec::new(),
        }
    }

    fn add(&mut self, number: &[u8], bytes: &[u8]) {
        self.whole &= number == self.next.to_be_bytes();
        self.next = self.next.saturating_add(1);
        self.bytes.extend_from_slice(bytes);
    }

    fn definition(&self) -> Result<Definition> {
        match self.whole {
            true => Definition::decode(&self.bytes),
            false => Err(Error::Internal(format!(
                "catalog: a part of the definition of table {} is missing",
                self.table
            ))),
        }
    }
}

impl Catalog {
    /// A new, empty catalog.
    pub fn create(pool: &Arc<PoolWithThreads>) -> Result<Catalog> {
        Ok(Catalog {
            tree: Tree::create(pool, CATALOG_TREE)?,
        })
    }

    /// The catalog whose tree has this root.
    pub fn open(pool: &Arc<PoolWithThreads>, root: PageId) -> Result<Catalog> {
        Ok(Catalog {
            tree: Tree::open(pool, CATALOG_TREE, root)?,
        })
    }

    /// The root page of the catalog's tree.
    pub fn root(&self) -> PageId {
        self.tree.root()
    }

    /// The catalog's tree, for checks.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Calls `found` with all definitions, one by one, in the order of their numbers.
    ///
    /// Damaged ones go to `damaged`, with the error.
    ///
    /// # Errors
    /// I/O errors, and pages that can't be read; [`Error::Invalid`] for a newer version's definition; errors of
    /// `found`.
    pub fn load(
        &self,
        damaged: &mut BTreeMap<TableId, Error>,
        found: &mut dyn FnMut(Definition) -> Result<()>,
    ) -> Result<()> {
        let mut pending: Option<Chunks> = None;
        let mut finish = |pending: Option<Chunks>| -> Result<()> {
            let Some(chunks) = pending else {
                return Ok(());
            };
            match chunks.definition() {
                Err(error @ Error::Internal(_)) => {
                    damaged.insert(chunks.table, error);
                }
                definition => found(definition?)?,
            }
            Ok(())
        };
        let mut image = LeafImage::new();
        let mut record_key = Vec::new();
        let mut more = self.tree.copy_leaf(Position::First, &mut image)?;
        while more {
            for i in 0..image.count() {
                image.key(i, &mut record_key);
                let Some((table, number)) = record_key.split_first_chunk::<4>() else {
                    return Err(Error::Internal("catalog: a key is too short".into()));
                };
                let table = TableId(u32::from_be_bytes(*table));
                let Some(bytes) = live_payload(image.value(i))? else {
                    continue;
                };
                if pending.as_ref().is_none_or(|chunks| chunks.table != table) {
                    finish(pending.replace(Chunks::of(table)))?;
                }
                if let Some(chunks) = &mut pending {
                    chunks.add(number, bytes);
                }
            }
            more = self.tree.copy_next_leaf(&mut image)?;
        }
        finish(pending)
    }

    /// Fails for a definition that [`Catalog::put`] would always refuse.
    pub fn check(definition: &Definition) -> Result<()> {
        count_chunks(&definition.encode()?).map(drop)
    }

    /// Writes a definition, replacing the table's present one.
    ///
    /// Must be called inside the barrier.
    pub fn put(&self, definition: &Definition) -> Result<()> {
        self.put_noting(definition, &mut Written::default())
    }

    /// As [`Catalog::put`].
    ///
    /// On an error, `written` has what [`Catalog::put_back`] needs.
    pub fn put_noting(&self, definition: &Definition, written: &mut Written) -> Result<()> {
        let bytes = definition.encode()?;
        let count = count_chunks(&bytes)?;
        for (n, chunk) in (0..count).zip(bytes.chunks(CHUNK)) {
            self.put_chunk(definition.id, n, chunk)?;
            written.chunks = n + 1;
        }
        written.all = true;
        self.remove_from(definition.id, count)
    }

    /// Restores a table's definition `before`, or removes the entry, after another definition was partly `written`.
    ///
    /// Must be called in the same stay inside the barrier. If only a part was written, touches only pages that this has
    /// changed: on a full disk these are still in memory, and the others may not be readable again.
    pub fn put_back(
        &self,
        table: TableId,
        before: Option<&Definition>,
        written: &Written,
    ) -> Result<()> {
        if written.all || is_planted(PlantedFault::PutAllBack) {
            return match before {
                Some(before) => self.put(before),
                None => self.remove(table),
            };
        }
        let bytes = before.map(Definition::encode).transpose()?;
        let mut chunks = bytes.iter().flat_map(|bytes| bytes.chunks(CHUNK));
        for n in 0..written.chunks {
            match chunks.next() {
                Some(chunk) => self.put_chunk(table, n, chunk)?,
                None => {
                    let remove = |_: Option<&[u8]>, _: &mut Vec<u8>| (RecordEdit::Remove, ());
                    self.tree.rewrite(&key(table, n), remove)?;
                }
            }
        }
        Ok(())
    }

    fn put_chunk(&self, table: TableId, n: u16, chunk: &[u8]) -> Result<()> {
        // No more room than it needs, so that the old record fits when it is put back.
        let room = chunk.len() + 1;
        self.tree.modify(&key(table, n), room, 0, |_, out| {
            encode_frozen(chunk, out);
            (RecordEdit::Put, ())
        })
    }

    /// Loads the pages that have or would have a table's definition, and the next one.
    ///
    /// [`Catalog::put`] and [`Catalog::remove`] use these pages. Saves what a running checkpoint needs of them. So a
    /// failing read or write fails before the log has the change. Must be called inside the barrier.
    pub fn bring(&self, table: TableId) -> Result<()> {
        for chunk in 0..=u16::MAX {
            let key = key(table, chunk);
            let there = self
                .tree
                .rewrite(&key, |old, _| (RecordEdit::Keep, old.is_some()))?;
            if !there || is_planted(PlantedFault::BringFirstChunk) {
                break;
            }
        }
        Ok(())
    }

    /// Removes a table's definition.
    ///
    /// Must be called inside the barrier.
    pub fn remove(&self, table: TableId) -> Result<()> {
        self.remove_from(table, 0)
    }

    /// Removes what is left of a damaged definition, also behind a chunk that is missing.
    ///
    /// Must be called inside the barrier, or while no transaction runs.
    pub fn remove_damaged(&self, table: TableId) -> Result<()> {
        let mut left = Vec::new();
        let mut image = LeafImage::new();
        let mut more = self
            .tree
            .copy_leaf(Position::AtOrAfter(&table.0.to_be_bytes()), &mut image)?;
        let mut record_key = Vec::new();
        'leaves: while more {
            for i in 0..image.count() {
                image.key(i, &mut record_key);
                match record_key.get(..4) {
                    Some(prefix) if prefix < &table.0.to_be_bytes()[..] => {}
                    Some(prefix) if prefix == table.0.to_be_bytes() => {
                        left.push(record_key.clone())
                    }
                    _ => break 'leaves,
                }
            }
            more = self.tree.copy_next_leaf(&mut image)?;
        }
        for key in left {
            let remove = |_: Option<&[u8]>, _: &mut Vec<u8>| (RecordEdit::Remove, ());
            self.tree.rewrite(&key, remove)?;
        }
        Ok(())
    }

    fn remove_from(&self, table: TableId, mut chunk: u16) -> Result<()> {
        loop {
            let was = self.tree.rewrite(&key(table, chunk), |old, _| match old {
                Some(_) => (RecordEdit::Remove, true),
                None => (RecordEdit::Keep, false),
            })?;
            if !was {
                return Ok(());
            }
            chunk = match chunk.checked_add(1) {
                Some(next) => next,
                None => return Ok(()),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_without_one_of_its_chunks_is_refused_before_it_is_decoded() {
        let joined = |numbers: &[u16]| {
            let mut chunks = Chunks::of(TableId(7));
            for number in numbers {
                chunks.add(&number.to_be_bytes(), &[0; 3]);
            }
            (chunks.whole, chunks.definition().is_err())
        };
        assert!(joined(&[0, 1, 2]).0);
        for without in [&[1, 2][..], &[0, 2], &[0, 1, 3], &[1]] {
            assert_eq!(joined(without), (false, true), "{without:?}");
        }
    }
}
