//! A copy of a few neighbouring records of a leaf, for a cursor that will stop soon.
//!
//! The copy is a leaf itself, with fences right around its records. So a cursor that goes beyond them finds the rest
//! of the leaf as if it were the next leaf.

use crate::ids::PAGE_SIZE;
use crate::knobs;
use crate::node::header::*;
use crate::node::leaf_layout_hint::HEAD;
use crate::node::view::Node;

/// Copies up to `knobs::window_records` records of a leaf: from record `at` on (`forward`), or those before it.
///
/// Copies the whole leaf if the window has most of its records, too many bytes, or a long fence. There must be a
/// record on that side of `at`.
pub(crate) fn copy_window(leaf: Node<'_>, at: usize, forward: bool, page: &mut Page) {
    let n = leaf.count();
    let (from, to) = if forward {
        (at, (at + knobs::window_records()).min(n))
    } else {
        (at.saturating_sub(knobs::window_records()), at)
    };
    let bytes: usize = (from..to).map(|i| leaf.record_size(i)).sum();
    let fits = |i: usize| i == n || leaf.key_len(i) <= knobs::window_bytes() / 4;
    if bytes > knobs::window_bytes() || 2 * (to - from) > n || !fits(from) || !fits(to) {
        leaf.copy_to(page);
        return;
    }
    let n = to - from;
    page[..HEADER_SIZE].copy_from_slice(&leaf.page[..HEADER_SIZE]);
    put_u16(page, COUNT, n);
    let heads = HEADER_SIZE + 4 * from..HEADER_SIZE + 4 * to;
    page[HEADER_SIZE..HEADER_SIZE + 4 * n].copy_from_slice(&leaf.page[heads]);
    let mut heap = Heap {
        page,
        end: PAGE_SIZE,
    };
    if from > 0 {
        let lower = heap.key(leaf, from);
        heap.set(LOWER_OFF, LOWER_LEN, lower);
    } else {
        let lower = heap.bytes(leaf.lower_fence());
        heap.set(LOWER_OFF, LOWER_LEN, lower);
    }
    if to < leaf.count() {
        let upper = heap.key(leaf, to);
        heap.set(UPPER_OFF, UPPER_LEN, upper);
        let flags = get_u16(heap.page, FLAGS) & !usize::from(FLAG_NO_UPPER);
        put_u16(heap.page, FLAGS, flags);
    } else if let Some(upper) = leaf.upper_fence() {
        let upper = heap.bytes(upper);
        heap.set(UPPER_OFF, UPPER_LEN, upper);
    }
    let prefix = heap.bytes(leaf.prefix());
    heap.set(PREFIX_OFF, PREFIX_LEN, prefix);
    for i in from..to {
        let len = leaf.suffix_len(i).saturating_sub(HEAD) + leaf.value_len(i);
        let place = leaf.offset(i);
        let (place, _) = heap.bytes(&leaf.page[place..place + len]);
        let slot = HEADER_SIZE + 4 * n + 6 * (i - from);
        put_u16(heap.page, slot, place);
        put_u16(heap.page, slot + 2, leaf.suffix_len(i));
        put_u16(heap.page, slot + 4, leaf.value_len(i));
    }
    put_u16(heap.page, HOLE_START, HEADER_SIZE + 10 * n);
    put_u16(heap.page, HOLE_END, heap.end);
}

/// The window's heap, which grows from the back.
struct Heap<'p> {
    page: &'p mut Page,
    end: usize,
}

impl Heap<'_> {
    /// Stores bytes, and returns where, and their length.
    fn bytes(&mut self, bytes: &[u8]) -> (usize, usize) {
        self.end -= bytes.len();
        self.page[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        (self.end, bytes.len())
    }

    /// Stores a record's whole key.
    fn key(&mut self, leaf: Node<'_>, i: usize) -> (usize, usize) {
        let head = leaf.head(i).to_be_bytes();
        self.bytes(leaf.rest(i));
        self.bytes(&head[..leaf.suffix_len(i).min(HEAD)]);
        self.bytes(leaf.prefix());
        (self.end, leaf.key_len(i))
    }

    fn set(&mut self, offset: usize, length: usize, (at, len): (usize, usize)) {
        put_u16(self.page, offset, at);
        put_u16(self.page, length, len);
    }
}
