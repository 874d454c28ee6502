//! The contents of a table's indexes and rows, read while no session changes them.

use mysql::prelude::Queryable;
use mysql::Conn;

use crate::pushdown::answer::{
    difference, Answer, {self},
};
use peregrine_harness::engines::indexes;
use peregrine_harness::error::{Result, StatementContext};

/// The alias under which HANDLER opens a table here; a script may have the table open under its own name.
const LOOKED_AT: &str = "looked_at";
/// The error for a statement that the session's table locks do not allow.
const TABLES_ARE_LOCKED: u16 = 1192;

/// Reads a table through each of its indexes: its rows by the entries, from both ends, and the entries themselves.
///
/// Returns the differences from a read of the rows alone.
///
/// # Errors
/// When the server does not answer.
pub fn unlike_the_rows(connection: &mut Conn, table: &str) -> Result<Vec<String>> {
    let shown = indexes::columns_of(connection, table)?;
    let rows = format!("SELECT {shown} FROM {table} USE INDEX ()");
    let all = answer::text(connection, &rows, 0)?;
    let mut unlike = Vec::new();
    for index in indexes::of_table(connection, table)? {
        let (name, columns) = (&index.name, &index.columns);
        // HANDLER uses the index that it names; no optimizer chooses another.
        for (first, next) in [("FIRST", "NEXT"), ("LAST", "PREV")] {
            let found = by_handler(connection, table, name, [first, next])?;
            let is_refused = found == Answer::Error(TABLES_ARE_LOCKED);
            if found != all && !is_refused {
                let told = difference(&all, &found);
                unlike.push(format!("{table} by {name}, {first} to end: {told}"));
            }
        }
        // The first statement reads a key's columns from the rows, the second from the entries, which need no row.
        // EXPLAIN shows `index` and `Using index`, or `ALL` if the index has only a prefix of a column.
        let rows = format!("SELECT {columns} FROM {table} USE INDEX ()");
        let entries = format!("SELECT {columns} FROM {table} FORCE INDEX (`{name}`)");
        let wanted = answer::text(connection, &rows, 0)?;
        let found = answer::text(connection, &entries, 0)?;
        if found != wanted {
            unlike.push(format!("{entries}: {}", difference(&wanted, &found)));
        }
    }
    Ok(unlike)
}

/// Returns all rows as HANDLER reads them through an index.
fn by_handler(
    connection: &mut Conn,
    table: &str,
    index: &str,
    [first, next]: [&str; 2],
) -> Result<Answer> {
    let open = format!("HANDLER {table} OPEN AS {LOOKED_AT}");
    if let refused @ Answer::Error(_) = answer::text(connection, &open, 0)? {
        return Ok(refused);
    }
    let mut found = Vec::new();
    let mut read = format!("HANDLER {LOOKED_AT} READ `{index}` {first} LIMIT 500");
    let outcome = loop {
        match answer::text(connection, &read, 0)? {
            Answer::Rows(rows, _) if rows.is_empty() => {
                found.sort_unstable();
                break Answer::Rows(found, Vec::new());
            }
            Answer::Rows(rows, _) => found.extend(rows),
            error @ Answer::Error(_) => break error,
        }
        read = format!("HANDLER {LOOKED_AT} READ `{index}` {next} LIMIT 500");
    };
    let close = format!("HANDLER {LOOKED_AT} CLOSE");
    connection.query_drop(&close).running(&close)?;
    Ok(outcome)
}
