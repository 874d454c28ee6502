//! Puts the rows of the generator into a store.

use std::time::{Duration, Instant};

use super::store::Store;
use crate::normal::generator::{Generator, Row};
use peregrine_harness::error::{HarnessError, Result};

/// The number of rows in a transaction.
const BATCH: u32 = 10_000;

/// The times of filling a store, without the time to generate the rows.
#[derive(Debug, Clone, Copy)]
pub struct Filled {
    /// The time until the last row was durable.
    pub load: Duration,
    /// The time of the work that the store's documentation recommends between loading and reading.
    pub settle: Duration,
}

/// Fills an empty store with the table, as long as `goes_on` returns true.
///
/// # Errors
/// The store's errors; [`HarnessError::Interrupted`] when `goes_on` returned false.
pub fn fill(
    store: &mut dyn Store,
    generator: &Generator,
    goes_on: &dyn Fn() -> bool,
) -> Result<Filled> {
    let mut rows = vec![Row::default(); BATCH.min(generator.rows()) as usize];
    let mut load = Duration::ZERO;
    let mut first = 1;
    while first <= generator.rows() {
        let last = generator.rows().min(first.saturating_add(BATCH - 1));
        let batch = &mut rows[..(last - first + 1) as usize];
        for (row, id) in batch.iter_mut().zip(first..) {
            generator.row(id, row);
        }
        let begun = Instant::now();
        store.load(batch)?;
        load += begun.elapsed();
        first = last + 1;
        if !goes_on() {
            return Err(HarnessError::Interrupted);
        }
    }
    let begun = Instant::now();
    store.settle()?;
    Ok(Filled {
        load,
        settle: begun.elapsed(),
    })
}
