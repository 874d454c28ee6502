//! Reads the indexes of a table.

use mysql::prelude::Queryable;
use mysql::Conn;

use crate::error::{Result, StatementContext};

/// An index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns, as a comma-separated list.
    pub columns: String,
    /// The same list with their directions.
    ///
    /// A query that orders by this list reads the index if a hint names it, unless [`Index::has_prefix`] is set.
    pub order: String,
    /// Whether some part is only a prefix of its column; the index then gives no column's order.
    pub has_prefix: bool,
}

/// Returns the indexes of a table in the connection's schema.
///
/// # Errors
/// When the server does not answer.
pub fn of_table(connection: &mut Conn, table: &str) -> Result<Vec<Index>> {
    let list = |what: &str| format!("GROUP_CONCAT({what} ORDER BY seq_in_index SEPARATOR ', ')");
    let query = format!(
        "SELECT index_name, {}, {}, SUM(sub_part IS NOT NULL) > 0 FROM information_schema.statistics \
         WHERE table_schema = DATABASE() AND table_name = '{table}' GROUP BY index_name",
        list("column_name"),
        list("CONCAT(column_name, IF(collation = 'D', ' DESC', ''))")
    );
    let rows: Vec<(String, String, String, bool)> = connection.query(&query).running(&query)?;
    let index = |(name, columns, order, has_prefix)| Index {
        name,
        columns,
        order,
        has_prefix,
    };
    Ok(rows.into_iter().map(index).collect())
}

/// Returns all columns of a table, also invisible ones, in the order of HANDLER.
///
/// # Errors
/// When the server does not answer.
pub fn columns_of(connection: &mut Conn, table: &str) -> Result<String> {
    let query = format!(
        "SELECT GROUP_CONCAT(column_name ORDER BY ordinal_position SEPARATOR ', ') FROM information_schema.columns \
         WHERE table_schema = DATABASE() AND table_name = '{table}'"
    );
    let columns: Option<String> = connection.query_first(&query).running(&query)?;
    Ok(columns.unwrap_or_default())
}
