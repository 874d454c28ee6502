//! Schemas, values, and the encoding of rows and keys as bytes. Pure code, no I/O.
#![forbid(unsafe_code)]

mod collation;
pub(crate) mod entry;
pub(crate) mod key;
pub(crate) mod key_bytes;
pub(crate) mod large_format;
pub(crate) mod layout;
mod number;
pub(crate) mod payload;
pub(crate) mod projection;
pub(crate) mod scalar;
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod value;
pub(crate) mod varint;

pub use collation::Collations;
pub use number::NumberPlace;
pub use schema::{Column, ColumnType, Index, Key, KeyPart, SchemaNames, TableSchema};
pub use text::{Text, TextPlace};
pub use value::{OwnedValue, Value};
