//! A store as a target of the runner.
//!
//! The names of the statements of `normal` tell the session which question to ask.

use std::sync::Arc;

use super::question::Question;
use super::store::StoreReader;
use crate::normal::Query;
use peregrine_harness::engines::{Datum, Engine, Protocol, RowSink, Session, Statement};
use peregrine_harness::error::{HarnessError, Result};

/// A session on a store.
///
/// It runs on its client's thread and uses no protocol: the store passes rows without a copy.
pub struct StoreSession {
    reader: Box<dyn StoreReader>,
    /// The query of each statement; `None` for a statement that the store does not know.
    queries: Vec<Option<Query>>,
}

impl StoreSession {
    /// Creates a session that reads through `reader`.
    #[must_use]
    pub fn new(reader: Box<dyn StoreReader>) -> Self {
        Self {
            reader,
            queries: Vec::new(),
        }
    }
}

impl Session for StoreSession {
    fn prepare(&mut self, _: Engine, _: Protocol, statements: &Arc<[Statement]>) -> Result<()> {
        let queries = statements.iter().map(|one| Query::parse(&one.name).ok());
        self.queries = queries.collect();
        Ok(())
    }

    fn execute(
        &mut self,
        statement: usize,
        parameters: &[Datum],
        rows: &mut dyn RowSink,
    ) -> Result<()> {
        let query = self.queries.get(statement).copied().flatten();
        let question = query.and_then(|query| Question::of(query, parameters));
        let Some(question) = question else {
            return Err(HarnessError::Usage(
                "an embedded store answers the queries of table normal only".to_owned(),
            ));
        };
        self.reader.answer(&question, rows)
    }

    fn roll_back(&mut self) -> Result<()> {
        Ok(())
    }

    fn keep_on(&mut self, _: &[usize]) -> Result<()> {
        Ok(())
    }
}
