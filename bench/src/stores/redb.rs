//! redb: typed tables, with values read in its cache.

use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ::redb::{
    Builder, Database, Durability, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase as _,
    ReadableTable as _, TableDefinition, Value,
};

use super::keys_and_values::{
    KeysAndValues, {self},
};
use super::question::Question;
use super::row_bytes;
use super::store::{failed, Store, StoreReader};
use crate::normal::generator::Row;
use peregrine_harness::engines::RowSink;
use peregrine_harness::error::{HarnessError, PathContext as _, Result};

const TITLE: &str = "redb";

const ROWS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rows");
const EMAILS: TableDefinition<'_, &[u8], u32> = TableDefinition::new("emails");
const COUNTRIES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("countries");

/// A database with the table.
pub struct Redb {
    db: Arc<Database>,
    cache: u64,
}

fn error(error: impl Into<::redb::Error>) -> HarnessError {
    failed(TITLE, error.into())
}

impl Redb {
    /// Opens a database, or creates it.
    pub fn open(dir: &Path, cache: u64) -> Result<Self> {
        std::fs::create_dir_all(dir).at("cannot create", dir)?;
        let db = Builder::new()
            .set_cache_size(usize::try_from(cache).unwrap_or(usize::MAX))
            .create(dir.join("normal.redb"))
            .map_err(error)?;
        Ok(Self {
            db: Arc::new(db),
            cache,
        })
    }
}

impl Store for Redb {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn settings(&self) -> String {
        format!(
            "every commit synced (Immediate); cache of {} MiB; integer keys, a read transaction and an \
             open table a call",
            self.cache >> 20
        )
    }

    fn is_log(&self, _: &Path) -> bool {
        false
    }

    fn cache_bytes(&self) -> u64 {
        self.cache
    }

    fn load(&mut self, rows: &[Row]) -> Result<()> {
        let mut txn = self.db.begin_write().map_err(error)?;
        txn.set_durability(Durability::Immediate)
            .map_err(|error| failed(TITLE, error))?;
        {
            let mut to_rows = txn.open_table(ROWS).map_err(error)?;
            let mut to_emails = txn.open_table(EMAILS).map_err(error)?;
            let mut to_countries = txn.open_table(COUNTRIES).map_err(error)?;
            let mut buffer = Vec::new();
            for row in rows {
                row_bytes::encode(row, &mut buffer);
                to_rows.insert(row.id, &buffer[..]).map_err(error)?;
                to_emails
                    .insert(row.email.as_bytes(), row.id)
                    .map_err(error)?;
                row_bytes::country_key(row, &mut buffer);
                to_countries.insert(&buffer[..], ()).map_err(error)?;
            }
        }
        txn.commit().map_err(error)
    }

    fn settle(&mut self) -> Result<()> {
        let db = Arc::get_mut(&mut self.db);
        let db = db.ok_or_else(|| failed(TITLE, "it can't be compacted while it is read"))?;
        db.compact().map_err(error)?;
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn StoreReader>> {
        Ok(Box::new(Reader {
            db: Arc::clone(&self.db),
        }))
    }
}

struct Reader {
    db: Arc<Database>,
}

impl Reader {
    fn begin(&self) -> Result<ReadTransaction> {
        self.db.begin_read().map_err(error)
    }

    fn table(&self) -> Result<ReadOnlyTable<u32, &'static [u8]>> {
        self.begin()?.open_table(ROWS).map_err(error)
    }
}

impl StoreReader for Reader {
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let rows = self.table()?;
        for id in ids {
            if let Some(row) = rows.get(id).map_err(error)? {
                if let Some(name) = row_bytes::name(row.value()) {
                    see(name);
                }
            }
        }
        Ok(())
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        for entry in self.table()?.iter().map_err(error)? {
            see(entry.map_err(error)?.1.value());
        }
        Ok(())
    }

    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), each: &mut dyn FnMut(&Row)) -> Result<()> {
        let mut row = Row::default();
        for entry in self.table()?.iter().map_err(error)? {
            let (id, bytes) = entry.map_err(error)?;
            see(bytes.value());
            row_bytes::decode(id.value(), bytes.value(), &mut row)
                .ok_or_else(|| failed(TITLE, "no row"))?;
            each(&row);
        }
        Ok(())
    }

    fn of_country(&mut self, country: u16) -> Result<u64> {
        let table = self.begin()?.open_table(COUNTRIES).map_err(error)?;
        let (from, to) = (country.to_be_bytes(), (country + 1).to_be_bytes());
        let entries = table.range(&from[..]..&to[..]).map_err(error)?;
        Ok(entries.count() as u64)
    }

    fn by_email(&mut self, email: &str) -> Result<Option<u32>> {
        let table = self.begin()?.open_table(EMAILS).map_err(error)?;
        let id = table.get(email.as_bytes()).map_err(error)?;
        Ok(id.map(|id| id.value()))
    }

    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()> {
        let snapshot = Snapshot {
            txn: self.begin()?,
            rows: OnceCell::new(),
            countries: OnceCell::new(),
        };
        keys_and_values::answer(&snapshot, question, rows)
    }
}

/// A read transaction and the tables that it has opened.
struct Snapshot {
    txn: ReadTransaction,
    rows: OnceCell<ReadOnlyTable<u32, &'static [u8]>>,
    countries: OnceCell<ReadOnlyTable<&'static [u8], ()>>,
}

/// Returns the table, and opens it at the first call.
fn opened<'s, K: Key + 'static, V: Value + 'static>(
    txn: &ReadTransaction,
    place: &'s OnceCell<ReadOnlyTable<K, V>>,
    table: TableDefinition<'_, K, V>,
) -> Result<&'s ReadOnlyTable<K, V>> {
    if let Some(open) = place.get() {
        return Ok(open);
    }
    let open = txn.open_table(table).map_err(error)?;
    Ok(place.get_or_init(|| open))
}

impl KeysAndValues for Snapshot {
    fn row(&self, id: u32, mut see: impl FnMut(&[u8])) -> Result<()> {
        let rows = opened(&self.txn, &self.rows, ROWS)?;
        if let Some(row) = rows.get(id).map_err(error)? {
            see(row.value());
        }
        Ok(())
    }

    fn rows(&self, ids: Option<(u32, u32)>, mut see: impl FnMut(&[u8])) -> Result<()> {
        let (first, last) = ids.unwrap_or((0, u32::MAX));
        let rows = opened(&self.txn, &self.rows, ROWS)?;
        for entry in rows.range(first..=last).map_err(error)? {
            see(entry.map_err(error)?.1.value());
        }
        Ok(())
    }

    fn count(&self, (first, last): (u32, u32)) -> Result<u64> {
        let rows = opened(&self.txn, &self.rows, ROWS)?;
        let mut count = 0;
        for entry in rows.range(first..=last).map_err(error)? {
            entry.map_err(error)?;
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
        let countries = opened(&self.txn, &self.countries, COUNTRIES)?;
        for entry in countries.range(first..=last).map_err(error)? {
            if see(entry.map_err(error)?.0.value())?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
