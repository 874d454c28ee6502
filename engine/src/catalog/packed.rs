//! A definition while nobody needs it: of many tables, most are not used most of the time.

use super::Definition;
use crate::error::Result;
use crate::settings::Locking;

/// A definition as few bytes.
pub struct PackedDefinition {
    bytes: Box<[u8]>,
    locking: Locking,
}

impl PackedDefinition {
    /// Packs a definition.
    pub fn new(definition: &Definition) -> Result<PackedDefinition> {
        Ok(PackedDefinition {
            bytes: definition.encode()?.into(),
            locking: definition.locking,
        })
    }

    /// The whole of it.
    pub fn unpack(&self) -> Result<Definition> {
        Definition::decode(&self.bytes)
    }

    /// What a conflict does.
    pub fn locking(&self) -> Locking {
        self.locking
    }
}
