//! Filling a store, and reading all of it back: what is measured afterwards is of the right table.

use std::time::Duration;

use super::expected::Expected;
use crate::error::Result;
use crate::normal::generator::Row;
use crate::normal::COUNTRIES;
use crate::runner::interrupt;
use crate::stores::{fill, Store};

/// Addresses looked for by their index.
const EMAILS: u32 = 100;

/// Fills an empty store with the table; how long that took, without making the rows.
///
/// # Errors
/// What the store says, or an interrupt.
pub fn load(store: &mut dyn Store, expected: &Expected) -> Result<Duration> {
    let filled = fill(store, expected.generator(), &|| !interrupt::requested())?;
    Ok(filled.load + filled.settle)
}

/// What a store's bytes of all rows come to, and what was wrong with them.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// The sum of the bytes that a scan sees.
    pub sum: u64,
    /// Wrong answers.
    pub wrong: u64,
    /// The first of them.
    pub problem: Option<String>,
}

impl Verified {
    fn wrong(&mut self, problem: impl FnOnce() -> String) {
        self.wrong += 1;
        self.problem.get_or_insert_with(problem);
    }
}

/// Reads everything back: each row once and right, and both indexes.
///
/// # Errors
/// What the store says.
pub fn verify(store: &dyn Store, expected: &Expected) -> Result<Verified> {
    let mut found = Verified::default();
    let mut reader = store.reader()?;
    let mut sum = ByteSum::default();
    let mut seen = vec![false; expected.count() as usize];
    let mut buffer = Vec::new();
    reader.rows(&mut |bytes| sum.add(bytes), &mut |row| {
        if !expected.is_right(row, &mut buffer) {
            found.wrong(|| format!("a wrong row with id {}", row.id));
        } else if std::mem::replace(&mut seen[row.id as usize - 1], true) {
            found.wrong(|| format!("row {} twice", row.id));
        }
    })?;
    found.sum = sum.0;
    let missing = seen.iter().filter(|seen| !**seen).count();
    if missing > 0 {
        found.wrong(|| format!("{missing} rows not found"));
    }
    for country in 1..=COUNTRIES {
        let (given, right) = (reader.of_country(country)?, expected.of_country(country));
        if given != right {
            found.wrong(|| format!("{given} rows of country {country}, {right} expected"));
        }
    }
    let mut row = Row::default();
    for n in 0..EMAILS.min(expected.count()) {
        let id = 1 + n * (expected.count() / EMAILS.min(expected.count()));
        expected.generator().row(id, &mut row);
        let given = reader.by_email(&row.email)?;
        if given != Some(id) {
            found.wrong(|| format!("by its address row {id} is {given:?}"));
        }
    }
    Ok(found)
}

/// The sum of bytes, eight at a time: nearly as fast as they can be read, and another when any of them
/// is another.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByteSum(pub u64);

impl ByteSum {
    /// Adds all of these.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let mut sum = self.0;
        for word in words {
            sum = sum.wrapping_add(u64::from_le_bytes(*word));
        }
        for byte in rest {
            sum = sum.wrapping_add(u64::from(*byte) << 7);
        }
        self.0 = sum.wrapping_add(bytes.len() as u64);
    }
}
