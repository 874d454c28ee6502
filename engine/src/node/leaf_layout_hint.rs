//! Where in a leaf its records most likely are, by the leaves read before.
//!
//! So a search can prefetch what it will read, before any of the leaf is in the processor's cache.

use crate::ids::PAGE_SIZE;
use crate::node::header::HEADER_SIZE;

/// Bytes of a key that are in its head.
pub(crate) const HEAD: usize = 4;
/// Array bytes of a leaf record.
pub(crate) const LEAF_ENTRY: usize = 10;

/// Binary digits behind the point of a mean.
const FRACTION: u32 = 4;

/// A new leaf moves a mean by one part in 2^WEIGHT of the difference.
const WEIGHT: u32 = 3;

/// Bytes of a slot.
const SLOT: usize = LEAF_ENTRY - HEAD;

/// Bytes before the heap of a full leaf with records of some 200 bytes, for when nothing is known.
const HEAP: usize = PAGE_SIZE / 20;

/// The mean layout of the leaves that were read last; nothing is known at first.
///
/// If keys came in order, a leaf's records are stored one before the other, from the page's end on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeafLayoutHint {
    /// The number of records, and where their heap begins; both times 2^FRACTION. 0 records: nothing is known.
    count: u32,
    heap: u32,
}

/// Where the parts of a record most likely are in a leaf's page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected {
    /// The places in the arrays, if they are known.
    pub in_arrays: Option<InArrays>,
    /// The end of the record's key rest and value.
    pub end: usize,
}

/// Where the parts of a record most likely are in a leaf's arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InArrays {
    /// The place of the head.
    pub head: usize,
    /// The place of the slot.
    pub slot: usize,
}

impl LeafLayoutHint {
    /// Adds the layout of a leaf.
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

    /// Returns where a record most likely is; `before` is the share of the leaf's records before it, in 65,536ths.
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
            // A hundred leaves outweigh those noted before.
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
