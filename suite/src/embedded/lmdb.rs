//! LMDB, through heed: integer keys, values read in the memory map.

use std::path::Path;

use heed::byteorder::NativeEndian;
use heed::types::{Bytes, Unit, U32};
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, IntegerComparator, PutFlags, RoTxn};

use super::row_bytes;
use super::store::{failed, Store, StoreReader};
use crate::error::{PathContext as _, Result, SuiteError};
use crate::normal::generator::Row;

const TITLE: &str = "LMDB";

type Id = U32<NativeEndian>;
type Rows<'a> = Database<'a, Id, Bytes, IntegerComparator>;
type Emails<'a> = Database<'a, Bytes, Id>;
type Countries<'a> = Database<'a, Bytes, Unit>;

/// The three trees of the table.
#[derive(Clone, Copy)]
struct Trees<'a> {
    rows: Rows<'a>,
    emails: Emails<'a>,
    countries: Countries<'a>,
}

/// An environment with the table.
pub struct Lmdb {
    env: Env,
}

fn error(error: heed::Error) -> SuiteError {
    failed(TITLE, error)
}

impl Lmdb {
    /// A new environment. LMDB has no cache of its own; its map is made large enough for everything.
    pub fn create(dir: &Path, cache: u64) -> Result<Self> {
        std::fs::create_dir_all(dir).at("cannot create", dir)?;
        // The map may be as large as the address space allows, but a multiple of the system's pages.
        let size = usize::try_from(cache.saturating_mul(8)).unwrap_or(usize::MAX);
        let mut options = EnvOpenOptions::new();
        options.map_size(size & !0xffff).max_dbs(3);
        let env = open(&options, dir)?;
        Ok(Self { env })
    }

    /// The trees, made where they are not there yet.
    fn trees(&self) -> Result<Trees<'_>> {
        let txn = self.env.write_txn().map_err(error)?;
        let made = self
            .env
            .create_databases_and_commit(txn, |make, txn| {
                let mut rows = make.database_options().types::<Id, Bytes>();
                rows.name("rows");
                let rows = rows.key_comparator::<IntegerComparator>().create(txn)?;
                let emails: Emails<'_> = make.create_database(txn, Some("emails"))?;
                let countries: Countries<'_> = make.create_database(txn, Some("countries"))?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((rows, emails, countries)))
            })
            .map_err(error)?;
        let (rows, emails, countries) = made
            .commit()
            .ok_or_else(|| failed(TITLE, "the trees were not made"))?;
        Ok(Trees {
            rows,
            emails,
            countries,
        })
    }
}

/// Opens an environment.
#[allow(unsafe_code)]
fn open(options: &EnvOpenOptions, dir: &Path) -> Result<Env> {
    // SAFETY: the directory is a new one of this process's own, so nobody else changes the file under
    // the memory map; and it is opened once.
    unsafe { options.open(dir) }.map_err(error)
}

impl Store for Lmdb {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn settings(&self) -> String {
        "every commit synced; no cache but the system's, read through the memory map; integer keys, \
         a read transaction a call"
            .to_owned()
    }

    fn load(&mut self, rows: &[Row]) -> Result<()> {
        let trees = self.trees()?;
        let mut txn = self.env.write_txn().map_err(error)?;
        let mut buffer = Vec::new();
        for row in rows {
            row_bytes::encode(row, &mut buffer);
            trees
                .rows
                .put_with_flags(&mut txn, PutFlags::APPEND, &row.id, &buffer)
                .map_err(error)?;
            trees
                .emails
                .put(&mut txn, row.email.as_bytes(), &row.id)
                .map_err(error)?;
            row_bytes::country_key(row, &mut buffer);
            trees.countries.put(&mut txn, &buffer, &()).map_err(error)?;
        }
        txn.commit().map_err(error)
    }

    fn settle(&mut self) -> Result<()> {
        self.env.force_sync().map_err(error)
    }

    fn reader(&self) -> Result<Box<dyn StoreReader + '_>> {
        Ok(Box::new(Reader {
            env: &self.env,
            trees: self.trees()?,
        }))
    }
}

struct Reader<'a> {
    env: &'a Env,
    trees: Trees<'a>,
}

impl Reader<'_> {
    fn begin(&self) -> Result<RoTxn<'_, heed::WithTls>> {
        self.env.read_txn().map_err(error)
    }
}

impl StoreReader for Reader<'_> {
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let txn = self.begin()?;
        for id in ids {
            let row = self.trees.rows.get(&txn, id).map_err(error)?;
            if let Some(name) = row.and_then(row_bytes::name) {
                see(name);
            }
        }
        Ok(())
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let txn = self.begin()?;
        for entry in self.trees.rows.iter(&txn).map_err(error)? {
            see(entry.map_err(error)?.1);
        }
        Ok(())
    }

    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), each: &mut dyn FnMut(&Row)) -> Result<()> {
        let txn = self.begin()?;
        let mut row = Row::default();
        for entry in self.trees.rows.iter(&txn).map_err(error)? {
            let (id, bytes) = entry.map_err(error)?;
            see(bytes);
            row_bytes::decode(id, bytes, &mut row).ok_or_else(|| failed(TITLE, "no row"))?;
            each(&row);
        }
        Ok(())
    }

    fn of_country(&mut self, country: u16) -> Result<u64> {
        let txn = self.begin()?;
        let prefix = country.to_be_bytes();
        let entries = self.trees.countries.prefix_iter(&txn, &prefix);
        let count = entries.map_err(error)?.count();
        Ok(count as u64)
    }

    fn by_email(&mut self, email: &str) -> Result<Option<u32>> {
        let txn = self.begin()?;
        self.trees.emails.get(&txn, email.as_bytes()).map_err(error)
    }
}
