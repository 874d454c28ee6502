//! Peregrine's library.

use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;

use peregrine::{
    Aggregate, Aggregated, Column, ColumnType, Cursor, CursorOptions, Database, Durability, Index,
    IndexRange, Isolation, Key, NumberPlace, Options, OwnedValue, RowView, Seek, Table,
    TableSchema, Transaction, Value,
};

use super::question::{give_day, Question, Wanted};
use super::store::{failed, Store, StoreReader};
use crate::normal::generator::Row;
use peregrine_harness::engines::{
    RowSink, {self},
};
use peregrine_harness::error::Result;

const TITLE: &str = "Peregrine";
const TABLE: &str = "normal";

/// The numbers of the columns.
const NAME: usize = 1;
const EMAIL: usize = 2;
const DOB: usize = 4;
const CITY: usize = 6;
const STATE: usize = 7;
const COUNTRY: usize = 9;

/// The numbers of the indexes.
const PRIMARY: usize = 0;
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
            Index::new("country_id", &[COUNTRY, STATE, CITY]),
        ],
        user: vec![],
    }
}

fn error(error: peregrine::Error) -> peregrine_harness::error::HarnessError {
    failed(TITLE, error)
}

impl Peregrine {
    /// Opens a database, or creates it.
    pub fn open(dir: &Path, cache: u64) -> Result<Self> {
        let options = Options {
            pool_bytes: usize::try_from(cache).unwrap_or(usize::MAX),
            durability: Durability::SyncAtCommit,
            ..Options::default()
        };
        let db = Database::open(dir, options).map_err(error)?;
        let is_there = db.table_names().iter().any(|name| name == TABLE);
        let table = if is_there {
            db.table(TABLE)
        } else {
            db.create_table(TABLE, &schema())
        };
        let table = table.map_err(error)?;
        Ok(Self { db, table, cache })
    }
}

impl Store for Peregrine {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn settings(&self) -> String {
        format!(
            "every commit synced; pool of {} MiB; a snapshot a call; Transaction::rows for rows, cursors for indexes, \
             Transaction::aggregate for minimum and count",
            self.cache >> 20
        )
    }

    fn is_log(&self, file: &Path) -> bool {
        file.starts_with("log")
    }

    fn cache_bytes(&self) -> u64 {
        self.cache
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

    fn reader(&self) -> Result<Box<dyn StoreReader>> {
        let table = Arc::clone(&self.table);
        let cursor = |index_only| {
            let options = CursorOptions {
                index_only,
                ..CursorOptions::default()
            };
            let mut cursor = Cursor::new(&table, BY_COUNTRY, options);
            cursor.set_columns(Some(&[if index_only { CITY } else { NAME }]));
            cursor
        };
        let no_place = || failed(TITLE, "the index has no such column");
        Ok(Box::new(Reader {
            rows: cursor(false),
            entries: cursor(true),
            state: table.number_place(BY_COUNTRY, STATE).ok_or_else(no_place)?,
            table,
            txn: self.db.begin(Isolation::RepeatableRead),
            key: Vec::new(),
        }))
    }
}

struct Reader {
    table: Arc<Table>,
    txn: Transaction,
    key: Vec<u8>,
    /// A cursor over the index on countries that fetches rows.
    rows: Cursor,
    /// A cursor over the entries of that index alone.
    entries: Cursor,
    /// The place of the state in an entry.
    state: NumberPlace,
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
        (&mut row.city, CITY),
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
    row.birth_day = number(view, DOB)?.and_then(|day| u16::try_from(day).ok());
    row.state_id = u8::try_from(unsigned(STATE)?).unwrap_or(0);
    row.country_id = u16::try_from(unsigned(COUNTRY)?).unwrap_or(0);
    Ok(())
}

impl Reader {
    /// Passes all rows to `see`.
    fn walk(&mut self, mut see: impl FnMut(&RowView<'_>) -> Result<()>) -> Result<()> {
        let mut rows = self.txn.rows(&self.table).map_err(error)?;
        let failed = rows
            .each(&[], |row| match see(&row) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            })
            .map_err(error)?;
        self.txn.commit().map_err(error)?;
        failed.map_or(Ok(()), Err)
    }

    /// Passes columns of the row with this id, if there is one, to `see`.
    fn columns<const N: usize>(
        &mut self,
        id: u32,
        columns: [usize; N],
        see: impl FnOnce([Value<'_>; N]),
    ) -> Result<()> {
        let key = [Value::UInt(id.into())];
        self.table
            .encode_key_into(PRIMARY, &key, &mut self.key)
            .map_err(error)?;
        let mut rows = self.txn.rows(&self.table).map_err(error)?;
        let found = rows.columns(&self.key, columns).map_err(error)?;
        if let Some(values) = found {
            see(values);
        }
        Ok(())
    }

    /// Returns an aggregate over the rows with an id in this range, or over all rows.
    fn aggregate(&mut self, ids: Option<(u32, u32)>, what: Aggregate) -> Result<Aggregated> {
        let key = |id: u32| self.table.encode_key(PRIMARY, &[Value::UInt(id.into())]);
        let keys = ids.map(|(first, last)| Ok((key(first)?, key(last)?)));
        let keys = keys.transpose().map_err(error)?;
        let range = match &keys {
            None => IndexRange::whole(PRIMARY),
            Some((first, last)) => IndexRange {
                index: PRIMARY,
                start: Bound::Included(first),
                end: Bound::Included(last),
            },
        };
        let answers = self.txn.aggregate(&self.table, &range, &[], &[what]);
        let answer = answers.map_err(error)?.pop();
        answer.ok_or_else(|| failed(TITLE, "an aggregate has no answer"))
    }

    /// Passes a column of a country's rows, of all states or of some, to `rows`.
    ///
    /// The index has state and city.
    fn in_country(
        &mut self,
        wanted: Wanted,
        (country, states): (u16, Option<(u8, u8)>),
        limit: Option<usize>,
        rows: &mut dyn RowSink,
    ) -> Result<()> {
        let cursor = match wanted {
            Wanted::Name => &mut self.rows,
            Wanted::State | Wanted::City => &mut self.entries,
        };
        let (country, state) = (Value::UInt(country.into()), |state: u8| {
            Value::UInt(state.into())
        });
        let encode = |values: &[Value<'_>], key: &mut Vec<u8>| {
            let encoded = self.table.encode_key_into(BY_COUNTRY, values, key);
            encoded.map_err(error)
        };
        let found = match states {
            None => {
                encode(&[country], &mut self.key)?;
                cursor.clear_end();
                cursor.seek(&mut self.txn, &self.key, Seek::Exact)
            }
            Some((first, last)) => {
                encode(&[country, state(last)], &mut self.key)?;
                cursor.set_end(&self.key, true);
                encode(&[country, state(first)], &mut self.key)?;
                cursor.seek(&mut self.txn, &self.key, Seek::AtOrAfter)
            }
        };
        let mut more = found.map_err(error)?;
        let mut left = limit.unwrap_or(usize::MAX);
        while more {
            let column = match wanted {
                Wanted::Name => Some(NAME),
                Wanted::City => Some(CITY),
                Wanted::State => None,
            };
            match column {
                Some(column) => {
                    let row = cursor.row().map_err(error)?;
                    rows.row(&[engines::Value::Bytes(bytes(&row, column)?)]);
                }
                // A number of fixed length is read directly from the key.
                None => rows.row(&[match cursor.number(&self.state) {
                    Some(state) => engines::Value::Integer(state),
                    None => engines::Value::Other,
                }]),
            }
            left -= 1;
            if left == 0 {
                break;
            }
            let moved = match states {
                None => cursor.next_same_prefix(&mut self.txn),
                Some(_) => cursor.next(&mut self.txn),
            };
            more = moved.map_err(error)?;
        }
        Ok(())
    }
}

impl StoreReader for Reader {
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut rows = self.txn.rows(&self.table).map_err(error)?;
        for id in ids {
            let key = [Value::UInt(u64::from(*id))];
            self.table
                .encode_key_into(PRIMARY, &key, &mut self.key)
                .map_err(error)?;
            let found = rows.columns(&self.key, [NAME]).map_err(error)?;
            if let Some([Value::Bytes(name)]) = found {
                see(name);
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
        let mut cursor = Cursor::new(&self.table, BY_COUNTRY, options);
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
        let mut cursor = Cursor::new(&self.table, BY_EMAIL, CursorOptions::default());
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

    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()> {
        match *question {
            Question::Name { id } => self.columns(id, [NAME], |[name]| {
                rows.row(&[match name {
                    Value::Bytes(name) => engines::Value::Bytes(name),
                    _ => engines::Value::Other,
                }]);
            }),
            Question::Id { id } => self.columns(id, [], |[]| {
                rows.row(&[engines::Value::Integer(id.into())]);
            }),
            Question::FirstBirthDay { ids } => {
                let day = match self.aggregate(ids, Aggregate::Min(DOB))? {
                    Aggregated::Value(Some(OwnedValue::UInt(day))) => u16::try_from(day).ok(),
                    _ => None,
                };
                give_day(day, rows);
                Ok(())
            }
            Question::Count { ids } => match self.aggregate(Some(ids), Aggregate::Rows)? {
                Aggregated::Count(count) => {
                    rows.row(&[engines::Value::Integer(count)]);
                    Ok(())
                }
                _ => Err(failed(TITLE, "a count is no count")),
            },
            Question::InCountry {
                wanted,
                country,
                states,
                limit,
            } => self.in_country(wanted, (country, states), limit, rows),
        }?;
        // The snapshot is for this question alone.
        self.txn.commit().map_err(error)
    }
}
