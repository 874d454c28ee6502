//! A target for tests that keeps the table in memory and answers as configured.

use std::sync::Arc;

use crate::normal::generator::{date, Row};
use crate::normal::queries::Column;
use crate::normal::{Generator, Query};
use crate::workload::{builtin, Options, Workload};
use peregrine_harness::engines::{Datum, Engine, Protocol, RowSink, Session, Statement, Value};
use peregrine_harness::error::{HarnessError, Result};

/// The way in which a fake session answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// With the right answer.
    Right,
    /// Without the last row.
    OneRowLess,
    /// With the last row twice.
    OneRowMore,
    /// With another value in the first row.
    OneValueOff,
    /// With an error.
    Fails,
    /// With the right answer to a query of `normal`, and with an error to any other statement.
    WritesFail,
    /// With the right answer, after [`SLOW`].
    Slow,
}

/// The time of a slow answer.
pub const SLOW: std::time::Duration = std::time::Duration::from_millis(8);

/// A session on the rows of a generator.
pub struct FakeSession {
    rows: Vec<Row>,
    behaviour: Behaviour,
    query: Query,
    statements: Arc<[Statement]>,
}

/// Returns the workload `normal` with `rows` rows.
pub fn workload(rows: i64) -> Workload {
    workload_with(rows, &[])
}

/// Returns the workload `normal` with `rows` rows and these parameters.
pub fn workload_with(rows: i64, parameters: &[(&str, i64)]) -> Workload {
    let sizes = [("rows", rows)];
    let set = sizes.iter().chain(parameters);
    let options = Options {
        set: set
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        ..Options::default()
    };
    let normal = builtin::ALL[0];
    Workload::read(normal.text, normal.name, &options).expect("a workload")
}

impl FakeSession {
    /// Creates a session that answers according to `behaviour`.
    pub fn new(generator: &Generator, behaviour: Behaviour) -> Self {
        let rows = (1..=generator.rows())
            .map(|id| {
                let mut row = Row::default();
                generator.row(id, &mut row);
                row
            })
            .collect();
        Self {
            rows,
            behaviour,
            query: Query::ReadFts,
            statements: Arc::new([]),
        }
    }

    fn answer(&self, given: &[u32]) -> Vec<Option<String>> {
        let by_id = matches!(
            self.query,
            Query::ReadPkPoint
                | Query::ReadPkPointIndex
                | Query::ReadPkRange
                | Query::ReadPkRangeIndex
        );
        let matching = self.rows.iter().filter(|row| match *given {
            [id] if by_id => row.id == id,
            [first, last] => (first..=last).contains(&row.id),
            [country] => u32::from(row.country_id) == country,
            [country, first, last] => {
                u32::from(row.country_id) == country
                    && (first..=last).contains(&u32::from(row.state_id))
            }
            _ => true,
        });
        if self.query == Query::ReadPkRangeIndex {
            return vec![Some(matching.count().to_string())];
        }
        if self.query.column() == Column::Date {
            let day = matching.filter_map(|row| row.birth_day).min();
            return vec![day.map(|day| {
                let (year, month, day) = date(day);
                format!("{year:04}-{month:02}-{day:02}")
            })];
        }
        matching
            .take(self.query.limit().unwrap_or(usize::MAX))
            .map(|row| {
                Some(match self.query.column() {
                    Column::Name => row.name.clone(),
                    Column::City => row.city.clone(),
                    Column::State => row.state_id.to_string(),
                    _ => row.id.to_string(),
                })
            })
            .collect()
    }
}

impl Session for FakeSession {
    fn prepare(&mut self, _: Engine, _: Protocol, statements: &Arc<[Statement]>) -> Result<()> {
        self.statements = Arc::clone(statements);
        Ok(())
    }

    fn roll_back(&mut self) -> Result<()> {
        Ok(())
    }

    fn keep_on(&mut self, _: &[usize]) -> Result<()> {
        Ok(())
    }

    fn execute(
        &mut self,
        statement: usize,
        parameters: &[Datum],
        rows: &mut dyn RowSink,
    ) -> Result<()> {
        let name = self
            .statements
            .get(statement)
            .map_or("", |s| s.name.as_str());
        // Only queries of `normal` return rows; other statements, such as those of writers, return none.
        let query = Query::parse(name).ok();
        let given: Vec<u32> = parameters
            .iter()
            .filter_map(|parameter| u32::try_from(parameter.integer()?).ok())
            .collect();
        let fails = match self.behaviour {
            Behaviour::Fails => true,
            Behaviour::WritesFail => query.is_none(),
            _ => false,
        };
        if fails {
            return Err(HarnessError::Server("failed as asked".to_owned()));
        }
        let Some(query) = query else {
            return Ok(());
        };
        self.query = query;
        let mut answer = self.answer(&given);
        // A small table may have no matching row; an invented row then serves as the extra one.
        let last = answer.last().cloned().unwrap_or(Some("5".to_owned()));
        match self.behaviour {
            Behaviour::OneRowLess if !answer.is_empty() => {
                answer.pop();
            }
            Behaviour::OneRowMore | Behaviour::OneRowLess => answer.push(last),
            Behaviour::OneValueOff => match answer.first_mut() {
                Some(first) => *first = Some("1001-01-01".to_owned()),
                None => answer.push(last),
            },
            Behaviour::Slow => std::thread::sleep(SLOW),
            Behaviour::Right | Behaviour::Fails | Behaviour::WritesFail => {}
        }
        for value in &answer {
            rows.row(&[value
                .as_ref()
                .map_or(Value::Null, |text| Value::Bytes(text.as_bytes()))]);
        }
        Ok(())
    }
}
