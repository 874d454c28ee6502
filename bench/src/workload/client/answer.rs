//! The parts of a statement's answer that a client keeps.

use crate::normal::{Answers, Check, Query};
use crate::workload::step::{Ask, Pick};
use crate::workload::transaction::Transaction;
use peregrine_harness::engines::{Datum, RowSink, Value};

/// The rows of an answer that are kept.
#[derive(Debug, Default, Clone, Copy)]
enum Keeps {
    #[default]
    None,
    First,
    All,
}

/// An answer, with the rows that are kept.
#[derive(Debug, Default)]
pub(super) struct Answer<'w> {
    /// Its number of rows.
    pub(super) count: u64,
    keeps: Keeps,
    /// The rows that are kept.
    pub(super) rows: Vec<Vec<Datum>>,
    /// The check of the answer, if it is to a query on table `normal`.
    pub(super) check: Option<Check<'w>>,
}

impl<'w> Answer<'w> {
    /// Prepares for a transaction's answers, and for their check if it is a query on table `normal`.
    pub(super) fn expect(&mut self, transaction: &Transaction, answers: Option<&'w Answers>) {
        let Some(answers) = answers else { return };
        let query = Query::parse(&transaction.name).ok();
        self.check = query.map(|query| Check::new(answers, query));
    }

    /// Prepares for a statement's answer.
    pub(super) fn begin(&mut self, ask: &Ask) {
        self.count = 0;
        self.rows.clear();
        self.keeps = match ask.pick {
            _ if !ask.by.is_empty() => Keeps::All,
            _ if ask.into.is_empty() && ask.answer.is_none() => Keeps::None,
            Pick::First => Keeps::First,
            Pick::Middle => Keeps::All,
        };
        if let Some(check) = &mut self.check {
            check.begin();
        }
    }

    /// Returns one of the kept rows.
    pub(super) fn picked(&self, pick: Pick) -> &[Datum] {
        let at = match pick {
            Pick::First => 0,
            Pick::Middle => self.rows.len().saturating_sub(1) / 2,
        };
        self.rows.get(at).map_or(&[], Vec::as_slice)
    }
}

impl RowSink for Answer<'_> {
    fn row(&mut self, values: &[Value<'_>]) {
        self.count += 1;
        if let Some(check) = &mut self.check {
            check.row(values);
        }
        match self.keeps {
            Keeps::None => {}
            Keeps::First if !self.rows.is_empty() => {}
            Keeps::First | Keeps::All => self.rows.push(
                values
                    .iter()
                    .map(|value| Datum::of_answer(*value))
                    .collect(),
            ),
        }
    }
}
