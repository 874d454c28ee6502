//! Collations: the order of strings, which the embedding program defines.

pub(crate) mod case_map;

use crate::error::Result;

/// Makes the sort keys of strings.
///
/// The engine compares keys with memcmp only: strings that a collation finds equal must have equal sort keys.
pub trait Collations: Send + Sync {
    /// Appends to `out` a byte string whose memcmp order is the collation's order of values.
    ///
    /// The byte string must mark its own end: no sort key of a collation may be a proper prefix of another, because
    /// other key parts follow it. With `prefix_chars`, only that many first characters of the value count. Each has at
    /// most 4 bytes, and of a value that is stored outside its row only that many bytes are given: the last character
    /// may be cut, and that is no error.
    ///
    /// If this panics within a change of a row, the transaction can only be rolled back, or go back to a savepoint
    /// before.
    ///
    /// # Errors
    /// `Error::Invalid` for an unknown collation.
    fn sort_key(
        &self,
        collation: u32,
        value: &[u8],
        prefix_chars: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<()>;
}
