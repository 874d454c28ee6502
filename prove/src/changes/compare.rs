//! Runs every statement on both engines and compares the outcomes.

use std::fmt;

use mysql::prelude::Queryable;
use mysql::Conn;

use super::author::{Author, BY_COPY, ENGINE};
use super::tables;
use crate::pushdown::answer::{
    difference, Answer, {self},
};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::{indexes, Engine};
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// At least one in this many statements must succeed, or the comparison says little.
const LEAST_DONE: u64 = 3;
/// The most statements that a report lists before a difference.
const MOST_TOLD: usize = 60;

/// The number of statements, and the seed.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The number of statements.
    pub statements: u64,
    /// The seed of the rows and statements.
    pub seed: u64,
}

/// The result of the comparison.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Statements run on both engines.
    pub statements: u64,
    /// The number of those that ended with the same error on both.
    pub refused: u64,
    /// Rows that the statements changed.
    pub changed: u64,
    /// How often all tables were read and compared.
    pub looks: u64,
    /// The number of InnoDB's rows that were compared.
    pub rows: u64,
    seed: u64,
    /// The difference, then the latest statements since the last look without one.
    pub different: Vec<String>,
}

impl Outcome {
    /// Returns whether nothing differs, and enough statements succeeded to prove it.
    #[must_use]
    pub fn held(&self) -> bool {
        let done = self.statements - self.refused;
        self.different.is_empty()
            && self.looks > 0
            && self.rows > 0
            && self.changed > 0
            && done >= self.statements / LEAST_DONE
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: changes: {} statements on InnoDB and on Peregrine, {} of them refused by both, {} rows changed; all \
             tables compared {} times, {} rows, each by every index; {}; seed {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.statements,
            self.refused,
            self.changed,
            self.looks,
            self.rows,
            if self.different.is_empty() {
                "nothing differs"
            } else {
                "THERE IS A DIFFERENCE"
            },
            self.seed
        )
    }
}

/// The outcome of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    /// The number of changed rows.
    Rows(u64),
    /// The number of an error.
    Error(u16),
}

/// One engine's session.
struct Side {
    connection: Conn,
    engine: Engine,
}

impl Side {
    fn new(server: &Hosted, engine: Engine) -> Result<Self> {
        let schema = format!("changes_{}", engine.name());
        let mut connection = server.connect(None)?;
        let database = [format!("CREATE DATABASE {schema}"), format!("USE {schema}")];
        hosted::run_all(&mut connection, &database)?;
        hosted::run_all(&mut connection, &tables::definitions(engine))?;
        Ok(Side { connection, engine })
    }

    fn run(&mut self, sql: &str) -> Result<Done> {
        let by_copy = match self.engine {
            Engine::InnoDb => ", ALGORITHM=COPY",
            _ => "",
        };
        let sql = sql
            .replace(ENGINE, self.engine.name())
            .replace(BY_COPY, by_copy);
        match self.connection.query_drop(&sql) {
            Ok(()) => Ok(Done::Rows(self.connection.affected_rows())),
            Err(mysql::Error::MySqlError(error)) => Ok(Done::Error(error.code)),
            Err(other) => Err(other).running(&sql),
        }
    }

    fn ask(&mut self, sql: &str) -> Result<Answer> {
        answer::text(&mut self.connection, sql, 0)
    }
}

/// Returns whether the number of changed rows must be the same on both engines.
fn is_change(sql: &str) -> bool {
    ["INSERT", "REPLACE", "UPDATE", "DELETE"]
        .iter()
        .any(|word| sql.starts_with(word))
}

/// Runs the comparison on a server that has just been started.
///
/// # Errors
/// When the server refuses tables, or does not answer; [`HarnessError::Interrupted`].
pub fn run(request: &Request, server: &Hosted, mut told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let mut pair = Pair {
        innodb: Side::new(server, Engine::InnoDb)?,
        peregrine: Side::new(server, Engine::Peregrine)?,
        since: Vec::new(),
        outcome: Outcome {
            seed: request.seed,
            ..Outcome::default()
        },
    };
    for statement in tables::filling(&mut Dice::new(request.seed, 0)) {
        pair.run(&statement)?;
    }
    pair.look()?;
    let mut author = Author {
        dice: Dice::new(request.seed, 1),
        counter: 0,
    };
    while pair.outcome.statements < request.statements && pair.outcome.different.is_empty() {
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        let before = pair.outcome.statements / 1_000;
        for step in author.unit() {
            pair.run(&step.sql)?;
            if step.is_looked_at {
                pair.look()?;
            }
        }
        let statements = pair.outcome.statements;
        if statements / 1_000 > before {
            told(&format!(
                "{statements} of {} statements",
                request.statements
            ));
        }
    }
    pair.look()?;
    Ok(pair.outcome)
}

/// The sessions of both engines.
struct Pair {
    innodb: Side,
    peregrine: Side,
    /// Statements since the last look.
    since: Vec<String>,
    outcome: Outcome,
}

impl Pair {
    /// Runs a statement on both engines, unless they already differ.
    fn run(&mut self, sql: &str) -> Result<()> {
        if !self.outcome.different.is_empty() {
            return Ok(());
        }
        self.since.push(sql.to_owned());
        self.outcome.statements += 1;
        let wanted = self.innodb.run(sql)?;
        let got = self.peregrine.run(sql)?;
        match wanted {
            Done::Error(_) => self.outcome.refused += 1,
            Done::Rows(rows) => self.outcome.changed += rows,
        }
        let both_done = matches!((wanted, got), (Done::Rows(_), Done::Rows(_)));
        if wanted != got && (is_change(sql) || !both_done) {
            self.differs(format!("{sql}: Peregrine {got:?}, InnoDB {wanted:?}"));
        }
        Ok(())
    }

    /// Reads and compares all tables: whole rows by every index, and the indexes' own columns.
    fn look(&mut self) -> Result<()> {
        if !self.outcome.different.is_empty() {
            return Ok(());
        }
        for (table, shown) in tables::all() {
            let whole = format!("SELECT {shown} FROM {table} USE INDEX ()");
            let wanted = self.right(&whole)?;
            if let Answer::Rows(rows, _) = &wanted {
                self.outcome.rows += rows.len() as u64;
            }
            self.setting("ON")?;
            self.compare(&format!("SELECT {shown} FROM {table}"), &wanted)?;
            self.setting("OFF")?;
            self.compare(&whole, &wanted)?;
            for index in indexes::of_table(&mut self.peregrine.connection, table)? {
                let (columns, order) = (&index.columns, &index.order);
                let by = format!("FROM {table} FORCE INDEX (`{}`)", index.name);
                self.compare(&format!("SELECT {shown} {by} ORDER BY {order}"), &wanted)?;
                let entries = self.right(&format!("SELECT {columns} FROM {table} USE INDEX ()"))?;
                self.compare(&format!("SELECT {columns} {by}"), &entries)?;
            }
            self.setting("DEFAULT")?;
        }
        self.outcome.looks += 1;
        self.since.clear();
        Ok(())
    }

    fn setting(&mut self, pushdown: &str) -> Result<()> {
        let setting = format!("SET SESSION peregrine_pushdown = {pushdown}");
        hosted::run_all(&mut self.peregrine.connection, &[setting])
    }

    /// Returns InnoDB's answer.
    fn right(&mut self, query: &str) -> Result<Answer> {
        match self.innodb.ask(query)? {
            Answer::Error(number) => {
                let told = format!("{query}: InnoDB answers with error {number}");
                Err(HarnessError::Server(told))
            }
            rows => Ok(rows),
        }
    }

    fn compare(&mut self, query: &str, wanted: &Answer) -> Result<()> {
        let got = self.peregrine.ask(query)?;
        if got != *wanted {
            let told = difference(wanted, &got);
            self.differs(format!("{query}: {told}"));
        }
        Ok(())
    }

    fn differs(&mut self, told: String) {
        // After the first difference the tables are not the same, so later ones say nothing.
        if self.outcome.different.is_empty() {
            self.outcome.different.push(told);
            let first = self.since.len().saturating_sub(MOST_TOLD);
            let latest = self.since[first..].iter();
            self.outcome
                .different
                .extend(latest.map(|sql| format!("  after {sql}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_little_does_not_hold() {
        let mut outcome = Outcome {
            statements: 100,
            refused: 90,
            changed: 5,
            looks: 1,
            rows: 7,
            ..Outcome::default()
        };
        assert!(!outcome.held());
        outcome.refused = 50;
        assert!(outcome.held());
        outcome.looks = 0;
        assert!(!outcome.held());
        outcome.looks = 1;
        outcome.different.push("a row".to_owned());
        assert!(!outcome.held());
    }

    #[test]
    fn only_changes_are_compared_by_their_rows() {
        assert!(is_change("UPDATE IGNORE plain SET a = 1"));
        assert!(!is_change("ALTER TABLE plain FORCE"));
    }
}
