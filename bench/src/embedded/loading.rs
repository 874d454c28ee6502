//! Fills a store and reads all of it back, so that the measurements use the right table.

use std::time::Duration;

use super::expected::Expected;
use crate::normal::generator::Row;
use crate::normal::COUNTRIES;
use crate::stores::{fill, Store};
use peregrine_harness::error::Result;
use peregrine_harness::interrupt;

/// The number of addresses that are looked up by their index.
const EMAILS: u32 = 100;

/// Fills an empty store with the table, and returns the time, without that for generating the rows.
///
/// # Errors
/// Those of the store, or an interrupt.
pub fn load(store: &mut dyn Store, expected: &Expected) -> Result<Duration> {
    let filled = fill(store, expected.generator(), &|| !interrupt::requested())?;
    Ok(filled.load + filled.settle)
}

/// The checksum of a store's rows, and its wrong answers.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// The sum of the bytes that a scan reads.
    pub sum: u64,
    /// The number of wrong answers.
    pub wrong: u64,
    /// The first wrong answer.
    pub problem: Option<String>,
}

impl Verified {
    fn wrong(&mut self, problem: impl FnOnce() -> String) {
        self.wrong += 1;
        self.problem.get_or_insert_with(problem);
    }
}

/// Reads everything back: each row must be right and come once, and both indexes must be right.
///
/// # Errors
/// Those of the store.
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

/// A checksum of bytes, added eight at a time: nearly as fast as memory, and different if a single byte differs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByteSum(pub u64);

impl ByteSum {
    /// Adds these bytes.
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
