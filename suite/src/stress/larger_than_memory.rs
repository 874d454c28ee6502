//! Reads of data ten times larger than the cache: is every kind of them faster than `InnoDB`'s?
//!
//! Both engines read past the system's page cache, so that each has its cache alone.

use crate::engines::Engine;
use crate::results::Thresholds;

/// The queries: points, key ranges and scans, with rows that must be fetched and without.
pub const QUERIES: [&str; 6] = [
    "READ_PK_POINT",
    "READ_PK_RANGE",
    "READ_KEY_POINT",
    "READ_KEY_RANGE",
    "READ_KEY_RANGE_NO_DATA",
    "READ_FTS",
];

/// The server's options by which neither engine is helped by the page cache.
pub const SERVER_OPTIONS: [&str; 2] =
    ["--innodb-flush-method=O_DIRECT", "--peregrine-direct-io=ON"];

/// What must be reached: this ratio to `InnoDB` by each of the queries.
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
