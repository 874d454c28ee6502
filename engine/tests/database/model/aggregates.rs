//! Aggregates over ranges of every index, compared with the model.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use peregrine::{
    Aggregate, Aggregated, ColumnType, Comparison, Condition, Error, Group, IndexRange, OwnedValue,
    Table, TableSchema, Transaction, Value,
};
use rand::rngs::StdRng;
use rand::Rng;

use super::World;
use crate::tables::schemas::{self, key_order, Row};

/// An end of a range as values of the first parts of a key, and whether rows with these values are included.
type End = Option<(Row, bool)>;

impl World {
    /// Computes and compares all aggregates of a random range of an index, whose rows are `sorted`.
    pub(super) fn aggregates(
        &mut self,
        txn: &mut Transaction,
        table: &Arc<Table>,
        schema: &TableSchema,
        index: usize,
        sorted: &[(&Vec<u8>, &Row)],
    ) {
        let parts = match index {
            0 => schema.primary.as_ref().map_or(&[][..], |key| &key.parts),
            n => &schema.indexes[n - 1].parts,
        };
        let mut ends: [End; 2] = [None, None];
        for end in &mut ends {
            if !parts.is_empty() && self.rng.random_bool(0.6) {
                let row = if self.rng.random_bool(0.5) && !sorted.is_empty() {
                    sorted[self.rng.random_range(0..sorted.len())].1.clone()
                } else {
                    schemas::row(&mut self.rng, schema)
                };
                *end = Some((row, self.rng.random_bool(0.5)));
            }
        }
        let count = self.rng.random_range(0..=parts.len());
        let encode = |end: &End| {
            end.as_ref().map(|(row, inclusive)| {
                let values: Vec<Value<'_>> = parts[..count]
                    .iter()
                    .map(|p| row[p.column].as_value())
                    .collect();
                (table.encode_key(index, &values).unwrap(), *inclusive)
            })
        };
        let encoded = [encode(&ends[0]), encode(&ends[1])];
        let bound = |end: &'_ Option<(Vec<u8>, bool)>| match end {
            None => Bound::Unbounded,
            Some((key, true)) => Bound::Included(key.clone()),
            Some((key, false)) => Bound::Excluded(key.clone()),
        };
        let (start, end) = (bound(&encoded[0]), bound(&encoded[1]));
        let range = IndexRange {
            index,
            start: start.as_ref().map(|key| &key[..]),
            end: end.as_ref().map(|key| &key[..]),
        };
        let inside = |row: &Row| {
            let side = |end: &End, outside: Ordering| match end {
                None => true,
                Some((at, inclusive)) => match key_order(schema, &parts[..count], row, at) {
                    Ordering::Equal => *inclusive,
                    other => other != outside,
                },
            };
            side(&ends[0], Ordering::Less) && side(&ends[1], Ordering::Greater)
        };
        let rows: Vec<&Row> = sorted
            .iter()
            .map(|(_, row)| *row)
            .filter(|r| inside(r))
            .collect();

        let mut asked = vec![Aggregate::Rows];
        for column in 0..schema.columns.len() {
            for aggregate in [
                Aggregate::Count(column),
                Aggregate::Sum(column),
                Aggregate::Min(column),
                Aggregate::Max(column),
            ] {
                let can = Aggregate::are_possible(table, index, &[], &[aggregate]);
                assert_eq!(
                    can,
                    is_possible(table, schema, index, aggregate),
                    "{aggregate:?}"
                );
                if !can {
                    let refused = txn.aggregate(table, &range, &[], &[aggregate]);
                    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
                } else if self.rng.random_bool(0.5) {
                    asked.push(aggregate);
                }
            }
        }
        let limits: Vec<Row> = (0..3)
            .map(|_| schemas::row(&mut self.rng, schema))
            .collect();
        let mut conditions = vec![];
        for limit in &limits {
            let column = self.rng.random_range(0..schema.columns.len());
            let condition = condition(&mut self.rng, column, &limit[column]);
            let can = Aggregate::are_possible(table, index, &[condition], &[]);
            let ordered = Aggregate::Min(column);
            let simple = !matches!(condition, Condition::Compare(..));
            let decided = is_possible(table, schema, index, ordered)
                || simple && table.index_covers(index, column);
            assert_eq!(can, decided, "{condition:?}");
            if can && self.rng.random_bool(0.4) {
                conditions.push(condition);
            }
        }
        let hold = |row: &&Row| conditions.iter().all(|condition| holds(condition, row));
        let rows: Vec<&Row> = rows.into_iter().filter(hold).collect();
        let got = txn.aggregate(table, &range, &conditions, &asked).unwrap();
        assert_eq!(got.len(), asked.len());
        for (aggregate, got) in asked.iter().zip(got) {
            assert_eq!(
                got,
                answer(*aggregate, &rows),
                "{aggregate:?} of {range:?} where {conditions:?}"
            );
        }
        let column = self.rng.random_range(0..schema.columns.len());
        let can = Group::is_possible(table, index, column);
        let ordered = Aggregate::Min(column);
        assert_eq!(can, is_possible(table, schema, index, ordered));
        let groups = txn.aggregate_groups(table, &range, &conditions, column, &asked);
        match can {
            true => assert_eq!(
                groups.unwrap(),
                grouped(column, &asked, &rows),
                "{asked:?} of {range:?} where {conditions:?} by {column}"
            ),
            false => assert!(matches!(groups, Err(Error::Invalid(_))), "{groups:?}"),
        }
    }
}

/// Returns the results of plain loops over the rows of each value of a column, NULL first.
fn grouped(column: usize, asked: &[Aggregate], rows: &[&Row]) -> Vec<Group> {
    let mut rows = rows.to_vec();
    let null_first = |a: &OwnedValue, b: &OwnedValue| match (a, b) {
        (OwnedValue::Null, OwnedValue::Null) => Ordering::Equal,
        (OwnedValue::Null, _) => Ordering::Less,
        (_, OwnedValue::Null) => Ordering::Greater,
        (a, b) => order(a, b),
    };
    rows.sort_by(|a, b| null_first(&a[column], &b[column]));
    let groups = rows.chunk_by(|a, b| a[column] == b[column]);
    groups
        .map(|rows| Group {
            value: Some(rows[0][column].clone()).filter(|value| *value != OwnedValue::Null),
            answers: asked.iter().map(|asked| answer(*asked, rows)).collect(),
        })
        .collect()
}

/// Returns a random condition on a column, which compares it with a value.
pub(crate) fn condition<'a>(
    rng: &mut StdRng,
    column: usize,
    value: &'a OwnedValue,
) -> Condition<'a> {
    use Comparison::*;
    let all = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual];
    match rng.random_range(0..8) {
        6 => Condition::IsNull(column),
        7 => Condition::IsNotNull(column),
        n => Condition::Compare(column, all[n], value.as_value()),
    }
}

/// Returns whether a condition holds for a row.
pub(crate) fn holds(condition: &Condition<'_>, row: &Row) -> bool {
    let (column, comparison, value) = match *condition {
        Condition::IsNull(column) => return row[column] == OwnedValue::Null,
        Condition::IsNotNull(column) => return row[column] != OwnedValue::Null,
        Condition::Compare(column, comparison, value) => (column, comparison, value.to_owned()),
    };
    if row[column] == OwnedValue::Null || value == OwnedValue::Null {
        return false;
    }
    let order = order(&row[column], &value);
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

fn order(a: &OwnedValue, b: &OwnedValue) -> Ordering {
    match (a, b) {
        (OwnedValue::UInt(a), OwnedValue::UInt(b)) => a.cmp(b),
        (OwnedValue::Int(a), OwnedValue::Int(b)) => a.cmp(b),
        (OwnedValue::Bytes(a), OwnedValue::Bytes(b)) => a.cmp(b),
        other => panic!("{other:?}"),
    }
}

fn is_possible(table: &Table, schema: &TableSchema, index: usize, aggregate: Aggregate) -> bool {
    let (column, types): (_, fn(ColumnType) -> bool) = match aggregate {
        Aggregate::Rows => return true,
        Aggregate::Count(column) => (column, |_| true),
        Aggregate::Sum(column) => (column, |ty| matches!(ty, ColumnType::Int { .. })),
        Aggregate::Min(column) | Aggregate::Max(column) => (column, |ty| {
            matches!(ty, ColumnType::Int { .. } | ColumnType::Bytes { len: ..=8 })
        }),
    };
    table.index_covers(index, column) && types(schema.columns[column].ty)
}

/// Returns the result of a plain loop over the rows.
pub(crate) fn answer(aggregate: Aggregate, rows: &[&Row]) -> Aggregated {
    let values = |column: usize| {
        let values = rows.iter().map(move |row| &row[column]);
        values.filter(|value| **value != OwnedValue::Null)
    };
    let order = |a: &&OwnedValue, b: &&OwnedValue| order(a, b);
    match aggregate {
        Aggregate::Rows => Aggregated::Count(rows.len() as u64),
        Aggregate::Count(column) => Aggregated::Count(values(column).count() as u64),
        Aggregate::Sum(column) => Aggregated::Sum {
            sum: values(column)
                .map(|value| match value {
                    OwnedValue::UInt(v) => i128::from(*v),
                    OwnedValue::Int(v) => i128::from(*v),
                    other => panic!("{other:?}"),
                })
                .sum(),
            values: values(column).count() as u64,
        },
        Aggregate::Min(column) => Aggregated::Value(values(column).min_by(order).cloned()),
        Aggregate::Max(column) => Aggregated::Value(values(column).max_by(order).cloned()),
    }
}
