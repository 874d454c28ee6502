//! The row that an entry of the lock table means.
//!
//! The lock table itself works with hashes, [`Row`]; lists of locks have a [`RowName`]. A name has a fixed size, so
//! that locking a row allocates no memory: it has the beginning of the key, which for most keys of numbers is the
//! whole key.

use std::collections::hash_map::{DefaultHasher, RandomState};
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::LazyLock;

use crate::ids::TreeId;
use crate::planted::{is_planted, PlantedFault};

/// A row in the lock table: a hash of tree and key.
///
/// Two rows with the same hash, one pair in 2^64, share their locks. That costs a needless wait. It can also cost a
/// lock: a transaction that has locked one row and writes the other, or waits for its writer, may lose the lock of
/// the first. Both rows need the same entry, and the transaction gives that entry up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row(pub u64);

impl Row {
    pub fn new(tree: TreeId, key: &[u8]) -> Row {
        let mut hasher = hasher();
        tree.hash(&mut hasher);
        key.hash(&mut hasher);
        Row(hasher.finish())
    }
}

/// Begins a hash with a key that only this process has.
///
/// So a user who chooses the keys of rows can't tell which rows would share their locks. Nothing on disk has such a
/// hash. Schedules use a fixed key, because they are replayed.
fn hasher() -> DefaultHasher {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    if cfg!(feature = "shaken") || is_planted(PlantedFault::KnownRowHash) {
        return DefaultHasher::new();
    }
    KEY.build_hasher()
}

/// `Row` is a hash already.
#[derive(Default)]
pub(crate) struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, row: u64) {
        self.0 = row;
    }
}

/// A set of rows.
pub(super) type RowSet = HashSet<Row, BuildHasherDefault<RowHasher>>;

/// Bytes of a key that a name has.
const KEPT: usize = 27;

/// A tree and the beginning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName {
    tree: TreeId,
    len: u8,
    key: [u8; KEPT],
}

impl RowName {
    /// Makes the name of a row; cuts keys longer than 27 bytes.
    pub fn new(tree: TreeId, key: &[u8]) -> Self {
        let kept = key.len().min(KEPT);
        let mut name = RowName {
            tree,
            len: if key.len() > KEPT {
                u8::MAX
            } else {
                kept as u8
            },
            key: [0; KEPT],
        };
        name.key[..kept].copy_from_slice(&key[..kept]);
        name
    }

    /// The tree.
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// The key, or its beginning.
    pub fn key(&self) -> &[u8] {
        &self.key[..usize::from(self.len).min(KEPT)]
    }

    /// Returns whether [`RowName::key`] is only the key's beginning.
    pub fn is_cut(&self) -> bool {
        self.len == u8::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_outside_can_tell_which_rows_share_a_hash() {
        if crate::knobs::SHAKEN {
            // Schedules are replayed with a fixed key.
            return;
        }
        let (tree, key) = (TreeId(3), b"key");
        let mut known = DefaultHasher::new();
        tree.hash(&mut known);
        key[..].hash(&mut known);
        let row = Row::new(tree, key);
        assert_ne!(row.0, known.finish());
        assert_eq!(row, Row::new(tree, key));
    }

    #[test]
    fn a_name_has_the_key_or_its_beginning() {
        for length in 0..60 {
            let key: Vec<u8> = (0..length).collect();
            let name = RowName::new(TreeId(3), &key);
            assert_eq!(name.tree(), TreeId(3));
            assert_eq!(name.key(), &key[..key.len().min(KEPT)]);
            assert_eq!(name.is_cut(), key.len() > KEPT);
        }
    }
}
