//! B+trees of byte keys and byte values over the buffer pool.
//!
//! - `root`: where the root is; `descend`: from there to a node; `modify`, `split`, `merge`: changes;
//! - `leaf_image`: copies of leaves for cursors; `mini_page`: mini-pages of leaves that are not in memory;
//!   `leaf_scan`, `cuts`: a range's leaves in order, and its parts; `estimate`, `verify`, `destroy`: whole trees.
//!
//! Leaves have no links to their neighbours: a cursor finds the next leaf by a descent with the leaf's upper fence.
#![forbid(unsafe_code)]

mod cuts;
mod descend;
mod destroy;
mod estimate;
mod leaf_image;
mod leaf_scan;
mod merge;
mod mini_page;
mod modify;
mod root;
mod split;
#[cfg(test)]
mod tests;
mod verify;

use crate::node;
use std::ops::Range;
use std::sync::Arc;

use crate::buffer::{BufferPool, ChildPlace, LeafRead, PoolWithThreads, SharedGuard};
use crate::error::{Error, Result};
use crate::ids::{FrameId, PageId, TreeId, MAX_KEY, MAX_VALUE};
use crate::node::{LeafLayoutHint, NodeFrame, PageKind, ValueCopy};
use crate::sync::atomic::AtomicBool;
use crate::sync::Mutex;

pub use crate::buffer::{LeafFreeze, RecordEdit};
pub use crate::leaf_cache::ZoneMap;
pub use destroy::cannot_be_read;
pub use leaf_image::{LeafImage, Position};
pub use leaf_scan::{Leaf, LeafScan, SkippableLeaf, Step};
pub use mini_page::{MiniPage, ProjectedRecord};
pub use verify::{RecordVisitor, TreeCounts, TreeStats};

use descend::{Located, Route};
use root::LastFrame;

/// A B+tree, shared between threads behind an `Arc`; changes must be made inside the barrier.
pub struct Tree {
    id: TreeId,
    root: PageId,
    last_frame: LastFrame,
    /// Whether the tree's pages are being freed, or may already be other pages.
    destroyed: AtomicBool,
    /// Whether a parent and its child have contradicted each other.
    contradicted: AtomicBool,
    /// Locked by a thread that looks for the root, so that the root's page is not freed meanwhile.
    finding_root: Mutex<()>,
    pool: Arc<BufferPool>,
    /// Keeps the pool's background threads running.
    _pool: Arc<PoolWithThreads>,
}

impl Tree {
    /// Creates an empty tree.
    pub fn create(pool: &Arc<PoolWithThreads>, id: TreeId) -> Result<Tree> {
        let (root, mut guard) = pool.create_unparented(PageKind::Leaf)?;
        node::write_empty(
            guard.bytes_mut(),
            &NodeFrame {
                page_id: root.0,
                tree_id: id.0,
                level: 0,
                lower: &[],
                upper: None,
                max_txid: 0,
                upper_child: 0,
            },
        );
        let frame = guard.frame();
        drop(guard);
        // The root is not read again: the read could fail, and no tree would own the page.
        Ok(Tree::new(pool, id, root, frame))
    }

    /// Opens the tree with this root page.
    pub fn open(pool: &Arc<PoolWithThreads>, id: TreeId, root: PageId) -> Result<Tree> {
        let pin = pool.pin(root)?;
        root::check_root(pool.buffer_pool(), &pin.shared(), id, root)?;
        Ok(Tree::new(pool, id, root, pin.frame()))
    }

    fn new(pool: &Arc<PoolWithThreads>, id: TreeId, root: PageId, frame: FrameId) -> Tree {
        Tree {
            id,
            root,
            last_frame: LastFrame::new(frame),
            destroyed: AtomicBool::new(false),
            contradicted: AtomicBool::new(false),
            finding_root: Mutex::default(),
            pool: pool.buffer_pool().clone(),
            _pool: pool.clone(),
        }
    }

    /// Returns the root's page, which stays the same for the life of the tree.
    pub fn root(&self) -> PageId {
        self.root
    }

    /// Returns the tree's number.
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// Finds a key's leaf and prefetches what a search in it will read, without waiting for it.
    ///
    /// A reader of many keys finds the leaves of some keys before it reads in the first ([`Tree::read_in`]), so that
    /// the waits for memory overlap.
    ///
    /// A leaf that is not in memory is not loaded. [`Tree::bring`] can load it together with others.
    /// [`Tree::read_in`] with the hint loads it in any case.
    #[inline]
    pub(crate) fn find_leaf(&self, key: &[u8], shape: &LeafLayoutHint) -> Result<LeafHint> {
        self.locate(Route::InMemory(key, shape), 0).map(LeafHint)
    }

    /// Loads leaves together that [`Tree::find_leaf`] did not find in memory.
    ///
    /// A leaf that can't be read is no error until a reader needs it.
    pub fn bring(&self, leaves: &[LeafNotResident]) {
        self.pool
            .bring_children(leaves.iter().map(|leaf| (leaf.0, leaf.1)));
    }

    /// Returns how many leaves should be loaded at a time.
    pub fn most_brought(&self) -> usize {
        self.pool.most_at_once()
    }

    /// Like [`Tree::read`], with the hint that [`Tree::find_leaf`] gave for the same key.
    ///
    /// If the leaf has moved since, the tree descends to it again.
    #[inline]
    pub(crate) fn read_in<R>(
        &self,
        hint: LeafHint,
        shape: &mut LeafLayoutHint,
        key: &[u8],
        f: impl FnOnce(Option<&[u8]>, u64) -> R,
    ) -> Result<R> {
        let guard: SharedGuard<'_> = match self.latch_found(hint.0) {
            Some(guard) => guard,
            None => self.latch_leaf(Route::Key(key))?,
        };
        let node = guard.node();
        node.note_shape(shape);
        let (at, found) = node.lower_bound(key);
        Ok(f(found.then(|| node.value(at)), node.max_txid()))
    }

    /// Returns the key's record, if there is one, latched; the caller must be short and wait for nothing.
    #[inline]
    pub(crate) fn record(&self, key: &[u8]) -> Result<Option<Record<'_>>> {
        let leaf: SharedGuard<'_> = self.latch_leaf(Route::Key(key))?;
        let (at, found) = leaf.node().lower_bound(key);
        Ok(found.then_some(Record { leaf, at }))
    }

    /// Copies the key's value, or as much of its prefix as `out` keeps.
    ///
    /// Returns where the copy is in `out`, and the leaf's newest transaction; `None` if there is no record. Takes a
    /// latch only if a node on the way is changing or not in memory.
    #[inline(always)]
    pub(crate) fn copy_value(
        &self,
        key: &[u8],
        out: &mut impl ValueCopy,
        shape: &mut LeafLayoutHint,
    ) -> Result<Option<(Range<usize>, u64)>> {
        match self.copy_unlatched(key, out, shape) {
            Some(LeafRead::Copied { max_txid, from, to }) => Ok(Some((from..to, max_txid))),
            Some(LeafRead::Absent) => Ok(None),
            Some(LeafRead::Unclear) | None => self.copy_latched(key, out),
        }
    }

    #[cold]
    #[inline(never)]
    fn copy_latched(
        &self,
        key: &[u8],
        out: &mut impl ValueCopy,
    ) -> Result<Option<(Range<usize>, u64)>> {
        let record = self.record(key)?;
        Ok(record.map(|record| (0..out.keep(record.value()), record.max_txid())))
    }

    /// Calls `f` with the key's value, if there is one, and the leaf's newest transaction.
    ///
    /// `f` runs under the leaf's shared latch: it must be short and wait for nothing.
    #[inline]
    pub fn read<R>(&self, key: &[u8], f: impl FnOnce(Option<&[u8]>, u64) -> R) -> Result<R> {
        let guard: SharedGuard<'_> = self.latch_leaf(Route::Key(key))?;
        let node = guard.node();
        let (at, found) = node.lower_bound(key);
        Ok(f(found.then(|| node.value(at)), node.max_txid()))
    }
}

/// A leaf that was not in memory when [`Tree::find_leaf`] looked for it.
#[derive(Clone, Copy, Debug)]
pub struct LeafNotResident(ChildPlace, u64);

impl LeafNotResident {
    /// Returns the leaf's page: the same for all keys of the leaf.
    pub fn page(&self) -> PageId {
        PageId(self.1)
    }
}

/// A record, under its leaf's shared latch.
pub(crate) struct Record<'a> {
    leaf: SharedGuard<'a>,
    at: usize,
}

impl Record<'_> {
    /// Returns the record's value.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.leaf.node().value(self.at)
    }

    /// Returns the leaf's newest transaction.
    #[inline]
    pub fn max_txid(&self) -> u64 {
        self.leaf.node().max_txid()
    }
}

/// The place at which [`Tree::find_leaf`] found a key's leaf.
#[derive(Clone, Copy, Debug)]
pub struct LeafHint(descend::Located);

impl LeafHint {
    /// Returns the key's leaf, if it is not in memory.
    #[inline]
    pub fn away(&self) -> Option<LeafNotResident> {
        match self.0 {
            Located::NotResident { place, id } => Some(LeafNotResident(place, id)),
            _ => None,
        }
    }
}

/// Refuses keys and values that no leaf could hold.
fn check_sizes(key: &[u8], value: usize) -> Result<()> {
    if key.len() > MAX_KEY {
        return Err(Error::TooLarge(format!(
            "a key of {} bytes; {MAX_KEY} are allowed",
            key.len()
        )));
    }
    if value > MAX_VALUE {
        return Err(Error::TooLarge(format!(
            "a record of {value} bytes; {MAX_VALUE} are allowed"
        )));
    }
    Ok(())
}
