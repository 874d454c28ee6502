//! Sessions on a MariaDB server, over its Unix socket.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Statement};

use super::placement;
use super::{Engine, Parameters, Protocol, RowSink, Session, Target, Value};
use crate::error::{Result, StatementContext, SuiteError};

/// The server that listens at a socket.
#[derive(Debug, Clone)]
pub struct MariaDb {
    socket: PathBuf,
}

/// How to connect to a private server as its administrator.
#[must_use]
pub fn options(socket: &Path) -> OptsBuilder {
    OptsBuilder::new()
        .socket(Some(socket.to_string_lossy().into_owned()))
        .user(Some("root"))
        .prefer_socket(true)
}

impl MariaDb {
    /// The server at `socket`.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_path_buf(),
        }
    }

    /// A connection for statements of administration.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn administration(&self) -> Result<Conn> {
        Conn::new(options(&self.socket)).running("connect")
    }
}

impl Target for MariaDb {
    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(MariaDbSession {
            connection: self.administration()?,
            prepared: None,
            text: String::new(),
            kept_on: Vec::new(),
        }))
    }
}

struct MariaDbSession {
    connection: Conn,
    prepared: Option<Prepared>,
    text: String,
    /// The processors that the server's thread is kept on; empty: wherever the scheduler likes.
    kept_on: Vec<usize>,
}

enum Prepared {
    /// The statement's pieces between the parameters.
    Text(Vec<String>),
    Binary(Statement),
}

impl Session for MariaDbSession {
    fn prepare(&mut self, engine: Engine, protocol: Protocol, statement: &str) -> Result<()> {
        if let Some(Prepared::Binary(old)) = self.prepared.take() {
            self.connection.close(old).running("close")?;
        }
        let schema = engine.schema();
        self.connection
            .select_db(&schema)
            .running(&format!("USE {schema}"))?;
        self.prepared = Some(match protocol {
            Protocol::Text => Prepared::Text(statement.split('?').map(str::to_owned).collect()),
            Protocol::Prepared => {
                Prepared::Binary(self.connection.prep(statement).running(statement)?)
            }
        });
        Ok(())
    }

    fn keep_on(&mut self, processors: &[usize]) -> Result<()> {
        if self.kept_on == processors {
            return Ok(());
        }
        let statement = "SELECT tid FROM information_schema.processlist WHERE id = connection_id()";
        let thread: Option<i32> = self.connection.query_first(statement).running(statement)?;
        placement::keep_on(thread, processors).map_err(|error| {
            SuiteError::Server(format!(
                "the server's thread can't be kept on a processor: {error}; use --placement free"
            ))
        })?;
        self.kept_on = processors.to_vec();
        Ok(())
    }

    fn execute(&mut self, parameters: &Parameters, rows: &mut dyn RowSink) -> Result<()> {
        let Self {
            connection,
            prepared,
            text,
            ..
        } = self;
        match prepared {
            None => Err(SuiteError::Server("no statement is prepared".to_owned())),
            Some(Prepared::Text(pieces)) => {
                text.clear();
                let mut values = parameters.values().iter();
                for piece in pieces.iter() {
                    text.push_str(piece);
                    if let Some(value) = values.next() {
                        // Writing to memory does not fail.
                        let _ = write!(text, "{value}");
                    }
                }
                let shown = || text.clone();
                let result = connection
                    .query_iter(text.as_str())
                    .map_err(|error| with_statement(error, shown()))?;
                deliver(result, rows).map_err(|error| with_statement(error, shown()))
            }
            Some(Prepared::Binary(statement)) => {
                let values: Vec<mysql::Value> = parameters
                    .values()
                    .iter()
                    .map(|value| mysql::Value::UInt(u64::from(*value)))
                    .collect();
                let shown = || format!("prepared statement with {:?}", parameters.values());
                let result = connection
                    .exec_iter(&*statement, values)
                    .map_err(|error| with_statement(error, shown()))?;
                deliver(result, rows).map_err(|error| with_statement(error, shown()))
            }
        }
    }
}

fn with_statement(error: mysql::Error, statement: String) -> SuiteError {
    SuiteError::Sql {
        statement,
        source: Box::new(error),
    }
}

fn deliver<P: mysql::prelude::Protocol>(
    result: mysql::QueryResult<'_, '_, '_, P>,
    rows: &mut dyn RowSink,
) -> std::result::Result<(), mysql::Error> {
    for row in result {
        let row = row?;
        rows.row(match row.as_ref(0) {
            Some(mysql::Value::NULL) => Value::Null,
            Some(mysql::Value::Bytes(bytes)) => Value::Bytes(bytes),
            Some(mysql::Value::UInt(number)) => Value::Integer(*number),
            Some(mysql::Value::Int(number)) => {
                u64::try_from(*number).map_or(Value::Other, Value::Integer)
            }
            Some(mysql::Value::Date(year, month, day, 0, 0, 0, 0)) => {
                Value::Date(*year, *month, *day)
            }
            _ => Value::Other,
        });
    }
    Ok(())
}
