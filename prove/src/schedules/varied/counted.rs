//! The table of automatic values, which all sessions reserve.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use peregrine::{Column, ColumnType, Key, TableSchema};

/// The table's name.
pub const COUNTED: &str = "counted";

/// The table's definition: a value and its owner.
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

/// Automatic values in use.
///
/// Its methods contain no schedule point.
#[derive(Debug, Default)]
pub struct Given(Mutex<BTreeSet<u64>>);

impl Given {
    /// Begins with these values.
    #[must_use]
    pub fn new(values: BTreeSet<u64>) -> Given {
        Given(Mutex::new(values))
    }

    /// Records these values, and returns whether none of them was in use.
    pub fn take(&self, values: std::ops::Range<u64>) -> bool {
        let mut given = self.0.lock();
        let before = given.len();
        let count = (values.end - values.start) as usize;
        given.extend(values);
        given.len() == before + count
    }

    /// Records that these values are about to be returned, so that they can be reserved again.
    pub fn give_back(&self, values: std::ops::Range<u64>) {
        let mut given = self.0.lock();
        given.retain(|value| !values.contains(value));
    }
}
