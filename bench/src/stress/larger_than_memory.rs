//! Reads of data ten times larger than the cache: each kind of read must be faster than on `InnoDB`.
//!
//! Both engines bypass the system's page cache, so that each has only its own cache.

use crate::results::Thresholds;
use peregrine_harness::engines::Engine;

/// The queries: points, key ranges and scans, some of which must fetch rows and some not.
pub const QUERIES: [&str; 6] = [
    "READ_PK_POINT",
    "READ_PK_RANGE",
    "READ_KEY_POINT",
    "READ_KEY_RANGE",
    "READ_KEY_RANGE_NO_DATA",
    "READ_FTS",
];

/// The server's options with which neither engine uses the page cache.
pub const SERVER_OPTIONS: [&str; 2] =
    ["--innodb-flush-method=O_DIRECT", "--peregrine-direct-io=ON"];

/// Returns the thresholds: this ratio to `InnoDB` for each of the queries.
#[must_use]
pub fn thresholds(queries: &[String], minimum: f64) -> Thresholds {
    Thresholds {
        engine: Engine::Peregrine,
        baseline: Engine::InnoDb,
        minimum: queries
            .iter()
            .map(|query| (query.clone(), minimum))
            .collect(),
        geometric_mean: None,
        best_of: Vec::new(),
        rising: false,
    }
}
