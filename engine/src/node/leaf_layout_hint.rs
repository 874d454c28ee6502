//! Where in a leaf its records stand, as told by the leaves read before: so that what a search will touch can
//! be asked for before anything of the leaf is in the processor's cache.

use crate::ids::PAGE_SIZE;
use crate::node::header::HEADER_SIZE;

/// Bytes of a key that stand in the head.
pub(crate) const HEAD: usize = 4;
/// Array bytes a leaf record takes.
pub(crate) const LEAF_ENTRY: usize = 10;

/// Fractions of a count, or of a byte, that are kept.
const FRACTION: u32 = 4;

/// A new leaf counts so much less than all before it: one in 2^WEIGHT.
const WEIGHT: u32 = 3;

/// Bytes of a slot.
const SLOT: usize = LEAF_ENTRY - HEAD;

/// Bytes before the heap of a full leaf with records of some 200 bytes: where nothing is known.
const HEAP: usize = PAGE_SIZE / 20;

/// What the leaves that were read last looked like; nothing is known at first. For keys that came in order a leaf's
/// records stand one before the other, from the page's end on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeafLayoutHint {
    /// Records, and where their heap begins; both times 2^FRACTION. 0 records: nothing is known.
    count: u32,
    heap: u32,
}

/// Where in a leaf's page a record's parts most likely stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// Where in the arrays, if that is known.
    pub in_arrays: Option<InArrays>,
    /// The end of its key's rest and value.
    pub end: usize,
}

/// Where in a leaf's arrays a record's parts most likely stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InArrays {
    /// Its head.
    pub head: usize,
    /// Its slot.
    pub slot: usize,
}

impl LeafLayoutHint {
    /// Notes a leaf.
    #[inline]
    pub(crate) fn note(&mut self, count: usize, heap: usize) {
        let new = |new: usize| (new as u32) << FRACTION;
        if self.count == 0 {
            (self.count, self.heap) = (new(count), new(heap));
            return;
        }
        let towards =
            |mean: u32, new: u32| mean.wrapping_add_signed((new as i32 - mean as i32) >> WEIGHT);
        self.count = towards(self.count, new(count));
        self.heap = towards(self.heap, new(heap));
    }

    /// Where a record stands that has so many 65,536ths of the leaf's records before it.
    #[inline]
    pub(crate) fn expected(&self, before: usize) -> Expected {
        let of_heap = |begin: usize| {
            (before * (PAGE_SIZE << FRACTION).saturating_sub(begin)) >> (16 + FRACTION)
        };
        if self.count == 0 {
            return Expected {
                in_arrays: None,
                end: PAGE_SIZE - of_heap(HEAP << FRACTION),
            };
        }
        let count = self.count as usize;
        let slots = HEADER_SIZE + HEAD * (count >> FRACTION);
        let i = (before * count) >> (16 + FRACTION);
        Expected {
            in_arrays: Some(InArrays {
                head: HEADER_SIZE + HEAD * i,
                slot: slots + SLOT * i,
            }),
            end: PAGE_SIZE - of_heap(self.heap as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_leaves_give_places_in_a_page(
            leaves in prop::collection::vec((0..1usize << 16, 0..1usize << 16), 0..50),
            before in 0..1usize << 16,
        ) {
            let mut shape = LeafLayoutHint::default();
            leaves.iter().for_each(|(count, heap)| shape.note(*count, *heap));
            prop_assert!(shape.expected(before).end <= PAGE_SIZE);
        }

        #[test]
        fn equal_records_stand_where_they_are_expected(
            length in 1..1000usize,
            others in prop::collection::vec((1..200usize, 0..PAGE_SIZE), 0..10),
            at in 0.0..1.0f64,
        ) {
            let count = (PAGE_SIZE - HEADER_SIZE) / (HEAD + SLOT + length);
            let mut shape = LeafLayoutHint::default();
            others.iter().for_each(|(count, heap)| shape.note(*count, *heap));
            // What was seen long ago is forgotten.
            (0..100).for_each(|_| shape.note(count, PAGE_SIZE - count * length));
            let i = (at * count as f64) as usize;
            let expected = shape.expected((i << 16).div_ceil(count));
            let arrays = expected.in_arrays.unwrap();
            prop_assert!(arrays.head.abs_diff(HEADER_SIZE + HEAD * i) <= HEAD);
            prop_assert!(arrays.slot.abs_diff(HEADER_SIZE + HEAD * count + SLOT * i) <= 2 * SLOT);
            prop_assert!(expected.end.abs_diff(PAGE_SIZE - i * length) <= length.max(16));
        }
    }
}
