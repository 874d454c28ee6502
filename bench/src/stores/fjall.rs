//! fjall: a log-structured merge tree, compacted into one run, with uncompressed blocks in its cache.

use std::ops::ControlFlow;
use std::path::Path;

use ::fjall::config::{CompressionPolicy, HashRatioPolicy, PartitioningPolicy, PinningPolicy};
use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable as _, Snapshot};

use super::keys_and_values::{
    KeysAndValues, {self},
};
use super::question::Question;
use super::row_bytes;
use super::store::{failed, Store, StoreReader};
use crate::normal::generator::Row;
use peregrine_harness::engines::RowSink;
use peregrine_harness::error::{HarnessError, Result};

const TITLE: &str = "fjall";

/// A database with the table.
///
/// Clones share the handles.
#[derive(Clone)]
struct Trees {
    db: Database,
    rows: Keyspace,
    emails: Keyspace,
    countries: Keyspace,
}

/// A database with the table, and the size of its cache.
pub struct Fjall {
    trees: Trees,
    cache: u64,
}

fn error(error: ::fjall::Error) -> HarnessError {
    failed(TITLE, error)
}

/// Options for a tree that is read from memory: no compression, pinned index and filter blocks, no filters where keys
/// are found, and a hash index in each block.
fn options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .data_block_compression_policy(CompressionPolicy::disabled())
        .index_block_pinning_policy(PinningPolicy::all(true))
        .filter_block_pinning_policy(PinningPolicy::all(true))
        .index_block_partitioning_policy(PartitioningPolicy::all(false))
        .filter_block_partitioning_policy(PartitioningPolicy::all(false))
        .data_block_hash_ratio_policy(HashRatioPolicy::all(1.33))
        .expect_point_read_hits(true)
}

impl Fjall {
    /// Opens a database, or creates it.
    pub fn open(dir: &Path, cache: u64) -> Result<Self> {
        let db = Database::builder(dir)
            .cache_size(cache)
            .manual_journal_persist(true)
            .open()
            .map_err(error)?;
        let keyspace = |name| db.keyspace(name, options).map_err(error);
        let trees = Trees {
            rows: keyspace("rows")?,
            emails: keyspace("emails")?,
            countries: keyspace("countries")?,
            db,
        };
        Ok(Self { trees, cache })
    }
}

impl Store for Fjall {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn settings(&self) -> String {
        format!(
            "every commit synced (SyncAll); cache of {} MiB; nothing compressed, compacted after loading, \
             a snapshot a call",
            self.cache >> 20
        )
    }

    fn is_log(&self, file: &Path) -> bool {
        file.extension().is_some_and(|end| end == "jnl")
    }

    fn cache_bytes(&self) -> u64 {
        self.cache
    }

    fn load(&mut self, rows: &[Row]) -> Result<()> {
        let trees = &self.trees;
        let mut batch = trees.db.batch().durability(Some(PersistMode::SyncAll));
        let mut buffer = Vec::new();
        for row in rows {
            row_bytes::encode(row, &mut buffer);
            batch.insert(&trees.rows, row.id.to_be_bytes(), &buffer[..]);
            batch.insert(&trees.emails, row.email.as_bytes(), row.id.to_be_bytes());
            row_bytes::country_key(row, &mut buffer);
            batch.insert(&trees.countries, &buffer[..], b"".as_slice());
        }
        batch.commit().map_err(error)
    }

    fn settle(&mut self) -> Result<()> {
        let trees = &self.trees;
        for keyspace in [&trees.rows, &trees.emails, &trees.countries] {
            keyspace.rotate_memtable_and_wait().map_err(error)?;
            keyspace.major_compact().map_err(error)?;
        }
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn StoreReader>> {
        Ok(Box::new(Reader {
            store: self.trees.clone(),
        }))
    }
}

struct Reader {
    store: Trees,
}

fn id_of(bytes: &[u8]) -> Result<u32> {
    let bytes = bytes.try_into().map_err(|_| failed(TITLE, "no id"))?;
    Ok(u32::from_be_bytes(bytes))
}

impl StoreReader for Reader {
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let snapshot = self.store.db.snapshot();
        for id in ids {
            let row = snapshot
                .get(&self.store.rows, id.to_be_bytes())
                .map_err(error)?;
            if let Some(name) = row.as_deref().and_then(row_bytes::name) {
                see(name);
            }
        }
        Ok(())
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let snapshot = self.store.db.snapshot();
        for entry in snapshot.iter(&self.store.rows) {
            see(&entry.value().map_err(error)?);
        }
        Ok(())
    }

    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), each: &mut dyn FnMut(&Row)) -> Result<()> {
        let snapshot = self.store.db.snapshot();
        let mut row = Row::default();
        for entry in snapshot.iter(&self.store.rows) {
            let (id, bytes) = entry.into_inner().map_err(error)?;
            see(&bytes);
            row_bytes::decode(id_of(&id)?, &bytes, &mut row)
                .ok_or_else(|| failed(TITLE, "no row"))?;
            each(&row);
        }
        Ok(())
    }

    fn of_country(&mut self, country: u16) -> Result<u64> {
        let snapshot = self.store.db.snapshot();
        let entries = snapshot.prefix(&self.store.countries, country.to_be_bytes());
        Ok(entries.count() as u64)
    }

    fn by_email(&mut self, email: &str) -> Result<Option<u32>> {
        let snapshot = self.store.db.snapshot();
        let id = snapshot.get(&self.store.emails, email).map_err(error)?;
        id.map(|id| id_of(&id)).transpose()
    }

    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()> {
        let read = Read {
            snapshot: self.store.db.snapshot(),
            trees: &self.store,
        };
        keys_and_values::answer(&read, question, rows)
    }
}

/// A snapshot of the trees.
struct Read<'a> {
    snapshot: Snapshot,
    trees: &'a Trees,
}

impl KeysAndValues for Read<'_> {
    fn row(&self, id: u32, mut see: impl FnMut(&[u8])) -> Result<()> {
        let row = self.snapshot.get(&self.trees.rows, id.to_be_bytes());
        if let Some(row) = row.map_err(error)? {
            see(&row);
        }
        Ok(())
    }

    fn rows(&self, ids: Option<(u32, u32)>, mut see: impl FnMut(&[u8])) -> Result<()> {
        let (first, last) = ids.unwrap_or((0, u32::MAX));
        let range = first.to_be_bytes()..=last.to_be_bytes();
        for entry in self.snapshot.range(&self.trees.rows, range) {
            see(&entry.value().map_err(error)?);
        }
        Ok(())
    }

    fn count(&self, (first, last): (u32, u32)) -> Result<u64> {
        let range = first.to_be_bytes()..=last.to_be_bytes();
        let mut count = 0;
        for entry in self.snapshot.range(&self.trees.rows, range) {
            entry.key().map_err(error)?;
            count += 1;
        }
        Ok(count)
    }

    fn entries(
        &self,
        first: &[u8],
        last: &[u8],
        mut see: impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        for entry in self.snapshot.range(&self.trees.countries, first..=last) {
            if see(&entry.key().map_err(error)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
