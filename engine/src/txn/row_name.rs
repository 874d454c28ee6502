//! What row an entry of the lock table means, for those who look on.
//!
//! The lock table itself works with hashes. A name takes no memory of its own, so that locking
//! a row costs no allocation: it holds the beginning of the key, which is all of it for most keys
//! of numbers.

use crate::ids::TreeId;

/// Bytes of a key that a name keeps.
const KEPT: usize = 27;

/// A tree and the beginning of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowName {
    tree: TreeId,
    len: u8,
    key: [u8; KEPT],
}

impl RowName {
    /// The name of a row. Keys longer than 27 bytes are cut.
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

    /// Whether [`RowName::key`] is only the key's beginning.
    pub fn is_cut(&self) -> bool {
        self.len == u8::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
