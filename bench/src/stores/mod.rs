//! Embedded stores with table `normal`: Peregrine's library, SQLite, LMDB, redb and fjall.
//!
//! Each is used in the way that its own documentation calls the fastest. All have the primary key and both indexes of
//! the table, and answer the thirteen queries.
//!
//! | file | holds |
//! |---|---|
//! | `store.rs` | the interface of a store |
//! | `question.rs` | the questions of the thirteen queries |
//! | `peregrine.rs`, `sqlite.rs`, `lmdb.rs`, `redb.rs`, `fjall.rs` | one store each |
//! | `row_bytes.rs` | rows and index entries as bytes, for stores that know only keys and values |
//! | `keys_and_values.rs` | how such a store answers questions |
//! | `filling.rs` | puts the rows of the generator into a store |
//! | `version.rs` | the measured version of each store |
//! | `session.rs` | a store as a target of the runner |

mod filling;
mod fjall;
mod keys_and_values;
mod lmdb;
mod peregrine;
mod question;
mod redb;
pub(crate) mod row_bytes;
mod session;
mod sqlite;
mod store;
mod version;

pub use self::filling::{fill, Filled};
pub use self::question::{Question, Wanted};
pub use self::session::StoreSession;
pub use self::store::{Store, StoreReader};
pub use self::version::version;

use std::path::Path;

use peregrine_harness::engines::Embedded;
use peregrine_harness::error::Result;

/// Opens a store in a directory, with this many bytes of cache.
///
/// Creates a new store with an empty table if the directory does not exist.
///
/// # Errors
/// The store's errors.
pub fn open(store: Embedded, dir: &Path, cache: u64) -> Result<Box<dyn Store>> {
    Ok(match store {
        Embedded::Library => Box::new(peregrine::Peregrine::open(dir, cache)?),
        Embedded::Sqlite => Box::new(sqlite::Sqlite::open(dir, cache)?),
        Embedded::Lmdb => Box::new(lmdb::Lmdb::open(dir, cache)?),
        Embedded::Redb => Box::new(redb::Redb::open(dir, cache)?),
        Embedded::Fjall => Box::new(fjall::Fjall::open(dir, cache)?),
    })
}
