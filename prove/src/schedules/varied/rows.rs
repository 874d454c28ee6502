//! The table of many kinds of keys and values, its rows, and the orders of its indexes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use peregrine::{
    Column, ColumnType, Error, Index, Key, KeyPart, Result, RowView, Table, TableSchema, Value,
};

use crate::schedules::model::ledger;
use crate::schedules::model::reading::Read;
use crate::simulated::model;

/// The table's name.
pub const VARIED: &str = "varied";
/// The first part of the clustered key, descending.
pub const PART: usize = 0;
/// The second part of the clustered key; modulo `OWNERS` it is the number of the row's owner.
pub const ID: usize = 1;
/// A signed number, or NULL.
pub const NUMBER: usize = 2;
/// Bytes, or NULL.
pub const NAME: usize = 3;
/// A code, or NULL: unique together with the number.
///
/// Owners have different codes.
pub const CODE: usize = 4;

/// The index by number, descending, and name.
pub const BY_NUMBER: usize = 1;
/// The unique index by code and number.
pub const BY_CODE: usize = 2;
/// The index by the first bytes of the name, descending.
pub const BY_NAME: usize = 3;
/// The longest name: stored out of row where knobs keep rows short.
pub const LONGEST_NAME: u32 = 700;
/// The number of bytes of a name in the index `BY_NAME`.
const PREFIX: usize = 2;

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// See [`PART`].
    pub part: u64,
    /// See [`ID`].
    pub id: u64,
    /// See [`NUMBER`].
    pub number: Option<i64>,
    /// See [`NAME`].
    pub name: Option<Vec<u8>>,
    /// See [`CODE`].
    pub code: Option<u64>,
}

/// Rows of one owner, by their ids.
pub type Rows = BTreeMap<u64, Row>;

/// The table's definition.
#[must_use]
pub fn schema() -> TableSchema {
    let number = |name: &str, bytes, signed| Column::new(name, ColumnType::Int { bytes, signed });
    let descending = |column| KeyPart {
        descending: true,
        ..KeyPart::new(column)
    };
    let mut by_number = Index::new("by_number", &[NUMBER, NAME]);
    by_number.parts[0] = descending(NUMBER);
    let mut by_name = Index::new("by_name", &[NAME]);
    by_name.parts[0] = KeyPart {
        prefix: Some(PREFIX as u32),
        ..descending(NAME)
    };
    TableSchema {
        columns: vec![
            number("part", 1, false),
            number("id", 8, false),
            number("number", 4, true).nullable(),
            Column::new("name", ColumnType::VarBytes { max: LONGEST_NAME }).nullable(),
            number("code", 8, false).nullable(),
        ],
        primary: Some(Key {
            parts: vec![descending(PART), KeyPart::new(ID)],
        }),
        indexes: vec![
            by_number,
            Index::new("by_code", &[CODE, NUMBER]).unique(),
            by_name,
        ],
        user: Vec::new(),
    }
}

impl Row {
    /// The values of its columns.
    #[must_use]
    pub fn values(&self) -> [Value<'_>; 5] {
        [
            Value::UInt(self.part),
            Value::UInt(self.id),
            self.number.map_or(Value::Null, Value::Int),
            self.name.as_deref().map_or(Value::Null, Value::Bytes),
            self.code.map_or(Value::Null, Value::UInt),
        ]
    }

    /// Encodes its clustered key.
    ///
    /// # Errors
    /// The engine's errors.
    pub fn key(&self, table: &Table) -> Result<Vec<u8>> {
        table.encode_key(0, &[Value::UInt(self.part), Value::UInt(self.id)])
    }

    /// Reads a row.
    ///
    /// # Errors
    /// The engine's errors; [`Error::Internal`] for a value of another type.
    pub fn read(view: &RowView<'_>) -> Result<Row> {
        let mut name = Vec::new();
        let has_name = view.get_large(NAME, &mut name)?;
        Row::with_name(view, has_name.then_some(name))
    }

    /// Like [`Row::read`], but under the latch of the row's page, where no other page may be read.
    ///
    /// For a name stored out of row it returns the name of the `known` row, if that has the same length.
    ///
    /// # Errors
    /// As [`Row::read`].
    pub fn read_in_place(view: &RowView<'_>, known: Option<&Row>) -> Result<Row> {
        let name = match view.get(NAME)? {
            Value::Bytes(name) => Some(name.to_vec()),
            Value::Null => None,
            Value::OutOfRow(len) => {
                let known = known.and_then(|row| row.name.clone());
                known.filter(|name| name.len() as u64 == len)
            }
            other => return Err(Error::Internal(format!("{other:?} as a name"))),
        };
        Row::with_name(view, name)
    }

    fn with_name(view: &RowView<'_>, name: Option<Vec<u8>>) -> Result<Row> {
        let number = |value: Value<'_>| match value {
            Value::UInt(number) => Ok(Some(number)),
            Value::Null => Ok(None),
            other => Err(Error::Internal(format!("{other:?} where a number stood"))),
        };
        let some = |column| -> Result<u64> {
            let number = number(view.get(column)?)?;
            number.ok_or_else(|| Error::Internal("NULL where a key stood".into()))
        };
        Ok(Row {
            part: some(PART)?,
            id: some(ID)?,
            number: match view.get(NUMBER)? {
                Value::Int(number) => Some(number),
                Value::Null => None,
                other => return Err(Error::Internal(format!("{other:?} as a signed number"))),
            },
            name,
            code: number(view.get(CODE)?)?,
        })
    }

    /// A fingerprint: two different rows hardly ever have the same.
    fn print(&self) -> u64 {
        let numbers = format!("{} {:?} {:?}", self.part, self.number, self.code);
        let name = self.name.as_deref();
        model::print(self.id, 0, 0, numbers.as_bytes(), name)
    }

    fn prefix(&self) -> Option<&[u8]> {
        let name = self.name.as_deref();
        name.map(|name| &name[..name.len().min(PREFIX)])
    }

    /// Compares two rows by their order in an index.
    ///
    /// NULL is less than every value.
    #[must_use]
    pub fn order(&self, other: &Row, index: usize) -> Ordering {
        let first = match index {
            BY_NUMBER => {
                let number = other.number.cmp(&self.number);
                number.then(self.name.cmp(&other.name))
            }
            BY_CODE => self
                .code
                .cmp(&other.code)
                .then(self.number.cmp(&other.number)),
            BY_NAME => other.prefix().cmp(&self.prefix()),
            _ => Ordering::Equal,
        };
        let key = || other.part.cmp(&self.part).then(self.id.cmp(&other.id));
        first.then_with(key)
    }

    /// Returns whether the unique index accepts only one of the two.
    #[must_use]
    pub fn excludes(&self, other: &Row) -> bool {
        let both = |row: &Row| row.code.zip(row.number);
        both(self).is_some() && both(self) == both(other)
    }
}

/// Converts rows for a ledger, which knows them by their fingerprints.
#[must_use]
pub fn for_ledger(rows: &Rows) -> ledger::Rows {
    let known = |row: &Row| model::Row {
        group: 0,
        code: 0,
        pad: 0,
        large: None,
        print: row.print(),
    };
    rows.iter().map(|(id, row)| (*id, known(row))).collect()
}

/// Converts a row into the form that a ledger compares.
#[must_use]
pub fn as_read(row: &Row) -> Read {
    Read {
        id: row.id,
        group: 0,
        code: 0,
        print: row.print(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u64, number: Option<i64>, name: Option<&str>, code: Option<u64>) -> Row {
        Row {
            part: 1,
            id,
            number,
            name: name.map(|name| name.as_bytes().to_vec()),
            code,
        }
    }

    #[test]
    fn null_is_less_than_all_and_excludes_nothing() {
        let null = row(1, None, None, None);
        let some = row(2, Some(-1), Some("a"), Some(3));
        assert_eq!(
            null.order(&some, BY_NUMBER),
            Ordering::Greater,
            "descending"
        );
        assert_eq!(null.order(&some, BY_CODE), Ordering::Less);
        assert_eq!(null.order(&some, BY_NAME), Ordering::Greater, "descending");
        assert!(!null.excludes(&null.clone()));
        assert!(some.excludes(&row(4, Some(-1), None, Some(3))));
        assert!(!some.excludes(&row(4, None, None, Some(3))));
    }

    #[test]
    fn the_engine_has_rows_in_the_order_of_the_model() {
        let os = peregrine::os::simulated::SimulatedOs::new(1);
        let options = peregrine::Options {
            background: false,
            ..peregrine::Options::default()
        };
        let db = peregrine::Database::open_on(std::sync::Arc::new(os), "/db", options);
        let db = db.expect("it opens");
        let table = db.create_table(VARIED, &schema()).expect("it is made");
        let mut txn = db.begin(peregrine::Isolation::RepeatableRead);
        let mut rows = vec![];
        let names = [
            None,
            Some(""),
            Some("a"),
            Some("ab"),
            Some("abc"),
            Some("b"),
        ];
        for (id, name) in (0..).zip(names) {
            for (n, number) in (0..).zip([None, Some(-5), Some(0), Some(7)]) {
                let id = id * 10 + n;
                let code = [None, Some(id / 3), Some(id)][id as usize % 3];
                rows.push(Row {
                    part: id % 3,
                    ..row(id, number, name, code)
                });
            }
        }
        let mut kept: Vec<Row> = Vec::new();
        for row in rows {
            let taken = txn.insert(&table, &row.values()).is_ok();
            assert_eq!(taken, !kept.iter().any(|other| other.excludes(&row)));
            kept.extend(taken.then_some(row));
        }
        for index in 0..=BY_NAME {
            let found = super::super::reading::all(&mut txn, &table, index, false);
            kept.sort_unstable_by(|a, b| a.order(b, index));
            assert_eq!(found.expect("it is read"), kept, "index {index}");
        }
    }
}
