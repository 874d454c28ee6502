//! Reading a node without a latch.
//!
//! The page may be changed, or its frame given to another page, while it is read. So every offset
//! read is kept inside the page, every loop is bounded by numbers read once, and whatever comes out
//! means something only if the latch's version still holds afterwards.

use std::cmp::Ordering;
use std::marker::PhantomData;

use super::header::*;
use super::heads::{self, Heads};
use super::leaf_shape::LeafShape;
use super::node::{HEAD, LEAF_ENTRY};
use super::prefetch::prefetch;
use super::search_key::SearchKey;
use super::vector::{Near, Vector, NEAR, NEAR_BYTES, VECTOR};
use crate::ids::PAGE_SIZE;

/// Bytes that are copied at once: whole vectors.
const BLOCK: usize = 32;

/// What a look at a leaf without a latch came to; like all else it means something only if the leaf's
/// version still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafRead {
    /// There is no such record.
    Absent,
    /// Its value is copied.
    Copied {
        /// The leaf's newest transaction.
        max_txid: u64,
        /// Where in the copy the value begins.
        from: usize,
        /// Where it ends.
        to: usize,
    },
    /// It takes a look with a latch.
    Unclear,
}

/// An inner node, or a leaf, seen without a latch.
#[derive(Clone, Copy)]
pub(crate) struct OptimisticNode<'a> {
    start: *const u8,
    frames: PhantomData<&'a u8>,
}

impl<'a> OptimisticNode<'a> {
    /// # Safety
    /// `start` is aligned to 8 and points to PAGE_SIZE initialised bytes that stay allocated for
    /// `'a`.
    #[inline]
    pub unsafe fn new(start: *const u8) -> OptimisticNode<'a> {
        OptimisticNode {
            start,
            frames: PhantomData,
        }
    }

    /// The aligned word that begins at or before `at`. Here and below, a place behind the page's end, which only a page
    /// that changes gives, is taken for the one as far behind its begin.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        const { assert!(PAGE_SIZE.is_power_of_two()) }
        let at = at & (PAGE_SIZE - 8);
        // SAFETY: in bounds and aligned (see `new`). A writer may be changing the word: the read
        // is volatile, any bit pattern is a u64, and the value is used for nothing but further
        // bounded reads until the version has been checked.
        unsafe { self.start.add(at).cast::<u64>().read_volatile() }
    }

    #[inline(always)]
    fn u32_at(&self, at: usize) -> u32 {
        let at = at & (PAGE_SIZE - 4);
        // SAFETY: as in `word`.
        u32::from_le(unsafe { self.start.add(at).cast::<u32>().read_volatile() })
    }

    #[inline(always)]
    fn u16_at(&self, at: usize) -> usize {
        let at = at & (PAGE_SIZE - 2);
        // SAFETY: as in `word`.
        usize::from(u16::from_le(unsafe {
            self.start.add(at).cast::<u16>().read_volatile()
        }))
    }

    /// The heads that begin at or before `at`.
    #[inline(always)]
    fn heads_at(&self, at: usize) -> Near {
        let at = at.min(PAGE_SIZE - NEAR_BYTES) & !3;
        // SAFETY: as in `word`.
        unsafe { Near::read_volatile(self.start.add(at)) }
    }

    /// Eight bytes from any place, in memory order.
    #[inline]
    fn bytes_at(&self, at: usize) -> [u8; 8] {
        let shift = 8 * (at & 7);
        let low = u64::from_le(self.word(at)) >> shift;
        // In two steps: all 64 bits at once are no shift.
        let high = u64::from_le(self.word(at + 8)) << 1 << (63 - shift);
        (low | high).to_le_bytes()
    }

    /// Compares `len` bytes from `at` on with `key`.
    #[inline]
    fn compare(&self, at: usize, len: usize, key: &[u8]) -> Ordering {
        if len.max(key.len()) > 8 {
            return self.compare_long(at, len, key);
        }
        // Zero-padded, as numbers; of two that are equal so, the shorter is the longer's front.
        let first = |word: u64, len: usize| match len {
            0 => 0,
            len => word >> (64 - 8 * len) << (64 - 8 * len),
        };
        let here = first(u64::from_be_bytes(self.bytes_at(at)), len);
        let there = (0..8).fold(0, |word, i| {
            word << 8 | u64::from(key.get(i).copied().unwrap_or(0))
        });
        here.cmp(&there).then(len.cmp(&key.len()))
    }

    fn compare_long(&self, mut at: usize, len: usize, key: &[u8]) -> Ordering {
        let len = len.min(PAGE_SIZE);
        let both = len.min(key.len());
        let mut done = 0;
        while done < both {
            let step = (both - done).min(8);
            let here = self.bytes_at(at);
            match here[..step].cmp(&key[done..done + step]) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
            done += step;
            at += step;
        }
        len.cmp(&key.len())
    }

    /// Compares the prefix, of so many bytes, with a key's front: equal where the fences say so.
    #[inline]
    fn compare_prefix(&self, prefix: usize, key: SearchKey<'_>) -> Ordering {
        if self.u16_at(FLAGS) & usize::from(FLAG_LOOSE_PREFIX) == 0 {
            return Ordering::Equal;
        }
        let at = self.u16_at(PREFIX_OFF);
        key.compare_prefix(prefix, u64::from_be_bytes(self.bytes_at(at)))
            .unwrap_or_else(|| self.compare(at, prefix, key.first(prefix)))
    }

    /// The node's level; 0 for a leaf.
    #[inline]
    pub fn level(&self) -> u8 {
        (self.u16_at(KIND) >> 8) as u8
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.u16_at(COUNT).min(PAGE_SIZE / 16)
    }

    /// The first separator ≥ `key`, and whether it is equal. See `Node::lower_bound`.
    #[inline]
    fn lower_bound(&self, key: SearchKey<'_>, n: usize) -> (usize, bool) {
        let prefix = self.u16_at(PREFIX_LEN);
        match self.compare_prefix(prefix, key) {
            Ordering::Equal => {}
            Ordering::Greater => return (0, false),
            Ordering::Less => return (n, false),
        }
        let (suffix, head) = (key.suffix(prefix), key.head(prefix));
        let heads = HEADER_SIZE + 8 * n;
        let mut base = heads::first_not_below(n, head, &UnlatchedHeads { node: self, heads });
        // Among equal heads, what follows the head decides.
        let slots = HEADER_SIZE + 12 * n;
        while base < n && self.u32_at(heads + 4 * base) == head {
            // Few separators share a head, but there may be many: halve while the far one does.
            let mut step = 1;
            while base + 2 * step < n && self.u32_at(heads + 4 * (base + 2 * step)) == head {
                step *= 2;
            }
            let probe = if step > 1 { base + step } else { base };
            match self.compare_tail(slots + 4 * probe, suffix) {
                Ordering::Less => base = probe + 1,
                Ordering::Equal => return (probe, true),
                Ordering::Greater if probe == base => return (base, false),
                Ordering::Greater => return self.bound_between(slots, base, probe, suffix),
            }
        }
        (base, false)
    }

    /// [`OptimisticNode::lower_bound`] among separators `low..high` of equal head.
    fn bound_between(
        &self,
        slots: usize,
        mut low: usize,
        mut high: usize,
        suffix: &[u8],
    ) -> (usize, bool) {
        while low < high {
            let middle = (low + high) / 2;
            match self.compare_tail(slots + 4 * middle, suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Greater => high = middle,
            }
        }
        (low, false)
    }

    #[inline]
    fn compare_tail(&self, slot: usize, suffix: &[u8]) -> Ordering {
        let len = self.u16_at(slot + 2);
        if len.min(suffix.len()) < HEAD || len == HEAD && suffix.len() == HEAD {
            len.cmp(&suffix.len())
        } else {
            self.compare(self.u16_at(slot), len - HEAD, &suffix[HEAD..])
        }
    }

    /// The child that takes `key`: its place, and the reference.
    #[inline]
    pub fn child_for(&self, key: SearchKey<'_>) -> (usize, u64) {
        let n = self.count();
        let (at, equal) = self.lower_bound(key, n);
        let at = at + usize::from(equal);
        (at, self.child(at, n))
    }

    /// The child that takes the keys right below `key`.
    #[inline]
    pub fn child_below(&self, key: SearchKey<'_>) -> (usize, u64) {
        let n = self.count();
        let (at, _) = self.lower_bound(key, n);
        (at, self.child(at, n))
    }

    /// The last child.
    #[inline]
    pub fn last_child(&self) -> (usize, u64) {
        let n = self.count();
        (n, self.child(n, n))
    }

    /// How far a key lies between the separators around child `at`, in 65,536ths, going by their heads; `None`
    /// at the node's ends, where there is none on one side.
    #[inline]
    pub fn part_within(&self, key: SearchKey<'_>, at: usize) -> Option<usize> {
        let n = self.count();
        if at == 0 || at >= n {
            return None;
        }
        let head = key.head(self.u16_at(PREFIX_LEN));
        let heads = HEADER_SIZE + 8 * n;
        let (from, to) = (
            self.u32_at(heads + 4 * (at - 1)),
            self.u32_at(heads + 4 * at),
        );
        let (part, whole) = (head.wrapping_sub(from), to.wrapping_sub(from));
        // In 32 bits, whose division takes no branch.
        let shift = 16_u32.saturating_sub(whole.leading_zeros());
        let (part, whole) = ((part >> shift).min(0xffff), (whole >> shift).max(1));
        Some(((part << 16) / whole).min(0xffff) as usize)
    }

    /// Notes what the leaf looks like.
    #[inline]
    pub fn note_shape(&self, shape: &mut LeafShape) {
        shape.note(self.u16_at(COUNT), self.u16_at(HOLE_END));
    }

    /// Copies the value of a leaf's record, at most so many bytes of it, into `out`, which has room for a page;
    /// `before`: how many 65,536ths of the leaf's records most likely stand before it.
    #[inline]
    pub fn copy_value(
        &self,
        key: SearchKey<'_>,
        before: Option<usize>,
        most: usize,
        out: &mut [u8],
    ) -> LeafRead {
        let n = self
            .u16_at(COUNT)
            .min((PAGE_SIZE - HEADER_SIZE) / LEAF_ENTRY);
        let prefix = self.u16_at(PREFIX_LEN);
        if self.compare_prefix(prefix, key) != Ordering::Equal {
            return LeafRead::Absent;
        }
        let (suffix, head) = (key.suffix(prefix), key.head(prefix));
        let slots = HEADER_SIZE + 4 * n;
        let heads = UnlatchedHeads {
            node: self,
            heads: HEADER_SIZE,
        };
        let mut at = match before {
            Some(before) => heads::first_not_below_near(n, head, (before * n) >> 16, &heads),
            None => heads::first_not_below(n, head, &heads),
        };
        loop {
            if at >= n || self.u32_at(HEADER_SIZE + 4 * at) != head {
                return LeafRead::Absent;
            }
            let slot = slots + 6 * at;
            match self.compare_tail(slot, suffix) {
                Ordering::Equal => {
                    let rest = self.u16_at(slot + 2).saturating_sub(HEAD);
                    let len = self.u16_at(slot + 4).min(most);
                    return self.copy_bytes(self.u16_at(slot) + rest, len, out);
                }
                Ordering::Greater => return LeafRead::Absent,
                // Another key of the same head; where there are many, a latched search halves them.
                Ordering::Less if at + 1 < n => at += 1,
                Ordering::Less => return LeafRead::Absent,
            }
            if at & 7 == 0 {
                return LeafRead::Unclear;
            }
        }
    }

    /// Copies `len` bytes from `at` on, by the blocks that hold them.
    #[inline]
    fn copy_bytes(&self, at: usize, len: usize, out: &mut [u8]) -> LeafRead {
        let blocks = ((at & 7) + len).div_ceil(BLOCK);
        let Some(into) = out.get_mut(..BLOCK * blocks) else {
            return LeafRead::Unclear;
        };
        // What stands at the page's end is copied with what is before it.
        let first = (at & !7).min(PAGE_SIZE.saturating_sub(into.len()));
        let from = at - first;
        if from + len > into.len() || into.len() > PAGE_SIZE {
            return LeafRead::Unclear;
        }
        for (i, to) in into.chunks_exact_mut(VECTOR).enumerate() {
            // SAFETY: as in `word`: all blocks together end within the page.
            let vector = unsafe { Vector::read_volatile(self.start.add(first + VECTOR * i)) };
            to.copy_from_slice(&vector.bytes());
        }
        LeafRead::Copied {
            max_txid: u64::from_le(self.word(MAX_TXID)),
            from,
            to: from + len,
        }
    }

    #[inline]
    fn child(&self, at: usize, n: usize) -> u64 {
        u64::from_le(self.word(if at < n {
            HEADER_SIZE + 8 * at
        } else {
            UPPER_CHILD
        }))
    }
}

/// The heads of a node that may change meanwhile.
struct UnlatchedHeads<'n, 'a> {
    node: &'n OptimisticNode<'a>,
    /// Where the first stands.
    heads: usize,
}

impl Heads for UnlatchedHeads<'_, '_> {
    #[inline(always)]
    fn at(&self, i: usize) -> u32 {
        self.node.u32_at(self.heads + 4 * i)
    }

    #[inline(always)]
    fn near(&self, i: usize) -> Near {
        self.node.heads_at(self.heads + 4 * i)
    }

    #[inline(always)]
    fn expect(&self, i: usize) {
        // An inner node has its children in front of the heads.
        if self.heads != HEADER_SIZE {
            let child = self.node.start.wrapping_add(HEADER_SIZE + 8 * i);
            prefetch(child);
            prefetch(child.wrapping_add(8 * NEAR));
        }
    }
}
