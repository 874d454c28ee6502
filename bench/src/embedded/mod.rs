//! Compares Peregrine's library with other embedded stores, in one process.
//!
//! Each store has the table `normal` with its indexes. The tests run random point reads by one thread and more, and
//! full scans, which are compared with a plain memory copy.
//!
//! | file | holds |
//! |---|---|
//! | `expected.rs` | the right answers |
//! | `loading.rs` | fills a store, then reads all of it back and compares |
//! | `measure.rs` | measures stores in turns, and checks every answer |
//! | `outcome.rs` | the table of results, and whether Peregrine keeps its promises |
//!
//! The stores themselves are in [`crate::stores`].

mod expected;
mod loading;
mod measure;
mod outcome;

pub use self::expected::Expected;
pub use self::measure::{run, Request};
pub use self::outcome::{Cell, Outcome, StoreOutcome, OTHERS_FACTOR};

use std::path::Path;

use crate::stores::{
    Store, {self},
};
use peregrine_harness::engines::Embedded;
use peregrine_harness::error::Result;

/// The stores, in the order of the report.
pub const NAMES: [&str; 5] = ["peregrine", "lmdb", "sqlite", "redb", "fjall"];

/// Creates an empty store in a new directory, with `cache` bytes of cache.
///
/// # Errors
/// For a name that is not in [`NAMES`]; those of the store.
pub fn create(name: &str, dir: &Path, cache: u64) -> Result<Box<dyn Store>> {
    let store = match name {
        "peregrine" => Embedded::Library,
        "lmdb" => Embedded::Lmdb,
        "sqlite" => Embedded::Sqlite,
        "redb" => Embedded::Redb,
        "fjall" => Embedded::Fjall,
        other => {
            return Err(peregrine_harness::error::HarnessError::Usage(format!(
                "there is no store {other}: choose from {}",
                NAMES.join(", ")
            )))
        }
    };
    stores::open(store, dir, cache)
}
