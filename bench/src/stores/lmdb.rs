//! LMDB, through heed: integer keys, with values read in the memory map.

use std::ops::{Bound, ControlFlow};
use std::path::Path;

use heed::byteorder::NativeEndian;
use heed::types::{Bytes, DecodeIgnore, Unit, U32};
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, IntegerComparator, PutFlags, RoTxn};

use super::keys_and_values::{
    KeysAndValues, {self},
};
use super::question::Question;
use super::row_bytes;
use super::store::{failed, Store, StoreReader};
use crate::normal::generator::Row;
use peregrine_harness::engines::RowSink;
use peregrine_harness::error::{HarnessError, PathContext as _, Result};

/// The maximum number of readers; LMDB keeps a slot for each in a file beside the data.
const MOST_READERS: u32 = 8_192;

const TITLE: &str = "LMDB";

type Id = U32<NativeEndian>;
type Rows = Database<'static, Id, Bytes, IntegerComparator>;
type Emails = Database<'static, Bytes, Id>;
type Countries = Database<'static, Bytes, Unit>;

/// The three trees of the table.
#[derive(Clone, Copy)]
struct Trees {
    rows: Rows,
    emails: Emails,
    countries: Countries,
}

/// An environment with the table.
pub struct Lmdb {
    env: Env,
    trees: Trees,
}

fn error(error: heed::Error) -> HarnessError {
    failed(TITLE, error)
}

impl Lmdb {
    /// Opens an environment, or creates it.
    ///
    /// LMDB has no cache of its own, so its map is made large enough for everything.
    pub fn open(dir: &Path, cache: u64) -> Result<Self> {
        std::fs::create_dir_all(dir).at("cannot create", dir)?;
        // The map may be as large as the address space allows, but must be a multiple of the system's page size.
        let size = usize::try_from(cache.saturating_mul(8)).unwrap_or(usize::MAX);
        let mut options = EnvOpenOptions::new();
        options
            .map_size(size & !0xffff)
            .max_dbs(3)
            .max_readers(MOST_READERS);
        let env = environment(&options, dir)?;
        let trees = trees(&env)?;
        Ok(Self { env, trees })
    }
}

/// Opens or creates the trees.
fn trees(env: &Env) -> Result<Trees> {
    let txn = env.write_txn().map_err(error)?;
    let made = env
        .create_databases_and_commit(txn, |make, txn| {
            let mut rows = make.database_options().types::<Id, Bytes>();
            rows.name("rows");
            let rows = rows.key_comparator::<IntegerComparator>().create(txn)?;
            let emails: Database<'_, Bytes, Id> = make.create_database(txn, Some("emails"))?;
            let countries: Database<'_, Bytes, Unit> =
                make.create_database(txn, Some("countries"))?;
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

/// Opens an environment.
#[allow(unsafe_code)]
fn environment(options: &EnvOpenOptions, dir: &Path) -> Result<Env> {
    // SAFETY: the directory belongs to this process alone, so no other process changes the file under the memory map;
    // and it is opened once.
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

    fn is_log(&self, _: &Path) -> bool {
        false
    }

    fn cache_bytes(&self) -> u64 {
        0
    }

    fn load(&mut self, rows: &[Row]) -> Result<()> {
        let trees = self.trees;
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

    fn reader(&self) -> Result<Box<dyn StoreReader>> {
        Ok(Box::new(Reader {
            env: self.env.clone(),
            trees: self.trees,
        }))
    }
}

struct Reader {
    env: Env,
    trees: Trees,
}

impl Reader {
    fn begin(&self) -> Result<RoTxn<'_, heed::WithTls>> {
        self.env.read_txn().map_err(error)
    }
}

impl StoreReader for Reader {
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

    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()> {
        let snapshot = Snapshot {
            txn: self.begin()?,
            trees: self.trees,
        };
        keys_and_values::answer(&snapshot, question, rows)
    }
}

/// A read transaction on the trees.
struct Snapshot<'a> {
    txn: RoTxn<'a, heed::WithTls>,
    trees: Trees,
}

impl KeysAndValues for Snapshot<'_> {
    fn row(&self, id: u32, mut see: impl FnMut(&[u8])) -> Result<()> {
        let row = self.trees.rows.get(&self.txn, &id).map_err(error)?;
        if let Some(row) = row {
            see(row);
        }
        Ok(())
    }

    fn rows(&self, ids: Option<(u32, u32)>, mut see: impl FnMut(&[u8])) -> Result<()> {
        let Some((first, last)) = ids else {
            for entry in self.trees.rows.iter(&self.txn).map_err(error)? {
                see(entry.map_err(error)?.1);
            }
            return Ok(());
        };
        let range = first..=last;
        for entry in self.trees.rows.range(&self.txn, &range).map_err(error)? {
            see(entry.map_err(error)?.1);
        }
        Ok(())
    }

    fn count(&self, (first, last): (u32, u32)) -> Result<u64> {
        let ids = self.trees.rows.remap_data_type::<DecodeIgnore>();
        let range = first..=last;
        let mut count = 0;
        for entry in ids.range(&self.txn, &range).map_err(error)? {
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
        let range = (Bound::Included(first), Bound::Included(last));
        let entries = self.trees.countries.range(&self.txn, &range);
        for entry in entries.map_err(error)? {
            if see(entry.map_err(error)?.0)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
