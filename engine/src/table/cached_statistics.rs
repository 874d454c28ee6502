//! What was found out of a table for the optimizer, kept with the open table.

use std::time::Instant;

/// What is known of a table, until it is found out anew.
#[derive(Default)]
pub(super) struct Statistics {
    /// Per index, per key prefix; empty: not sampled yet. `None`: the index could not be read.
    pub cardinality: Vec<Option<Vec<u64>>>,
    /// Rows when it was sampled.
    pub rows: u64,
    pub sizes: Option<(Instant, (u64, u64))>,
    /// Sizes in part guessed, and whether the reason has been told.
    pub guessed: Option<(Instant, (u64, u64))>,
    pub told: bool,
}
