//! A definition in packed form, while it is not needed: of many tables, most are unused most of the time.

use super::Definition;
use crate::error::Result;
use crate::settings::Locking;

/// A definition in few bytes.
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

    /// Returns the whole definition.
    pub fn unpack(&self) -> Result<Definition> {
        Definition::decode(&self.bytes)
    }

    /// How conflicts are handled.
    pub fn locking(&self) -> Locking {
        self.locking
    }
}
