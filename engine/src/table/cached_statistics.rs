//! Statistics of a table for the optimizer, kept with the open table.

use std::time::Instant;

/// Statistics of a table, until they are computed anew.
#[derive(Default)]
pub(super) struct Statistics {
    /// Per index, the number of different values per key prefix; empty: not sampled yet.
    ///
    /// `None`: the index could not be read.
    pub cardinality: Vec<Option<Vec<u64>>>,
    /// The table's rows when it was sampled.
    pub rows: u64,
    pub sizes: Option<(Instant, (u64, u64))>,
    /// Sizes that are in part guessed, and whether the reason was reported.
    pub guessed: Option<(Instant, (u64, u64))>,
    pub told: bool,
}
