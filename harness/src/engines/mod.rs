//! The targets of a workload: sessions that prepare statements and execute them many times.
//!
//! The runner knows only the traits here. [`mariadb`] implements them over the client library, and tests implement them
//! with a configurable fake.

pub mod datum;
pub mod embedded;
pub mod engine;
pub mod hosted;
pub mod indexes;
pub mod mariadb;
pub mod null;
pub mod placement;
pub mod server_url;
pub mod settings;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::Result;
pub use datum::Datum;
pub use embedded::Embedded;
pub use engine::Engine;
pub use placement::Placement;
pub use server_url::ServerUrl;

/// The protocol between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Sends the whole statement as text each time; values come back as text.
    Text,
    /// Prepares a statement once and executes it with parameters; values come back in binary form.
    Prepared,
}

impl Protocol {
    /// Returns its name in options and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Prepared => "prepared",
        }
    }
}

/// One value of a result row, as the protocol delivers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// SQL NULL.
    Null,
    /// A string, or any value in the text protocol.
    Bytes(&'a [u8]),
    /// An integer in the binary protocol.
    Integer(u64),
    /// An integer below zero in the binary protocol.
    Negative(i64),
    /// A date in the binary protocol: year, month, day.
    Date(u16, u8, u8),
    /// Any other value; no query returns one.
    Other,
}

/// Takes the rows of an answer as they arrive.
pub trait RowSink {
    /// Takes the columns of the next row.
    fn row(&mut self, values: &[Value<'_>]);
}

/// A statement with places for parameters.
///
/// Targets without SQL recognize a statement of the workload by its name, and do its work themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The name of its transaction, and its number there if the transaction has several.
    pub name: String,
    /// The pieces of SQL between the parameters; there is one piece more than there are parameters.
    pub pieces: Vec<String>,
}

impl Statement {
    /// Creates the statement `sql`, with `?` for parameters.
    #[must_use]
    pub fn new(name: &str, sql: &str) -> Self {
        Self {
            name: name.to_owned(),
            pieces: sql.split('?').map(str::to_owned).collect(),
        }
    }

    /// Returns the number of parameters.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.pieces.len().saturating_sub(1)
    }

    /// Returns the statement with `?` for its parameters.
    #[must_use]
    pub fn sql(&self) -> String {
        self.pieces.join("?")
    }

    /// Replaces `text` by the statement with these values.
    pub fn write(&self, parameters: &[Datum], text: &mut String) {
        text.clear();
        let mut values = parameters.iter();
        let mut pieces = self.pieces.iter();
        text.push_str(pieces.next().map_or("", String::as_str));
        for piece in pieces {
            values.next().unwrap_or(&Datum::Null).write_sql(text);
            text.push_str(piece);
        }
    }

    /// Returns whether the statement neither reads nor changes rows.
    ///
    /// It begins or ends a transaction, sets something or alters a table. Servers can't prepare such a statement, or
    /// gain nothing by it.
    #[must_use]
    pub fn is_control(&self) -> bool {
        let first = self.pieces.first().map_or("", String::as_str);
        let word = first.split_whitespace().next().unwrap_or_default();
        !ROWS.iter().any(|rows| word.eq_ignore_ascii_case(rows))
    }
}

/// The first words of statements that read or change rows.
const ROWS: [&str; 7] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "CALL",
];

/// One connection.
pub trait Session: Send {
    /// Prepares the session to execute `statements` on the engine's tables.
    ///
    /// # Errors
    /// When the target refuses.
    fn prepare(
        &mut self,
        engine: Engine,
        protocol: Protocol,
        statements: &Arc<[Statement]>,
    ) -> Result<()>;

    /// Executes the statement with this number, with one value for each parameter, and passes every row to `rows`.
    ///
    /// # Errors
    /// When the statement fails, or the connection.
    fn execute(
        &mut self,
        statement: usize,
        parameters: &[Datum],
        rows: &mut dyn RowSink,
    ) -> Result<()>;

    /// Rolls back the open transaction, if there is one.
    ///
    /// # Errors
    /// When the connection fails.
    fn roll_back(&mut self) -> Result<()>;

    /// Pins the target's thread for this session to these processors, if it has such a thread.
    ///
    /// # Errors
    /// When the operating system refuses.
    fn keep_on(&mut self, processors: &[usize]) -> Result<()>;
}

/// A target that sessions can be opened on.
pub trait Target: Sync {
    /// Opens a session.
    ///
    /// # Errors
    /// When the target refuses.
    fn connect(&self) -> Result<Box<dyn Session>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_take_their_values_in_order() {
        let statement = Statement::new("one", "SELECT a FROM t WHERE b = ? AND c > ?");
        assert_eq!(statement.parameters(), 2);
        let mut text = "left over".to_owned();
        let values = [Datum::Integer(1), Datum::Text("o'clock".to_owned())];
        statement.write(&values, &mut text);
        assert_eq!(text, "SELECT a FROM t WHERE b = 1 AND c > 'o''clock'");
        statement.write(&values[..1], &mut text);
        assert_eq!(text, "SELECT a FROM t WHERE b = 1 AND c > NULL");
        assert_eq!(statement.sql(), "SELECT a FROM t WHERE b = ? AND c > ?");
        assert!(!statement.is_control());
        assert!(Statement::new("", " begin").is_control());
    }
}
