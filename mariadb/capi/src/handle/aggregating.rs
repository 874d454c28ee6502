//! Aggregates: computed in the engine, and kept in the handle until the server asks for them.

use std::ops::Bound;

use peregrine::{
    Aggregate, Aggregated, Comparison, Condition, Group, IndexRange, OwnedValue, RowLock,
    Transaction, Value,
};

use super::{Current, Handle};
use crate::c_types::{AggregateRequest, TestRequest};
use crate::failure::{Failure, Outcome};
use crate::rows::layout::Kind;
use crate::rows::record;

/// A result, and the server's column that it is of.
pub(super) struct Answer {
    column: usize,
    aggregated: Aggregated,
}

/// The most bytes of a column that groups rows, so that it has few values.
const MOST_GROUP_BYTES: usize = 2;

/// Groups that the server has not asked for yet, and the server's column of their values.
pub(super) struct Groups {
    column: usize,
    rest: std::vec::IntoIter<Group>,
}

/// A test of a row: an operator, the engine's column, and the value to compare with.
pub(super) struct Test {
    operator: Operator,
    column: usize,
    value: OwnedValue,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operator {
    Compare(Comparison),
    IsNull,
    IsNotNull,
}

impl Test {
    fn condition(&self) -> Condition<'_> {
        match self.operator {
            Operator::Compare(how) => Condition::Compare(self.column, how, self.value.as_value()),
            Operator::IsNull => Condition::IsNull(self.column),
            Operator::IsNotNull => Condition::IsNotNull(self.column),
        }
    }
}

/// Decodes a `peregrine_operator`.
pub(crate) fn operator(number: u32) -> Outcome<Operator> {
    Ok(match number {
        0 => Operator::Compare(Comparison::Equal),
        1 => Operator::Compare(Comparison::NotEqual),
        2 => Operator::Compare(Comparison::Less),
        3 => Operator::Compare(Comparison::LessOrEqual),
        4 => Operator::Compare(Comparison::Greater),
        5 => Operator::Compare(Comparison::GreaterOrEqual),
        6 => Operator::IsNull,
        7 => Operator::IsNotNull,
        _ => return Err(Failure::argument("operator of a test")),
    })
}

impl Handle {
    /// Returns the engine's index in use.
    fn index_in_use(&self) -> Outcome<usize> {
        match self.key {
            u32::MAX => Ok(0),
            key => Ok(self.layout().key(key)?.index),
        }
    }

    /// Returns the requests in the engine's terms; `None` when a column is not stored.
    fn asked(&self, requests: &[AggregateRequest]) -> Outcome<Option<Vec<Aggregate>>> {
        let one = |request: &AggregateRequest| {
            let column = || {
                let column = self.layout().columns.get(request.column as usize);
                let column = column.ok_or_else(|| Failure::argument("column of an aggregate"))?;
                Ok::<_, Failure>(column.stored_as)
            };
            Ok(match request.kind {
                0 => Some(Aggregate::Rows),
                1 => column()?.map(Aggregate::Count),
                2 => column()?.map(Aggregate::Sum),
                3 => column()?.map(Aggregate::Min),
                4 => column()?.map(Aggregate::Max),
                _ => return Err(Failure::argument("kind of an aggregate")),
            })
        };
        requests.iter().map(one).collect()
    }

    /// Returns whether [`Handle::aggregate`] takes all of these, with the key and lock in use.
    pub fn can_aggregate(&self, requests: &[AggregateRequest]) -> Outcome<bool> {
        let index = self.index_in_use()?;
        let plain = self.reading.lock == RowLock::None && self.condition.is_none();
        let asked = self.asked(requests)?;
        Ok(plain
            && asked.is_some_and(|asked| Aggregate::are_possible(&self.table, index, &[], &asked)))
    }

    /// Sets the tests that the rows of the next aggregates must pass; false, and nothing set, when the key in use can't
    /// decide them.
    ///
    /// # Safety
    /// The values must be null or valid for their columns.
    pub unsafe fn set_tests(&mut self, requests: &[TestRequest]) -> Outcome<bool> {
        self.tests.clear();
        let mut tests = Vec::with_capacity(requests.len());
        for request in requests {
            let column = self.layout().columns.get(request.column as usize);
            let column = column.ok_or_else(|| Failure::argument("column of a test"))?;
            let operator = operator(request.operator)?;
            let Some(stored) = column.stored_as else {
                return Ok(false);
            };
            let value = match (operator, column.kind) {
                (Operator::Compare(_), Kind::Signed | Kind::Unsigned | Kind::Fixed) => {
                    if request.value.is_null() {
                        return Err(Failure::argument("value of a test"));
                    }
                    // SAFETY: not null, and valid for the column by the caller's promise; columns of these kinds have
                    // no pointer.
                    unsafe {
                        let bytes = std::slice::from_raw_parts(request.value, column.length);
                        record::value_at(column, bytes)?.to_owned()
                    }
                }
                (Operator::Compare(_), _) => return Ok(false),
                _ => OwnedValue::Null,
            };
            tests.push(Test {
                operator,
                column: stored,
                value,
            });
        }
        let index = self.index_in_use()?;
        let conditions: Vec<Condition<'_>> = tests.iter().map(Test::condition).collect();
        let can = Aggregate::are_possible(&self.table, index, &conditions, &[]);
        if can {
            self.tests = tests;
        }
        Ok(can)
    }

    /// Groups the rows of the next aggregates by a column; false, and nothing set, when the key in use can't do it, or
    /// the column may have many values.
    pub fn set_group(&mut self, column: u32) -> Outcome<bool> {
        self.group = None;
        let column = column as usize;
        let known = self.layout().columns.get(column);
        let known = known.ok_or_else(|| Failure::argument("column to group by"))?;
        let few =
            matches!(known.kind, Kind::Signed | Kind::Unsigned) && known.length <= MOST_GROUP_BYTES;
        let (Some(stored), true) = (known.stored_as, few) else {
            return Ok(false);
        };
        let index = self.index_in_use()?;
        let can = Group::is_possible(&self.table, index, stored);
        if can {
            self.group = Some(column);
        }
        Ok(can)
    }

    /// Goes to the next group, and writes its value into the column of a record; false: no group is left.
    pub fn next_group(&mut self, record: &mut [u8]) -> Outcome<bool> {
        let Some(Groups { column, rest }) = &mut self.groups else {
            return Err(Failure::argument("aggregates without groups"));
        };
        let Some(group) = rest.next() else {
            return Ok(false);
        };
        let layout = &self.shared.layout;
        let value = group.value.as_ref();
        let value = value.map_or(Value::Null, |value| value.as_value());
        record::write_column(layout, &layout.columns[*column], &value, record)?;
        for (answer, aggregated) in self.answers.iter_mut().zip(group.answers) {
            answer.aggregated = aggregated;
        }
        Ok(true)
    }

    /// Computes aggregates from a key image on, up to the end that has been set.
    ///
    /// # Safety
    /// `image` must be null or valid for the parts of `map`.
    pub unsafe fn aggregate(
        &mut self,
        transaction: &mut Transaction,
        image: *const u8,
        map: u64,
        inclusive: bool,
        requests: &[AggregateRequest],
    ) -> Outcome {
        self.current = Current::None;
        self.answers.clear();
        let end = self.next_end.take();
        let tests = std::mem::take(&mut self.tests);
        if !self.can_aggregate(requests)? {
            return Err(Failure::argument(
                "aggregates of which peregrine_can_aggregate says no",
            ));
        }
        let index = self.index_in_use()?;
        let asked = self.asked(requests)?.unwrap_or_default();
        let key = &mut self.search_key;
        let map = if image.is_null() { 0 } else { map };
        // SAFETY: by the caller's promise.
        unsafe { Self::encode(&self.table, &self.shared.layout, self.key, image, map, key)? };
        let start = match (image.is_null(), inclusive) {
            (true, _) => Bound::Unbounded,
            (false, true) => Bound::Included(&self.search_key[..]),
            (false, false) => Bound::Excluded(&self.search_key[..]),
        };
        let end = match end {
            None => Bound::Unbounded,
            Some(true) => Bound::Included(&self.end_key[..]),
            Some(false) => Bound::Excluded(&self.end_key[..]),
        };
        let range = IndexRange { index, start, end };
        let conditions: Vec<Condition<'_>> = tests.iter().map(Test::condition).collect();
        self.groups = None;
        let group = self.group.take();
        let group = group.and_then(|n| Some((n, self.layout().columns[n].stored_as?)));
        let found = match group {
            None => transaction.aggregate(&self.table, &range, &conditions, &asked)?,
            Some((column, by)) => {
                let groups =
                    transaction.aggregate_groups(&self.table, &range, &conditions, by, &asked)?;
                let rest = groups.into_iter();
                self.groups = Some(Groups { column, rest });
                // No group has been read yet.
                vec![Aggregated::Value(None); asked.len()]
            }
        };
        let answer = |(aggregated, request): (Aggregated, &AggregateRequest)| Answer {
            column: request.column as usize,
            aggregated,
        };
        self.answers
            .extend(found.into_iter().zip(requests).map(answer));
        Ok(())
    }

    fn answer(&self, n: usize) -> Outcome<&Answer> {
        let answer = self.answers.get(n);
        answer.ok_or_else(|| Failure::argument("number of an aggregate"))
    }

    /// Returns the number that an aggregate computed, and the number of values in it.
    pub fn aggregate_number(&self, n: usize) -> Outcome<(i128, u64)> {
        match self.answer(n)?.aggregated {
            Aggregated::Count(count) => Ok((count.into(), count)),
            Aggregated::Sum { sum, values } => Ok((sum, values)),
            Aggregated::Value(_) => Err(Failure::argument("an aggregate that is no number")),
        }
    }

    /// Writes the value that an aggregate computed into its column of a record; false: there is none, and the column is
    /// set to NULL if it can be.
    pub fn aggregate_value(&self, n: usize, record: &mut [u8]) -> Outcome<bool> {
        let answer = self.answer(n)?;
        let Aggregated::Value(value) = &answer.aggregated else {
            return Err(Failure::argument("an aggregate that is no value"));
        };
        let layout = self.layout();
        let borrowed = value.as_ref().map_or(Value::Null, |value| value.as_value());
        record::write_column(layout, &layout.columns[answer.column], &borrowed, record)?;
        Ok(value.is_some())
    }
}
