//! The slotted node: how a leaf or an inner node is read.
//!
//! Arrays with one element a record grow from the front. A heap of key rests, values and fences grows from the back.
//! Between them is the hole. A node stores the prefix that all its keys share once. It stores the next four bytes of
//! each key, the *heads*, in an array of their own, so that a search reads few cache lines. (Graefe, "Modern B-Tree
//! Techniques", 2011; Leis et al., LeanStore, 2018.)
//!
//! Leaf: `heads: [u32; n]`, `slots: [(offset, key length, value length): 3 × u16; n]`. Inner: `children: [u64; n]`,
//! `heads: [u32; n]`, `slots: [(offset, key length): 2 × u16; n]`, and the last child in the header. Key lengths are
//! without the prefix. A head is the big-endian number of the first four bytes, zero-padded. The heap holds what
//! follows the head.
//!
//! A node takes keys with lower fence ≤ key < upper fence. Child `i` takes separator `i - 1` ≤ key
//! < separator `i`.

use std::cmp::Ordering;

use crate::ids::PAGE_SIZE;
use crate::node::header::*;
use crate::node::heads;
use crate::node::heads::Heads;
use crate::node::leaf_layout_hint::{LeafLayoutHint, HEAD, LEAF_ENTRY};
use crate::node::vector::{Near, NEAR_BYTES};

/// Array bytes of an inner node's separator.
pub(crate) const INNER_ENTRY: usize = 16;

/// Returns the head of a key from which the prefix has been removed.
#[inline]
pub(crate) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk::<HEAD>() {
        Some(first) => u32::from_be_bytes(*first),
        // For so few bytes, a call of memcpy would cost more.
        None => (0..HEAD).fold(0, |head, i| {
            head << 8 | u32::from(suffix.get(i).copied().unwrap_or(0))
        }),
    }
}

/// Returns how many bytes two keys share at their front.
#[inline]
pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Returns the shortest key s with `left` < s ≤ `right`, given `left` < `right`.
#[inline]
pub(crate) fn separator<'a>(left: &[u8], right: &'a [u8]) -> &'a [u8] {
    &right[..(shared_prefix(left, right) + 1).min(right.len())]
}

/// A node for reading; its page has passed [`Node::validate`], or this code has written it.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(super) page: &'a Page,
}

/// Copies a few bytes between slices of the same length; a call of memcpy would cost more.
#[inline]
fn copy_short(from: &[u8], to: &mut [u8]) {
    let n = from.len();
    if let (Some(first), Some(last)) = (from.first_chunk::<8>(), from.last_chunk::<8>()) {
        if n <= 16 {
            to[..8].copy_from_slice(first);
            to[n - 8..].copy_from_slice(last);
        } else {
            to.copy_from_slice(from);
        }
    } else {
        to.iter_mut().zip(from).for_each(|(to, &b)| *to = b);
    }
}

/// The heads of a node under a latch, as bytes.
struct LatchedHeads<'a>(&'a [u8]);

impl Heads for LatchedHeads<'_> {
    #[inline(always)]
    fn at(&self, i: usize) -> u32 {
        get_u32(self.0, 4 * i)
    }

    #[inline(always)]
    fn near(&self, i: usize) -> Near {
        let bytes = self.0[4 * i..].first_chunk::<NEAR_BYTES>();
        // A search asks for no heads behind the last.
        bytes.map_or(Near::from_bytes(&[0; NEAR_BYTES]), Near::from_bytes)
    }
}

impl<'a> Node<'a> {
    pub fn new(page: &'a Page) -> Node<'a> {
        Node { page }
    }

    pub fn is_leaf(&self) -> bool {
        self.page[KIND] == PageKind::Leaf as u8
    }

    pub fn level(&self) -> u8 {
        self.page[LEVEL]
    }

    #[inline]
    pub fn count(&self) -> usize {
        get_u16(self.page, COUNT)
    }

    pub fn page_id(&self) -> u64 {
        get_u64(self.page, PAGE_ID)
    }

    pub fn max_txid(&self) -> u64 {
        get_u64(self.page, MAX_TXID)
    }

    #[inline]
    pub fn prefix(&self) -> &'a [u8] {
        let at = get_u16(self.page, PREFIX_OFF);
        &self.page[at..at + get_u16(self.page, PREFIX_LEN)]
    }

    pub fn has_loose_prefix(&self) -> bool {
        get_u16(self.page, FLAGS) & usize::from(FLAG_LOOSE_PREFIX) != 0
    }

    pub fn lower_fence(&self) -> &'a [u8] {
        let at = get_u16(self.page, LOWER_OFF);
        &self.page[at..at + get_u16(self.page, LOWER_LEN)]
    }

    pub fn upper_fence(&self) -> Option<&'a [u8]> {
        if get_u16(self.page, FLAGS) & usize::from(FLAG_NO_UPPER) != 0 {
            return None;
        }
        let at = get_u16(self.page, UPPER_OFF);
        Some(&self.page[at..at + get_u16(self.page, UPPER_LEN)])
    }

    /// Returns the array bytes of a record in this node.
    #[inline]
    pub fn entry_size(&self) -> usize {
        if self.is_leaf() {
            LEAF_ENTRY
        } else {
            INNER_ENTRY
        }
    }

    #[inline]
    pub(super) fn heads_at(&self) -> usize {
        if self.is_leaf() {
            HEADER_SIZE
        } else {
            HEADER_SIZE + 8 * self.count()
        }
    }

    #[inline]
    pub(super) fn slot_at(&self, i: usize) -> usize {
        if self.is_leaf() {
            HEADER_SIZE + 4 * self.count() + 6 * i
        } else {
            HEADER_SIZE + 12 * self.count() + 4 * i
        }
    }

    #[inline]
    pub fn head(&self, i: usize) -> u32 {
        get_u32(self.page, self.heads_at() + 4 * i)
    }

    #[inline]
    pub(super) fn offset(&self, i: usize) -> usize {
        get_u16(self.page, self.slot_at(i))
    }

    /// Length of record `i`'s key without the prefix.
    #[inline]
    pub fn suffix_len(&self, i: usize) -> usize {
        get_u16(self.page, self.slot_at(i) + 2)
    }

    /// Length of record `i`'s whole key.
    #[inline]
    pub fn key_len(&self, i: usize) -> usize {
        get_u16(self.page, PREFIX_LEN) + self.suffix_len(i)
    }

    /// The bytes after the head of record `i`'s key.
    #[inline]
    pub(super) fn rest(&self, i: usize) -> &'a [u8] {
        let at = self.offset(i);
        &self.page[at..at + self.suffix_len(i).saturating_sub(HEAD)]
    }

    /// Length of a leaf record's value.
    #[inline]
    pub fn value_len(&self, i: usize) -> usize {
        get_u16(self.page, self.slot_at(i) + 4)
    }

    /// A leaf record's value.
    #[inline]
    pub fn value(&self, i: usize) -> &'a [u8] {
        let slot = self.slot_at(i);
        let at = get_u16(self.page, slot) + get_u16(self.page, slot + 2).saturating_sub(HEAD);
        &self.page[at..at + get_u16(self.page, slot + 4)]
    }

    /// An inner node's child `i`, 0 to `count()` inclusive.
    #[inline]
    pub fn child(&self, i: usize) -> u64 {
        get_u64(self.page, self.child_at(i))
    }

    #[inline]
    pub(super) fn child_at(&self, i: usize) -> usize {
        if i < self.count() {
            HEADER_SIZE + 8 * i
        } else {
            UPPER_CHILD
        }
    }

    /// Appends record `i`'s whole key to `out`.
    pub fn append_key(&self, i: usize, out: &mut Vec<u8>) {
        let head = self.head(i).to_be_bytes();
        let length = self.suffix_len(i);
        out.extend_from_slice(self.prefix());
        if length >= HEAD {
            out.extend_from_slice(&head);
            out.extend_from_slice(self.rest(i));
        } else {
            out.extend_from_slice(&head[..length]);
        }
    }

    /// Fills `out` with record `i`'s key from byte `from` on; false if the key is too short.
    #[inline]
    pub fn copy_key(&self, i: usize, from: usize, out: &mut [u8]) -> bool {
        let prefix = self.prefix();
        let suffix = self.suffix_len(i);
        if from + out.len() > prefix.len() + suffix {
            return false;
        }
        let (from, out) = match prefix.get(from..) {
            Some(rest) => {
                let (front, behind) = out.split_at_mut(rest.len().min(out.len()));
                copy_short(&rest[..front.len()], front);
                (0, behind)
            }
            None => (from - prefix.len(), out),
        };
        let head = self.head(i).to_be_bytes();
        let (from, out) = match head.get(from..) {
            Some(rest) => {
                let (front, behind) = out.split_at_mut(rest.len().min(out.len()));
                front.iter_mut().zip(rest).for_each(|(to, &b)| *to = b);
                (0, behind)
            }
            None => (from - HEAD, out),
        };
        if !out.is_empty() {
            copy_short(&self.rest(i)[from..from + out.len()], out);
        }
        true
    }

    /// Returns the `n` bytes of record `i`'s key from byte `from` on, at most 16, with any bytes behind them.
    ///
    /// `None` if the key is too short, or the bytes begin in the prefix or are at the page's end.
    #[inline(always)]
    pub fn key_word(&self, i: usize, from: usize, n: usize) -> Option<u128> {
        let suffix = from.checked_sub(get_u16(self.page, PREFIX_LEN))?;
        if suffix + n > self.suffix_len(i) {
            return None;
        }
        let rest = self.offset(i) + suffix.saturating_sub(HEAD);
        let word = u128::from_le_bytes(*self.page.get(rest..)?.first_chunk()?);
        if suffix >= HEAD {
            return Some(word);
        }
        let head = (self.head(i) << (8 * suffix)).swap_bytes();
        Some(u128::from(head) | word << (8 * (HEAD - suffix)))
    }

    /// Returns the `n` bytes, 1 to 8, of record `i`'s key from byte `from` on, as a number with the first byte
    /// highest.
    ///
    /// `None` as for [`Node::key_word`].
    #[inline]
    pub fn key_number(&self, i: usize, from: usize, n: usize) -> Option<u64> {
        let suffix = from.checked_sub(get_u16(self.page, PREFIX_LEN))?;
        if suffix + n > HEAD {
            let word = self.key_word(i, from, n)? as u64;
            return Some(word.swap_bytes() >> (64 - 8 * n));
        }
        let has = suffix + n <= self.suffix_len(i);
        has.then(|| u64::from(self.head(i) << (8 * suffix) >> (8 * (HEAD - n))))
    }

    /// A byte of record `i`'s key; `at` must be below `key_len(i)`.
    #[inline]
    pub fn key_byte(&self, i: usize, at: usize) -> u8 {
        let prefix = self.prefix();
        match at.checked_sub(prefix.len()) {
            None => prefix[at],
            Some(at) if at < HEAD => (self.head(i) >> (8 * (HEAD - 1 - at))) as u8,
            Some(at) => self.rest(i)[at - HEAD],
        }
    }

    /// Record `i`'s whole key.
    pub fn key(&self, i: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.key_len(i));
        self.append_key(i, &mut out);
        out
    }

    /// Returns `key` without the prefix, or how `key` compares with all keys of the node.
    #[inline]
    fn suffix_of<'k>(&self, key: &'k [u8]) -> Result<&'k [u8], Ordering> {
        let len = get_u16(self.page, PREFIX_LEN);
        if self.has_loose_prefix() {
            let prefix = self.prefix();
            match key[..len.min(key.len())].cmp(prefix) {
                Ordering::Equal => {}
                side => return Err(side),
            }
        } else {
            debug_assert!(
                key.starts_with(self.prefix()),
                "a key outside the node's fences"
            );
        }
        Ok(key.get(len..).unwrap_or(&[]))
    }

    /// Compares record `i`'s key with a key that has the same head.
    #[inline]
    fn compare_tail(&self, i: usize, suffix: &[u8]) -> Ordering {
        let len = self.suffix_len(i);
        if len.min(suffix.len()) < HEAD {
            // The keys are equal when zero-padded: the shorter is a prefix of the longer.
            len.cmp(&suffix.len())
        } else {
            self.rest(i).cmp(&suffix[HEAD..])
        }
    }

    /// Returns the first record with a key ≥ `key` (`count()` if there is none), and whether the keys are equal.
    #[inline]
    pub fn lower_bound(&self, key: &[u8]) -> (usize, bool) {
        let n = self.count();
        let suffix = match self.suffix_of(key) {
            Ok(suffix) => suffix,
            Err(Ordering::Less) => return (0, false),
            Err(_) => return (n, false),
        };
        let head = head_of(suffix);
        let at = self.heads_at();
        let bytes = &self.page[at..at + 4 * n];
        let heads = LatchedHeads(bytes);
        let first = heads::first_not_below(n, head, &heads);
        if first == n || heads.at(first) != head {
            return (first, false);
        }
        // The run of equal heads: most often of length one.
        let mut low = first;
        let mut high = if first + 1 < n && heads.at(first + 1) == head {
            heads::first_failing(first, n - first, |i| heads.at(i) <= head)
        } else {
            first + 1
        };
        while low < high {
            let middle = (low + high) / 2;
            match self.compare_tail(middle, suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Greater => high = middle,
            }
        }
        (low, false)
    }

    /// Returns the child that takes `key`.
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> usize {
        let (at, equal) = self.lower_bound(key);
        at + usize::from(equal)
    }

    /// Returns the child that takes the keys right below `key`.
    #[cfg(test)]
    pub fn child_below(&self, key: &[u8]) -> usize {
        self.lower_bound(key).0
    }

    /// Adds the leaf's layout to the hint.
    #[inline]
    pub fn note_shape(&self, shape: &mut LeafLayoutHint) {
        shape.note(self.count(), get_u16(self.page, HOLE_END));
    }

    /// Copies the page except for its hole.
    pub fn copy_to(&self, page: &mut Page) {
        let (start, end) = (get_u16(self.page, HOLE_START), get_u16(self.page, HOLE_END));
        page[..start].copy_from_slice(&self.page[..start]);
        page[end..].copy_from_slice(&self.page[end..]);
    }

    /// Returns the bytes between the arrays and the heap.
    pub fn hole(&self) -> usize {
        get_u16(self.page, HOLE_END) - get_u16(self.page, HOLE_START)
    }

    pub(super) fn garbage(&self) -> usize {
        get_u16(self.page, GARBAGE)
    }

    /// Returns the bytes in use, header included.
    pub fn used(&self) -> usize {
        PAGE_SIZE - self.hole() - self.garbage()
    }

    /// Returns the array and heap bytes of record `i`.
    pub fn record_size(&self, i: usize) -> usize {
        let value = if self.is_leaf() { self.value_len(i) } else { 0 };
        self.entry_size() + self.suffix_len(i).saturating_sub(HEAD) + value
    }

    /// Checks that every offset and length in the page is in its bounds, and returns what is wrong.
    ///
    /// After this check, no read or change of the node can go out of bounds, whatever its bytes are.
    pub fn validate(&self) -> Result<(), String> {
        let page = self.page;
        let leaf = match PageKind::from_byte(page[KIND]) {
            Some(PageKind::Leaf) => true,
            Some(PageKind::Inner) => false,
            _ => {
                return Err(format!(
                    "a node's kind must be 1 or 2, and is {}",
                    page[KIND]
                ))
            }
        };
        if leaf != (page[LEVEL] == 0) {
            return Err(format!("kind {} at level {}", page[KIND], page[LEVEL]));
        }
        let (start, end) = (get_u16(page, HOLE_START), get_u16(page, HOLE_END));
        let n = self.count();
        if start != HEADER_SIZE + n * self.entry_size() || start > end || end > PAGE_SIZE {
            return Err(format!("{n} records, but a hole from {start} to {end}"));
        }
        // An empty part keeps its offset, even after the hole has grown over that place.
        let inside = |at: usize, len: usize| (at >= end || len == 0) && at + len <= PAGE_SIZE;
        let mut heap = self.garbage();
        let (lower_at, lower_len) = (get_u16(page, LOWER_OFF), get_u16(page, LOWER_LEN));
        let (upper_at, upper_len) = (get_u16(page, UPPER_OFF), get_u16(page, UPPER_LEN));
        let (prefix_at, prefix_len) = (get_u16(page, PREFIX_OFF), get_u16(page, PREFIX_LEN));
        let no_upper = get_u16(page, FLAGS) & usize::from(FLAG_NO_UPPER) != 0;
        if !inside(lower_at, lower_len)
            || !inside(upper_at, upper_len)
            || !inside(prefix_at, prefix_len)
        {
            return Err("a fence or the prefix lies outside the heap".into());
        }
        heap += lower_len + upper_len;
        if prefix_at != lower_at {
            heap += prefix_len;
        } else if prefix_len > lower_len {
            return Err("the prefix is longer than the fence it is part of".into());
        }
        if no_upper && upper_len != 0 {
            return Err("an upper fence where there is none".into());
        }
        if !no_upper && self.lower_fence() >= &page[upper_at..upper_at + upper_len] {
            return Err("the lower fence is not below the upper".into());
        }
        let promised = if no_upper {
            0
        } else {
            shared_prefix(self.lower_fence(), &page[upper_at..upper_at + upper_len])
        };
        if !self.has_loose_prefix() && (prefix_len > promised || prefix_at != lower_at) {
            return Err("the prefix is longer than the fences allow".into());
        }
        for i in 0..n {
            let rest = self.suffix_len(i).saturating_sub(HEAD);
            let len = if leaf { rest + self.value_len(i) } else { rest };
            if !inside(self.offset(i), len) {
                return Err(format!("record {i} lies outside the heap"));
            }
            heap += len;
        }
        if heap != PAGE_SIZE - end {
            return Err(format!(
                "the heap takes {} bytes, its parts {heap}",
                PAGE_SIZE - end
            ));
        }
        if !leaf {
            for i in 0..=n {
                let child = self.child(i);
                if child == 0 || child >> 48 != 0 {
                    return Err(format!("child {i} is {child:#x}: not a page id"));
                }
            }
        }
        Ok(())
    }

    /// Checks that the keys ascend and are within the fences.
    pub fn validate_order(&self) -> Result<(), String> {
        let n = self.count();
        let Some(last) = n.checked_sub(1) else {
            return Ok(());
        };
        let padding = |i: usize| u64::from(u32::MAX) >> (8 * self.suffix_len(i).min(HEAD));
        if let Some(i) = (0..n).find(|&i| u64::from(self.head(i)) & padding(i) != 0) {
            return Err(format!("the head of key {i} is longer than the key"));
        }
        if let Some(i) = (1..n).find(|&i| self.compare(i - 1, i) != Ordering::Less) {
            return Err(format!("key {i} is not above the key before it"));
        }
        let (low, first) = (self.lower_fence(), self.key(0));
        // No separator may equal a fence: a child would have an empty range.
        if first[..] < *low || (first[..] == *low && !self.is_leaf()) {
            return Err("key 0 lies outside the node's fences".into());
        }
        if self
            .upper_fence()
            .is_some_and(|upper| self.key(last)[..] >= *upper)
        {
            return Err(format!("key {last} lies outside the node's fences"));
        }
        Ok(())
    }

    /// Compares the keys of records `a` and `b`, which share the prefix.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let lengths = (self.suffix_len(a), self.suffix_len(b));
        self.head(a).cmp(&self.head(b)).then_with(|| {
            if lengths.0.min(lengths.1) <= HEAD {
                // The shorter key is a prefix of the longer.
                lengths.0.cmp(&lengths.1)
            } else {
                self.rest(a).cmp(self.rest(b))
            }
        })
    }
}
