//! What the indexes of a table have, beside its rows: read when nobody changes them.

use mysql::prelude::Queryable;
use mysql::Conn;

use crate::error::{Result, StatementContext};
use crate::pushdown::answer::{self, difference, Answer};
use crate::target::indexes;

/// Reads a table through each of its indexes: rows by their entries from both ends, and what the entries themselves
/// hold. What is not as a reading of the rows by themselves has it.
///
/// # Errors
/// When the server does not answer.
pub fn unlike_the_rows(connection: &mut Conn, table: &str) -> Result<Vec<String>> {
    let all = answer::text(
        connection,
        &format!("SELECT * FROM {table} USE INDEX ()"),
        0,
    )?;
    let mut unlike = Vec::new();
    for (index, columns) in indexes::of_table(connection, table)? {
        for (first, next) in [("FIRST", "NEXT"), ("LAST", "PREV")] {
            let found = by_handler(connection, table, &index, [first, next])?;
            if found != all {
                let told = difference(&all, &found);
                unlike.push(format!("{table} by {index}, {first} to end: {told}"));
            }
        }
        // The rows that a key's columns stand in, and its entries, which need no row.
        let rows = format!("SELECT {columns} FROM {table} USE INDEX ()");
        let entries = format!("SELECT {columns} FROM {table} FORCE INDEX (`{index}`)");
        let wanted = answer::text(connection, &rows, 0)?;
        let found = answer::text(connection, &entries, 0)?;
        if found != wanted {
            unlike.push(format!("{entries}: {}", difference(&wanted, &found)));
        }
    }
    Ok(unlike)
}

/// All rows, as HANDLER reads them through an index.
fn by_handler(
    connection: &mut Conn,
    table: &str,
    index: &str,
    [first, next]: [&str; 2],
) -> Result<Answer> {
    let open = format!("HANDLER {table} OPEN");
    connection.query_drop(&open).running(&open)?;
    let mut found = Vec::new();
    let mut read = format!("HANDLER {table} READ `{index}` {first} LIMIT 500");
    let outcome = loop {
        match answer::text(connection, &read, 0)? {
            Answer::Rows(rows, _) if rows.is_empty() => {
                found.sort_unstable();
                break Answer::Rows(found, Vec::new());
            }
            Answer::Rows(rows, _) => found.extend(rows),
            error @ Answer::Error(_) => break error,
        }
        read = format!("HANDLER {table} READ `{index}` {next} LIMIT 500");
    };
    let close = format!("HANDLER {table} CLOSE");
    connection.query_drop(&close).running(&close)?;
    Ok(outcome)
}
