//! Tables, columns and keys as the embedding program defines them.

use serde::{Deserialize, Serialize};

use super::value::OwnedValue;
use crate::error::{Error, Result};

/// A table's columns and keys, and bytes that the embedding program keeps with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableSchema {
    /// The columns, in the order in which rows are given and read.
    pub columns: Vec<Column>,
    /// The clustered key.
    ///
    /// Without one, rows get a hidden row id and are in order of insertion.
    pub primary: Option<Key>,
    /// Secondary indexes. Index number n of the API is `indexes[n - 1]`; 0 is the clustered one.
    pub indexes: Vec<Index>,
    /// Bytes without meaning to the engine, stored with the table and returned with its schema.
    pub user: Vec<u8>,
}

/// The names in a [`TableSchema`], which can change while all else stays the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchemaNames {
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// Names of the secondary indexes, in their order.
    pub indexes: Vec<String>,
}

impl TableSchema {
    /// The same schema with other names.
    ///
    /// # Errors
    /// `Error::Invalid` if the number of names is not that of columns and indexes.
    pub fn named(&self, names: &SchemaNames) -> Result<TableSchema> {
        let (columns, indexes) = (self.columns.len(), self.indexes.len());
        if (names.columns.len(), names.indexes.len()) != (columns, indexes) {
            return Err(Error::Invalid(format!(
                "{} and {} names for {columns} columns and {indexes} indexes",
                names.columns.len(),
                names.indexes.len()
            )));
        }
        let mut schema = self.clone();
        for (column, name) in schema.columns.iter_mut().zip(&names.columns) {
            column.name.clone_from(name);
        }
        for (index, name) in schema.indexes.iter_mut().zip(&names.indexes) {
            index.name.clone_from(name);
        }
        Ok(schema)
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The column's name; the engine uses it only in messages.
    pub name: String,
    /// The column's type.
    pub ty: ColumnType,
    /// Whether the column takes NULL.
    pub nullable: bool,
    /// The order of its bytes in keys: 0 is memcmp, any other number a collation of [`crate::Options::collations`].
    ///
    /// Only for bytes.
    pub collation: u32,
    /// The value in rows that were written before this column was added.
    pub default: OwnedValue,
}

impl Column {
    /// A column that takes no NULL and compares bytes with memcmp.
    pub fn new(name: impl Into<String>, ty: ColumnType) -> Self {
        Column {
            name: name.into(),
            ty,
            nullable: false,
            collation: 0,
            default: OwnedValue::Null,
        }
    }

    /// The same column, taking NULL.
    pub fn nullable(mut self) -> Self {
        self.nullable = true;
        self
    }

    /// The same column, ordered by a collation of [`crate::Options::collations`].
    pub fn collation(mut self, collation: u32) -> Self {
        self.collation = collation;
        self
    }
}

/// A column's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ColumnType {
    /// An integer.
    Int {
        /// The width: 1, 2, 3, 4 or 8 bytes.
        bytes: u8,
        /// Whether it takes negative values ([`crate::Value::Int`]) or not
        /// ([`crate::Value::UInt`]).
        signed: bool,
    },
    /// A single-precision float.
    Float,
    /// A double-precision float.
    Double,
    /// Exactly this many bytes.
    Bytes {
        /// The length.
        len: u32,
    },
    /// Up to this many bytes.
    VarBytes {
        /// The greatest length.
        max: u32,
    },
    /// Up to this many bytes, usually many: stored outside the row if the row gets too long.
    ///
    /// Keys take only prefixes of it.
    Large {
        /// The greatest length.
        max: u64,
    },
}

/// The columns of the clustered key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The columns, most significant first. They must not take NULL.
    pub parts: Vec<KeyPart>,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The index's name.
    pub name: String,
    /// The columns, most significant first.
    pub parts: Vec<KeyPart>,
    /// Whether no two rows may have the same values in all parts (NULL equals no value).
    pub unique: bool,
}

/// A column of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPart {
    /// The column's number, from 0.
    pub column: usize,
    /// Only this much of the value counts: bytes, or characters if the column has a collation.
    pub prefix: Option<u32>,
    /// Whether greater values come first. An index gives no value back from such a part.
    pub descending: bool,
}

impl KeyPart {
    /// The whole column.
    pub fn new(column: usize) -> Self {
        KeyPart {
            column,
            prefix: None,
            descending: false,
        }
    }
}

impl Key {
    /// A key of whole columns.
    pub fn new(columns: &[usize]) -> Self {
        Key {
            parts: columns.iter().map(|&c| KeyPart::new(c)).collect(),
        }
    }
}

impl Index {
    /// An index of whole columns that allows duplicates.
    pub fn new(name: impl Into<String>, columns: &[usize]) -> Self {
        Index {
            name: name.into(),
            parts: Key::new(columns).parts,
            unique: false,
        }
    }

    /// The same index, without duplicates.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }
}
