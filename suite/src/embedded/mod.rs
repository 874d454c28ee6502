//! Peregrine's library beside other embedded stores, in one process: table `normal` with its indexes in
//! each, random point reads by one thread and more, and full scans beside a plain memory copy.
//!
//! | file | holds |
//! |---|---|
//! | `expected.rs` | the right answers |
//! | `loading.rs` | fills a store, then reads all of it back and compares |
//! | `measure.rs` | stores in turns, every answer checked |
//! | `outcome.rs` | the table, and whether what is promised held |
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

use crate::engines::Embedded;
use crate::error::Result;
use crate::stores::{
    Store, {self},
};

/// The stores, in the order in which they are shown.
pub const NAMES: [&str; 5] = ["peregrine", "lmdb", "sqlite", "redb", "fjall"];

/// Makes a new, empty store in a directory that there is not yet, with so many bytes of cache.
///
/// # Errors
/// For a name that is none of [`NAMES`], and what the store says.
pub fn create(name: &str, dir: &Path, cache: u64) -> Result<Box<dyn Store>> {
    let store = match name {
        "peregrine" => Embedded::Library,
        "lmdb" => Embedded::Lmdb,
        "sqlite" => Embedded::Sqlite,
        "redb" => Embedded::Redb,
        "fjall" => Embedded::Fjall,
        other => {
            return Err(crate::error::SuiteError::Usage(format!(
                "there is no store {other}: choose from {}",
                NAMES.join(", ")
            )))
        }
    };
    stores::open(store, dir, cache)
}
