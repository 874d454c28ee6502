//! The catalog: what tables there are, kept in a tree of its own.
//!
//! Key: table number (u32, big-endian), chunk number (u16, big-endian). Value: a frozen record
//! with up to [`CHUNK`] bytes of the serialised [`Definition`], which begins with a version byte.
//! Changes are made inside the barrier and logged as [`DdlRecord`]s, so a checkpoint and a replay
//! see each whole or not at all.
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

/// How far the writing of a definition has come.
#[derive(Debug, Default)]
pub struct Written {
    /// So many records have been written.
    chunks: u16,
    /// All have; those of the definition before that are more go next.
    all: bool,
}

fn key(table: TableId, chunk: u16) -> [u8; 6] {
    let mut key = [0; 6];
    key[..4].copy_from_slice(&table.0.to_be_bytes());
    key[4..].copy_from_slice(&chunk.to_be_bytes());
    key
}

/// In how many records a definition stands.
fn count_chunks(bytes: &[u8]) -> Result<u16> {
    u16::try_from(bytes.chunks(CHUNK).len()).map_err(|_| {
        Error::TooLarge(format!(
            "a table's definition has at most {} bytes, not {}",
            CHUNK * usize::from(u16::MAX),
            bytes.len()
        ))
    })
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

    /// The catalog's tree, for checking.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Calls `found` with all definitions, one by one, in the order of their numbers. Those that make no
    /// sense go to `damaged`, with the error.
    ///
    /// # Errors
    /// I/O errors, and pages that can't be read; [`Error::Invalid`] for a newer version's definition; what
    /// `found` returns.
    pub fn load(
        &self,
        damaged: &mut BTreeMap<TableId, Error>,
        found: &mut dyn FnMut(Definition) -> Result<()>,
    ) -> Result<()> {
        let mut pending: Option<(u32, Vec<u8>)> = None;
        let mut finish = |pending: Option<(u32, Vec<u8>)>| -> Result<()> {
            let Some((table, bytes)) = pending else {
                return Ok(());
            };
            match Definition::decode(&bytes) {
                Err(error @ Error::Internal(_)) => {
                    damaged.insert(TableId(table), error);
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
                let Some((table, chunk)) = record_key.split_first_chunk::<4>() else {
                    return Err(Error::Internal("catalog: a key is too short".into()));
                };
                let table = u32::from_be_bytes(*table);
                let Some(bytes) = live_payload(image.value(i))? else {
                    continue;
                };
                match &mut pending {
                    Some((id, all)) if *id == table => all.extend_from_slice(bytes),
                    _ if chunk != [0, 0] => {
                        return Err(Error::Internal(format!(
                            "catalog: the definition of table {table} has no beginning"
                        )))
                    }
                    _ => finish(pending.replace((table, bytes.to_vec())))?,
                }
            }
            more = self.tree.copy_next_leaf(&mut image)?;
        }
        finish(pending)
    }

    /// Refuses a definition that [`Catalog::put`] would refuse, whatever room there is.
    pub fn check(definition: &Definition) -> Result<()> {
        count_chunks(&definition.encode()?).map(drop)
    }

    /// Writes a definition, replacing the table's present one. Inside the barrier.
    pub fn put(&self, definition: &Definition) -> Result<()> {
        self.put_noting(definition, &mut Written::default())
    }

    /// As [`Catalog::put`]. Where it fails, `written` is what [`Catalog::put_back`] needs.
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

    /// Puts a table's definition back as it was `before`, or takes it out, when another was `written` so far. Inside
    /// the barrier, in the same stay. Of one that was written in part only pages are touched that it has changed: on a
    /// full disk they are in memory still, and those of the rest may not come back there.
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
        // No more room than it needs: so what was there can be put back without any.
        let room = chunk.len() + 1;
        self.tree.modify(&key(table, n), room, 0, |_, out| {
            encode_frozen(chunk, out);
            (RecordEdit::Put, ())
        })
    }

    /// Brings the pages into memory in which a table's definition stands, or would stand, and the one behind, at
    /// which [`Catalog::put`] and [`Catalog::remove`] look. What a running checkpoint needs of them is saved. So what
    /// can't be read or written fails before the log has the change. Inside the barrier.
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

    /// Removes a table's definition. Inside the barrier.
    pub fn remove(&self, table: TableId) -> Result<()> {
        self.remove_from(table, 0)
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
