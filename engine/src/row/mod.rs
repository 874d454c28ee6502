//! What a row is: schemas, values, and how rows and keys become bytes. Pure code, no I/O.

mod collation;
mod schema;
mod value;

pub use collation::Collations;
pub use schema::{Column, ColumnType, Index, Key, KeyPart, TableSchema};
pub use value::{OwnedValue, Value};
