//! Conditions on columns, decided on the numbers that represent their values.

use crate::row::layout::Layout;
use crate::row::scalar::{ScalarForm, ScalarPlace};
use crate::row::Value;
use crate::table::open_table::IndexId;
use crate::tree::ZoneMap;

/// A comparison of a column's value with another value.
///
/// Every comparison with NULL is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// =
    Equal,
    /// <>
    NotEqual,
    /// <
    Less,
    /// <=
    LessOrEqual,
    /// >
    Greater,
    /// >=
    GreaterOrEqual,
}

/// A condition on a column: an aggregate takes in only rows that meet it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition<'a> {
    /// The column is NULL.
    IsNull(usize),
    /// The column is not NULL.
    IsNotNull(usize),
    /// The column compares so with a value.
    ///
    /// Integer columns compare with integers; fixed bytes of up to 8 bytes that compare with memcmp, with as many
    /// bytes.
    Compare(usize, Comparison, Value<'a>),
}

impl Condition<'_> {
    fn column(&self) -> usize {
        match *self {
            Condition::IsNull(column)
            | Condition::IsNotNull(column)
            | Condition::Compare(column, ..) => column,
        }
    }
}

/// The values that a filter accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepts {
    Null,
    /// From the first to the second, both included; no value if the second is less.
    Range(u64, u64),
    /// All values but this.
    Except(u64),
}

const NOTHING: Accepts = Accepts::Range(1, 0);
const ANYTHING: Accepts = Accepts::Range(0, u64::MAX);

/// A condition, compiled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    pub place: ScalarPlace,
    accepts: Accepts,
}

/// How many of a leaf's records a filter accepts, as far as their zone map tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passes {
    None,
    All,
    Some,
}

impl Filter {
    /// A condition on the records of an index; `None` if it can't be decided on them.
    pub fn new(layout: &Layout, index: IndexId, condition: &Condition<'_>) -> Option<Filter> {
        let place = ScalarPlace::new(layout, index, condition.column())?;
        let accepts = match condition {
            Condition::IsNull(_) => Accepts::Null,
            Condition::IsNotNull(_) => ANYTHING,
            Condition::Compare(_, comparison, value) => compile(place.form, *comparison, *value)?,
        };
        Some(Filter { place, accepts })
    }

    /// Narrows this filter to what the other accepts, too; returns false if one filter can't do that.
    pub fn narrow(&mut self, other: &Filter) -> bool {
        if self.place.column != other.place.column {
            return false;
        }
        match (self.accepts, other.accepts) {
            (Accepts::Range(low, high), Accepts::Range(least, most)) => {
                self.accepts = Accepts::Range(low.max(least), high.min(most));
                true
            }
            _ => false,
        }
    }

    /// Whether the filter accepts a value (`None`: NULL).
    #[inline]
    pub fn lets_through(&self, bits: Option<u64>) -> bool {
        match (self.accepts, bits) {
            (Accepts::Null, bits) => bits.is_none(),
            (_, None) => false,
            (Accepts::Range(low, high), Some(bits)) => low <= bits && bits <= high,
            (Accepts::Except(other), Some(bits)) => bits != other,
        }
    }

    /// How many records of a leaf the filter accepts, by the zone map of its column.
    pub fn passes(&self, leaf: &ZoneMap) -> Passes {
        let (some_null, some_value) = (leaf.values < leaf.records, leaf.values > 0);
        let (none, all) = match self.accepts {
            Accepts::Null => (!some_null, !some_value),
            Accepts::Range(low, high) => (
                !some_value || low > high || leaf.min > high || leaf.max < low,
                !some_null && low <= leaf.min && leaf.max <= high,
            ),
            Accepts::Except(other) => (
                !some_value || (leaf.min == other && leaf.max == other),
                !some_null && (other < leaf.min || leaf.max < other),
            ),
        };
        match (none, all) {
            (true, _) => Passes::None,
            (false, true) => Passes::All,
            (false, false) => Passes::Some,
        }
    }
}

/// A value's place among the numbers of a form.
enum Place {
    Below,
    At(u64),
    Above,
}

fn compile(form: ScalarForm, comparison: Comparison, value: Value<'_>) -> Option<Accepts> {
    if !form.is_ordered() {
        return None;
    }
    let place = match (form, value) {
        (_, Value::Null) => return Some(NOTHING),
        (ScalarForm::Unsigned, Value::Int(v)) if v < 0 => Place::Below,
        (ScalarForm::Unsigned, Value::Int(v)) => Place::At(form.bits(Value::UInt(v as u64))?),
        (ScalarForm::Signed, Value::UInt(v)) => match i64::try_from(v) {
            Ok(v) => Place::At(form.bits(Value::Int(v))?),
            Err(_) => Place::Above,
        },
        _ => Place::At(form.bits(value)?),
    };
    // `None` at the ends: no value is less than the least, or greater than the greatest.
    let upto = |bits: Option<u64>| bits.map_or(NOTHING, |bits| Accepts::Range(0, bits));
    let from = |bits: Option<u64>| bits.map_or(NOTHING, |bits| Accepts::Range(bits, u64::MAX));
    use Comparison::*;
    Some(match (comparison, place) {
        (Equal, Place::At(bits)) => Accepts::Range(bits, bits),
        (Equal, _) => NOTHING,
        (NotEqual, Place::At(bits)) => Accepts::Except(bits),
        (NotEqual, _) => ANYTHING,
        (Less, Place::At(bits)) => upto(bits.checked_sub(1)),
        (LessOrEqual, Place::At(bits)) => upto(Some(bits)),
        (Greater, Place::At(bits)) => from(bits.checked_add(1)),
        (GreaterOrEqual, Place::At(bits)) => from(Some(bits)),
        (Less | LessOrEqual, Place::Below) | (Greater | GreaterOrEqual, Place::Above) => NOTHING,
        (Less | LessOrEqual, Place::Above) | (Greater | GreaterOrEqual, Place::Below) => ANYTHING,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Column, ColumnType, Key, TableSchema};
    use proptest::prelude::*;

    fn int(bytes: u8, signed: bool) -> ColumnType {
        ColumnType::Int { bytes, signed }
    }

    fn layout() -> Layout {
        let schema = TableSchema {
            columns: vec![
                Column::new("unsigned", int(8, false)).nullable(),
                Column::new("signed", int(8, true)).nullable(),
                Column::new("bytes", ColumnType::Bytes { len: 2 }).nullable(),
                Column::new("text", ColumnType::VarBytes { max: 2 }).nullable(),
                Column::new("id", int(4, false)),
            ],
            primary: Some(Key::new(&[4])),
            ..TableSchema::default()
        };
        Layout::new(&schema).unwrap()
    }

    fn comparison() -> impl Strategy<Value = Comparison> {
        use Comparison::*;
        prop::sample::select(vec![
            Equal,
            NotEqual,
            Less,
            LessOrEqual,
            Greater,
            GreaterOrEqual,
        ])
    }

    fn holds<T: Ord>(a: T, comparison: Comparison, b: T) -> bool {
        match comparison {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterOrEqual => a >= b,
        }
    }

    /// Numbers near one another, and near the limits of integers.
    fn number() -> impl Strategy<Value = i128> {
        prop_oneof![
            -3i128..4,
            (-3i128..4).prop_map(|n| i128::from(i64::MAX) + n),
            (0i128..3).prop_map(|n| i128::from(i64::MIN) + n),
            (0i128..3).prop_map(|n| i128::from(u64::MAX) - n),
        ]
    }

    fn value(n: i128) -> Value<'static> {
        match (u64::try_from(n), i64::try_from(n)) {
            (Ok(n), _) => Value::UInt(n),
            (_, Ok(n)) => Value::Int(n),
            _ => Value::Null,
        }
    }

    #[test]
    fn what_cannot_be_decided_is_refused() {
        let layout = layout();
        let equal = |column, value| {
            let condition = Condition::Compare(column, Comparison::Equal, value);
            Filter::new(&layout, 0, &condition).is_some()
        };
        assert!(equal(0, Value::UInt(1)) && equal(0, Value::Int(1)) && equal(0, Value::Null));
        assert!(equal(2, Value::Bytes(b"ab")) && !equal(2, Value::Bytes(b"a")));
        assert!(!equal(0, Value::Double(1.0)) && !equal(1, Value::Bytes(b"ab")));
        assert!(!equal(3, Value::Bytes(b"ab")) && !equal(9, Value::UInt(1)));
        assert!(Filter::new(&layout, 0, &Condition::IsNull(3)).is_some());
        assert!(Filter::new(&layout, 1, &Condition::IsNull(3)).is_none());
    }

    proptest! {
        #[test]
        fn filters_decide_as_values_compare(
            a in number(), b in number(), c in number(), how in comparison(), and in comparison(),
            x: [u8; 2], y: [u8; 2],
        ) {
            let layout = layout();
            let compare = |column, how, value| {
                Filter::new(&layout, 0, &Condition::Compare(column, how, value)).unwrap()
            };
            let ranges = [(0, 0..=i128::from(u64::MAX)),
                (1, i128::from(i64::MIN)..=i128::from(i64::MAX))];
            for (column, range) in ranges {
                if !range.contains(&a) {
                    continue;
                }
                let mut filter = compare(column, how, value(b));
                let form = filter.place.form;
                let bits = form.bits(if column == 0 {
                    Value::UInt(a as u64)
                } else {
                    Value::Int(a as i64)
                });
                prop_assert!(bits.is_some());
                prop_assert_eq!(filter.lets_through(bits), holds(a, how, b));
                prop_assert!(!filter.lets_through(None));
                if filter.narrow(&compare(column, and, value(c))) {
                    let both = holds(a, how, b) && holds(a, and, c);
                    prop_assert_eq!(filter.lets_through(bits), both);
                }
                prop_assert!(!compare(column, how, Value::Null).lets_through(bits));
            }
            let filter = compare(2, how, Value::Bytes(&y));
            let bits = filter.place.form.bits(Value::Bytes(&x));
            prop_assert_eq!(filter.lets_through(bits), holds(x, how, y));
        }

        /// A zone map's answer holds for each record of its leaf.
        #[test]
        fn zone_maps_are_judged_as_their_records_are(
            leaf in prop::collection::vec(prop::option::of(0u64..6), 0..6),
            how in comparison(), b in 0u64..6, kind in 0..4,
        ) {
            let condition = match kind {
                0 => Condition::IsNull(0),
                1 => Condition::IsNotNull(0),
                _ => Condition::Compare(0, how, Value::UInt(b)),
            };
            let filter = Filter::new(&layout(), 0, &condition).unwrap();
            let values = || leaf.iter().flatten().copied();
            let zone_map = ZoneMap {
                max_txid: 0,
                records: leaf.len() as u32,
                values: values().count() as u32,
                sum: 0,
                min: values().min().unwrap_or(u64::MAX),
                max: values().max().unwrap_or(0),
            };
            let passing = leaf.iter().filter(|bits| filter.lets_through(**bits)).count();
            match filter.passes(&zone_map) {
                Passes::None => prop_assert_eq!(passing, 0),
                Passes::All => prop_assert_eq!(passing, leaf.len()),
                Passes::Some => {}
            }
        }
    }
}
