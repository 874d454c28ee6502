//! SQLite: a table whose rowid is the key, cached prepared statements, everything in the memory map.

use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{params, params_from_iter, Connection, OpenFlags, Statement};

use super::question::{give_day, Question, Wanted};
use super::store::{failed, Store, StoreReader};
use crate::normal::generator::Row;
use peregrine_harness::engines::{RowSink, Value};
use peregrine_harness::error::{HarnessError, PathContext as _, Result};

const TITLE: &str = "SQLite";

const TABLE: &str = "CREATE TABLE IF NOT EXISTS normal (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL, password TEXT NOT NULL,
        dob INTEGER, address TEXT NOT NULL, city TEXT NOT NULL, state_id INTEGER NOT NULL,
        zip TEXT NOT NULL, country_id INTEGER NOT NULL);
    CREATE UNIQUE INDEX IF NOT EXISTS email ON normal (email);
    CREATE INDEX IF NOT EXISTS country_id ON normal (country_id, state_id, city);";

const INSERT: &str = "INSERT INTO normal VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
const NAME: &str = "SELECT name FROM normal WHERE id = ?";
const ALL: &str =
    "SELECT id, name, email, password, dob, address, city, state_id, zip, country_id FROM normal";
const COUNTRY: &str = "SELECT count(*) FROM normal INDEXED BY country_id WHERE country_id = ?";
const MIN_DOB: &str = "SELECT min(dob) FROM normal";
const MIN_DOB_OF: &str = "SELECT min(dob) FROM normal WHERE id BETWEEN ? AND ?";
const COUNT_OF: &str = "SELECT count(id) FROM normal WHERE id BETWEEN ? AND ?";
const ID: &str = "SELECT id FROM normal WHERE id = ?";
const EMAIL: &str = "SELECT id FROM normal INDEXED BY email WHERE email = ?";

/// A database file with the table.
pub struct Sqlite {
    path: PathBuf,
    cache: u64,
    /// Bytes of the file that a connection maps, as SQLite reports them: SQLite has a limit of its own.
    map: u64,
    /// The connection for writes.
    ///
    /// It also keeps the write-ahead log's index in memory while others read.
    connection: std::sync::Mutex<Connection>,
}

fn error(error: rusqlite::Error) -> HarnessError {
    failed(TITLE, error)
}

/// Opens a connection that maps as much of the file as the cache size; all connections share the mapped pages.
///
/// The connection's statements are not shared with other threads.
fn connect(path: &Path, cache: u64) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(error)?;
    let pragmas = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = {cache};"
    );
    connection.execute_batch(&pragmas).map_err(error)?;
    Ok(connection)
}

impl Sqlite {
    /// Opens a database, or creates it.
    pub fn open(dir: &Path, cache: u64) -> Result<Self> {
        std::fs::create_dir_all(dir).at("cannot create", dir)?;
        let path = dir.join("normal.db");
        let connection = connect(&path, cache)?;
        // The writer needs a cache of its own, because changed pages are not in the map.
        let pages = format!("PRAGMA cache_size = -{};", cache >> 10);
        connection.execute_batch(&pages).map_err(error)?;
        connection.execute_batch(TABLE).map_err(error)?;
        let map: i64 = connection
            .query_row("PRAGMA mmap_size", [], |row| row.get(0))
            .map_err(error)?;
        Ok(Self {
            path,
            cache,
            map: map.unsigned_abs(),
            connection: std::sync::Mutex::new(connection),
        })
    }

    fn connection(&mut self) -> &mut Connection {
        let connection = self.connection.get_mut();
        // No thread panics while it holds the mutex, which is only ever borrowed exclusively.
        connection.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Store for Sqlite {
    fn title(&self) -> &'static str {
        TITLE
    }

    fn settings(&self) -> String {
        format!(
            "every commit synced (WAL, synchronous FULL); memory map of {} MiB; rowid table, statements kept, a \
             read transaction a call",
            self.map >> 20
        )
    }

    fn is_log(&self, file: &Path) -> bool {
        file.to_string_lossy().ends_with("-wal")
    }

    fn cache_bytes(&self) -> u64 {
        self.map
    }

    fn load(&mut self, rows: &[Row]) -> Result<()> {
        let txn = self.connection().transaction().map_err(error)?;
        {
            let mut insert = txn.prepare_cached(INSERT).map_err(error)?;
            for row in rows {
                let values = params![
                    row.id,
                    row.name,
                    row.email,
                    row.password,
                    row.birth_day,
                    row.address,
                    row.city,
                    row.state_id,
                    row.zip,
                    row.country_id
                ];
                insert.execute(values).map_err(error)?;
            }
        }
        txn.commit().map_err(error)
    }

    fn settle(&mut self) -> Result<()> {
        let connection = self.connection();
        connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .map_err(error)?;
        connection
            .execute_batch("PRAGMA optimize; PRAGMA shrink_memory;")
            .map_err(error)
    }

    fn reader(&self) -> Result<Box<dyn StoreReader>> {
        let connection = connect(&self.path, self.cache)?;
        Ok(Box::new(Reader { connection }))
    }
}

struct Reader {
    connection: Connection,
}

/// Returns the statement for a column of a country's rows, of all states or of some.
///
/// The last parameter is the maximum number of rows, -1 for all.
fn in_country(wanted: Wanted, has_states: bool) -> &'static str {
    macro_rules! select {
        ($column:literal) => {
            if has_states {
                concat!(
                    "SELECT ",
                    $column,
                    " FROM normal WHERE country_id = ? AND state_id BETWEEN ? AND ? LIMIT ?"
                )
            } else {
                concat!(
                    "SELECT ",
                    $column,
                    " FROM normal WHERE country_id = ? LIMIT ?"
                )
            }
        };
    }
    match wanted {
        Wanted::Name => select!("name"),
        Wanted::State => select!("state_id"),
        Wanted::City => select!("city"),
    }
}

impl Reader {
    /// Runs a statement and passes the only column of its rows to `take`.
    fn ask(
        &self,
        sql: &str,
        given: &[i64],
        mut take: impl FnMut(ValueRef<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql).map_err(error)?;
        let mut rows = statement.query(params_from_iter(given)).map_err(error)?;
        while let Some(row) = rows.next().map_err(error)? {
            take(row.get_ref(0).map_err(error)?)?;
        }
        Ok(())
    }

    /// Reads all rows, and passes the bytes of each column, as SQLite stores them, to `see`.
    fn walk(
        &mut self,
        see: &mut dyn FnMut(&[u8]),
        mut each: impl FnMut(&rusqlite::Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut all = self.connection.prepare_cached(ALL).map_err(error)?;
        let mut rows = all.query([]).map_err(error)?;
        while let Some(row) = rows.next().map_err(error)? {
            for column in 0..10 {
                match row.get_ref(column).map_err(error)? {
                    ValueRef::Integer(number) => see(&number.to_le_bytes()),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => see(bytes),
                    ValueRef::Null | ValueRef::Real(_) => {}
                }
            }
            each(row)?;
        }
        Ok(())
    }
}

fn decoded(from: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        id: from.get(0)?,
        name: from.get(1)?,
        email: from.get(2)?,
        password: from.get(3)?,
        birth_day: from.get(4)?,
        address: from.get(5)?,
        city: from.get(6)?,
        state_id: from.get(7)?,
        zip: from.get(8)?,
        country_id: from.get(9)?,
    })
}

/// Reads names, one execution of the statement for each.
fn read_names(
    statement: &mut Statement<'_>,
    ids: &[u32],
    see: &mut dyn FnMut(&[u8]),
) -> rusqlite::Result<()> {
    for id in ids {
        let mut rows = statement.query([id])?;
        if let Some(row) = rows.next()? {
            see(row.get_ref(0)?.as_bytes()?);
        }
    }
    Ok(())
}

impl StoreReader for Reader {
    fn names(&mut self, ids: &[u32], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let txn = self.connection.unchecked_transaction().map_err(error)?;
        {
            let mut statement = txn.prepare_cached(NAME).map_err(error)?;
            read_names(&mut statement, ids, see).map_err(error)?;
        }
        txn.commit().map_err(error)
    }

    fn scan(&mut self, see: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.walk(see, |_| Ok(()))
    }

    fn rows(&mut self, see: &mut dyn FnMut(&[u8]), each: &mut dyn FnMut(&Row)) -> Result<()> {
        self.walk(see, |row| {
            each(&decoded(row).map_err(error)?);
            Ok(())
        })
    }

    fn of_country(&mut self, country: u16) -> Result<u64> {
        let mut statement = self.connection.prepare_cached(COUNTRY).map_err(error)?;
        let count: i64 = statement
            .query_row([country], |row| row.get(0))
            .map_err(error)?;
        Ok(count.unsigned_abs())
    }

    fn by_email(&mut self, email: &str) -> Result<Option<u32>> {
        let mut statement = self.connection.prepare_cached(EMAIL).map_err(error)?;
        let mut rows = statement.query([email]).map_err(error)?;
        let row = rows.next().map_err(error)?;
        row.map(|row| row.get(0)).transpose().map_err(error)
    }

    fn answer(&mut self, question: &Question, rows: &mut dyn RowSink) -> Result<()> {
        let give = |value: ValueRef<'_>| -> Result<()> {
            match value {
                ValueRef::Text(text) => rows.row(&[Value::Bytes(text)]),
                ValueRef::Integer(number) => rows
                    .row(&[u64::try_from(number).map_or(Value::Negative(number), Value::Integer)]),
                ValueRef::Null => rows.row(&[Value::Null]),
                ValueRef::Real(_) | ValueRef::Blob(_) => rows.row(&[Value::Other]),
            }
            Ok(())
        };
        match *question {
            Question::Name { id } => self.ask(NAME, &[id.into()], give),
            Question::Id { id } => self.ask(ID, &[id.into()], give),
            Question::Count { ids: (first, last) } => {
                self.ask(COUNT_OF, &[first.into(), last.into()], give)
            }
            Question::FirstBirthDay { ids } => {
                let sql = if ids.is_some() { MIN_DOB_OF } else { MIN_DOB };
                let given = ids.map_or(vec![], |(first, last)| vec![first.into(), last.into()]);
                // SQLite has no dates, so days are stored as numbers.
                self.ask(sql, &given, |day| {
                    let day = day.as_i64_or_null().map_err(|error| failed(TITLE, error))?;
                    let day = day.map(u16::try_from).transpose();
                    give_day(day.map_err(|error| failed(TITLE, error))?, rows);
                    Ok(())
                })
            }
            Question::InCountry {
                wanted,
                country,
                states,
                limit,
            } => {
                let most = limit
                    .and_then(|most| i64::try_from(most).ok())
                    .unwrap_or(-1);
                let country = i64::from(country);
                let sql = in_country(wanted, states.is_some());
                match states {
                    None => self.ask(sql, &[country, most], give),
                    Some((first, last)) => {
                        self.ask(sql, &[country, first.into(), last.into(), most], give)
                    }
                }
            }
        }
    }
}
