//! Aggregates over a range of an index, computed where the records are.
//!
//! A scan reads a leaf under its latch if the leaf's newest change is older than the reader's snapshot. If no record
//! has changed since the last such read, the leaf's zone map replaces it ([`crate::tree::LeafScan`]). The scan copies
//! any other leaf, and checks the versions of its records as a cursor does.

mod condition;
mod parallel;
mod plan;
mod row_by_row;
mod scan;

use std::ops::Bound;
use std::sync::Arc;

pub use condition::{Comparison, Condition};

use crate::error::{Error, Result};
use crate::read::mini_page::Projection;
use crate::read::options::RowLock;
use crate::row::OwnedValue;
use crate::session::transaction::Transaction;
use crate::table::key_prefix::successor;
use crate::table::open_table::{IndexId, Table};
use plan::{Plan, Totals};
use scan::{Source, Stop};

/// An aggregate over the rows of a range.
///
/// Columns are given by their numbers in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of rows.
    Rows,
    /// The number of rows whose column is not NULL.
    Count(usize),
    /// The sum of an integer column.
    Sum(usize),
    /// The least value of an integer column, or of fixed bytes of up to 8 bytes that compare with memcmp.
    Min(usize),
    /// The greatest value of such a column.
    Max(usize),
}

/// The answer to an [`Aggregate`].
#[derive(Clone, Debug, PartialEq)]
pub enum Aggregated {
    /// Of [`Aggregate::Rows`] and [`Aggregate::Count`].
    Count(u64),
    /// Of [`Aggregate::Sum`].
    Sum {
        /// The sum of the values that are not NULL.
        sum: i128,
        /// The number of these values.
        values: u64,
    },
    /// Of [`Aggregate::Min`] and [`Aggregate::Max`]; `None` if there is no value.
    Value(Option<OwnedValue>),
}

/// Rows with the same value of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The value; `None`: NULL.
    pub value: Option<OwnedValue>,
    /// The aggregates over these rows, in the order in which the caller asked for them.
    pub answers: Vec<Aggregated>,
}

/// A part of an index, between two encoded key prefixes (see [`Table::encode_key`]).
///
/// An entry starts with a prefix if its encoded key does. An included bound includes all entries that start with it, an
/// excluded bound none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexRange<'a> {
    /// The index.
    pub index: IndexId,
    /// Where the range begins.
    pub start: Bound<&'a [u8]>,
    /// Where it ends.
    pub end: Bound<&'a [u8]>,
}

impl IndexRange<'_> {
    /// All of an index.
    pub fn whole(index: IndexId) -> Self {
        IndexRange {
            index,
            start: Bound::Unbounded,
            end: Bound::Unbounded,
        }
    }

    /// The least key of the range, and the first key behind it; `None` if no key lies within.
    fn keys(&self) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        let from = match self.start {
            Bound::Unbounded => Vec::new(),
            Bound::Included(prefix) => prefix.to_vec(),
            Bound::Excluded(prefix) => successor(prefix)?,
        };
        let to = match self.end {
            Bound::Unbounded => None,
            Bound::Included(prefix) => successor(prefix),
            Bound::Excluded(prefix) => Some(prefix.to_vec()),
        };
        Some((from, to))
    }
}

impl Aggregate {
    /// Returns whether [`Transaction::aggregate`] accepts these conditions and aggregates.
    ///
    /// The index must cover their columns, and the columns must be of the types that each condition or aggregate needs.
    pub fn are_possible(
        table: &Table,
        index: IndexId,
        conditions: &[Condition<'_>],
        aggregates: &[Aggregate],
    ) -> bool {
        Plan::new(&table.layout, index, conditions, aggregates).is_ok()
    }
}

impl Group {
    /// Returns whether [`Transaction::aggregate_groups`] can group by this column.
    ///
    /// The index must cover the column, and the column must have integers, or fixed bytes of up to 8 bytes that compare
    /// with memcmp.
    pub fn is_possible(table: &Table, index: IndexId, column: usize) -> bool {
        let plan = Plan::new(&table.layout, index, &[], &[]);
        plan.and_then(|mut plan| plan.group_by(&table.layout, column))
            .is_ok()
    }
}

impl Transaction {
    /// Computes aggregates over those rows of a range of an index for which all conditions hold.
    ///
    /// Returns them in the order of `aggregates`. Reads the rows that a cursor without a lock returns: those of the
    /// transaction's snapshot. At [`crate::Isolation::Serializable`] it locks all rows of the range, and the range, as
    /// a cursor does, and reads one row at a time.
    ///
    /// Where many leaves must be read, up to [`crate::Options::scan_threads`] threads do it.
    ///
    /// # Errors
    /// `Error::Invalid` if [`Aggregate::are_possible`] returns false; those of reading pages; [`Error::Interrupted`] when
    /// killed; at SERIALIZABLE those of waiting for locks.
    pub fn aggregate(
        &mut self,
        table: &Arc<Table>,
        range: &IndexRange<'_>,
        conditions: &[Condition<'_>],
        aggregates: &[Aggregate],
    ) -> Result<Vec<Aggregated>> {
        let plan = Plan::new(&table.layout, range.index, conditions, aggregates)?;
        let totals = self.totals(table, range, &plan)?;
        Ok(plan.answers(aggregates, &totals))
    }

    /// As [`Transaction::aggregate`], for each value of the column `group` by itself, in ascending order, NULL first.
    ///
    /// Takes some hundred bytes for each value: it is for columns with few values.
    ///
    /// # Errors
    /// As [`Transaction::aggregate`], and `Error::Invalid` if [`Group::is_possible`] returns false.
    pub fn aggregate_groups(
        &mut self,
        table: &Arc<Table>,
        range: &IndexRange<'_>,
        conditions: &[Condition<'_>],
        group: usize,
        aggregates: &[Aggregate],
    ) -> Result<Vec<Group>> {
        let mut plan = Plan::new(&table.layout, range.index, conditions, aggregates)?;
        plan.group_by(&table.layout, group)?;
        let totals = self.totals(table, range, &plan)?;
        Ok(plan.groups(aggregates, &totals))
    }

    fn totals(
        &mut self,
        table: &Arc<Table>,
        range: &IndexRange<'_>,
        plan: &Plan,
    ) -> Result<Totals> {
        if self.read_lock(RowLock::None).is_some() {
            return row_by_row::by_cursor(self, table, range, plan);
        }
        self.enter_table(table)?;
        let view = self.read_view(None);
        let trees = table.trees.load_full();
        let Some((from, to)) = range.keys() else {
            return Ok(plan.nothing());
        };
        let source = Source {
            table,
            trees: &trees,
            tree: trees.index(range.index)?,
            plan,
            view,
            asked: Projection::of(table, plan.mini_page_columns()),
            stop: Stop::new(self.tree_txn.kill_handle()),
        };
        parallel::run(&self.tree_txn, &source, &self.shared.scans, from, to)
    }
}

/// The error for an aggregate that can't be computed.
fn refused(what: String) -> Error {
    Error::Invalid(format!("{what}; see Aggregate::are_possible"))
}
