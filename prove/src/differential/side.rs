//! One side of a session: a connection to one engine's database, and the outcomes of statements on it.

use std::fmt;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::Conn;

use super::{bare, BINARY, ENGINE};
use crate::pushdown::answer::{
    brief, Answer, {self},
};
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};

/// A table without rows; a session reads it to get a snapshot.
pub const EMPTY: &str = "no_rows";
/// All columns of an answer, as a count.
const ALL: usize = usize::MAX;
/// How often, and at what interval, a side checks that no transaction is prepared.
const MOST_LOOKS: u32 = 200;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// The error of a statement that the binary protocol does not support.
const NOT_BY_BINARY_PROTOCOL: u16 = 1295;

/// The outcome of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// Rows that the statement changed.
    pub changed: u64,
    /// The statement's rows or error.
    pub answer: Answer,
    /// The warnings, sorted because their order does not count.
    pub warnings: Vec<String>,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Done {
            changed, warnings, ..
        } = self;
        let answer = brief(&self.answer);
        write!(f, "{changed} changed, {answer}, warnings {warnings:?}")
    }
}

/// Returns the statement that sets a session's lock wait timeouts, in seconds, for tables and for rows.
pub fn waits(tables: u32, rows: u32) -> String {
    format!(
        "SET SESSION lock_wait_timeout = {tables}, innodb_lock_wait_timeout = {rows}, peregrine_lock_wait_timeout = {rows}"
    )
}

/// A connection to an engine's database.
pub struct Side {
    pub connection: Conn,
    engine: Engine,
}

/// Returns whether a statement's rows can have only one order.
///
/// The author's statements order by a whole key or by all shown columns, and HANDLER reads along a whole primary key.
fn has_one_order(sql: &str) -> bool {
    (sql.starts_with("SELECT") && sql.contains(" ORDER BY "))
        || (sql.starts_with("HANDLER") && sql.contains(" READ "))
}

/// Returns the name of the database with an engine's tables.
fn schema(engine: Engine) -> String {
    format!("differential_{}", engine.name())
}

/// Returns a message without the engine's name and without the row number, which depends on the order of the rows.
fn neutral(message: &str, engine: Engine) -> String {
    let message = message.replace(&schema(engine), "schema");
    let message = message.replace(engine.name(), "engine");
    match message.find(" at row ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

impl Side {
    /// Opens a side with an empty database.
    pub fn new(server: &Hosted, engine: Engine) -> Result<Self> {
        let schema = schema(engine);
        let mut connection = server.connect(None)?;
        end_prepared(&mut connection, engine)?;
        let begin = [
            format!("DROP DATABASE IF EXISTS {schema}"),
            format!("CREATE DATABASE {schema} CHARACTER SET latin1"),
            format!(
                "CREATE TABLE {schema}.{EMPTY} (n INT) ENGINE={}",
                engine.name()
            ),
        ];
        hosted::run_all(&mut connection, &begin)?;
        Self::of_connection(connection, engine)
    }

    /// Opens a side again and keeps the contents of its database.
    pub fn again(server: &Hosted, engine: Engine) -> Result<Self> {
        Self::of_connection(server.connect(None)?, engine)
    }

    fn of_connection(mut connection: Conn, engine: Engine) -> Result<Self> {
        let begin = [
            format!("USE {}", schema(engine)),
            "SET NAMES utf8mb4".to_owned(),
            // Only a prepared transaction can block a statement, if a shortened script has lost the statement that ends
            // it.
            waits(2, 1),
        ];
        hosted::run_all(&mut connection, &begin)?;
        Ok(Side { connection, engine })
    }

    pub fn ask(&mut self, sql: &str) -> Result<Answer> {
        answer::text(&mut self.connection, sql, 0)
    }

    /// Like [`Side::ask`], but also keeps the order of the rows.
    pub fn ask_in_order(&mut self, sql: &str) -> Result<Answer> {
        answer::text(&mut self.connection, sql, ALL)
    }

    /// Runs a statement by the protocol that its prefix names.
    fn ask_as_sent(&mut self, sql: &str) -> Result<Answer> {
        let ordered = if has_one_order(bare(sql)) { ALL } else { 0 };
        if sql.starts_with(BINARY) {
            match answer::prepared(&mut self.connection, bare(sql), &[], ordered)? {
                Answer::Error(NOT_BY_BINARY_PROTOCOL) => {}
                answer => return Ok(answer),
            }
        }
        answer::text(&mut self.connection, bare(sql), ordered)
    }

    pub fn run(&mut self, sql: &str) -> Result<Done> {
        let answer = self.ask_as_sent(&sql.replace(ENGINE, self.engine.name()))?;
        if let Answer::Error(_) = answer {
            return Ok(Done {
                changed: 0,
                answer,
                warnings: Vec::new(),
            });
        }
        Ok(Done {
            // An ALTER that copies the table counts its rows; one in place does not.
            changed: match bare(sql).starts_with("ALTER") {
                true => 0,
                false => self.connection.affected_rows(),
            },
            warnings: match self.connection.warnings() {
                0 => Vec::new(),
                _ => self.warnings()?,
            },
            answer,
        })
    }

    pub fn is_in_transaction(&mut self) -> Result<bool> {
        self.is_true("@@in_transaction")
    }

    /// Returns whether the session is in a transaction at REPEATABLE READ.
    pub fn has_snapshot(&mut self) -> Result<bool> {
        self.is_true("@@in_transaction AND @@tx_isolation = 'REPEATABLE-READ'")
    }

    fn is_true(&mut self, expression: &str) -> Result<bool> {
        let sql = format!("SELECT {expression}");
        let found: Option<u8> = self.connection.query_first(&sql).running(&sql)?;
        Ok(found == Some(1))
    }

    fn warnings(&mut self) -> Result<Vec<String>> {
        let sql = "SHOW WARNINGS";
        let rows: Vec<(String, u16, String)> = self.connection.query(sql).running(sql)?;
        let mut all: Vec<String> = rows
            .iter()
            // InnoDB warns so at isolation levels other than REPEATABLE READ.
            .filter(|(.., message)| !message.contains("WITH CONSISTENT SNAPSHOT was ignored"))
            .map(|(level, number, message)| {
                format!("{level} {number} {}", neutral(message, self.engine))
            })
            .collect();
        all.sort_unstable();
        Ok(all)
    }
}

/// Rolls back the transaction that an earlier script left prepared.
///
/// The end of that transaction may come after a kill, or a shortened script may lack it. The connection that prepared
/// it may still be closing, so this function waits for it.
fn end_prepared(connection: &mut Conn, engine: Engine) -> Result<()> {
    let recover = "XA RECOVER";
    for _ in 0..MOST_LOOKS {
        let prepared: Vec<(i64, i64, i64, String)> = connection.query(recover).running(recover)?;
        if !prepared.iter().any(|(.., name)| name == engine.name()) {
            return Ok(());
        }
        // The server refuses this while the connection still exists.
        let _ = connection.query_drop(format!("XA ROLLBACK '{}'", engine.name()));
        std::thread::sleep(BETWEEN_LOOKS);
    }
    let told = format!("what {} has prepared can't be rolled back", engine.name());
    Err(HarnessError::Server(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_counts_where_there_is_one() {
        assert!(has_one_order("SELECT id FROM t ORDER BY id LIMIT 3"));
        assert!(has_one_order("HANDLER t READ `PRIMARY` NEXT LIMIT 2"));
        assert!(!has_one_order("SELECT id FROM t LIMIT 3"));
        assert!(!has_one_order("HANDLER t OPEN"));
        assert!(!has_one_order("INSERT INTO t SELECT id FROM u ORDER BY id"));
    }

    #[test]
    fn messages_are_the_same_for_both_engines() {
        let of = |engine: Engine| {
            let told = format!(
                "Out of range in `differential_{}`.`t`.`a` at row 3",
                engine.name()
            );
            neutral(&told, engine)
        };
        assert_eq!(of(Engine::InnoDb), "Out of range in `schema`.`t`.`a`");
        assert_eq!(of(Engine::Peregrine), of(Engine::InnoDb));
    }
}
