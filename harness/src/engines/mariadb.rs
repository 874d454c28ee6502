//! Sessions on a MariaDB server, or on another one with its protocol.

use std::path::Path;
use std::sync::Arc;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use super::{
    placement, Datum, Engine, Protocol, RowSink, ServerUrl, Session, Statement, Target, Value,
};
use crate::error::{HarnessError, Result, StatementContext};
use crate::server::socket;

/// A running server.
#[derive(Debug, Clone)]
pub struct MariaDb {
    options: Opts,
    /// Whether it is a private server, so the harness may pin the server's threads to processors.
    is_private: bool,
}

impl MariaDb {
    /// Returns the private server with the socket at `path`.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self {
            options: socket::options(path).into(),
            is_private: true,
        }
    }

    /// Returns the server at a URL.
    #[must_use]
    pub fn at(url: &ServerUrl) -> Self {
        Self {
            options: url.options(),
            is_private: false,
        }
    }

    /// Opens a connection for administrative statements.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn administration(&self) -> Result<Conn> {
        // The session keeps its prepared statements. The client library's cache would close all but the last few.
        let options = OptsBuilder::from_opts(self.options.clone()).stmt_cache_size(0);
        Conn::new(options).running("connect")
    }
}

impl Target for MariaDb {
    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(MariaDbSession {
            connection: self.administration()?,
            protocol: Protocol::Text,
            statements: Arc::new([]),
            prepared: Vec::new(),
            text: String::new(),
            kept_on: Vec::new(),
            is_private: self.is_private,
        }))
    }
}

struct MariaDbSession {
    connection: Conn,
    protocol: Protocol,
    statements: Arc<[Statement]>,
    /// The prepared statements, if the protocol prepares them.
    prepared: Vec<Option<mysql::Statement>>,
    text: String,
    /// The processors that the server's thread is pinned to; empty if the scheduler chooses.
    kept_on: Vec<usize>,
    is_private: bool,
}

impl Session for MariaDbSession {
    fn prepare(
        &mut self,
        engine: Engine,
        protocol: Protocol,
        statements: &Arc<[Statement]>,
    ) -> Result<()> {
        for old in self.prepared.drain(..).flatten() {
            self.connection.close(old).running("close")?;
        }
        let schema = engine.schema();
        self.connection
            .select_db(&schema)
            .running(&format!("USE {schema}"))?;
        self.protocol = protocol;
        self.statements = Arc::clone(statements);
        self.prepared.resize(statements.len(), None);
        Ok(())
    }

    fn keep_on(&mut self, processors: &[usize]) -> Result<()> {
        if !self.is_private || self.kept_on == processors {
            return Ok(());
        }
        let statement = "SELECT tid FROM information_schema.processlist WHERE id = connection_id()";
        let thread: Option<i32> = self.connection.query_first(statement).running(statement)?;
        placement::keep_on(thread, processors).map_err(|error| {
            HarnessError::Server(format!(
                "the server's thread can't be kept on a processor: {error}; use --placement free"
            ))
        })?;
        self.kept_on = processors.to_vec();
        Ok(())
    }

    fn execute(
        &mut self,
        statement: usize,
        parameters: &[Datum],
        rows: &mut dyn RowSink,
    ) -> Result<()> {
        let Self {
            connection,
            protocol,
            statements,
            prepared,
            text,
            ..
        } = self;
        let (Some(asked), Some(slot)) = (statements.get(statement), prepared.get_mut(statement))
        else {
            return Err(HarnessError::Server(
                "no such statement is prepared".to_owned(),
            ));
        };
        if *protocol == Protocol::Text || asked.is_control() {
            asked.write(parameters, text);
            let shown = || text.clone();
            let result = connection
                .query_iter(text.as_str())
                .map_err(|error| with_statement(error, shown()))?;
            return deliver(result, rows).map_err(|error| with_statement(error, shown()));
        }
        let known = match slot {
            Some(known) => known,
            None => {
                let sql = asked.sql();
                slot.insert(connection.prep(&sql).running(&sql)?)
            }
        };
        let shown = || format!("{} with {parameters:?}", asked.sql());
        let values: Vec<mysql::Value> = parameters.iter().map(value).collect();
        let result = connection
            .exec_iter(&*known, values)
            .map_err(|error| with_statement(error, shown()))?;
        deliver(result, rows).map_err(|error| with_statement(error, shown()))
    }

    fn roll_back(&mut self) -> Result<()> {
        self.connection.query_drop("ROLLBACK").running("ROLLBACK")
    }
}

/// Converts a value to the client library's type for a prepared statement.
pub(super) fn value(datum: &Datum) -> mysql::Value {
    match datum {
        Datum::Null => mysql::Value::NULL,
        Datum::Integer(number) => mysql::Value::Int(*number),
        other => {
            let mut text = String::new();
            other.write_plain(&mut text);
            mysql::Value::Bytes(text.into_bytes())
        }
    }
}

fn with_statement(error: mysql::Error, statement: String) -> HarnessError {
    HarnessError::Sql {
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
        match row.len() {
            1 => rows.row(&[seen(row.as_ref(0))]),
            columns => {
                let values: Vec<Value<'_>> = (0..columns).map(|at| seen(row.as_ref(at))).collect();
                rows.row(&values);
            }
        }
    }
    Ok(())
}

fn seen(value: Option<&mysql::Value>) -> Value<'_> {
    match value {
        Some(mysql::Value::NULL) => Value::Null,
        Some(mysql::Value::Bytes(bytes)) => Value::Bytes(bytes),
        Some(mysql::Value::UInt(number)) => Value::Integer(*number),
        Some(mysql::Value::Int(number)) => {
            u64::try_from(*number).map_or(Value::Negative(*number), Value::Integer)
        }
        Some(mysql::Value::Date(year, month, day, 0, 0, 0, 0)) => Value::Date(*year, *month, *day),
        _ => Value::Other,
    }
}
