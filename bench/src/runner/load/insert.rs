//! Fills a table by `INSERT` of many rows at a time, as a dump does.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;

use crate::workload::Table;
use peregrine_harness::error::{HarnessError, PathContext, Result};

/// The maximum number of rows in a statement.
const MOST_ROWS: usize = 1_000;

/// A statement of at least this many bytes takes no further row.
///
/// Servers accept much longer ones.
const LONG_ENOUGH: usize = 512 << 10;

/// Inserts the rows of `file`, the file for `LOAD DATA`, in their order, and commits each statement by itself.
///
/// Returns the time that the statements took, without the time to build them.
///
/// # Errors
/// When the file can't be read or a statement fails.
pub fn insert(connection: &mut mysql::Conn, table: &Table, file: &Path) -> Result<Duration> {
    let opened = File::open(file).at("cannot open", file)?;
    let mut lines = BufReader::with_capacity(1 << 20, opened);
    let head = head(table);
    let mut statement = head.clone();
    let mut line = String::new();
    let mut rows = 0;
    let mut time = Duration::ZERO;
    loop {
        line.clear();
        let is_end = lines.read_line(&mut line).at("cannot read", file)? == 0;
        if rows > 0 && (is_end || rows == MOST_ROWS || statement.len() >= LONG_ENOUGH) {
            let begun = Instant::now();
            connection
                .query_drop(&statement)
                .map_err(|error| HarnessError::Sql {
                    statement: format!("{head} … ({rows} rows)"),
                    source: Box::new(error),
                })?;
            time += begun.elapsed();
            statement.truncate(head.len());
            rows = 0;
        }
        if is_end {
            return Ok(time);
        }
        if rows > 0 {
            statement.push(',');
        }
        add_row(line.strip_suffix('\n').unwrap_or(&line), &mut statement);
        rows += 1;
    }
}

fn head(table: &Table) -> String {
    let columns = table.loaded_columns();
    let columns = if columns.is_empty() {
        String::new()
    } else {
        format!(" ({})", columns.join(", "))
    };
    format!("INSERT INTO {}{columns} VALUES ", table.name)
}

/// Adds a line of a data file as a row.
///
/// Its backslash escapes mean the same in an SQL string.
fn add_row(line: &str, statement: &mut String) {
    for (place, field) in line.split('\t').enumerate() {
        statement.push(if place == 0 { '(' } else { ',' });
        if field == "\\N" {
            statement.push_str("NULL");
            continue;
        }
        statement.push('\'');
        for part in field.split_inclusive('\'') {
            statement.push_str(part);
            if part.ends_with('\'') {
                statement.push('\'');
            }
        }
        statement.push('\'');
    }
    statement.push(')');
}

#[cfg(test)]
mod tests {
    use super::*;
    use peregrine_harness::engines::Datum;

    #[test]
    fn a_line_of_a_data_file_becomes_a_row() {
        for (values, row) in [
            (vec![Datum::Integer(-5), Datum::Null], "('-5',NULL)"),
            (
                vec![
                    Datum::Text("o'clock".to_owned()),
                    Datum::Text(String::new()),
                ],
                "('o''clock','')",
            ),
            (vec![Datum::Text("''".to_owned())], "('''''')"),
            (
                vec![Datum::Text("a\tb\\c\nd".to_owned())],
                "('a\\tb\\\\c\\nd')",
            ),
            (vec![Datum::Text("\\N".to_owned())], "('\\\\N')"),
        ] {
            let mut line = String::new();
            for (place, value) in values.iter().enumerate() {
                if place > 0 {
                    line.push('\t');
                }
                value.write_field(&mut line);
            }
            let mut made = String::new();
            add_row(&line, &mut made);
            assert_eq!(made, row, "{line:?}");
        }
    }
}
