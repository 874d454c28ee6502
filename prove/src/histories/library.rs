//! Histories through the library.
//!
//! The database is on a simulated disk, which loses unsynced data at a crash, as a machine does that loses power.

use std::sync::Arc;

use peregrine::os::simulated::SimulatedOs;
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Durability, Error, Index, Isolation,
    Key as TableKey, Options, RowLock, RowView, Seek, Table, TableSchema, Transaction, Value,
};

use super::history::{
    first_group, Group, Key, Keys, Predicate, Version, FIRST_LIST, FIRST_PLACE, KEYS_OF_A_WINDOW,
};
use super::target::{Done, Session, Target, Trouble};
use peregrine_harness::error::{HarnessError, Result};
use peregrine_harness::level::Level;

/// The size of the buffer pool: far more than the few hot rows need.
const POOL: usize = 16 << 20;

/// Bytes of log between checkpoints: few, so that many checkpoints happen.
const LOG: u64 = 8 << 20;

/// The directory on the simulated disk.
const DIR: &str = "/histories";

/// A database on a simulated disk.
pub struct Library {
    disk: SimulatedOs,
    isolation: Isolation,
    open: Option<Open>,
    crashes: u64,
    conflicts: u64,
    seed: u64,
    options: Options,
}

#[derive(Clone)]
struct Open {
    db: Arc<Database>,
    tables: Tables,
}

#[derive(Clone)]
struct Tables {
    /// Columns id and version.
    registers: Arc<Table>,
    /// Columns id, version, and group or NULL: one row for every place, whether its row in `places` exists or not.
    homes: Arc<Table>,
    /// Columns id, window, group and version: the existing rows of places.
    places: Arc<Table>,
    /// Columns id and elements, with four bytes for each element.
    lists: Arc<Table>,
}

impl Library {
    /// Creates a database.
    ///
    /// # Errors
    /// When the engine refuses.
    pub fn new(level: Level, seed: u64) -> Result<Self> {
        Self::begun(level, seed, Options::default())
    }

    /// Creates a database with a planted fault that omits a rule of isolation.
    ///
    /// # Errors
    /// When the engine refuses.
    #[cfg(feature = "broken")]
    pub fn broken(level: Level, seed: u64, rule: peregrine::IsolationFault) -> Result<Self> {
        let options = Options {
            broken: Some(rule),
            ..Options::default()
        };
        Self::begun(level, seed, options)
    }

    fn begun(level: Level, seed: u64, options: Options) -> Result<Self> {
        let mut library = Self {
            options,
            disk: SimulatedOs::new(seed),
            isolation: match level {
                Level::ReadUncommitted | Level::ReadCommitted => Isolation::ReadCommitted,
                Level::RepeatableRead => Isolation::RepeatableRead,
                Level::Serializable => Isolation::Serializable,
            },
            open: None,
            crashes: 0,
            conflicts: 0,
            seed,
        };
        let db = library.open_database()?;
        for (name, schema) in schemas() {
            db.create_table(name, &schema).map_err(failed)?;
        }
        library.attach(db)?;
        Ok(library)
    }

    fn open_database(&self) -> Result<Database> {
        let options = Options {
            pool_bytes: POOL,
            log_bytes: LOG,
            durability: Durability::SyncAtCommit,
            // The timeout is short, because a session may wait for one that a crash has ended.
            lock_wait_timeout: std::time::Duration::from_secs(5),
            ..self.options.clone()
        };
        Database::open_on(Arc::new(self.disk.clone()), DIR, options).map_err(failed)
    }

    fn attach(&mut self, db: Database) -> Result<()> {
        let table = |name: &str| db.table(name).map_err(failed);
        let tables = Tables {
            registers: table("registers")?,
            homes: table("homes")?,
            places: table("places")?,
            lists: table("lists")?,
        };
        self.open = Some(Open {
            db: Arc::new(db),
            tables,
        });
        Ok(())
    }

    fn opened(&self) -> Result<&Open> {
        self.open
            .as_ref()
            .ok_or_else(|| HarnessError::Server("the database is closed".to_owned()))
    }

    fn conflicts_of_this_opening(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| {
            let status = open.db.status();
            status.lock_waits + status.deadlocks
        })
    }
}

fn failed(error: Error) -> HarnessError {
    HarnessError::Server(format!("the library: {error}"))
}

fn schemas() -> [(&'static str, TableSchema); 4] {
    let number = |name: &str| {
        Column::new(
            name,
            ColumnType::Int {
                bytes: 4,
                signed: false,
            },
        )
    };
    let table = |columns: Vec<Column>, indexes: Vec<Index>| TableSchema {
        columns,
        primary: Some(TableKey::new(&[0])),
        indexes,
        user: vec![],
    };
    [
        (
            "registers",
            table(vec![number("id"), number("version")], vec![]),
        ),
        (
            "homes",
            table(
                vec![number("id"), number("version"), number("group").nullable()],
                vec![],
            ),
        ),
        (
            "places",
            table(
                vec![
                    number("id"),
                    number("window"),
                    number("group"),
                    number("version"),
                ],
                vec![Index::new("by_group", &[1, 2])],
            ),
        ),
        (
            "lists",
            table(
                vec![
                    number("id"),
                    Column::new("elements", ColumnType::VarBytes { max: 1_000 }),
                ],
                vec![],
            ),
        ),
    ]
}

impl Target for Library {
    fn prepare(&mut self, window: u32, keys: Keys) -> Result<()> {
        let Open { db, tables } = self.opened()?;
        let id = |key: Key| Value::UInt(u64::from(window * KEYS_OF_A_WINDOW + key));
        let fill = || -> peregrine::Result<()> {
            let mut txn = db.begin(Isolation::ReadCommitted);
            for key in 0..keys.registers {
                txn.insert(&tables.registers, &[id(key), Value::UInt(0)])?;
            }
            for key in FIRST_PLACE..FIRST_PLACE + keys.places {
                let group = first_group(key).map(|group| Value::UInt(u64::from(group)));
                let home = group.unwrap_or(Value::Null);
                txn.insert(&tables.homes, &[id(key), Value::UInt(0), home])?;
                if let Some(group) = group {
                    let row = [
                        id(key),
                        Value::UInt(u64::from(window)),
                        group,
                        Value::UInt(0),
                    ];
                    txn.insert(&tables.places, &row)?;
                }
            }
            for key in FIRST_LIST..FIRST_LIST + keys.all_lists {
                txn.insert(&tables.lists, &[id(key), Value::Bytes(&[])])?;
            }
            txn.commit()
        };
        fill().map_err(failed)
    }

    fn session(&self, window: u32) -> Result<Box<dyn Session>> {
        let open = self.opened()?.clone();
        Ok(Box::new(LibrarySession {
            txn: open.db.begin(self.isolation),
            tables: open.tables,
            _db: open.db,
            window,
        }))
    }

    fn crash(&mut self) -> Result<()> {
        self.crashes += 1;
        // The next opening finds the data on the disk as of this moment. A commit acknowledged after it does not count,
        // because the machine has lost its power.
        let left = self.disk.crash(self.seed.wrapping_add(self.crashes));
        self.opened()?.db.stop("the machine lost its power");
        self.disk = left;
        Ok(())
    }

    fn recover(&mut self) -> Result<()> {
        self.conflicts += self.conflicts_of_this_opening();
        self.open = None;
        let db = self.open_database()?;
        self.attach(db)
    }

    fn conflicts(&self) -> Option<u64> {
        Some(self.conflicts + self.conflicts_of_this_opening())
    }
}

struct LibrarySession {
    txn: Transaction,
    tables: Tables,
    /// Keeps the database open as long as the session exists.
    _db: Arc<Database>,
    window: u32,
}

fn trouble(error: Error) -> Trouble {
    match error {
        Error::Deadlock | Error::WriteConflict | Error::LockWaitTimeout => Trouble::Refused,
        Error::Stopped(_) | Error::Io { .. } => Trouble::Gone,
        other => Trouble::Wrong(other.to_string()),
    }
}

fn number(row: &RowView<'_>, column: usize) -> peregrine::Result<Option<u32>> {
    Ok(match row.get(column)? {
        Value::UInt(number) => u32::try_from(number).ok(),
        _ => None,
    })
}

fn missing() -> Trouble {
    Trouble::Wrong("a row that is always there is not".to_owned())
}

fn elements(bytes: &[u8]) -> Vec<Version> {
    bytes
        .chunks_exact(4)
        .map(|four| Version::from_be_bytes([four[0], four[1], four[2], four[3]]))
        .collect()
}

impl LibrarySession {
    fn id(&self, key: Key) -> u32 {
        self.window * KEYS_OF_A_WINDOW + key
    }

    fn key(&self, table: &Table, key: Key) -> Done<Vec<u8>> {
        table
            .encode_key(0, &[Value::UInt(u64::from(self.id(key)))])
            .map_err(trouble)
    }

    /// Reads one row with one statement.
    fn look<R>(
        &mut self,
        table: &Arc<Table>,
        key: Key,
        lock: RowLock,
        see: impl FnOnce(RowView<'_>) -> peregrine::Result<R>,
    ) -> Done<R> {
        let key = self.key(table, key)?;
        let seen = self
            .txn
            .get_locked(table, &key, lock, see)
            .map_err(trouble)?;
        seen.ok_or_else(missing)?.map_err(trouble)
    }

    fn list(&mut self, key: Key, lock: RowLock) -> Done<Vec<Version>> {
        let table = self.tables.lists.clone();
        self.look(&table, key, lock, |row| {
            Ok(match row.get(1)? {
                Value::Bytes(bytes) => elements(bytes),
                _ => Vec::new(),
            })
        })
    }

    /// Runs `work` as a separate statement, which has its own snapshot under READ COMMITTED.
    fn statement<R>(&mut self, work: impl FnOnce(&mut Self) -> Done<R>) -> Done<R> {
        self.txn.start_statement();
        let result = work(self);
        self.txn.end_statement();
        result
    }
}

impl Session for LibrarySession {
    fn begin(&mut self) -> Done<()> {
        Ok(())
    }

    fn read(&mut self, key: Key, lock: bool) -> Done<Version> {
        let table = self.tables.registers.clone();
        let lock = if lock {
            RowLock::Exclusive
        } else {
            RowLock::None
        };
        self.statement(|s| s.look(&table, key, lock, |row| number(&row, 1)))?
            .ok_or_else(missing)
    }

    fn write(&mut self, key: Key, version: Version, blind: bool) -> Done<Version> {
        let table = self.tables.registers.clone();
        let lock = if blind {
            RowLock::None
        } else {
            RowLock::Exclusive
        };
        self.statement(|s| {
            let before = s.look(&table, key, lock, |row| number(&row, 1))?;
            let row = [
                Value::UInt(u64::from(s.id(key))),
                Value::UInt(u64::from(version)),
            ];
            let encoded = s.key(&table, key)?;
            s.txn.update(&table, &encoded, &row).map_err(trouble)?;
            before.ok_or_else(missing)
        })
    }

    fn read_list(&mut self, key: Key) -> Done<Vec<Version>> {
        self.statement(|s| s.list(key, RowLock::None))
    }

    fn append(&mut self, key: Key, version: Version) -> Done<Vec<Version>> {
        let table = self.tables.lists.clone();
        self.statement(|s| {
            let before = s.list(key, RowLock::Exclusive)?;
            let mut bytes: Vec<u8> = before.iter().flat_map(|v| v.to_be_bytes()).collect();
            bytes.extend_from_slice(&version.to_be_bytes());
            let row = [Value::UInt(u64::from(s.id(key))), Value::Bytes(&bytes)];
            let encoded = s.key(&table, key)?;
            s.txn.update(&table, &encoded, &row).map_err(trouble)?;
            Ok(before)
        })
    }

    fn place(&mut self, key: Key, version: Version, state: Option<Group>) -> Done<Version> {
        let (homes, places) = (self.tables.homes.clone(), self.tables.places.clone());
        self.statement(|s| {
            let see = |row: RowView<'_>| Ok((number(&row, 1)?, number(&row, 2)?));
            let (before, there) = s.look(&homes, key, RowLock::Exclusive, see)?;
            let before = before.ok_or_else(missing)?;
            let id = Value::UInt(u64::from(s.id(key)));
            let version = Value::UInt(u64::from(version));
            let group = state.map(|group| Value::UInt(u64::from(group)));
            let home = s.key(&homes, key)?;
            let row = [id, version, group.unwrap_or(Value::Null)];
            s.txn.update(&homes, &home, &row).map_err(trouble)?;
            let at = s.key(&places, key)?;
            let window = Value::UInt(u64::from(s.window));
            match (there, group) {
                (None, None) => Ok(()),
                (None, Some(group)) => s.txn.insert(&places, &[id, window, group, version]),
                (Some(_), None) => s.txn.delete(&places, &at),
                (Some(_), Some(group)) => s.txn.update(&places, &at, &[id, window, group, version]),
            }
            .map_err(trouble)?;
            Ok(before)
        })
    }

    fn read_place(&mut self, key: Key) -> Done<Version> {
        let table = self.tables.homes.clone();
        self.statement(|s| s.look(&table, key, RowLock::None, |row| number(&row, 1)))?
            .ok_or_else(missing)
    }

    fn scan(&mut self, predicate: Predicate) -> Done<Vec<(Key, Version)>> {
        let table = self.tables.places.clone();
        let first = self.window * KEYS_OF_A_WINDOW;
        self.statement(|s| {
            let mut found = Vec::new();
            let mut walk = || -> peregrine::Result<()> {
                let window = Value::UInt(u64::from(s.window));
                let (index, from, to) = match predicate {
                    Predicate::In(group) => {
                        let group = Value::UInt(u64::from(group));
                        let prefix = table.encode_key(1, &[window, group])?;
                        (1, prefix.clone(), prefix)
                    }
                    Predicate::Present => {
                        let key = |key| table.encode_key(0, &[Value::UInt(u64::from(key))]);
                        (0, key(first + FIRST_PLACE)?, key(first + FIRST_LIST)?)
                    }
                };
                let mut cursor = Cursor::new(&table, index, CursorOptions::default());
                cursor.set_end(&to, index == 1);
                let mut more = cursor.seek(&mut s.txn, &from, Seek::AtOrAfter)?;
                while more {
                    let row = cursor.row()?;
                    if let (Some(id), Some(version)) = (number(&row, 0)?, number(&row, 3)?) {
                        found.push((id - first, version));
                    }
                    more = cursor.next(&mut s.txn)?;
                }
                Ok(())
            };
            walk().map_err(trouble)?;
            Ok(found)
        })
    }

    fn commit(&mut self) -> Done<()> {
        self.txn.commit().map_err(trouble)
    }

    fn rollback(&mut self) -> Done<()> {
        self.txn.rollback().map_err(trouble)
    }
}
