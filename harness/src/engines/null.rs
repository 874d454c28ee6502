//! A target without a server.
//!
//! It writes every statement as for a server, and answers at once without rows. A measurement thus shows the client's
//! own work only.

use std::hint::black_box;
use std::sync::Arc;

use super::mariadb::value;
use super::{Datum, Engine, Protocol, RowSink, Session, Statement, Target};
use crate::error::{HarnessError, Result};

/// The target without a server.
#[derive(Debug, Clone, Copy)]
pub struct Null;

impl Target for Null {
    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(NullSession {
            protocol: Protocol::Text,
            statements: Arc::new([]),
            text: String::new(),
        }))
    }
}

struct NullSession {
    protocol: Protocol,
    statements: Arc<[Statement]>,
    text: String,
}

impl Session for NullSession {
    fn prepare(
        &mut self,
        _: Engine,
        protocol: Protocol,
        statements: &Arc<[Statement]>,
    ) -> Result<()> {
        self.protocol = protocol;
        self.statements = Arc::clone(statements);
        Ok(())
    }

    fn execute(
        &mut self,
        statement: usize,
        parameters: &[Datum],
        _: &mut dyn RowSink,
    ) -> Result<()> {
        let Some(asked) = self.statements.get(statement) else {
            return Err(HarnessError::Server(
                "no such statement is prepared".to_owned(),
            ));
        };
        if self.protocol == Protocol::Text || asked.is_control() {
            asked.write(parameters, &mut self.text);
            black_box(&self.text);
        } else {
            let values: Vec<mysql::Value> = parameters.iter().map(value).collect();
            black_box(&values);
        }
        Ok(())
    }

    fn roll_back(&mut self) -> Result<()> {
        Ok(())
    }

    fn keep_on(&mut self, _: &[usize]) -> Result<()> {
        Ok(())
    }
}
