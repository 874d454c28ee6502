//! What the indexes of a table have, beside its rows: read when nobody changes them.

use mysql::prelude::Queryable;
use mysql::Conn;

use crate::engines::indexes;
use crate::error::{Result, StatementContext};
use crate::pushdown::answer::{
    difference, Answer, {self},
};

/// By what name HANDLER has a table open here: a script may have it open by its own.
const LOOKED_AT: &str = "looked_at";
/// The error of what tables that the session has locked do not allow.
const TABLES_ARE_LOCKED: u16 = 1192;

/// Reads a table through each of its indexes: rows by their entries from both ends, and what the entries themselves
/// hold. What is not as a reading of the rows by themselves has it.
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
        // HANDLER goes by the index that it names, which no optimizer decides.
        for (first, next) in [("FIRST", "NEXT"), ("LAST", "PREV")] {
            let found = by_handler(connection, table, name, [first, next])?;
            let is_refused = found == Answer::Error(TABLES_ARE_LOCKED);
            if found != all && !is_refused {
                let told = difference(&all, &found);
                unlike.push(format!("{table} by {name}, {first} to end: {told}"));
            }
        }
        // The rows that a key's columns stand in, and its entries, which need no row. EXPLAIN: `index`, `Using index`
        // (where the index has only the beginning of a column: `ALL`).
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

/// All rows, as HANDLER reads them through an index.
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
