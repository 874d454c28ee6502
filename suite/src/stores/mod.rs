//! Embedded stores with table `normal`: Peregrine's library, SQLite, LMDB, redb and fjall, each used as its own
//! documentation says that it is fastest. All have the primary key and both indexes of the table, and answer
//! the thirteen queries.
//!
//! | file | holds |
//! |---|---|
//! | `store.rs` | what a store must do |
//! | `question.rs` | what the thirteen queries ask for |
//! | `peregrine.rs`, `sqlite.rs`, `lmdb.rs`, `redb.rs`, `fjall.rs` | one store each |
//! | `row_bytes.rs` | rows and index entries as bytes, for stores that know only keys and values |
//! | `keys_and_values.rs` | how such a store answers |
//! | `filling.rs` | puts the rows of the generator into a store |
//! | `version.rs` | which version of each is measured |
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

use crate::engines::Embedded;
use crate::error::Result;

/// Opens a store in a directory, with so many bytes of cache; a new one with an empty table where the
/// directory is not there yet.
///
/// # Errors
/// What the store says.
pub fn open(store: Embedded, dir: &Path, cache: u64) -> Result<Box<dyn Store>> {
    Ok(match store {
        Embedded::Library => Box::new(peregrine::Peregrine::open(dir, cache)?),
        Embedded::Sqlite => Box::new(sqlite::Sqlite::open(dir, cache)?),
        Embedded::Lmdb => Box::new(lmdb::Lmdb::open(dir, cache)?),
        Embedded::Redb => Box::new(redb::Redb::open(dir, cache)?),
        Embedded::Fjall => Box::new(fjall::Fjall::open(dir, cache)?),
    })
}
