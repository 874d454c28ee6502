//! Runs a script on both engines, each in its own database, and compares the outcome of every statement.

use std::fmt;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::Conn;

use super::schema::Table;
use super::sessions::Sessions;
use super::{bare, split, BINARY, ENGINE, KILL, LOOK, STOP};
use crate::engines::hosted::{
    Hosted, {self},
};
use crate::engines::Engine;
use crate::error::{Result, StatementContext, SuiteError};
use crate::pushdown::answer::{
    brief, difference, Answer, {self},
};

/// The server's time at which each script begins, in seconds.
///
/// It advances by one second for each statement, so row versions have the same times on both engines.
const BEGINNING: u64 = 1_700_000_000;
/// After this many statements, the tables are also read by every index.
const LOOK_BY_INDEX: usize = 10;
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
    changed: u64,
    /// The statement's rows or error.
    pub answer: Answer,
    /// The warnings, sorted because their order does not count.
    warnings: Vec<String>,
}

/// A difference between the engines.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The statement's place in the script.
    pub at: usize,
    /// The description of the difference.
    pub told: String,
}

/// Counters of the work done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Played {
    /// Statements run on both engines.
    pub statements: u64,
    /// Statements that both engines refused.
    pub refused: u64,
    /// Rows that the statements changed.
    pub changed: u64,
    /// Rows that were compared.
    pub rows: u64,
    /// Indexes through which a table was read.
    pub by_index: u64,
    /// Statements that used the binary protocol.
    pub binary: u64,
    /// How often the server was killed or stopped.
    pub restarts: u64,
    /// Statements for which InnoDB's count contradicts the manual and Peregrine's follows it.
    pub by_manual: u64,
    /// Statements in scripts with several sessions.
    pub of_sessions: u64,
    /// Of these, statements that both engines refused because of another session.
    pub met_in_both: u64,
    /// Those that only InnoDB refused because of another session.
    pub met_in_innodb: u64,
    /// Those that only Peregrine refused because of another session.
    pub met_in_peregrine: u64,
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
    Err(SuiteError::Server(told))
}

/// Returns whether the counts of changed rows differ in a way in which InnoDB contradicts the manual.
///
/// ON DUPLICATE KEY UPDATE counts 0 for a row that is set to its own values; InnoDB counts 1 if it has not read the
/// whole row. REPLACE counts deleted and inserted rows; InnoDB counts 1 for a row that it finds the same.
fn is_by_manual(sql: &str, innodb: &Done, peregrine: &Done) -> bool {
    let (ours, theirs) = (peregrine.changed, innodb.changed);
    let is_counted_so = (sql.contains("ON DUPLICATE KEY UPDATE") && ours < theirs)
        || (bare(sql).starts_with("REPLACE") && ours > theirs);
    let same = (&innodb.answer, &innodb.warnings) == (&peregrine.answer, &peregrine.warnings);
    is_counted_so && same
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

/// Plays a script, and returns the first difference between the engines.
///
/// # Errors
/// When the server does not answer.
pub fn play(
    server: &mut Hosted,
    script: &[String],
    tables: &[Table],
    played: &mut Played,
) -> Result<Option<Difference>> {
    let mut sessions = Sessions::new(server, script)?;
    let has_times = script.iter().any(|sql| sql.contains("SYSTEM VERSIONING"));
    for (at, line) in script.iter().enumerate() {
        let (session, sql) = split(line);
        if has_times {
            let time = format!("SET timestamp = {}", BEGINNING + at as u64);
            sessions.run_in(session, &time)?;
        }
        let told = match sql {
            KILL | STOP => {
                match sql == KILL {
                    true => server.kill()?,
                    false => server.stop()?,
                }
                server.start_again()?;
                played.restarts += 1;
                sessions = sessions.again(server)?;
                None
            }
            LOOK => sessions.look(session, tables, played)?,
            _ => sessions.done(session, sql, played)?,
        };
        if let Some(told) = told {
            return Ok(Some(Difference { at, told }));
        }
        let is_last = at + 1 == script.len();
        if is_last {
            sessions.end()?;
        }
        let told =
            sessions.look_from_outside(tables, is_last || at % LOOK_BY_INDEX == 0, played)?;
        if let Some(told) = told {
            return Ok(Some(Difference { at, told }));
        }
    }
    Ok(None)
}

/// Counts a statement, and returns the difference between its outcomes.
pub fn unlike(sql: &str, wanted: &Done, got: &Done, played: &mut Played) -> Option<String> {
    played.statements += 1;
    played.binary += u64::from(sql.starts_with(BINARY));
    played.changed += wanted.changed;
    match &wanted.answer {
        Answer::Error(_) => played.refused += 1,
        Answer::Rows(rows, _) => played.rows += rows.len() as u64,
    }
    if is_by_manual(sql, wanted, got) {
        played.by_manual += 1;
        return None;
    }
    (wanted != got).then(|| {
        let told = format!("InnoDB: {wanted}; Peregrine: {got}");
        match (&wanted.answer, &got.answer) {
            (Answer::Rows(..), Answer::Rows(..)) if wanted.answer != got.answer => {
                format!("{told}; {}", difference(&wanted.answer, &got.answer))
            }
            _ => told,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_decides_where_it_says_something() {
        let done = |changed, rows: &[&str]| Done {
            changed,
            answer: Answer::Rows(
                rows.iter().map(|row| (*row).to_owned()).collect(),
                Vec::new(),
            ),
            warnings: Vec::new(),
        };
        let upsert = "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1";
        assert!(is_by_manual(upsert, &done(5, &[]), &done(4, &[])));
        assert!(!is_by_manual(upsert, &done(4, &[]), &done(5, &[])));
        assert!(!is_by_manual(upsert, &done(5, &["1"]), &done(4, &["2"])));
        let insert = "INSERT INTO t VALUES (1)";
        assert!(!is_by_manual(insert, &done(5, &[]), &done(4, &[])));
        let replace = "REPLACE INTO t VALUES (1)";
        assert!(is_by_manual(replace, &done(1, &[]), &done(2, &[])));
        assert!(!is_by_manual(replace, &done(2, &[]), &done(1, &[])));
    }

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
