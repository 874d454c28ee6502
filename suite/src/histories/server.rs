//! Histories through a server: every operation is a statement or a few of them; a crash is `kill -9`.

use mysql::prelude::Queryable;

use super::history::{
    first_group, Group, Key, Keys, Predicate, Version, FIRST_LIST, FIRST_PLACE, KEYS_OF_A_WINDOW,
};
use super::target::{Done, Session, Target, Trouble};
use crate::behaviour::level::Level;
use crate::error::{Result, StatementContext};
use crate::target::hosted::{self, Hosted};
use crate::target::Engine;

const SCHEMA: &str = "histories";

/// Seconds that a lock is waited for.
const LOCK_WAIT_S: u32 = 5;

/// Errors after which a transaction is to be rolled back and is nobody's fault: deadlock, lock wait
/// timeout, and a row changed since the snapshot.
const REFUSALS: [u16; 3] = [1213, 1205, 1020];

/// Tables on a private server.
pub struct Server {
    server: Hosted,
    engine: Engine,
    level: Level,
    prepare: Vec<String>,
}

impl Server {
    /// Makes the tables. `prepare` is run in every session.
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
                     replaced int unsigned not null) ENGINE={name}"
                ),
                format!(
                    "CREATE TABLE homes (id int unsigned primary key, version int unsigned not null, \
                     place tinyint unsigned) ENGINE={name}"
                ),
                format!(
                    "CREATE TABLE places (id int unsigned primary key, era int unsigned not null, \
                     place tinyint unsigned not null, version int unsigned not null, \
                     key by_place (era, place)) ENGINE={name}"
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
        })
    }

    /// The server, when all is done.
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
        Ok(Box::new(ServerSession { connection, window }))
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
}

fn trouble(error: mysql::Error) -> Trouble {
    match error {
        mysql::Error::MySqlError(error) if REFUSALS.contains(&error.code) => Trouble::Refused,
        // Shutdown in progress, connection killed.
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

    /// A statement that must change exactly one row.
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

    fn elements(&mut self, key: Key) -> Done<Vec<Version>> {
        let text: String = self.one(&format!(
            "SELECT elements FROM lists WHERE id = {}",
            self.id(key)
        ))?;
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
        let lock = if lock { " FOR UPDATE" } else { "" };
        self.one(&format!(
            "SELECT version FROM registers WHERE id = {}{lock}",
            self.id(key)
        ))
    }

    fn write(&mut self, key: Key, version: Version, _blind: bool) -> Done<Version> {
        let id = self.id(key);
        self.change(&format!(
            "UPDATE registers SET replaced = version, version = {version} WHERE id = {id}"
        ))?;
        self.one(&format!("SELECT replaced FROM registers WHERE id = {id}"))
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
        let statement = match predicate {
            Predicate::In(group) => format!(
                "SELECT id - {first}, version FROM places FORCE INDEX (by_place) \
                 WHERE era = {} AND place = {group}",
                self.window
            ),
            Predicate::Present => format!(
                "SELECT id - {first}, version FROM places FORCE INDEX (PRIMARY) \
                 WHERE id >= {} AND id < {}",
                first + FIRST_PLACE,
                first + FIRST_LIST
            ),
        };
        self.connection.query(statement).map_err(trouble)
    }

    fn commit(&mut self) -> Done<()> {
        self.run("COMMIT")
    }

    fn rollback(&mut self) -> Done<()> {
        self.run("ROLLBACK")
    }
}
