//! Estimates of the number of rows between two keys.

use super::Handle;
use crate::failure::Outcome;

impl Handle {
    /// Returns about how many rows are between two key images.
    ///
    /// # Safety
    /// The images must be null or valid for their parts.
    pub unsafe fn estimate_range(
        &mut self,
        key: u32,
        low: (*const u8, u64, bool),
        high: (*const u8, u64, bool),
    ) -> Outcome<u64> {
        let layout = &self.shared.layout;
        let index = layout.key(key)?.index;
        let mut bounds = [None, None];
        for (bound, (image, map, _)) in bounds.iter_mut().zip([low, high]) {
            if !image.is_null() {
                let mut encoded = Vec::new();
                // SAFETY: by the caller's promise.
                unsafe { Self::encode(&self.table, layout, key, image, map, &mut encoded)? };
                *bound = Some(encoded);
            }
        }
        let [mut from, mut to] = bounds;
        if !low.2 {
            if let Some(prefix) = &mut from {
                if !successor(prefix) {
                    return Ok(0);
                }
            }
        }
        if !high.2 {
            if let Some(prefix) = &mut to {
                if !predecessor(prefix) {
                    return Ok(0);
                }
            }
        }
        Ok(self
            .table
            .estimate_range(index, from.as_deref(), to.as_deref())?)
    }
}

/// Changes a prefix to the least key that is greater than all keys with the prefix; false: there is none.
fn successor(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return true;
        }
    }
    false
}

/// Changes a prefix to the greatest prefix whose keys are all less than the old prefix, with no key in between; false:
/// there is none.
fn predecessor(prefix: &mut Vec<u8>) -> bool {
    while let Some(last) = prefix.pop() {
        if last > 0 {
            prefix.push(last - 1);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_lies_between_a_prefix_and_its_neighbours(
            prefix in prop::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..4),
            other in prop::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..6),
        ) {
            let mut after = prefix.clone();
            let has_after = successor(&mut after);
            let beyond = other > prefix && !other.starts_with(&prefix);
            prop_assert_eq!(beyond, has_after && other >= after);

            let mut before = prefix.clone();
            let has_before = predecessor(&mut before);
            // A proper prefix of the bound that ends in zeros is also less than the bound. No encoded key is such a
            // prefix, since keys of an index have all its parts.
            if !prefix.starts_with(&other) {
                let less = other < prefix;
                let inside = has_before && (other.starts_with(&before) || other < before);
                prop_assert_eq!(less, inside);
            }
        }
    }
}
