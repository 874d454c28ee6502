//! What InnoDB says of the same rows: where the plan makes a difference there, too, the server is wrong by itself.

use mysql::Conn;

use super::life::SCHEMA;
use crate::error::Result;
use crate::pushdown::tables::{self, TABLES};
use crate::target::hosted;
use crate::target::Engine;

/// Copies of the tables as the connection's snapshot sees them, with InnoDB, in a schema of this name. From then on
/// the connection is there, and its snapshot is over.
///
/// # Errors
/// When the server does not answer, or refuses.
pub fn copies(connection: &mut Conn, schema: &str) -> Result<()> {
    // Files of rows can't be written over: each copy has its own.
    let file = |table: &str| format!("'./{SCHEMA}/{schema}-{table}.rows'");
    let each = |statement: &dyn Fn(&str) -> String| -> Vec<String> {
        TABLES.iter().map(|(table, _)| statement(table)).collect()
    };
    let written = each(&|table| {
        let file = file(table);
        format!("SELECT * FROM {SCHEMA}.{table} INTO OUTFILE {file} CHARACTER SET binary")
    });
    hosted::run_all(connection, &written)?;
    let made = [
        "COMMIT".to_owned(),
        format!("CREATE DATABASE {schema}"),
        format!("USE {schema}"),
    ];
    hosted::run_all(connection, &made)?;
    hosted::run_all(connection, &tables::definitions(Engine::InnoDb.sql_name()))?;
    let read = each(&|table| {
        let file = file(table);
        format!("LOAD DATA INFILE {file} INTO TABLE {table} CHARACTER SET binary")
    });
    hosted::run_all(connection, &read)?;
    hosted::run_all(connection, &each(&|table| format!("ANALYZE TABLE {table}")))
}

/// The copies go; the connection is with the tables again.
///
/// # Errors
/// As [`copies`].
pub fn gone(connection: &mut Conn, schema: &str) -> Result<()> {
    let statements = [format!("USE {SCHEMA}"), format!("DROP DATABASE {schema}")];
    hosted::run_all(connection, &statements)
}

/// Rows that only one of two answers has, both in order.
pub fn only_in(one: &[String], other: &[String]) -> Vec<String> {
    let mut left: Vec<&String> = other.iter().collect();
    let mut only = Vec::new();
    for row in one {
        match left.iter().position(|there| *there == row) {
            Some(at) => {
                left.swap_remove(at);
            }
            None => only.push(row.clone()),
        }
    }
    only
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_there_twice_is_told_once_where_the_other_has_it_once() {
        let rows =
            |rows: &[&str]| -> Vec<String> { rows.iter().map(|r| (*r).to_owned()).collect() };
        assert_eq!(
            only_in(&rows(&["a", "b", "b"]), &rows(&["b", "c"])),
            rows(&["a", "b"])
        );
        assert!(only_in(&rows(&["b"]), &rows(&["b", "c"])).is_empty());
    }
}
