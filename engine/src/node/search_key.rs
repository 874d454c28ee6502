//! A key that a descent searches for in one node after another: its first bytes as a number.

use crate::node::leaf_layout_hint::HEAD;
use crate::node::view::head_of;

/// Bytes of a key that the number holds.
const FRONT: usize = 8;

/// A key, and its first eight bytes as one number.
///
/// The length of the prefix differs from leaf to leaf, so the processor can't predict a branch on it. With a number,
/// a shift skips the prefix.
#[derive(Clone, Copy)]
pub(crate) struct SearchKey<'k> {
    bytes: &'k [u8],
    /// The first byte is the most significant; zeros follow a shorter key.
    front: u64,
}

impl<'k> SearchKey<'k> {
    /// Makes a search key.
    #[inline]
    pub fn new(bytes: &'k [u8]) -> SearchKey<'k> {
        let front = match (
            bytes.first_chunk::<FRONT>(),
            bytes.first_chunk::<HEAD>(),
            bytes.last_chunk::<HEAD>(),
        ) {
            (Some(first), ..) => u64::from_be_bytes(*first),
            (None, Some(first), Some(last)) => {
                let (first, last) = (u32::from_be_bytes(*first), u32::from_be_bytes(*last));
                u64::from(first) << 32 | u64::from(last) << (8 * (FRONT - bytes.len()))
            }
            _ => u64::from(head_of(bytes)) << 32,
        };
        SearchKey { bytes, front }
    }

    /// Returns the bytes behind the prefix.
    #[inline]
    pub fn suffix(&self, prefix: usize) -> &'k [u8] {
        self.bytes.get(prefix..).unwrap_or(&[])
    }

    /// Returns the head of the bytes behind the prefix; the key must have the prefix.
    #[inline(always)]
    pub fn head(&self, prefix: usize) -> u32 {
        if self.bytes.len() > FRONT && prefix > FRONT - HEAD {
            return head_of(self.suffix(prefix));
        }
        // In two steps: a single shift by 64 bits would not shift at all.
        let half = 4 * prefix as u32;
        (self.front.wrapping_shl(half).wrapping_shl(half) >> 32) as u32
    }

    /// Returns the number of bytes behind the prefix.
    #[inline]
    pub fn len_behind(&self, prefix: usize) -> usize {
        self.bytes.len().saturating_sub(prefix)
    }

    /// Returns whether the key begins with a prefix of `len` bytes, given by its first eight bytes as a number.
    ///
    /// Also false if the prefix is longer than the number or the key.
    #[inline]
    pub fn begins_with(&self, len: usize, prefix: u64) -> bool {
        if len > FRONT.min(self.bytes.len()) {
            return false;
        }
        // In two steps: a single shift by 64 bits is not defined.
        let half = 4 * (FRONT - len);
        (prefix ^ self.front) >> half >> half == 0
    }

    /// Returns the key's first `len` bytes, or all if it has fewer.
    #[inline]
    pub fn first(&self, len: usize) -> &'k [u8] {
        &self.bytes[..len.min(self.bytes.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few different bytes, so that prefixes are often equal.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![0..2u8, any::<u8>()], 0..12)
    }

    proptest! {
        #[test]
        fn heads_are_those_of_the_bytes(key in bytes(), prefix in 0..14usize) {
            let suffix = key.get(prefix..).unwrap_or(&[]);
            prop_assert_eq!(SearchKey::new(&key).suffix(prefix), suffix);
            prop_assert_eq!(SearchKey::new(&key).head(prefix), head_of(suffix));
        }

        #[test]
        fn prefixes_are_compared_as_bytes(key in bytes(), other in bytes(), same in 0..12usize, rest in any::<u64>()) {
            let mut prefix = key.clone();
            prefix.truncate(same);
            prefix.extend(&other[..other.len().min(12 - prefix.len())]);
            let search_key = SearchKey::new(&key);
            let front = search_key.first(prefix.len());
            // The bytes behind the prefix make no difference.
            let mut word = rest.to_be_bytes();
            let len = prefix.len().min(word.len());
            word[..len].copy_from_slice(&prefix[..len]);
            let begins = search_key.begins_with(prefix.len(), u64::from_be_bytes(word));
            prop_assert_eq!(begins, prefix[..] == *front && prefix.len() <= FRONT);
        }
    }
}
