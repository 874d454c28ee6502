//! InnoDB's answers on the same rows: if the plan makes a difference there, too, the fault is the server's.

use mysql::prelude::Queryable;
use mysql::Conn;

use super::SCHEMA;
use crate::pushdown::tables::{
    TABLES, {self},
};
use peregrine_harness::engines::{hosted, Engine};
use peregrine_harness::error::{Result, StatementContext};

/// Errors by which a judge loses its snapshot: lock wait timeout (of definitions), deadlock, a redefined table.
pub const SNAPSHOT_IS_LOST: [u16; 3] = [1205, 1213, 1412];

/// Copies the tables, as the connection's snapshot sees them, into InnoDB tables in this schema.
///
/// After that the connection uses this schema, and its snapshot is over. Returns false if the snapshot is lost, because
/// a table has been redefined.
///
/// # Errors
/// When the server does not answer, or refuses.
pub fn copies(connection: &mut Conn, schema: &str) -> Result<bool> {
    // OUTFILE does not overwrite a file, so each copy has files of its own.
    let file = |table: &str| format!("'./{SCHEMA}/{schema}-{table}.rows'");
    let each = |statement: &dyn Fn(&str) -> String| -> Vec<String> {
        TABLES.iter().map(|(table, _)| statement(table)).collect()
    };
    let written = each(&|table| {
        let file = file(table);
        format!("SELECT * FROM {SCHEMA}.{table} INTO OUTFILE {file} CHARACTER SET binary")
    });
    let taken = extra_keys(connection)
        .and_then(|keys| hosted::run_all(connection, &written).map(|()| keys));
    let is_lost = |code: u16| SNAPSHOT_IS_LOST.contains(&code);
    let keys = match taken {
        Err(error) if error.code().is_some_and(is_lost) => return Ok(false),
        other => other?,
    };
    let made = [
        "COMMIT".to_owned(),
        format!("CREATE DATABASE {schema}"),
        format!("USE {schema}"),
    ];
    hosted::run_all(connection, &made)?;
    hosted::run_all(connection, &tables::definitions(Engine::InnoDb.sql_name()))?;
    hosted::run_all(connection, &keys)?;
    let read = each(&|table| {
        let file = file(table);
        format!("LOAD DATA INFILE {file} INTO TABLE {table} CHARACTER SET binary")
    });
    hosted::run_all(connection, &read)?;
    hosted::run_all(connection, &each(&|table| format!("ANALYZE TABLE {table}")))?;
    Ok(true)
}

/// Returns statements that add the keys which writers have added to the tables.
fn extra_keys(connection: &mut Conn) -> Result<Vec<String>> {
    let mut statements = Vec::new();
    for (table, _) in TABLES {
        let show = format!("SHOW CREATE TABLE {SCHEMA}.{table}");
        let shown: Option<(String, String)> = connection.query_first(&show).running(&show)?;
        let definition = shown.map_or_else(String::new, |(_, definition)| definition);
        let key = extra_key(&definition);
        statements.extend(key.map(|key| format!("ALTER TABLE {table} ADD {key}")));
    }
    Ok(statements)
}

/// Returns the key that writers add, as it is in a table's definition.
fn extra_key(definition: &str) -> Option<&str> {
    let lines = definition.lines().map(str::trim);
    let mut lines = lines.map(|line| line.trim_end_matches(','));
    lines.find(|line| line.starts_with("KEY `extra` "))
}

/// Drops the copies, and makes the connection use the tables again.
///
/// # Errors
/// As [`copies`].
pub fn gone(connection: &mut Conn, schema: &str) -> Result<()> {
    let statements = [format!("USE {SCHEMA}"), format!("DROP DATABASE {schema}")];
    hosted::run_all(connection, &statements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_that_writers_add_is_found() {
        let without = "CREATE TABLE `t` (\n  `a` int(11),\n  KEY `a` (`a`)\n) ENGINE=InnoDB";
        assert_eq!(extra_key(without), None);
        let with = without.replace("(`a`)\n", "(`a`),\n  KEY `extra` (`d`,`a`)\n");
        assert_eq!(extra_key(&with), Some("KEY `extra` (`d`,`a`)"));
        let between = with.replace("KEY `a` (`a`),", "KEY `a` (`a`),\n  KEY `extra` (`b`,`a`),");
        assert_eq!(extra_key(&between), Some("KEY `extra` (`b`,`a`)"));
    }
}
