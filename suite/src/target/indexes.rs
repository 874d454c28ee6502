//! Which indexes a table has.

use mysql::prelude::Queryable;
use mysql::Conn;

use crate::error::{Result, StatementContext};

/// The names of a table's indexes, and their columns, of the connection's schema.
///
/// # Errors
/// When the server does not answer.
pub fn of_table(connection: &mut Conn, table: &str) -> Result<Vec<(String, String)>> {
    let query = format!(
        "SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', ') \
         FROM information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '{table}' \
         GROUP BY index_name"
    );
    connection.query(&query).running(&query)
}
