//! Histories through a server: every operation is one statement or several, and a crash is `kill -9`.
//!
//! Reads choose their access path at random, because a level must hold on each of the engine's paths to a row.

use std::sync::atomic::{AtomicU32, Ordering};

use mysql::prelude::{FromRow, Queryable};

use super::history::{
    first_group, Group, Key, Keys, Predicate, Version, FIRST_LIST, FIRST_PLACE, KEYS_OF_A_WINDOW,
};
use super::target::{Done, Session, Target, Trouble};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};
use peregrine_harness::level::Level;

const SCHEMA: &str = "histories";

/// The lock wait timeout, in seconds.
const LOCK_WAIT_S: u32 = 5;

/// Errors that are no fault: deadlock, lock wait timeout, and a row changed since the snapshot.
///
/// The session then rolls its transaction back.
const REFUSALS: [u16; 3] = [1213, 1205, 1020];

/// Queries for a register, with `{}` for the column.
///
/// They read by the primary key, from a covering index, by one of several ranges, and through a join. No row has the id
/// 4294967295.
const WAYS_TO_A_REGISTER: [&str; 5] = [
    "SELECT {} FROM registers WHERE id = ?",
    "SELECT {} FROM registers FORCE INDEX (narrow) WHERE id = ?",
    "SELECT {} FROM registers WHERE id IN (?, 4294967295)",
    "SELECT {} FROM registers FORCE INDEX (narrow) WHERE id IN (?, 4294967295)",
    "SELECT r.{} FROM registers AS o JOIN registers AS r ON r.id = o.id WHERE o.id = ?",
];

/// Queries for the rows of a group.
///
/// They read by an index without the version, by a covering index, and by the primary key. `{first}`, `{from}` and
/// `{to}` are ids, and `{era}` is the window.
const WAYS_TO_A_GROUP: [&str; 3] = [
    "SELECT id - {first}, version FROM places FORCE INDEX (by_place) WHERE era = {era} AND place = ?",
    "SELECT id - {first}, version FROM places FORCE INDEX (narrow) WHERE era = {era} AND place = ?",
    "SELECT id - {first}, version FROM places FORCE INDEX (PRIMARY) WHERE id >= {from} AND id < {to} AND place = ?",
];

/// Queries for all existing rows.
const WAYS_TO_ALL: [&str; 4] = [
    "SELECT id - {first}, version FROM places FORCE INDEX (PRIMARY) WHERE id >= {from} AND id < {to}",
    "SELECT id - {first}, version FROM places FORCE INDEX (by_place) WHERE era = {era}",
    "SELECT id - {first}, version FROM places FORCE INDEX (narrow) WHERE era = {era}",
    "SELECT id - {first}, version FROM places FORCE INDEX (by_place) WHERE era = {era} AND place IN (0, 1, 2)",
];

/// The target: tables on a private server.
pub struct Server {
    server: Hosted,
    engine: Engine,
    level: Level,
    prepare: Vec<String>,
    /// The number of opened sessions.
    sessions: AtomicU32,
}

impl Server {
    /// Creates the tables; `prepare` is run in every session.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn new(server: Hosted, engine: Engine, level: Level, prepare: Vec<String>) -> Result<Self> {
        let mut connection = server.connect(None)?;
        let name = engine.sql_name();
        hosted::run_all(
            &mut connection,
            &[
                format!("CREATE DATABASE {SCHEMA}"),
                format!("USE {SCHEMA}"),
                format!(
                    "CREATE TABLE registers (id int unsigned primary key, version int unsigned not null, \
                     replaced int unsigned not null, key narrow (id, version, replaced)) ENGINE={name}"
                ),
                format!(
                    "CREATE TABLE homes (id int unsigned primary key, version int unsigned not null, \
                     place tinyint unsigned) ENGINE={name}"
                ),
                format!(
                    "CREATE TABLE places (id int unsigned primary key, era int unsigned not null, \
                     place tinyint unsigned not null, version int unsigned not null, \
                     key by_place (era, place), key narrow (era, place, version)) ENGINE={name}"
                ),
                format!(
                    "CREATE TABLE lists (id int unsigned primary key, elements varchar(1000) \
                     character set latin1 not null) ENGINE={name}"
                ),
            ],
        )?;
        Ok(Self {
            server,
            engine,
            level,
            prepare,
            sessions: AtomicU32::new(0),
        })
    }

    /// Returns the server after the run.
    #[must_use]
    pub fn into_server(self) -> Hosted {
        self.server
    }
}

impl Target for Server {
    fn prepare(&mut self, window: u32, keys: Keys) -> Result<()> {
        let mut connection = self.server.connect(Some(SCHEMA))?;
        let id = |key: Key| window * KEYS_OF_A_WINDOW + key;
        let mut rows: [Vec<String>; 4] = Default::default();
        for key in 0..keys.registers {
            rows[0].push(format!("({},0,0)", id(key)));
        }
        for key in FIRST_PLACE..FIRST_PLACE + keys.places {
            let group = first_group(key);
            let shown = group.map_or("NULL".to_owned(), |group| group.to_string());
            rows[1].push(format!("({},0,{shown})", id(key)));
            if let Some(group) = group {
                rows[2].push(format!("({},{window},{group},0)", id(key)));
            }
        }
        for key in FIRST_LIST..FIRST_LIST + keys.all_lists {
            rows[3].push(format!("({},'')", id(key)));
        }
        let tables = ["registers", "homes", "places", "lists"];
        let statements: Vec<String> = tables
            .iter()
            .zip(rows)
            .map(|(table, rows)| format!("INSERT INTO {table} VALUES {}", rows.join(",")))
            .collect();
        hosted::run_all(&mut connection, &statements)
    }

    fn session(&self, window: u32) -> Result<Box<dyn Session>> {
        let mut connection = self.server.connect(Some(SCHEMA))?;
        hosted::run_all(&mut connection, &self.prepare)?;
        let level = format!(
            "SET SESSION TRANSACTION ISOLATION LEVEL {}",
            self.level.sql()
        );
        connection.query_drop(&level).running(&level)?;
        let variable = match self.engine {
            Engine::InnoDb => Some("innodb_lock_wait_timeout"),
            Engine::MyRocks => Some("rocksdb_lock_wait_timeout"),
            Engine::Peregrine => Some("peregrine_lock_wait_timeout"),
            Engine::MyIsam | Engine::Aria | Engine::Embedded(_) | Engine::Other(_) => None,
        };
        if let Some(variable) = variable {
            let wait = format!("SET SESSION {variable} = {LOCK_WAIT_S}");
            connection.query_drop(&wait).running(&wait)?;
        }
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        if self.engine == Engine::Peregrine {
            let pushdown = ["ON", "OFF"][(number % 2) as usize];
            let setting = format!("SET SESSION peregrine_pushdown = {pushdown}");
            connection.query_drop(&setting).running(&setting)?;
        }
        Ok(Box::new(ServerSession {
            connection,
            window,
            ways: Dice::new(u64::from(number), 0),
        }))
    }

    fn crash(&mut self) -> Result<()> {
        self.server.kill()
    }

    fn recover(&mut self) -> Result<()> {
        self.server.start_again()
    }

    fn conflicts(&self) -> Option<u64> {
        None
    }
}

struct ServerSession {
    connection: mysql::Conn,
    window: u32,
    /// Chooses among the queries for a row.
    ways: Dice,
}

fn trouble(error: mysql::Error) -> Trouble {
    match error {
        mysql::Error::MySqlError(error) if REFUSALS.contains(&error.code) => Trouble::Refused,
        // The errors mean that the server shuts down, or has killed the connection.
        mysql::Error::MySqlError(error) if matches!(error.code, 1053 | 1927) => Trouble::Gone,
        mysql::Error::MySqlError(error) => Trouble::Wrong(error.to_string()),
        _ => Trouble::Gone,
    }
}

fn missing() -> Trouble {
    Trouble::Wrong("a row that is always there is not".to_owned())
}

impl ServerSession {
    fn id(&self, key: Key) -> u32 {
        self.window * KEYS_OF_A_WINDOW + key
    }

    fn run(&mut self, statement: &str) -> Done<()> {
        self.connection.query_drop(statement).map_err(trouble)
    }

    /// Runs a statement that must change exactly one row.
    fn change(&mut self, statement: &str) -> Done<()> {
        self.run(statement)?;
        match self.connection.affected_rows() {
            1 => Ok(()),
            other => Err(Trouble::Wrong(format!("{statement}: {other} rows"))),
        }
    }

    fn one<T: mysql::prelude::FromRow>(&mut self, statement: &str) -> Done<T> {
        let row: Option<T> = self.connection.query_first(statement).map_err(trouble)?;
        row.ok_or_else(missing)
    }

    /// Returns the rows of a query with one `?`, run as text or as a prepared statement.
    fn rows<T: FromRow>(&mut self, sql: &str, constant: u32) -> Done<Vec<T>> {
        let rows = match self.ways.below(2) {
            0 => {
                let text = sql.replace('?', &constant.to_string());
                self.connection.query(text)
            }
            _ => self.connection.exec(sql, (constant,)),
        };
        rows.map_err(trouble)
    }

    /// Returns the only row of such a query.
    fn row<T: FromRow>(&mut self, sql: &str, constant: u32) -> Done<T> {
        let mut rows = self.rows(sql, constant)?;
        match (rows.pop(), rows.len()) {
            (Some(row), 0) => Ok(row),
            (None, _) => Err(missing()),
            (Some(_), more) => Err(Trouble::Wrong(format!("{sql}: {} rows", more + 1))),
        }
    }

    /// Reads a column of a register, by a random query.
    fn of_register(&mut self, column: &str, key: Key) -> Done<Version> {
        let way = self.ways.below(WAYS_TO_A_REGISTER.len() as u32) as usize;
        let sql = WAYS_TO_A_REGISTER[way].replace("{}", column);
        let id = self.id(key);
        self.row(&sql, id)
    }

    fn elements(&mut self, key: Key) -> Done<Vec<Version>> {
        let id = self.id(key);
        let text: String = self.row("SELECT elements FROM lists WHERE id = ?", id)?;
        text.split_terminator(',')
            .map(|number| {
                number
                    .parse()
                    .map_err(|_| Trouble::Wrong(format!("list {key} is '{text}'")))
            })
            .collect()
    }
}

impl Session for ServerSession {
    fn begin(&mut self) -> Done<()> {
        self.run("BEGIN")
    }

    fn read(&mut self, key: Key, lock: bool) -> Done<Version> {
        if !lock {
            return self.of_register("version", key);
        }
        let id = self.id(key);
        self.row("SELECT version FROM registers WHERE id = ? FOR UPDATE", id)
    }

    fn write(&mut self, key: Key, version: Version, _blind: bool) -> Done<Version> {
        let id = self.id(key);
        self.change(&format!(
            "UPDATE registers SET replaced = version, version = {version} WHERE id = {id}"
        ))?;
        self.of_register("replaced", key)
    }

    fn read_list(&mut self, key: Key) -> Done<Vec<Version>> {
        self.elements(key)
    }

    fn append(&mut self, key: Key, version: Version) -> Done<Vec<Version>> {
        self.change(&format!(
            "UPDATE lists SET elements = concat(elements, '{version},') WHERE id = {}",
            self.id(key)
        ))?;
        let mut all = self.elements(key)?;
        match all.pop() {
            Some(last) if last == version => Ok(all),
            last => Err(Trouble::Wrong(format!(
                "list {key} ends with {last:?} after {version} was appended"
            ))),
        }
    }

    fn place(&mut self, key: Key, version: Version, state: Option<Group>) -> Done<Version> {
        let (id, window) = (self.id(key), self.window);
        let (before, there): (Version, Option<Group>) = self.one(&format!(
            "SELECT version, place FROM homes WHERE id = {id} FOR UPDATE"
        ))?;
        let shown = state.map_or("NULL".to_owned(), |group| group.to_string());
        self.change(&format!(
            "UPDATE homes SET version = {version}, place = {shown} WHERE id = {id}"
        ))?;
        match (there, state) {
            (None, None) => {}
            (None, Some(group)) => self.change(&format!(
                "INSERT INTO places VALUES ({id}, {window}, {group}, {version})"
            ))?,
            (Some(_), None) => self.change(&format!("DELETE FROM places WHERE id = {id}"))?,
            (Some(_), Some(group)) => self.change(&format!(
                "UPDATE places SET place = {group}, version = {version} WHERE id = {id}"
            ))?,
        }
        Ok(before)
    }

    fn read_place(&mut self, key: Key) -> Done<Version> {
        let id = self.id(key);
        self.one(&format!("SELECT version FROM homes WHERE id = {id}"))
    }

    fn scan(&mut self, predicate: Predicate) -> Done<Vec<(Key, Version)>> {
        let first = self.window * KEYS_OF_A_WINDOW;
        let put = |sql: &str| {
            sql.replace("{first}", &first.to_string())
                .replace("{from}", &(first + FIRST_PLACE).to_string())
                .replace("{to}", &(first + FIRST_LIST).to_string())
        };
        let era = self.window.to_string();
        match predicate {
            Predicate::In(group) => {
                let way = self.ways.below(WAYS_TO_A_GROUP.len() as u32) as usize;
                let sql = put(WAYS_TO_A_GROUP[way]).replace("{era}", &era);
                self.rows(&sql, u32::from(group))
            }
            Predicate::Present => {
                let way = self.ways.below(WAYS_TO_ALL.len() as u32) as usize;
                let sql = put(WAYS_TO_ALL[way]).replace("{era}", &era);
                self.connection.query(sql).map_err(trouble)
            }
        }
    }

    fn commit(&mut self) -> Done<()> {
        self.run("COMMIT")
    }

    fn rollback(&mut self) -> Done<()> {
        self.run("ROLLBACK")
    }
}
