//! Copies of leaves, which cursors read without any latch.

use super::descend::Route;
use super::Tree;
use crate::buffer::{ScanExtent, SharedGuard};
use crate::error::Result;
use crate::node;
use crate::node::{Node, Page};
use crate::planted::{is_planted, PlantedFault};

/// The leaf that a cursor wants: the one that holds the record described here.
///
/// The cursor skips leaves without such a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position<'a> {
    /// The first record.
    First,
    /// The last record.
    Last,
    /// The first record with a key ≥ this.
    AtOrAfter(&'a [u8]),
    /// The first record with a key > this.
    After(&'a [u8]),
    /// The last record with a key ≤ this.
    AtOrBefore(&'a [u8]),
    /// The last record with a key < this.
    Before(&'a [u8]),
}

impl<'a> Position<'a> {
    fn route(self) -> Route<'a> {
        match self {
            Position::First => Route::Key(&[]),
            Position::Last => Route::Last,
            Position::AtOrAfter(key) | Position::After(key) | Position::AtOrBefore(key) => {
                Route::Key(key)
            }
            Position::Before(key) => Route::Below(key),
        }
    }

    fn forward(self) -> bool {
        matches!(
            self,
            Position::First | Position::AtOrAfter(_) | Position::After(_)
        )
    }

    /// Returns where in the leaf the record is: right behind this place going forward, right before it going back.
    ///
    /// The route leads to the leaf. `None` if the leaf doesn't hold the record.
    fn find(self, node: Node<'_>) -> Option<usize> {
        let at = match self {
            Position::First => 0,
            Position::Last => node.count(),
            Position::AtOrAfter(key) | Position::Before(key) => node.lower_bound(key).0,
            Position::After(key) | Position::AtOrBefore(key) => {
                let (at, equal) = node.lower_bound(key);
                at + usize::from(equal)
            }
        };
        let last = if self.forward() { node.count() } else { 0 };
        (at != last).then_some(at)
    }
}

/// A cursor's own copy of a leaf, read without any latch, and used again and again.
#[derive(Clone)]
pub struct LeafImage {
    page: Box<Page>,
    /// The fence at which the cursor goes on, while it moves.
    fence: Vec<u8>,
    /// Leaves that the cursor has passed since it was last positioned.
    passed: usize,
    /// The key before which the cursor ends, if `has_end`: see [`LeafImage::set_end`].
    end: Vec<u8>,
    has_end: bool,
    /// See [`LeafImage::one_by_one`].
    one_by_one: bool,
}

impl Tree {
    /// Copies the leaf that holds the record described by `at`; false, with the image unchanged, if there is none.
    pub fn copy_leaf(&self, at: Position<'_>, into: &mut LeafImage) -> Result<bool> {
        self.copy_at(at, into, false)
    }

    /// Like [`Tree::copy_leaf`], but copies only a few records if those will do.
    ///
    /// These are the record described by `at` and some behind it, or some before it for positions that look back. The
    /// image's fences are around these records, and the next or previous leaf is then the rest of this one. This is
    /// for cursors that may stop soon.
    pub fn copy_near(&self, at: Position<'_>, into: &mut LeafImage) -> Result<bool> {
        self.copy_at(at, into, true)
    }

    fn copy_at(&self, at: Position<'_>, into: &mut LeafImage, near: bool) -> Result<bool> {
        let mut fence = std::mem::take(&mut into.fence);
        into.passed = 0;
        let found = self.copy_from(at, into, near, &mut fence);
        into.fence = fence;
        found
    }

    fn copy_from(
        &self,
        at: Position<'_>,
        into: &mut LeafImage,
        near: bool,
        fence: &mut Vec<u8>,
    ) -> Result<bool> {
        let route = match at {
            // The cursor's end is known: its first leaves are read together.
            Position::AtOrAfter(key) | Position::After(key) if into.has_end => {
                Route::Forward(key, into.extent(true))
            }
            _ => at.route(),
        };
        let guard: SharedGuard<'_> = self.latch_leaf(route)?;
        let node = guard.node();
        if let Some(place) = at.find(node) {
            if near {
                node::copy_window(node, place, at.forward(), &mut into.page);
            } else {
                into.copy(node);
            }
            return Ok(true);
        }
        // The leaf is empty, or all its records lie on the wrong side: go on to the neighbours.
        let more = step(node, at.forward(), fence);
        drop(guard);
        Ok(more && self.copy_on(at.forward(), into, fence)?)
    }

    /// Copies the next leaf from the fence on that has records on the cursor's side of the fence and before its end.
    fn copy_on(&self, forward: bool, into: &mut LeafImage, fence: &mut Vec<u8>) -> Result<bool> {
        loop {
            let is_behind = forward && into.has_end && fence[..] >= into.end[..];
            if is_behind && !is_planted(PlantedFault::WalkBehindEnd) {
                return Ok(false);
            }
            into.passed += 1;
            let extent = into.extent(forward);
            let route = if forward {
                Route::Forward(fence, extent)
            } else {
                Route::Backward(fence, extent)
            };
            let guard: SharedGuard<'_> = self.latch_leaf(route)?;
            let node = guard.node();
            // Leaves may have been merged: the cursor may have seen a part of this one.
            let here = if forward {
                Position::AtOrAfter(fence)
            } else {
                Position::Before(fence)
            };
            if here.find(node).is_some() || into.one_by_one && node.count() == 0 {
                into.copy(node);
                return Ok(true);
            }
            if !step(node, forward, fence) {
                return Ok(false);
            }
        }
    }

    /// Moves a filled image on to the next leaf that has records; false, with the image unchanged, at the end.
    ///
    /// If leaves were merged meanwhile, the new image may begin before the old one's end. So the caller goes on at
    /// [`LeafImage::lower_bound`] of the old upper fence.
    pub fn copy_next_leaf(&self, image: &mut LeafImage) -> Result<bool> {
        self.copy_neighbour(image, true)
    }

    /// Moves a filled image back to the previous leaf that has records; false, with the image unchanged, at the
    /// beginning.
    ///
    /// If leaves were merged meanwhile, the new image may end behind the old one's beginning. So the caller goes on
    /// below [`LeafImage::lower_bound`] of the old lower fence.
    pub fn copy_previous_leaf(&self, image: &mut LeafImage) -> Result<bool> {
        self.copy_neighbour(image, false)
    }

    fn copy_neighbour(&self, image: &mut LeafImage, forward: bool) -> Result<bool> {
        let mut from = std::mem::take(&mut image.fence);
        let more = step(image.node(), forward, &mut from);
        let found = more && self.copy_on(forward, image, &mut from)?;
        image.fence = from;
        Ok(found)
    }
}

/// Copies the fence between a leaf and its neighbour into `fence`; false if there is no neighbour.
fn step(node: Node<'_>, forward: bool, fence: &mut Vec<u8>) -> bool {
    let next = if forward {
        node.upper_fence()
    } else {
        Some(node.lower_fence()).filter(|lower| !lower.is_empty())
    };
    fence.clear();
    fence.extend_from_slice(next.unwrap_or(&[]));
    next.is_some()
}

impl LeafImage {
    /// Makes an empty image: no records, and no bounds.
    pub fn new() -> LeafImage {
        let mut page: Box<Page> = Box::new([0; crate::ids::PAGE_SIZE]);
        let frame = node::NodeFrame {
            page_id: 0,
            tree_id: 0,
            level: 0,
            lower: &[],
            upper: None,
            max_txid: 0,
            upper_child: 0,
        };
        node::write_empty(&mut page, &frame);
        LeafImage {
            page,
            fence: Vec::new(),
            passed: 0,
            end: Vec::new(),
            has_end: false,
            one_by_one: false,
        }
    }

    /// Like [`LeafImage::new`], for a cursor that checks something between leaves.
    ///
    /// It copies leaves without records that come before the wanted one, instead of skipping them.
    pub fn one_by_one() -> LeafImage {
        LeafImage {
            one_by_one: !is_planted(PlantedFault::PassEmptyLeaves),
            ..LeafImage::new()
        }
    }

    /// Sets the key beyond which a forward cursor will not go.
    ///
    /// The tree then neither reads leaves behind it ahead, nor searches them for records.
    pub fn set_end(&mut self, end: Option<&[u8]>) {
        self.has_end = end.is_some();
        self.end.clear();
        self.end.extend_from_slice(end.unwrap_or(&[]));
    }

    fn extent(&self, forward: bool) -> ScanExtent<'_> {
        ScanExtent {
            passed: self.passed,
            whole: false,
            until: (forward && self.has_end).then_some(&self.end[..]),
            zone_map_columns: None,
            mini_page_columns: None,
        }
    }

    #[inline]
    fn node(&self) -> Node<'_> {
        Node::new(&self.page)
    }

    /// Copies a leaf except for its hole.
    pub(super) fn copy(&mut self, node: Node<'_>) {
        node.copy_to(&mut self.page);
    }

    /// Returns the number of records in the leaf.
    #[inline]
    pub fn count(&self) -> usize {
        self.node().count()
    }

    /// Puts record `i`'s key into `key`, which is cleared first; `i` must be below `count()`.
    #[inline]
    pub fn key(&self, i: usize, key: &mut Vec<u8>) {
        key.clear();
        self.node().append_key(i, key);
    }

    /// Fills `out` with record `i`'s key from byte `from` on; false if the key is too short.
    ///
    /// `i` must be below `count()`.
    #[inline]
    pub fn copy_key(&self, i: usize, from: usize, out: &mut [u8]) -> bool {
        self.node().copy_key(i, from, out)
    }

    /// Returns the `n` bytes of record `i`'s key from byte `from` on, at most 16, with any bytes behind them.
    ///
    /// `None` if they can't be read at once. `i` must be below `count()`.
    #[inline]
    pub fn key_word(&self, i: usize, from: usize, n: usize) -> Option<u128> {
        self.node().key_word(i, from, n)
    }

    /// Returns the `n` bytes, 1 to 8, of record `i`'s key from byte `from` on, as a number.
    ///
    /// `None` if they can't be read at once. `i` must be below `count()`.
    #[inline]
    pub fn key_number(&self, i: usize, from: usize, n: usize) -> Option<u64> {
        self.node().key_number(i, from, n)
    }

    /// Returns the length of record `i`'s key; `i` must be below `count()`.
    #[inline]
    pub fn key_len(&self, i: usize) -> usize {
        self.node().key_len(i)
    }

    /// Returns a byte of record `i`'s key; `i` must be below `count()`, and `at` below `key_len(i)`.
    #[inline]
    pub fn key_byte(&self, i: usize, at: usize) -> u8 {
        self.node().key_byte(i, at)
    }

    /// Returns record `i`'s value; `i` must be below `count()`.
    #[inline]
    pub fn value(&self, i: usize) -> &[u8] {
        self.node().value(i)
    }

    /// Returns the first record with a key ≥ `key` (`count()` if there is none), and whether it is equal.
    ///
    /// `key` may lie outside the leaf's fences.
    pub fn lower_bound(&self, key: &[u8]) -> (usize, bool) {
        let node = self.node();
        if key < node.lower_fence() {
            (0, false)
        } else if node.upper_fence().is_some_and(|upper| key >= upper) {
            (node.count(), false)
        } else {
            node.lower_bound(key)
        }
    }

    /// The newest transaction that changed a record of the leaf.
    #[inline]
    pub fn max_txid(&self) -> u64 {
        self.node().max_txid()
    }

    /// Returns the lower fence: every key of the leaf is ≥ this; empty for the first leaf.
    ///
    /// See [`Tree::copy_previous_leaf`].
    pub fn lower_fence(&self) -> &[u8] {
        self.node().lower_fence()
    }

    /// Returns the upper fence: every key of the leaf is < this; `None` for the last leaf.
    ///
    /// See [`Tree::copy_next_leaf`].
    pub fn upper_fence(&self) -> Option<&[u8]> {
        self.node().upper_fence()
    }
}

impl Default for LeafImage {
    fn default() -> Self {
        LeafImage::new()
    }
}

impl std::fmt::Debug for LeafImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeafImage")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}
