//! B+trees of byte keys and byte values over the buffer pool.

use crate::error::Result;
use crate::ids::{PageId, TreeId};
use crate::page::Pool;
pub use crate::page::{Change, LeafSettle};
use std::sync::Arc;

/// One B+tree. Shared between threads behind an `Arc`.
pub struct Tree {}

/// Which leaf a cursor wants: the one that holds, or would hold, the record so described. Leaves
/// without such a record are passed over.
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

/// Size and shape of a tree.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TreeStats {
    /// Levels, leaves included.
    pub height: u32,
    /// Inner nodes.
    pub inner_pages: u64,
    /// Leaves.
    pub leaf_pages: u64,
}

/// What [`Tree::verify`] counted.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TreeCounts {
    /// Records in all leaves.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Inner nodes.
    pub inner_pages: u64,
    /// Leaves.
    pub leaf_pages: u64,
}

impl Tree {
    /// A new, empty tree.
    pub fn create(_pool: &Arc<Pool>, _id: TreeId) -> Result<Tree> {
        todo!()
    }
    /// The tree whose root is that page.
    pub fn open(_pool: &Arc<Pool>, _id: TreeId, _root: PageId) -> Result<Tree> {
        todo!()
    }
    /// The root's page: the same for the life of the tree.
    pub fn root(&self) -> PageId {
        todo!()
    }
    /// The tree's number.
    pub fn id(&self) -> TreeId {
        todo!()
    }
    /// Frees every page. Nobody else may be using the tree, now or later.
    pub fn destroy(&self) -> Result<()> {
        todo!()
    }
    /// Calls `f` with the key's value, if there is one, and the leaf's newest transaction, under
    /// the leaf's shared latch: `f` must be short and wait for nothing.
    pub fn read<R>(&self, _key: &[u8], _f: impl FnOnce(Option<&[u8]>, u64) -> R) -> Result<R> {
        todo!()
    }
    /// Calls `f` exactly once with the key's value, under the leaf's exclusive latch, and does what
    /// it answers. Room for a value of `max_value` bytes is made before. Unless the answer is
    /// [`Change::Keep`], the leaf's newest transaction becomes at least `txid`.
    pub fn modify<R>(
        &self,
        _key: &[u8],
        _max_value: usize,
        _txid: u64,
        _f: impl FnOnce(Option<&[u8]>, &mut Vec<u8>) -> (Change, R),
    ) -> Result<R> {
        todo!()
    }
    /// Copies the leaf that holds the record described by `at`; false where there is none.
    pub fn copy_leaf(&self, _at: Position<'_>, _into: &mut LeafImage) -> Result<bool> {
        todo!()
    }
    /// Moves a filled image on to the next leaf that has records; false (image unchanged) at the end.
    pub fn copy_next_leaf(&self, _image: &mut LeafImage) -> Result<bool> {
        todo!()
    }
    /// Moves a filled image back to the leaf before that has records; false (image unchanged) at the
    /// beginning.
    pub fn copy_previous_leaf(&self, _image: &mut LeafImage) -> Result<bool> {
        todo!()
    }
    /// About how many records have `lo` ≤ key < `hi` (None: no bound).
    pub fn estimate_range(&self, _lo: Option<&[u8]>, _hi: Option<&[u8]>) -> Result<u64> {
        todo!()
    }
    /// About how many records there are.
    pub fn estimate_records(&self) -> Result<u64> {
        self.estimate_range(None, None)
    }
    /// Walks the whole tree and checks its order and structure; `record` sees every record.
    pub fn verify(
        &self,
        _record: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<TreeCounts> {
        todo!()
    }
    /// Height and page counts; reads inner nodes only.
    pub fn stats(&self) -> Result<TreeStats> {
        todo!()
    }
}

/// An own copy of a leaf, to be read without any latch. Made once, used again and again.
pub struct LeafImage {}

impl LeafImage {
    /// An empty image.
    pub fn new() -> LeafImage {
        todo!()
    }
    /// Records in the leaf.
    pub fn count(&self) -> usize {
        todo!()
    }
    /// Puts record `i`'s key into `key` (which is cleared first).
    pub fn key(&self, _i: usize, _key: &mut Vec<u8>) {
        todo!()
    }
    /// Record `i`'s value.
    pub fn value(&self, _i: usize) -> &[u8] {
        todo!()
    }
    /// The first record with a key ≥ `key` (`count()` where there is none), and whether it is equal.
    pub fn lower_bound(&self, _key: &[u8]) -> (usize, bool) {
        todo!()
    }
    /// The newest transaction that changed a record of the leaf.
    pub fn max_txid(&self) -> u64 {
        todo!()
    }
    /// Every key of the leaf is ≥ this (empty for the first leaf): the leaf before is the one at
    /// [`Position::Before`] this.
    pub fn lower_fence(&self) -> &[u8] {
        todo!()
    }
    /// Every key of the leaf is < this; None for the last leaf. The leaf after is the one at
    /// [`Position::AtOrAfter`] this.
    pub fn upper_fence(&self) -> Option<&[u8]> {
        todo!()
    }
}

impl Default for LeafImage {
    fn default() -> Self {
        LeafImage::new()
    }
}
