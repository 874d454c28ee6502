//! A writer: changes rows in transactions of all isolation levels, and sometimes the tables' definitions.

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::plan::Plan;
use super::query::{by_a_key, ids, table};
use super::shared::Shared;
use crate::pushdown::queries::put;
use crate::pushdown::tables::{
    COLUMNS, {self},
};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};

/// The errors that changes may end with: row changed since the snapshot, duplicates (of keys' names, of rows), no such
/// key, lock wait timeout, deadlock, no such savepoint, a redefined table, isolation level set within a transaction.
const EXPECTED: [u16; 10] = [1020, 1061, 1062, 1091, 1205, 1213, 1305, 1412, 1568, 1586];

/// A writer.
pub struct Writer<'a> {
    pub connection: Conn,
    pub dice: Dice,
    pub engine: Engine,
    pub shared: &'a Shared,
}

impl Writer<'_> {
    /// Writes until the life is over.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn work(&mut self) -> Result<()> {
        while self.shared.goes_on() {
            if self.dice.below(8) == 0 {
                let setting = Plan::some(&mut self.dice, self.engine, None).setting();
                self.connection.query_drop(&setting).running(&setting)?;
            }
            let statement = statement(&mut self.dice);
            self.run(&statement)?;
        }
        self.run("ROLLBACK")
    }

    fn run(&mut self, statement: &str) -> Result<()> {
        self.shared.count(1);
        match self.connection.query::<Row, _>(statement) {
            Ok(rows) if statement.starts_with("CHECK TABLE") => {
                for row in rows {
                    let told: Option<String> = row.get("Msg_text");
                    if told.as_deref() != Some("OK") {
                        self.shared
                            .wrong(format!("{statement}: {}", told.unwrap_or_default()));
                    }
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(mysql::Error::MySqlError(error)) if EXPECTED.contains(&error.code) => {
                self.shared.refused();
                Ok(())
            }
            Err(mysql::Error::MySqlError(error)) => {
                self.shared.wrong(format!("{statement}: {error}"));
                Ok(())
            }
            Err(other) => Err(other).running(statement),
        }
    }
}

/// Returns a random statement.
fn statement(dice: &mut Dice) -> String {
    match dice.below(60) {
        0..=7 => bounds(dice).to_owned(),
        8 if dice.below(8) == 0 => definition(dice),
        8..=20 => change(dice),
        21..=26 => locking(dice),
        _ => tables::change(dice),
    }
}

/// Returns a statement that begins or ends a transaction, uses a savepoint or sets the isolation level.
fn bounds(dice: &mut Dice) -> &'static str {
    const ALL: [&str; 12] = [
        "BEGIN",
        "BEGIN",
        "BEGIN",
        "COMMIT",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT s",
        "SAVEPOINT s",
        "ROLLBACK TO SAVEPOINT s",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
    ];
    ALL[dice.below(ALL.len() as u32) as usize]
}

/// Returns a condition on a key or on a few ids.
fn rows_of(dice: &mut Dice, of: &str, keys: &str) -> String {
    let (sql, constants) = match dice.below(2) {
        0 => {
            let equal = dice.below(2) == 0;
            by_a_key(dice, of, keys, equal)
        }
        _ => ids(dice, of, 40),
    };
    put(&sql, &constants)
}

/// Returns a condition on a range of ids of this width.
fn few(dice: &mut Dice, of: &str, width: i64) -> String {
    let (sql, constants) = ids(dice, of, width);
    put(&sql, &constants)
}

fn change(dice: &mut Dice) -> String {
    let ((name, keys), (other, _)) = (table(dice), table(dice));
    let rows = rows_of(dice, "", keys);
    let column = COLUMNS[6 + dice.below(6) as usize];
    let value = tables::value(dice, column.kind);
    match dice.below(9) {
        0 => format!(
            "INSERT INTO {name} VALUES {} ON DUPLICATE KEY UPDATE {} = {value}",
            tables::row(dice),
            column.name
        ),
        1 => format!(
            "REPLACE INTO {name} VALUES {}, {}",
            tables::row(dice),
            tables::row(dice)
        ),
        2 => format!(
            "UPDATE {name} SET {} = {value} WHERE {rows} LIMIT 30",
            column.name
        ),
        // Keys change, also to the old values of other keys.
        3 => format!(
            "UPDATE IGNORE {name} SET id = id + {} WHERE {rows} LIMIT 30",
            dice.below(9)
        ),
        4 => format!(
            "UPDATE {name} SET a = {}, b = b WHERE {rows} LIMIT 30",
            dice.below(20)
        ),
        5 => format!("DELETE FROM {name} WHERE {rows} LIMIT 20"),
        6 => format!(
            "INSERT IGNORE INTO {name} SELECT * FROM {other} WHERE {}",
            few(dice, "", 40)
        ),
        7 => {
            let some = rows_of(dice, "o.", keys);
            format!(
                "UPDATE {name} AS o JOIN {other} AS i ON i.id = o.r SET o.{} = {value} WHERE {some} AND {}",
                column.name,
                few(dice, "o.", 200)
            )
        }
        _ => format!(
            "DELETE o FROM {name} AS o JOIN {other} AS i ON i.id = o.id WHERE {}",
            few(dice, "o.", 20)
        ),
    }
}

fn locking(dice: &mut Dice) -> String {
    let (name, keys) = table(dice);
    let rows = rows_of(dice, "", keys);
    let how = [
        "FOR UPDATE",
        "LOCK IN SHARE MODE",
        "FOR UPDATE SKIP LOCKED",
        "LOCK IN SHARE MODE NOWAIT",
    ][dice.below(4) as usize];
    format!("SELECT id, a FROM {name} WHERE {rows} LIMIT 30 {how}")
}

/// Returns a statement that changes a definition or uses a table as a whole.
fn definition(dice: &mut Dice) -> String {
    let (name, _) = table(dice);
    let column = COLUMNS[dice.below(COLUMNS.len() as u32) as usize].name;
    match dice.below(8) {
        0 => format!("ALTER TABLE {name} FORCE"),
        1 if column != "a" => format!("ALTER TABLE {name} ADD KEY extra ({column}, a)"),
        2 => format!("ALTER TABLE {name} DROP KEY extra"),
        3 => format!("ANALYZE TABLE {name}"),
        4 => format!("OPTIMIZE TABLE {name}"),
        5 => "FLUSH TABLES".to_owned(),
        _ => format!("CHECK TABLE {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_is_complete() {
        let mut dice = Dice::new(1, 1);
        for _ in 0..3_000 {
            let statement = statement(&mut dice);
            assert!(!statement.contains(['?', '{']), "{statement}");
        }
    }
}
