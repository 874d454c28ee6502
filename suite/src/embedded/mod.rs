//! Peregrine's library beside other embedded stores, in one process: table `normal` with its indexes in
//! each, random point reads by one thread and more, and full scans beside a plain memory copy.
//!
//! | file | holds |
//! |---|---|
//! | `store.rs` | what a store must do |
//! | `peregrine.rs`, `lmdb.rs`, `sqlite.rs`, `redb.rs`, `fjall.rs` | one store each, as its own documentation says that it is fastest |
//! | `row_bytes.rs` | a row as bytes, for stores that know only keys and values |
//! | `expected.rs` | the right answers |
//! | `loading.rs` | fills a store, then reads all of it back and compares |
//! | `measure.rs` | stores in turns, every answer checked |
//! | `outcome.rs` | the table, and whether what is promised held |

mod expected;
mod fjall;
mod lmdb;
mod loading;
mod measure;
mod outcome;
mod peregrine;
mod redb;
mod row_bytes;
mod sqlite;
mod store;

pub use self::expected::Expected;
pub use self::measure::{run, Request};
pub use self::outcome::{Cell, Outcome, StoreOutcome, OTHERS_FACTOR};
pub use self::store::{Store, StoreReader};

use std::path::Path;

use crate::error::Result;

/// The stores, in the order in which they are shown.
pub const NAMES: [&str; 5] = ["peregrine", "lmdb", "sqlite", "redb", "fjall"];

/// Makes a new, empty store in a directory that there is not yet, with so many bytes of cache.
///
/// # Errors
/// For a name that is none of [`NAMES`], and what the store says.
pub fn create(name: &str, dir: &Path, cache: u64) -> Result<Box<dyn Store>> {
    Ok(match name {
        "peregrine" => Box::new(peregrine::Peregrine::create(dir, cache)?),
        "lmdb" => Box::new(lmdb::Lmdb::create(dir, cache)?),
        "sqlite" => Box::new(sqlite::Sqlite::create(dir, cache)?),
        "redb" => Box::new(redb::Redb::create(dir, cache)?),
        "fjall" => Box::new(fjall::Fjall::create(dir, cache)?),
        other => {
            return Err(crate::error::SuiteError::Usage(format!(
                "there is no store {other}: choose from {}",
                NAMES.join(", ")
            )))
        }
    })
}
