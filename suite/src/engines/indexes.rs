//! Which indexes a table has.

use mysql::prelude::Queryable;
use mysql::Conn;

use crate::error::{Result, StatementContext};

/// An index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Its columns, as a list.
    pub columns: String,
    /// The same with their directions. A reading in this order goes through the index where a hint names it, unless
    /// [`Index::has_prefix`].
    pub order: String,
    /// Whether it has only the beginning of some column: it gives rows in no column's order.
    pub has_prefix: bool,
}

/// A table's indexes, of the connection's schema.
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

/// All columns of a table, invisible ones too, as HANDLER gives them.
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
