//! How the server means to execute each query on each engine.
//!
//! Speed can only be compared between engines when the plans are the same, so they are taken down
//! and compared with the baseline's.

use mysql::prelude::Queryable;

use crate::error::{Result, StatementContext};
use crate::normal::queries::Dice;
use crate::normal::Query;
use crate::results::record::{Plan, PlanStep};
use crate::target::Engine;

/// Asks for the plans of all queries on all engines; the first engine is the baseline.
///
/// # Errors
/// When `EXPLAIN` fails.
pub fn explain(
    connection: &mut mysql::Conn,
    engines: &[Engine],
    queries: &[Query],
    rows: u32,
    seed: u64,
) -> Result<Vec<Plan>> {
    let mut plans: Vec<Plan> = Vec::new();
    for query in queries {
        let statement = sample_statement(*query, rows, seed);
        let mut baseline: Option<Vec<PlanStep>> = None;
        for engine in engines {
            let schema = engine.schema();
            connection
                .select_db(&schema)
                .running(&format!("USE {schema}"))?;
            let steps = steps(connection, &statement)?;
            let same_as_baseline = baseline.as_ref().map(|expected| {
                expected.len() == steps.len()
                    && expected.iter().zip(&steps).all(|(a, b)| a.reads_like(b))
            });
            if baseline.is_none() {
                baseline = Some(steps.clone());
            }
            plans.push(Plan {
                query: *query,
                engine: *engine,
                steps,
                same_as_baseline,
            });
        }
    }
    Ok(plans)
}

/// The query with parameters drawn for it, the same for every engine.
fn sample_statement(query: Query, rows: u32, seed: u64) -> String {
    let parameters = query.draw(&mut Dice::new(seed, u64::MAX), rows);
    let mut statement = String::new();
    let mut values = parameters.values().iter();
    for piece in query.statement().split('?') {
        statement.push_str(piece);
        if let Some(value) = values.next() {
            statement.push_str(&value.to_string());
        }
    }
    statement
}

fn steps(connection: &mut mysql::Conn, statement: &str) -> Result<Vec<PlanStep>> {
    let statement = format!("EXPLAIN {statement}");
    let rows: Vec<mysql::Row> = connection.query(&statement).running(&statement)?;
    let text = |row: &mysql::Row, column: &str| -> Option<String> {
        row.get::<Option<String>, _>(column).flatten()
    };
    Ok(rows
        .iter()
        .map(|row| PlanStep {
            access: text(row, "type"),
            key: text(row, "key"),
            key_length: text(row, "key_len"),
            rows: text(row, "rows"),
            extra: text(row, "Extra"),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_statements_have_all_their_parameters() {
        for query in Query::ALL {
            let statement = sample_statement(query, 1_000, 1);
            assert!(!statement.contains('?'), "{statement}");
            assert_eq!(statement, sample_statement(query, 1_000, 1));
        }
    }
}
