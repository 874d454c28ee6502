//! redb: typed tables, values read in its cache.

use std::path::Path;

use ::redb::{
    Builder, Database, Durability, ReadOnlyTable, ReadTransaction, ReadableDatabase as _,
    ReadableTable as _, TableDefinition,
};

use super::row_bytes;
use super::store::{failed, Store, StoreReader};
use crate::error::{PathContext as _, Result, SuiteError};
use crate::normal::generator::Row;

const TITLE: &str = "redb";

const ROWS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rows");
const EMAILS: TableDefinition<'_, &[u8], u32> = TableDefinition::new("emails");
const COUNTRIES: TableDefinition<'_, &[u8], ()> = TableDefinition::new("countries");

/// A database with the table.
pub struct Redb {
    db: Database,
    cache: u64,
}

fn error(error: impl Into<::redb::Error>) -> SuiteError {
    failed(TITLE, error.into())
}

impl Redb {
    /// A new database.
    pub fn create(dir: &Path, cache: u64) -> Result<Self> {
        std::fs::create_dir_all(dir).at("cannot create", dir)?;
        let db = Builder::new()
            .set_cache_size(usize::try_from(cache).unwrap_or(usize::MAX))
            .create(dir.join("normal.redb"))
            .map_err(error)?;
        Ok(Self { db, cache })
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
        self.db.compact().map_err(error)?;
        Ok(())
    }

    fn reader(&self) -> Result<Box<dyn StoreReader + '_>> {
        Ok(Box::new(Reader { db: &self.db }))
    }
}

struct Reader<'a> {
    db: &'a Database,
}

impl Reader<'_> {
    fn begin(&self) -> Result<ReadTransaction> {
        self.db.begin_read().map_err(error)
    }

    fn table(&self) -> Result<ReadOnlyTable<u32, &'static [u8]>> {
        self.begin()?.open_table(ROWS).map_err(error)
    }
}

impl StoreReader for Reader<'_> {
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
}
