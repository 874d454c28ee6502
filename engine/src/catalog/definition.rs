//! A table's definition, and the log records that change definitions.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::ids::{PageId, TableId, TreeId};
use crate::planted::{is_planted, PlantedFault};
use crate::row::{SchemaNames, TableSchema};
use crate::settings::Locking;

/// Log record kind: a change of the catalog.
pub const KIND_DDL: u8 = 16;
/// Log record kind: a table's auto-increment counter (also a [`DdlRecord`]).
pub const KIND_COUNTER: u8 = 17;

/// First byte of all that this module serialises.
const VERSION: u8 = 3;
/// The version before, whose definitions have no [`Locking`]: they were always pessimistic.
const VERSION_WITHOUT_LOCKING: u8 = 2;
/// First byte of [`DdlRecord::CreateCounted`], which earlier versions of the program do not know.
const VERSION_COUNTED: u8 = 4;
/// First byte of [`DdlRecord::Names`].
const VERSION_NAMES: u8 = 5;
/// First byte of [`DdlRecord::User`].
const VERSION_USER: u8 = 6;

/// A tree of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRoot {
    /// The tree's number.
    pub id: TreeId,
    /// The tree's root page.
    ///
    /// Has no meaning in a log record: replay creates new trees.
    pub root: PageId,
}

/// A table as the catalog stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The table's number, never reused.
    pub id: TableId,
    /// The table's name.
    pub name: String,
    /// The table's columns and keys.
    pub schema: TableSchema,
    /// The clustered tree, then one per secondary index.
    pub trees: Vec<TreeRoot>,
    /// The tree of large values, if rows can need one.
    pub large: Option<TreeRoot>,
    /// How conflicts are handled.
    ///
    /// Must be the last field: see [`VERSION_WITHOUT_LOCKING`].
    pub locking: Locking,
}

impl Definition {
    /// All trees of the table.
    pub fn all_trees(&self) -> impl Iterator<Item = &TreeRoot> {
        self.trees.iter().chain(&self.large)
    }

    /// Serialises the definition.
    pub fn encode(&self) -> Result<Vec<u8>> {
        encode(self)
    }

    /// Reads a serialised definition.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let definition: Definition = decode(bytes, "table definition")?;
        definition.look_at_trees()?;
        Ok(definition)
    }

    /// Fails if the number of trees is not that of the indexes.
    fn look_at_trees(&self) -> Result<()> {
        let indexes = self.schema.indexes.len() + 1;
        if self.trees.len() != indexes {
            return Err(Error::Internal(format!(
                "table definition of {}: {} trees for {indexes} indexes",
                self.name,
                self.trees.len()
            )));
        }
        Ok(())
    }
}

/// A change of the catalog in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DdlRecord {
    /// A table was created.
    Create(Definition),
    /// A table was dropped.
    Drop(TableId),
    /// A table was renamed.
    Rename(TableId, String),
    /// A table lost all rows, and got the trees of this definition.
    Truncate(Definition),
    /// A table's auto-increment counter is at least this.
    Counter(TableId, u64),
    /// The handling of conflicts in a table was changed.
    Locking(TableId, Locking),
    /// A table was created with this auto-increment counter: both, or neither.
    CreateCounted(Definition, u64),
    /// A table's columns and indexes got other names.
    Names(TableId, SchemaNames),
    /// The bytes that the program keeps with a table were changed: [`TableSchema::user`].
    User(TableId, Vec<u8>),
}

impl DdlRecord {
    /// Serialises the record.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = encode(self)?;
        match self {
            DdlRecord::CreateCounted(..) => bytes[0] = VERSION_COUNTED,
            DdlRecord::Names(..) => bytes[0] = VERSION_NAMES,
            DdlRecord::User(..) => bytes[0] = VERSION_USER,
            _ => {}
        }
        Ok(bytes)
    }

    /// Reads a serialised record.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let what = "log record of a table definition";
        let record: DdlRecord = match bytes.split_first() {
            Some((&(VERSION_COUNTED | VERSION_NAMES | VERSION_USER), rest)) => {
                from_postcard(rest, what)
            }
            _ => decode(bytes, what),
        }?;
        match &record {
            DdlRecord::Create(definition)
            | DdlRecord::CreateCounted(definition, _)
            | DdlRecord::Truncate(definition)
                if !is_planted(PlantedFault::TakeTreeless) =>
            {
                definition.look_at_trees()?;
            }
            _ => {}
        }
        Ok(record)
    }
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    postcard::to_extend(value, vec![VERSION])
        .map_err(|e| Error::Internal(format!("serialising a table definition: {e}")))
}

fn from_postcard<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|e| Error::Internal(format!("{what} can't be read: {e}")))
}

fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    match bytes.split_first() {
        Some((&VERSION, rest)) => from_postcard(rest, what),
        Some((&VERSION_WITHOUT_LOCKING, rest)) => {
            // The missing field is the last of a definition, and a definition is the last of a log record. Other
            // records ignore bytes behind their end.
            let mut whole = rest.to_vec();
            whole.push(0);
            from_postcard(&whole, what)
        }
        Some((version, _)) => Err(Error::Invalid(format!(
            "{what} has version {version}; this program knows version {VERSION}"
        ))),
        None => Err(Error::Internal(format!("{what} is empty"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{Column, ColumnType, Index, Key};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(name in ".*", user in any::<Vec<u8>>(), id in any::<u32>(), optimistic in any::<bool>()) {
            let locking = if optimistic { Locking::Optimistic } else { Locking::Pessimistic };
            let definition = Definition {
                id: TableId(id),
                name,
                schema: TableSchema {
                    columns: vec![Column::new("a", ColumnType::Int { bytes: 4, signed: true })],
                    primary: Some(Key::new(&[0])),
                    indexes: vec![Index::new("i", &[0]).unique()],
                    user,
                },
                trees: vec![TreeRoot { id: TreeId(16), root: PageId(3) }; 2],
                large: None,
                locking,
            };
            prop_assert_eq!(&Definition::decode(&definition.encode().unwrap()).unwrap(), &definition);
            let record = DdlRecord::Create(definition.clone());
            prop_assert_eq!(DdlRecord::decode(&record.encode().unwrap()).unwrap(), record);
            let record = DdlRecord::CreateCounted(definition.clone(), u64::from(id) << 20);
            let bytes = record.encode().unwrap();
            // A program that does not know the record must take it for a newer version's.
            prop_assert_eq!(bytes[0], VERSION_COUNTED);
            prop_assert_eq!(DdlRecord::decode(&bytes).unwrap(), record);
            let names = SchemaNames { columns: vec![definition.name.clone()], indexes: vec!["j".into()] };
            let record = DdlRecord::Names(TableId(id), names);
            let bytes = record.encode().unwrap();
            prop_assert_eq!(bytes[0], VERSION_NAMES);
            prop_assert_eq!(DdlRecord::decode(&bytes).unwrap(), record);
            let record = DdlRecord::User(TableId(id), definition.schema.user.clone());
            let bytes = record.encode().unwrap();
            prop_assert_eq!(bytes[0], VERSION_USER);
            prop_assert_eq!(DdlRecord::decode(&bytes).unwrap(), record);

            // In the form of the version before.
            let definition = Definition { locking: Locking::Pessimistic, ..definition };
            let older = |mut bytes: Vec<u8>| {
                bytes[0] = VERSION_WITHOUT_LOCKING;
                bytes.pop();
                bytes
            };
            let bytes = older(definition.encode().unwrap());
            prop_assert_eq!(&Definition::decode(&bytes).unwrap(), &definition);
            let record = DdlRecord::Truncate(definition);
            let bytes = older(record.encode().unwrap());
            prop_assert_eq!(DdlRecord::decode(&bytes).unwrap(), record);
            let record = DdlRecord::Counter(TableId(id), 7);
            let mut bytes = record.encode().unwrap();
            bytes[0] = VERSION_WITHOUT_LOCKING;
            prop_assert_eq!(DdlRecord::decode(&bytes).unwrap(), record);
        }

        #[test]
        fn never_panics(mut bytes in any::<Vec<u8>>(), versioned in any::<bool>()) {
            if versioned && !bytes.is_empty() {
                bytes[0] = VERSION_USER - bytes[0] % 5;
            }
            let _ = Definition::decode(&bytes);
            let _ = DdlRecord::decode(&bytes);
        }
    }

    #[test]
    fn a_record_of_a_table_without_trees_is_refused() {
        let definition = Definition {
            id: TableId(1),
            name: "t".into(),
            schema: TableSchema {
                columns: vec![Column::new("a", ColumnType::Double)],
                primary: None,
                indexes: vec![],
                user: vec![],
            },
            trees: vec![],
            large: None,
            locking: Locking::Pessimistic,
        };
        for record in [
            DdlRecord::Create(definition.clone()),
            DdlRecord::CreateCounted(definition.clone(), 2),
            DdlRecord::Truncate(definition),
        ] {
            let refused = DdlRecord::decode(&record.encode().unwrap());
            assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");
        }
    }
}
