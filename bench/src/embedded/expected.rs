//! Computes the right answers from the generator.

use crate::normal::generator::{Generator, Row};
use crate::normal::{fingerprint, COUNTRIES};
use crate::stores::row_bytes;

/// The right answers of every store.
#[derive(Debug, Clone)]
pub struct Expected {
    generator: Generator,
    /// The fingerprint of each row's name, at index id − 1.
    names: Vec<u64>,
    /// The fingerprint of each whole row, at index id − 1.
    rows: Vec<u64>,
    /// The number of rows in each country, at index number − 1.
    countries: Vec<u64>,
    bytes: u64,
}

impl Expected {
    /// Computes the right answers for the table of this seed and size.
    #[must_use]
    pub fn compute(seed: u64, rows: u32) -> Self {
        let generator = Generator::new(seed, rows);
        let mut expected = Self {
            names: Vec::with_capacity(rows as usize),
            rows: Vec::with_capacity(rows as usize),
            countries: vec![0; usize::from(COUNTRIES)],
            bytes: 0,
            generator: generator.clone(),
        };
        let (mut row, mut bytes) = (Row::default(), Vec::new());
        for id in 1..=rows {
            generator.row(id, &mut row);
            expected
                .names
                .push(fingerprint::of_text(row.name.as_bytes()));
            expected.rows.push(whole(&row, &mut bytes));
            if let Some(count) = expected.countries.get_mut(usize::from(row.country_id) - 1) {
                *count += 1;
            }
            expected.bytes += row_bytes::value_bytes(&row);
        }
        expected
    }

    /// Returns the generator.
    #[must_use]
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Returns the number of rows; ids are 1 to this number.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.generator.rows()
    }

    /// Returns the bytes of the values of all rows.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the fingerprint of a row's name, or 0 if there is no such row.
    #[must_use]
    pub fn name(&self, id: u32) -> u64 {
        at(&self.names, id)
    }

    /// Returns whether this is the right row for its id.
    pub fn is_right(&self, row: &Row, buffer: &mut Vec<u8>) -> bool {
        row.id >= 1 && row.id <= self.count() && at(&self.rows, row.id) == whole(row, buffer)
    }

    /// Returns the number of rows in a country.
    #[must_use]
    pub fn of_country(&self, country: u16) -> u64 {
        at(&self.countries, country.into())
    }
}

fn at(all: &[u64], id: u32) -> u64 {
    let index = (id as usize).wrapping_sub(1);
    all.get(index).copied().unwrap_or(0)
}

fn whole(row: &Row, buffer: &mut Vec<u8>) -> u64 {
    row_bytes::encode(row, buffer);
    fingerprint::of_text(buffer)
}
