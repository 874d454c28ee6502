//! A store as a target of the runner: a session asks it for what the statements of `normal` mean, which their
//! names say.

use std::sync::Arc;

use super::question::Question;
use super::store::StoreReader;
use crate::engines::{Datum, Engine, Protocol, RowSink, Session, Statement};
use crate::error::{Result, SuiteError};
use crate::normal::Query;

/// A session on a store. It has no thread but that of its client, and no protocol: rows are handed over where
/// they lie.
pub struct StoreSession {
    reader: Box<dyn StoreReader>,
    /// What each statement is; `None` for one that the store does not know.
    queries: Vec<Option<Query>>,
}

impl StoreSession {
    /// A session that reads by `reader`.
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
            return Err(SuiteError::Usage(
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
