//! Sends each query to the three systems and compares their answers.

use std::fmt;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::answer::{
    agree, brief, Answer, {self},
};
use super::queries::{
    Query, {self},
};
use super::{joins, tables};
use peregrine_harness::dice::Dice;
use peregrine_harness::engines::hosted::{
    Hosted, {self},
};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{HarnessError, Result, StatementContext};
use peregrine_harness::interrupt;

/// Number of queries between two batches of changes.
const BETWEEN_CHANGES: u64 = 25;
/// The comparison ends after this many differences.
const MOST_DIFFERENCES: usize = 10;
/// At least one query in this many must run inside the engine, or the comparison does not hold.
const LEAST_SHARE: u64 = 5;
/// One query in this many is a join.
const JOINS: u32 = 5;
/// As [`LEAST_SHARE`], for joins.
const LEAST_SHARE_OF_JOINS: u64 = 10;

/// The number of queries, and the seed.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// The number of queries.
    pub queries: u64,
    /// The seed of tables, queries and changes.
    pub seed: u64,
}

/// The outcome of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Queries sent to all three systems.
    pub queries: u64,
    /// Number of these queries that the engine ran itself.
    pub pushed: u64,
    /// Queries of two tables.
    pub joins: u64,
    /// Number of these joins that the engine ran itself.
    pub pushed_joins: u64,
    /// Answers that were the same error from all three systems.
    pub errors: u64,
    /// Rows of `InnoDB`'s answers.
    pub rows: u64,
    seed: u64,
    /// Queries whose answers differ.
    pub different: Vec<String>,
}

impl Outcome {
    /// Returns whether all answers were the same and the engine ran enough of the statements.
    #[must_use]
    pub fn held(&self) -> bool {
        self.different.is_empty()
            && self.queries > 0
            && self.pushed >= self.queries / LEAST_SHARE
            && self.pushed_joins >= self.joins / LEAST_SHARE_OF_JOINS
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: pushdown: {} queries asked of InnoDB and of Peregrine, run by the engine ({} of them, and {} of {} joins) and by the server, \
             as text and prepared: {} rows, {} errors, {} answers differ; seed {}",
            if self.held() { "held" } else { "NOT HELD" },
            self.queries,
            self.pushed,
            self.pushed_joins,
            self.joins,
            self.rows,
            self.errors,
            self.different.len(),
            self.seed
        )
    }
}

/// One engine's connection.
struct Side {
    connection: Conn,
}

impl Side {
    fn new(server: &Hosted, engine: Engine, filling: &[String]) -> Result<Self> {
        let schema = format!("pushdown_{}", engine.name());
        let mut connection = server.connect(None)?;
        hosted::run_all(
            &mut connection,
            &[format!("CREATE DATABASE {schema}"), format!("USE {schema}")],
        )?;
        hosted::run_all(&mut connection, &tables::definitions(engine.sql_name()))?;
        let mut side = Side { connection };
        for statement in filling {
            side.change(statement)?;
        }
        Ok(side)
    }

    /// Runs a statement and drops its rows, if any.
    fn change(&mut self, statement: &str) -> Result<()> {
        self.connection.query_drop(statement).running(statement)
    }

    fn text(&mut self, sql: &str, ordered: usize) -> Result<Answer> {
        answer::text(&mut self.connection, sql, ordered)
    }

    fn prepared(&mut self, sql: &str, constants: &[String], ordered: usize) -> Result<Answer> {
        answer::prepared(&mut self.connection, sql, constants, ordered)
    }

    fn is_pushed(&mut self, sql: &str) -> Result<bool> {
        let explain = format!("EXPLAIN {sql}");
        let plan: Vec<Row> = match self.connection.query(&explain) {
            Err(mysql::Error::MySqlError(_)) => return Ok(false),
            plan => plan.running(&explain)?,
        };
        Ok(plan
            .first()
            .and_then(|row| row.get::<String, _>("select_type"))
            .is_some_and(|how| how == "PUSHED SELECT"))
    }
}

/// Runs the comparison on a server that has just been started.
///
/// # Errors
/// When the server refuses tables or changes; [`HarnessError::Interrupted`].
pub fn run(request: &Request, server: &Hosted, mut told: impl FnMut(&str)) -> Result<Outcome> {
    interrupt::flag();
    let mut dice = Dice::new(request.seed, 0);
    let filling = tables::filling(&mut dice);
    let mut innodb = Side::new(server, Engine::InnoDb, &filling)?;
    let mut peregrine = Side::new(server, Engine::Peregrine, &filling)?;
    let mut outcome = Outcome {
        seed: request.seed,
        ..Outcome::default()
    };
    let mut within = false;
    while outcome.queries < request.queries && outcome.different.len() < MOST_DIFFERENCES {
        if interrupt::requested() {
            return Err(HarnessError::Interrupted);
        }
        if outcome.queries.is_multiple_of(BETWEEN_CHANGES) {
            // About every other batch reads its own transaction's uncommitted changes.
            let mut statements = vec![if within { "ROLLBACK" } else { "COMMIT" }.to_owned()];
            within = dice.below(2) == 0;
            if within {
                statements.push("BEGIN".to_owned());
            }
            statements.extend((0..3).map(|_| tables::change(&mut dice)));
            for statement in &statements {
                innodb.change(statement)?;
                peregrine.change(statement)?;
            }
        }
        if outcome.queries.is_multiple_of(1_000) {
            told(&format!(
                "{} of {} queries",
                outcome.queries, request.queries
            ));
        }
        let join = dice.below(JOINS) == 0;
        let query = if join {
            joins::join(&mut dice)
        } else {
            queries::query(&mut dice)
        };
        let pushed = ask(&query, &mut innodb, &mut peregrine, &mut outcome)?;
        outcome.pushed += u64::from(pushed);
        outcome.joins += u64::from(join);
        outcome.pushed_joins += u64::from(join && pushed);
        outcome.queries += 1;
    }
    Ok(outcome)
}

/// Sends a query to all systems and returns whether the engine runs it itself.
fn ask(
    query: &Query,
    innodb: &mut Side,
    peregrine: &mut Side,
    outcome: &mut Outcome,
) -> Result<bool> {
    let (sql, constants) = &query.prepared;
    let ordered = query.ordered;
    let wanted = innodb.text(&query.text, ordered)?;
    let wanted_prepared = innodb.prepared(sql, constants, ordered)?;
    let (mut all, mut all_prepared) = (None, None);
    if let Some((text, sql)) = &query.whole {
        all = Some(innodb.text(text, 0)?);
        all_prepared = Some(innodb.prepared(sql, constants, 0)?);
    }
    let pushed = peregrine.is_pushed(&query.text)?;
    match &wanted {
        Answer::Rows(rows, _) => outcome.rows += rows.len() as u64,
        Answer::Error(_) => outcome.errors += 1,
    }
    for pushdown in ["ON", "OFF"] {
        peregrine.change(&format!("SET peregrine_pushdown = {pushdown}"))?;
        let text = peregrine.text(&query.text, ordered)?;
        let prepared = peregrine.prepared(sql, constants, ordered)?;
        for (how, got, wanted, all) in [
            ("text", text, &wanted, &all),
            ("prepared", prepared, &wanted_prepared, &all_prepared),
        ] {
            if !agree(query, &got, wanted, all.as_ref()) {
                outcome.different.push(format!(
                    "{} ({how}, pushdown {pushdown}): Peregrine {}, InnoDB {}",
                    query.text,
                    brief(&got),
                    brief(wanted)
                ));
            }
        }
    }
    peregrine.change("SET peregrine_pushdown = DEFAULT")?;
    Ok(pushed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_pushes_little_does_not_hold() {
        let mut outcome = Outcome {
            queries: 100,
            pushed: 3,
            ..Outcome::default()
        };
        assert!(!outcome.held());
        outcome.pushed = 60;
        assert!(outcome.held());
        outcome.joins = 40;
        assert!(!outcome.held());
        outcome.pushed_joins = 4;
        assert!(outcome.held());
    }
}
