//! Peregrine's library.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Durability, Index, Isolation, Key,
    Options, RowView, Seek, Table, TableSchema, Transaction, Value,
};

use super::store::{failed, Store, StoreReader};
use crate::error::Result;
use crate::normal::generator::Row;

const TITLE: &str = "Peregrine";

/// The numbers of the columns.
const NAME: usize = 1;
const EMAIL: usize = 2;

/// The numbers of the indexes.
const BY_EMAIL: usize = 1;
const BY_COUNTRY: usize = 2;

/// A database with the table.
pub struct Peregrine {
    db: Database,
    table: Arc<Table>,
    cache: u64,
}

fn schema() -> TableSchema {
    let number = |name: &str, bytes| {
        Column::new(
            name,
            ColumnType::Int {
                bytes,
                signed: false,
            },
        )
    };
    let text = |name: &str, max| Column::new(name, ColumnType::VarBytes { max });
    TableSchema {
        columns: vec![
            number("id", 4),
            text("name", 64),
            text("email", 64),
            text("password", 64),
            number("dob", 2).nullable(),
            text("address", 128),
            text("city", 64),
            number("state_id", 1),
            text("zip", 8),
            number("country_id", 2),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("email", &[EMAIL]).unique(),
            Index::new("country_id", &[9, 7, 6]),
        ],
        user: vec![],
    }
}

fn error(error: peregrine::Error) -> crate::error::SuiteError {
    failed(TITLE, error)
}

impl Peregrine {
    /// A new database.
    pub fn create(dir: &Path, cache: u64) -> Result<Self> {
        let options = Options {
            pool_bytes: usize::try_from(cache).unwrap_or(usize::MAX),
            durability: Durability::SyncAtCommit,
            ..Options::default()
        };
        let db = Database::open(dir, options).map_err(error)?;
        let table = db.create_table("normal", &schema()).map_err(error)?;
        Ok(Self { db, table, cache })
    }
}

impl Store for Peregrine {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn settings(&self) -> String {
        format!(
            "every commit synced; pool of {} MiB; a snapshot a call, Transaction::rows",
            self.cache >> 20
        )
    }

    fn load(&mut self, rows: &[Row]) -> Result<()> {
        let mut txn = self.db.begin(Isolation::RepeatableRead);
        for row in rows {
            let values = [
                Value::UInt(row.id.into()),
                Value::Bytes(row.name.as_bytes()),
                Value::Bytes(row.email.as_bytes()),
                Value::Bytes(row.password.as_bytes()),
                row.birth_day
                    .map_or(Value::Null, |day| Value::UInt(day.into())),
                Value::Bytes(row.address.as_bytes()),
                Value::Bytes(row.city.as_bytes()),
                Value::UInt(row.state_id.into()),
                Value::Bytes(row.zip.as_bytes()),
                Value::UInt(row.country_id.into()),
            ];
            txn.insert(&self.table, &values).map_err(error)?;
        }
        txn.commit().map_err(error)
    }

    fn settle(&mut self) -> Result<()> {
        self.db.purge().map_err(error)?;
        self.db.checkpoint().map_err(error)
    }

    fn reader(&self) -> Result<Box<dyn StoreReader + '_>> {
        Ok(Box::new(Reader {
            table: &self.table,
            txn: self.db.begin(Isolation::RepeatableRead),
            key: Vec::new(),
        }))
    }
}

struct Reader<'a> {
    table: &'a Arc<Table>,
    txn: Transaction,
    key: Vec<u8>,
}

fn bytes<'a>(row: &RowView<'a>, column: usize) -> Result<&'a [u8]> {
    match row.get(column).map_err(error)? {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(failed(TITLE, format!("column {column} has no bytes"))),
    }
}

fn number(row: &RowView<'_>, column: usize) -> Result<Option<u64>> {
    match row.get(column).map_err(error)? {
        Value::UInt(number) => Ok(Some(number)),
        Value::Null => Ok(None),
        _ => Err(failed(TITLE, format!("column {column} has no number"))),
    }
}

fn decoded(view: &RowView<'_>, row: &mut Row) -> Result<()> {
    let texts = [
        (&mut row.name, NAME),
        (&mut row.email, EMAIL),
        (&mut row.password, 3),
        (&mut row.address, 5),
        (&mut row.city, 6),
        (&mut row.zip, 8),
    ];
    for (text, column) in texts {
        text.clear();
        text.push_str(
            std::str::from_utf8(bytes(view, column)?).map_err(|error| failed(TITLE, error))?,
        );
    }
    let unsigned = |column| number(view, column).map(Option::unwrap_or_default);
    row.id = u32::try_from(unsigned(0)?).unwrap_or(0);
    row.birth_day = number(view, 4)?.and_then(|day| u16::try_from(day).ok());
    row.state_id = u8::try_from(unsigned(7)?).unwrap_or(0);
    row.country_id = u16::try_from(unsigned(9)?).unwrap_or(0);
    Ok(())
}

impl Reader<'_> {
    /// Goes through all rows.
    fn walk(&mut self, mut see: impl FnMut(&RowView<'_>) -> Result<()>) -> Result<()> {
        let mut rows = self.txn.rows(self.table).map_err(error)?;
        let failed = rows
            .each(&[], |row| match see(&row) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            })
            .map_err(error)?;
        self.txn.commit().map_err(error)?;
        failed.map_or(Ok(()), Err)
    }
}

impl StoreReader for Reader<'_> {
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut rows = self.txn.rows(self.table).map_err(error)?;
        for id in ids {
            let key = [Value::UInt(u64::from(*id))];
            self.table
                .encode_key_into(0, &key, &mut self.key)
                .map_err(error)?;
            if let Some(row) = rows.get(&self.key).map_err(error)? {
                see(bytes(&row, NAME)?);
            }
        }
        self.txn.commit().map_err(error)
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.walk(|row| {
            see(row.bytes());
            Ok(())
        })
    }

    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), each: &mut dyn FnMut(&Row)) -> Result<()> {
        let mut row = Row::default();
        self.walk(|view| {
            see(view.bytes());
            decoded(view, &mut row)?;
            each(&row);
            Ok(())
        })
    }

    fn of_country(&mut self, country: u16) -> Result<u64> {
        let options = CursorOptions {
            index_only: true,
            ..CursorOptions::default()
        };
        let mut cursor = Cursor::new(self.table, BY_COUNTRY, options);
        let key = [Value::UInt(country.into())];
        let key = self.table.encode_key(BY_COUNTRY, &key).map_err(error)?;
        let mut count = 0;
        let mut more = cursor
            .seek(&mut self.txn, &key, Seek::Exact)
            .map_err(error)?;
        while more {
            count += 1;
            more = cursor.next_same_prefix(&mut self.txn).map_err(error)?;
        }
        self.txn.commit().map_err(error)?;
        Ok(count)
    }

    fn by_email(&mut self, email: &str) -> Result<Option<u32>> {
        let mut cursor = Cursor::new(self.table, BY_EMAIL, CursorOptions::default());
        let key = [Value::Bytes(email.as_bytes())];
        let key = self.table.encode_key(BY_EMAIL, &key).map_err(error)?;
        let found = cursor
            .seek(&mut self.txn, &key, Seek::Exact)
            .map_err(error)?;
        let id = match found {
            true => number(&cursor.row().map_err(error)?, 0)?,
            false => None,
        };
        self.txn.commit().map_err(error)?;
        Ok(id.and_then(|id| u32::try_from(id).ok()))
    }
}
