//! The table of automatic values, which all sessions reserve.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use peregrine::{Column, ColumnType, Key, TableSchema};

/// The table's name.
pub const COUNTED: &str = "counted";

/// The table's definition: a value, and who has it.
#[must_use]
pub fn schema() -> TableSchema {
    let (bytes, signed) = (8, false);
    let number = |name: &str| Column::new(name, ColumnType::Int { bytes, signed });
    TableSchema {
        columns: vec![number("id"), number("owner")],
        primary: Some(Key::new(&[0])),
        indexes: Vec::new(),
        user: Vec::new(),
    }
}

/// Values that somebody has. No point of a schedule lies within its calls.
#[derive(Debug, Default)]
pub struct Given(Mutex<BTreeSet<u64>>);

impl Given {
    /// Those of before.
    #[must_use]
    pub fn new(values: BTreeSet<u64>) -> Given {
        Given(Mutex::new(values))
    }

    /// Whether nobody had these before.
    pub fn take(&self, values: std::ops::Range<u64>) -> bool {
        let mut given = self.0.lock();
        let before = given.len();
        let count = (values.end - values.start) as usize;
        given.extend(values);
        given.len() == before + count
    }

    /// They are about to be given back, and can be given again from here on.
    pub fn give_back(&self, values: std::ops::Range<u64>) {
        let mut given = self.0.lock();
        given.retain(|value| !values.contains(value));
    }
}
