//! Running a script on both engines, each in a database of its own, and comparing what comes of every statement.

use mysql::prelude::Queryable;
use mysql::{Conn, Row, Value};

use super::schema::Table;
use super::ENGINE;
use crate::error::{Result, StatementContext};
use crate::target::hosted::{self, Hosted};
use crate::target::{indexes, Engine};

/// A second of the server's clock at which each script begins; it goes on by one a statement, so that versions of rows
/// have the same times.
const BEGINNING: u64 = 1_700_000_000;
/// After so many statements the tables are read by every index, too.
const LOOK: usize = 10;

/// What came of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Done {
    /// Rows that it changed, rows that it returned, in no order, and warnings.
    Well(u64, Vec<String>, Vec<String>),
    /// The number of an error.
    Error(u16),
}

/// Where the engines differ.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The statement's place in the script.
    pub at: usize,
    /// What differs.
    pub told: String,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Played {
    /// Statements.
    pub statements: u64,
    /// Of these, refused by both.
    pub refused: u64,
    /// Rows that they changed.
    pub changed: u64,
    /// Rows that were compared.
    pub rows: u64,
    /// Statements that InnoDB answers otherwise than the manual says, and Peregrine as it says.
    pub by_manual: u64,
}

struct Side {
    connection: Conn,
    engine: Engine,
}

fn text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => value.as_sql(false),
        },
        other => other.as_sql(true),
    }
}

/// A message without what differs by the engine's name, and by the order in which rows are met.
fn neutral(message: &str, engine: Engine) -> String {
    let message = message.replace(&format!("differential_{}", engine.name()), "schema");
    let message = message.replace(engine.name(), "engine");
    match message.find(" at row ") {
        Some(end) => message[..end].to_owned(),
        None => message,
    }
}

impl Side {
    fn new(server: &Hosted, engine: Engine) -> Result<Self> {
        let schema = format!("differential_{}", engine.name());
        let mut connection = server.connect(None)?;
        let begin = [
            format!("DROP DATABASE IF EXISTS {schema}"),
            format!("CREATE DATABASE {schema} CHARACTER SET latin1"),
            format!("USE {schema}"),
            "SET NAMES utf8mb4".to_owned(),
        ];
        hosted::run_all(&mut connection, &begin)?;
        Ok(Side { connection, engine })
    }

    fn run(&mut self, sql: &str) -> Result<Done> {
        let sql = sql.replace(ENGINE, self.engine.name());
        let rows: std::result::Result<Vec<Row>, mysql::Error> = self.connection.query(&sql);
        match rows {
            Ok(rows) => {
                // A copy of a table counts its rows, a change in place does not.
                let changed = match sql.starts_with("ALTER") {
                    true => 0,
                    false => self.connection.affected_rows(),
                };
                let warnings = match self.connection.warnings() {
                    0 => Vec::new(),
                    _ => self.warnings()?,
                };
                Ok(Done::Well(changed, sorted(rows), warnings))
            }
            Err(mysql::Error::MySqlError(error)) => Ok(Done::Error(error.code)),
            Err(other) => Err(other).running(&sql),
        }
    }

    fn warnings(&mut self) -> Result<Vec<String>> {
        let sql = "SHOW WARNINGS";
        let rows: Vec<(String, u16, String)> = self.connection.query(sql).running(sql)?;
        let mut all: Vec<String> = rows
            .iter()
            .map(|(level, number, message)| {
                format!("{level} {number} {}", neutral(message, self.engine))
            })
            .collect();
        all.sort_unstable();
        Ok(all)
    }
}

fn sorted(rows: Vec<Row>) -> Vec<String> {
    let row = |row: Row| row.unwrap().iter().map(text).collect::<Vec<_>>().join("\t");
    let mut rows: Vec<String> = rows.into_iter().map(row).collect();
    rows.sort_unstable();
    rows
}

/// Whether the engines differ in what the manual decides against InnoDB: ON DUPLICATE KEY UPDATE counts a row that is set
/// to its own values as 0 rows, where InnoDB counts 1 if it has not read the whole row. REPLACE counts what it deletes and
/// what it inserts, where InnoDB counts 1 for a row that it finds the same.
fn is_by_manual(sql: &str, innodb: &Done, peregrine: &Done) -> bool {
    let (Done::Well(theirs, their_rows, warnings), Done::Well(ours, our_rows, our_warnings)) =
        (innodb, peregrine)
    else {
        return false;
    };
    let is_counted_so = (sql.contains("ON DUPLICATE KEY UPDATE") && ours < theirs)
        || (sql.starts_with("REPLACE") && ours > theirs);
    is_counted_so && (their_rows, warnings) == (our_rows, our_warnings)
}

/// In a few words.
fn brief(done: &Done) -> String {
    match done {
        Done::Error(number) => format!("error {number}"),
        Done::Well(changed, rows, warnings) => {
            let some: Vec<&str> = rows.iter().take(4).map(String::as_str).collect();
            format!(
                "{changed} changed, {} rows [{}], warnings {warnings:?}",
                rows.len(),
                some.join("; ")
            )
        }
    }
}

/// The rows that only one of the two has.
fn unlike(wanted: &[String], got: &[String]) -> String {
    let only = |these: &[String], those: &[String]| {
        let only = these.iter().filter(|row| !those.contains(row));
        only.take(2).cloned().collect::<Vec<_>>().join("; ")
    };
    format!(
        "InnoDB has {} rows, only there [{}]; Peregrine {}, only there [{}]",
        wanted.len(),
        only(wanted, got),
        got.len(),
        only(got, wanted)
    )
}

/// Plays a script. `Some`: the engines differ.
///
/// # Errors
/// When the server does not answer.
pub fn play(
    server: &Hosted,
    script: &[String],
    tables: &[Table],
    played: &mut Played,
) -> Result<Option<Difference>> {
    let mut innodb = Side::new(server, Engine::InnoDb)?;
    let mut peregrine = Side::new(server, Engine::Peregrine)?;
    let has_times = script.iter().any(|sql| sql.contains("SYSTEM VERSIONING"));
    for (at, sql) in script.iter().enumerate() {
        if has_times {
            let time = [format!("SET timestamp = {}", BEGINNING + at as u64)];
            hosted::run_all(&mut innodb.connection, &time)?;
            hosted::run_all(&mut peregrine.connection, &time)?;
        }
        let wanted = innodb.run(sql)?;
        let got = peregrine.run(sql)?;
        played.statements += 1;
        match &wanted {
            Done::Error(_) => played.refused += 1,
            Done::Well(changed, rows, _) => {
                played.changed += changed;
                played.rows += rows.len() as u64;
            }
        }
        if is_by_manual(sql, &wanted, &got) {
            played.by_manual += 1;
        } else if wanted != got {
            let told = format!("InnoDB: {}; Peregrine: {}", brief(&wanted), brief(&got));
            return Ok(Some(Difference { at, told }));
        }
        let is_last = at + 1 == script.len();
        let told = looked_at(
            &mut innodb,
            &mut peregrine,
            tables,
            is_last || at % LOOK == 0,
            played,
        )?;
        if let Some(told) = told {
            return Ok(Some(Difference { at, told }));
        }
    }
    Ok(None)
}

/// What differs in the tables.
fn looked_at(
    innodb: &mut Side,
    peregrine: &mut Side,
    tables: &[Table],
    by_index: bool,
    played: &mut Played,
) -> Result<Option<String>> {
    for table in tables {
        let (name, shown) = (&table.name, table.shown());
        let mut queries = vec![format!("SELECT {shown} FROM {name}")];
        if table.is_versioned {
            queries.push(format!("SELECT {shown} FROM {name} FOR SYSTEM_TIME ALL"));
        }
        for query in queries {
            let (wanted, got) = (innodb.run(&query)?, peregrine.run(&query)?);
            // There is no such table yet, or its columns have gone.
            let (Done::Well(_, wanted, _), Done::Well(_, got, _)) = (&wanted, &got) else {
                if wanted == got {
                    continue;
                }
                let told = format!(
                    "{query}: InnoDB {}, Peregrine {}",
                    brief(&wanted),
                    brief(&got)
                );
                return Ok(Some(told));
            };
            played.rows += wanted.len() as u64;
            if wanted != got {
                return Ok(Some(format!("{query}: {}", unlike(wanted, got))));
            }
            if !by_index || query.ends_with("ALL") {
                continue;
            }
            for (index, _) in indexes::of_table(&mut peregrine.connection, name)? {
                let query = format!("{query} FORCE INDEX (`{index}`) ORDER BY 1");
                let got = peregrine.run(&query)?;
                if !matches!(&got, Done::Well(_, got, _) if got == wanted) {
                    return Ok(Some(format!("{query}: {}", brief(&got))));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_decides_where_it_says_something() {
        let done = |changed, rows: &[&str]| {
            let rows = rows.iter().map(|row| (*row).to_owned()).collect();
            Done::Well(changed, rows, Vec::new())
        };
        let upsert = "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1";
        assert!(is_by_manual(upsert, &done(5, &[]), &done(4, &[])));
        assert!(!is_by_manual(upsert, &done(4, &[]), &done(5, &[])));
        assert!(!is_by_manual(
            "INSERT INTO t VALUES (1)",
            &done(5, &[]),
            &done(4, &[])
        ));
        assert!(!is_by_manual(upsert, &done(5, &[]), &Done::Error(1062)));
        let replace = "REPLACE INTO t VALUES (1)";
        assert!(is_by_manual(replace, &done(1, &[]), &done(2, &[])));
        assert!(!is_by_manual(replace, &done(2, &[]), &done(1, &[])));
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
