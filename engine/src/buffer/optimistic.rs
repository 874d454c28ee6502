//! Reading a node without a latch.
//!
//! The page may be changed, or its frame given to another page, while it is read. So every offset
//! read is kept inside the page, every loop is bounded by numbers read once, and whatever comes out
//! means something only if the latch's version still holds afterwards.

use std::cmp::Ordering;
use std::marker::PhantomData;

use crate::ids::PAGE_SIZE;
use crate::node::header::*;
use crate::node::heads;
use crate::node::heads::Heads;
use crate::node::leaf_layout_hint::{LeafLayoutHint, HEAD, LEAF_ENTRY};
use crate::node::prefetch::prefetch;
use crate::node::search_key::SearchKey;
use crate::node::value_copy::ValueCopy;
use crate::node::vector::{Near, Vector, NEAR, NEAR_BYTES, VECTOR};

/// Eight bytes from any place.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned(u64);

/// What a look at a leaf without a latch came to; like all else it means something only if the leaf's
/// version still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafRead {
    /// There is no such record.
    Absent,
    /// Its value is copied, or its prefix.
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

/// Where a search goes on from an inner node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildSeen {
    /// The child's place.
    pub at: usize,
    /// The reference to it.
    pub word: u64,
    /// The node's separators.
    n: usize,
    /// The key's head in the node.
    head: u32,
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
        // What is read from here on may be of any moment after the version was noted.
        crate::sync::point();
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

    /// Eight bytes from any place, in memory order; zeros stand behind the page's end.
    #[inline(always)]
    fn bytes_at(&self, at: usize) -> [u8; 8] {
        let from = at.min(PAGE_SIZE - size_of::<Unaligned>());
        // SAFETY: as in `word`; an `Unaligned` has no alignment.
        let word = unsafe { self.start.add(from).cast::<Unaligned>().read_volatile() }.0;
        (u64::from_le(word) >> (8 * ((at - from) & 7))).to_le_bytes()
    }

    /// Compares `len` bytes from `at` on with `key`.
    #[inline]
    fn compare(&self, at: usize, len: usize, key: &[u8]) -> Ordering {
        if len.max(key.len()) > 8 {
            return self.compare_long(at, len, key);
        }
        // Zero-padded, as numbers; of two that are equal so, the shorter is the longer's prefix.
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

    /// Compares the node's prefix, of so many bytes, with as many bytes of a key: equal where the fences say so.
    #[inline(always)]
    fn compare_prefix(&self, prefix: usize, key: SearchKey<'_>) -> Ordering {
        if self.u16_at(FLAGS) & usize::from(FLAG_LOOSE_PREFIX) == 0
            || key.begins_with(
                prefix,
                u64::from_be_bytes(self.bytes_at(self.u16_at(PREFIX_OFF))),
            )
        {
            return Ordering::Equal;
        }
        self.compare_loose(prefix, key.first(prefix))
    }

    #[inline(never)]
    fn compare_loose(&self, prefix: usize, front: &[u8]) -> Ordering {
        self.compare(self.u16_at(PREFIX_OFF), prefix, front)
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

    /// The first separator ≥ `key`, whether it is equal, and the key's head in the node; see
    /// [`OptimisticNode::child_for`] about `before`. See `Node::lower_bound`.
    #[inline(always)]
    fn lower_bound(
        &self,
        key: SearchKey<'_>,
        n: usize,
        before: Option<usize>,
    ) -> (usize, bool, u32) {
        let prefix = self.u16_at(PREFIX_LEN);
        let head = key.head(prefix);
        match self.compare_prefix(prefix, key) {
            Ordering::Equal => {}
            Ordering::Greater => return (0, false, head),
            Ordering::Less => return (n, false, head),
        }
        let heads = HEADER_SIZE + 8 * n;
        let at = self.first_not_below(n, head, before, heads);
        if at < n && self.u32_at(heads + 4 * at) == head {
            let (at, equal) = self.bound_from(at, n, head, key.suffix(prefix));
            return (at, equal, head);
        }
        (at, false, head)
    }

    /// The first of `n` heads, which stand from `heads` on, that is not below `head`; see
    /// [`OptimisticNode::child_for`] about `before`.
    #[inline(always)]
    fn first_not_below(&self, n: usize, head: u32, before: Option<usize>, heads: usize) -> usize {
        let node = &UnlatchedHeads { node: self, heads };
        before
            .and_then(|before| heads::first_not_below_near(n, head, (before * n) >> 16, node))
            .unwrap_or_else(|| heads::first_not_below(n, head, node))
    }

    /// [`OptimisticNode::lower_bound`] from separator `base` on, which has the key's head: what follows the head
    /// decides.
    #[inline(never)]
    fn bound_from(&self, mut base: usize, n: usize, head: u32, suffix: &[u8]) -> (usize, bool) {
        let heads = HEADER_SIZE + 8 * n;
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

    /// The child that takes `key`; `before`: how many 65,536ths of the node's separators most likely are below it.
    #[inline(always)]
    pub fn child_for(&self, key: SearchKey<'_>, before: Option<usize>) -> ChildSeen {
        let n = self.count();
        let (at, equal, head) = self.lower_bound(key, n, before);
        self.child(at + usize::from(equal), n, head)
    }

    /// The child that takes the keys right below `key`.
    #[inline]
    pub fn child_below(&self, key: SearchKey<'_>) -> ChildSeen {
        let n = self.count();
        let (at, _, head) = self.lower_bound(key, n, None);
        self.child(at, n, head)
    }

    /// The last child.
    #[inline]
    pub fn last_child(&self) -> ChildSeen {
        let n = self.count();
        self.child(n, n, 0)
    }

    #[inline(always)]
    fn child(&self, at: usize, n: usize, head: u32) -> ChildSeen {
        let word = u64::from_le(self.word(if at < n {
            HEADER_SIZE + 8 * at
        } else {
            UPPER_CHILD
        }));
        ChildSeen { at, word, n, head }
    }

    /// How far the key lies between the separators around its child, in 65,536ths, going by their heads; `None`
    /// at the node's ends, where there is none on one side.
    #[inline(always)]
    pub fn part_within(&self, child: &ChildSeen) -> Option<usize> {
        let ChildSeen { at, n, head, .. } = *child;
        if at == 0 || at >= n {
            return None;
        }
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
    pub fn note_shape(&self, shape: &mut LeafLayoutHint) {
        shape.note(self.u16_at(COUNT), self.u16_at(HOLE_END));
    }

    /// Copies the value of a leaf's record, or its prefix; `before`: how many 65,536ths of the leaf's records most
    /// likely stand before it.
    #[inline(always)]
    pub fn copy_value(
        &self,
        key: SearchKey<'_>,
        before: Option<usize>,
        out: &mut impl ValueCopy,
    ) -> LeafRead {
        let n = self
            .u16_at(COUNT)
            .min((PAGE_SIZE - HEADER_SIZE) / LEAF_ENTRY);
        let prefix = self.u16_at(PREFIX_LEN);
        if self.compare_prefix(prefix, key) != Ordering::Equal {
            return LeafRead::Absent;
        }
        let head = key.head(prefix);
        let at = self.first_not_below(n, head, before, HEADER_SIZE);
        if at >= n || self.u32_at(HEADER_SIZE + 4 * at) != head {
            return LeafRead::Absent;
        }
        // The place of the key's rest, its length with the head, and the value's.
        let slot = |at: usize| {
            let slot = u64::from_le_bytes(self.bytes_at(HEADER_SIZE + 4 * n + 6 * at));
            let part = |shift: u32| usize::from((slot >> shift) as u16);
            (part(0), part(16), part(32))
        };
        let (mut rest, mut key_len, mut len) = slot(at);
        if key_len > HEAD || key_len != key.len_behind(prefix) {
            // What follows the head decides.
            match self.equal_from(at, n, head, key.suffix(prefix)) {
                Ok(equal) => (rest, key_len, len) = slot(equal),
                Err(read) => return read,
            }
        }
        let at = rest + key_len.saturating_sub(HEAD);
        match self.copy_bytes(at, len, out) {
            Some((from, to)) => LeafRead::Copied {
                max_txid: u64::from_le(self.word(MAX_TXID)),
                from,
                to,
            },
            None => LeafRead::Unclear,
        }
    }

    /// The leaf's record with the key, of those from the one at `at` on, which has the key's head.
    #[inline(never)]
    fn equal_from(
        &self,
        mut at: usize,
        n: usize,
        head: u32,
        suffix: &[u8],
    ) -> Result<usize, LeafRead> {
        loop {
            match self.compare_tail(HEADER_SIZE + 4 * n + 6 * at, suffix) {
                Ordering::Equal => return Ok(at),
                Ordering::Greater => return Err(LeafRead::Absent),
                // Another key of the same head; where there are many, a latched search halves them.
                Ordering::Less => at += 1,
            }
            if at >= n || self.u32_at(HEADER_SIZE + 4 * at) != head {
                return Err(LeafRead::Absent);
            }
            if at & 7 == 0 {
                return Err(LeafRead::Unclear);
            }
        }
    }

    /// Copies `len` bytes from `at` on, or the first of them: where they begin and end in the copy.
    #[inline(always)]
    fn copy_bytes(
        &self,
        at: usize,
        len: usize,
        out: &mut impl ValueCopy,
    ) -> Option<(usize, usize)> {
        let into = out.room(len).filter(|room| room.len() <= PAGE_SIZE)?;
        // What stands at the page's end is copied with what is before it.
        let first = at.min(PAGE_SIZE - into.len());
        let from = at - first;
        let to = (from + len).min(into.len());
        for (i, to) in into.chunks_exact_mut(VECTOR).enumerate() {
            // SAFETY: as in `word`: all blocks together end within the page.
            let vector = unsafe { Vector::read_volatile(self.start.add(first + VECTOR * i)) };
            to.copy_from_slice(&vector.bytes());
        }
        (from <= to).then_some((from, to))
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
