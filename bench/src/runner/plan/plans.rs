//! The plan of each query on each engine.
//!
//! Speed can only be compared between engines with the same plans. So the runner records the plans and compares them
//! with the baseline's.

use mysql::prelude::Queryable;

use crate::results::record::{Plan, PlanStep};
use crate::workload::{Client, Counters, Workload};
use peregrine_harness::engines::Engine;
use peregrine_harness::error::{Result, StatementContext};

/// Returns the plans of a workload's cells that are one `SELECT`, on all engines.
///
/// The first engine is the baseline.
///
/// # Errors
/// When `EXPLAIN` fails.
pub fn explain(
    connection: &mut mysql::Conn,
    engines: &[Engine],
    workload: &Workload,
    cells: &[String],
    seed: u64,
) -> Result<Vec<Plan>> {
    let mut plans: Vec<Plan> = Vec::new();
    for cell in cells {
        let Some(statement) = sample_statement(workload, cell, seed) else {
            continue;
        };
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
                workload: workload.name.clone(),
                query: cell.clone(),
                engine: *engine,
                steps,
                same_as_baseline,
            });
        }
    }
    Ok(plans)
}

/// Returns the statement of a cell that is one `SELECT`, with parameters drawn for it, the same for every engine.
fn sample_statement(workload: &Workload, cell: &str, seed: u64) -> Option<String> {
    let [only] = workload.transactions_of(cell)[..] else {
        return None;
    };
    let counters = Counters::default();
    let mut client = Client::new(workload, &counters, None, (seed, u64::MAX), (0, 1));
    let statement = client.sample(only)?;
    let word = statement.split_whitespace().next()?;
    word.eq_ignore_ascii_case("select").then_some(statement)
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
        for shipped in crate::workload::builtin::ALL {
            let options = crate::workload::Options::default();
            let workload = Workload::read(shipped.text, shipped.name, &options).expect("read");
            let mut found = 0;
            for cell in workload.cells() {
                let Some(statement) = sample_statement(&workload, cell, 1) else {
                    continue;
                };
                found += 1;
                assert!(!statement.contains([':', '?']), "{statement}");
                assert!(!statement.contains("NULL"), "{statement}");
                assert_eq!(Some(statement), sample_statement(&workload, cell, 1));
            }
            if shipped.name == "normal" {
                assert_eq!(found, 13);
            }
        }
    }
}
