//! Reading a node without a latch.
//!
//! Other threads may change the page, or give its frame to another page, during the read. So every offset read is
//! kept inside the page, and every loop is bounded by numbers read once. A result is valid only if the latch's
//! version still holds afterwards.

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

/// A u64 that may begin at any byte.
#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned(u64);

/// The result of reading a leaf without a latch; it is valid only if the leaf's version still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafRead {
    /// The leaf has no such record.
    Absent,
    /// The value, or its prefix, was copied.
    Copied {
        /// The newest transaction that changed a record of the leaf.
        max_txid: u64,
        /// Where the value begins in the copy.
        from: usize,
        /// Where the value ends in the copy.
        to: usize,
    },
    /// The caller must read the leaf under a latch.
    Unclear,
}

/// The child of an inner node in which a search continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChildSeen {
    /// The child's number in the node.
    pub at: usize,
    /// The reference to the child.
    pub word: u64,
    /// The number of the node's separators.
    n: usize,
    /// The head of the searched key in the node.
    head: u32,
}

/// An inner node or a leaf, read without a latch.
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
        // Each read from here on may see any state of the page after the version was read.
        crate::sync::point();
        OptimisticNode {
            start,
            frames: PhantomData,
        }
    }

    /// Returns the aligned word that begins at or before `at`.
    ///
    /// Here and below, `at` is taken modulo the page size: only a page that is being changed gives a place behind its
    /// end.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        const { assert!(PAGE_SIZE.is_power_of_two()) }
        let at = at & (PAGE_SIZE - 8);
        // SAFETY: in bounds and aligned (see `new`). A writer may be changing the word: the read is volatile, and any
        // bit pattern is a u64. Until the version has been checked, the value is used only for further bounded reads.
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

    /// Returns the heads stored from `at` on, or from an earlier place if the page ends before them.
    #[inline(always)]
    fn heads_at(&self, at: usize) -> Near {
        let at = at.min(PAGE_SIZE - NEAR_BYTES) & !3;
        // SAFETY: as in `word`.
        unsafe { Near::read_volatile(self.start.add(at)) }
    }

    /// Returns eight bytes from any place, in memory order; bytes behind the page's end are zero.
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
        // Zero-padded, as numbers. If these are equal, the shorter key is a prefix of the longer.
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

    /// Compares the node's prefix of `prefix` bytes with the key's first bytes; no comparison if the fences prove
    /// them equal.
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

    /// Returns the node's level; 0 for a leaf.
    #[inline]
    pub fn level(&self) -> u8 {
        (self.u16_at(KIND) >> 8) as u8
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.u16_at(COUNT).min(PAGE_SIZE / 16)
    }

    /// Returns the first separator ≥ `key`, whether it is equal, and the key's head in the node.
    ///
    /// See `Node::lower_bound`, and [`OptimisticNode::child_for`] about `before`.
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

    /// Returns the first of the `n` heads stored from `heads` on that is not below `head`.
    ///
    /// See [`OptimisticNode::child_for`] about `before`.
    #[inline(always)]
    fn first_not_below(&self, n: usize, head: u32, before: Option<usize>, heads: usize) -> usize {
        let node = &UnlatchedHeads { node: self, heads };
        before
            .and_then(|before| heads::first_not_below_near(n, head, (before * n) >> 16, node))
            .unwrap_or_else(|| heads::first_not_below(n, head, node))
    }

    /// Continues [`OptimisticNode::lower_bound`] from separator `base` on, whose head equals the key's: it compares
    /// what follows the head.
    #[inline(never)]
    fn bound_from(&self, mut base: usize, n: usize, head: u32, suffix: &[u8]) -> (usize, bool) {
        let heads = HEADER_SIZE + 8 * n;
        let slots = HEADER_SIZE + 12 * n;
        while base < n && self.u32_at(heads + 4 * base) == head {
            // Most often few separators share a head, but there may be many: double the step while the separator at
            // twice the step shares it.
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

    /// Continues [`OptimisticNode::lower_bound`] among separators `low..high`, whose heads equal the key's.
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

    /// Returns the child that takes `key`; `before` is the share of the separators expected to be below it, in
    /// 65,536ths.
    #[inline(always)]
    pub fn child_for(&self, key: SearchKey<'_>, before: Option<usize>) -> ChildSeen {
        let n = self.count();
        let (at, equal, head) = self.lower_bound(key, n, before);
        self.child(at + usize::from(equal), n, head)
    }

    /// Returns the child that takes the keys right below `key`.
    #[inline]
    pub fn child_below(&self, key: SearchKey<'_>) -> ChildSeen {
        let n = self.count();
        let (at, _, head) = self.lower_bound(key, n, None);
        self.child(at, n, head)
    }

    /// Returns the last child.
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

    /// Returns where the key lies between the separators around its child, in 65,536ths, by their heads.
    ///
    /// `None` for the node's first and last child, which have no separator on one side.
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
        // In 32 bits, where a division takes no branch.
        let shift = 16_u32.saturating_sub(whole.leading_zeros());
        let (part, whole) = ((part >> shift).min(0xffff), (whole >> shift).max(1));
        Some(((part << 16) / whole).min(0xffff) as usize)
    }

    /// Adds the leaf's layout to the hint.
    #[inline]
    pub fn note_shape(&self, shape: &mut LeafLayoutHint) {
        shape.note(self.u16_at(COUNT), self.u16_at(HOLE_END));
    }

    /// Copies the value of a leaf's record, or its prefix.
    ///
    /// `before` is the share of the leaf's records that most likely come before it, in 65,536ths.
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
        // The place of the key's rest, the key's length without the prefix, and the value's length.
        let slot = |at: usize| {
            let slot = u64::from_le_bytes(self.bytes_at(HEADER_SIZE + 4 * n + 6 * at));
            let part = |shift: u32| usize::from((slot >> shift) as u16);
            (part(0), part(16), part(32))
        };
        let (mut rest, mut key_len, mut len) = slot(at);
        if key_len > HEAD || key_len != key.len_behind(prefix) {
            // The bytes after the head decide.
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

    /// Returns the leaf's record with the key, searching from the record at `at` on, whose head equals the key's.
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
                // Another key with the same head. If there are many, a search under a latch, which halves them, is
                // faster.
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

    /// Copies `len` bytes from `at` on, or the first of them, and returns where they begin and end in the copy.
    #[inline(always)]
    fn copy_bytes(
        &self,
        at: usize,
        len: usize,
        out: &mut impl ValueCopy,
    ) -> Option<(usize, usize)> {
        let into = out.room(len).filter(|room| room.len() <= PAGE_SIZE)?;
        // If the bytes are near the page's end, the copy begins before them.
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

/// The heads of a node that another thread may be changing.
struct UnlatchedHeads<'n, 'a> {
    node: &'n OptimisticNode<'a>,
    /// Where the first head is stored.
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
        // An inner node stores its children before the heads.
        if self.heads != HEADER_SIZE {
            let child = self.node.start.wrapping_add(HEADER_SIZE + 8 * i);
            prefetch(child);
            prefetch(child.wrapping_add(8 * NEAR));
        }
    }
}
