//! A key that is looked for from node to node: its first bytes as a number.

use std::cmp::Ordering;

use super::node::{head_of, HEAD};

/// Bytes of the number.
const FRONT: usize = 8;

/// A key, and its first eight bytes as one number. How long a prefix is differs from leaf to leaf, and so the
/// processor can't foresee where a branch on that goes; with a number it is a shift.
#[derive(Clone, Copy)]
pub(crate) struct SearchKey<'k> {
    bytes: &'k [u8],
    /// In order of significance, with zeros behind a shorter key.
    front: u64,
}

impl<'k> SearchKey<'k> {
    /// A key.
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

    /// What follows the prefix.
    #[inline]
    pub fn suffix(&self, prefix: usize) -> &'k [u8] {
        self.bytes.get(prefix..).unwrap_or(&[])
    }

    /// The head of what follows the prefix.
    #[inline]
    pub fn head(&self, prefix: usize) -> u32 {
        if self.bytes.len() > FRONT {
            return head_of(self.suffix(prefix));
        }
        let shifted = if prefix < FRONT {
            self.front << (8 * prefix)
        } else {
            0
        };
        (shifted >> 32) as u32
    }

    /// Compares a prefix, given as its first eight bytes as a number, with the key's front; `None` where that
    /// takes more of either.
    #[inline]
    pub fn compare_prefix(&self, len: usize, prefix: u64) -> Option<Ordering> {
        if len > FRONT {
            return None;
        }
        let kept = u64::MAX.checked_shl(64 - 8 * len as u32).unwrap_or(0);
        let in_both = (prefix & kept).cmp(&(self.front & kept));
        // A key that ends before the prefix does has zeros there, but is the shorter.
        Some(in_both.then((len > self.bytes.len()).cmp(&false)))
    }

    /// As many of the key's first bytes as it has.
    #[inline]
    pub fn first(&self, len: usize) -> &'k [u8] {
        &self.bytes[..len.min(self.bytes.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few different bytes, so that fronts are often equal.
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
            // What stands behind the prefix makes no difference.
            let mut word = rest.to_be_bytes();
            let len = prefix.len().min(word.len());
            word[..len].copy_from_slice(&prefix[..len]);
            match search_key.compare_prefix(prefix.len(), u64::from_be_bytes(word)) {
                Some(ordering) => prop_assert_eq!(ordering, prefix[..].cmp(front)),
                None => prop_assert!(prefix.len() > FRONT),
            }
        }
    }
}
