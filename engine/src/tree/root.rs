//! Where a tree's root is.
//!
//! The root leaves memory as other pages do, and no parent says where it is: the tree itself remembers the
//! frame in which it was last. Whoever comes by there asks the frame which page it has, at the version that is
//! asked for again afterwards. Where that is another page, the root is looked for through the page table,
//! and loaded if need be. So however many trees are open, they keep nothing in memory.

use super::Tree;
use crate::buffer::{BufferPool, FrameState, Latched, SharedGuard};
use crate::error::{Error, Result};
use crate::ids::{FrameId, LatchVersion, PageId, TreeId};
use crate::node;
use crate::node::PageKind;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicU32, Ordering};

/// The frame in which the root was last.
pub(super) struct LastFrame(AtomicU32);

/// The root, not latched: it is in this frame only while the version holds.
#[derive(Clone, Copy)]
pub(super) struct RootSeen<'a> {
    pub frame: FrameId,
    pub state: &'a FrameState,
    pub version: LatchVersion,
}

impl LastFrame {
    pub fn new(frame: FrameId) -> LastFrame {
        LastFrame(AtomicU32::new(frame))
    }
}

impl Tree {
    /// The root, if it is where it was last.
    #[inline(always)]
    pub(super) fn root_in_memory(&self) -> Option<RootSeen<'_>> {
        let frame = self.last_frame.0.load(Ordering::Relaxed);
        let state = self.pool.frames.state(frame);
        if !self.may_be_in(state) {
            return None;
        }
        let version = state.latch.optimistic();
        // A frame's page changes under its exclusive latch alone: while the version holds, it has this one.
        if state.page.load(Ordering::Relaxed) != self.root.0 || self.is_destroyed() {
            return None;
        }
        state.note_use();
        Some(RootSeen {
            frame,
            state,
            version,
        })
    }

    /// The root; brings it into memory if need be.
    #[inline]
    pub(super) fn seen_root(&self) -> Result<RootSeen<'_>> {
        loop {
            if let Some(seen) = self.root_in_memory() {
                return Ok(seen);
            }
            self.find_root()?;
        }
    }

    /// The root, latched; brought into memory if need be. To be called without the latch of a page that
    /// anybody else can reach.
    pub(super) fn latch_root<'a, G: Latched<'a>>(&'a self) -> Result<G> {
        loop {
            let frame = self.last_frame.0.load(Ordering::Relaxed);
            if let Some(root) = self.latch_root_in(frame) {
                return Ok(root);
            }
            self.find_root()?;
        }
    }

    /// Latches the root, if it is in this frame: then it stays there.
    #[inline]
    pub(super) fn latch_root_in<'a, G: Latched<'a>>(&'a self, frame: FrameId) -> Option<G> {
        let state = self.pool.frames.state(frame);
        if !self.may_be_in(state) {
            return None;
        }
        let guard = G::latch(&self.pool, frame);
        if state.page.load(Ordering::Relaxed) != self.root.0 || self.is_destroyed() {
            return None;
        }
        state.note_use();
        Some(guard)
    }

    /// Whether the frame may have another tree's page under the root's number, as free frames and free numbers are
    /// the next to be used. To be asked when the frame's version is noted, or its latch held: both are of the time
    /// before the tree went, or the tree is seen to have gone.
    #[inline(always)]
    fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire) && !is_planted(PlantedFault::RootByNumber)
    }

    /// Whether it makes sense to wait for a frame's latch. A frame that has gone to another page may be the new one that
    /// this very thread has latched, to split the tree: its latch would be waited for for ever.
    #[inline(always)]
    fn may_be_in(&self, state: &FrameState) -> bool {
        state.page.load(Ordering::Relaxed) == self.root.0
            || is_planted(PlantedFault::WaitByRootHint)
    }

    /// Looks where the root is, reads it if it is not in memory, and remembers the frame.
    #[cold]
    #[inline(never)]
    fn find_root(&self) -> Result<()> {
        // Estimates are made outside the barrier, perhaps of a table that goes: its root's number may be another
        // page's by now, and must not be looked for.
        let _finding = self.finding_root.lock();
        if self.destroyed.load(Ordering::Relaxed) {
            return Err(Error::NotFound {
                what: "tree",
                name: self.id.to_string(),
            });
        }
        let root = self.pool.pin_page(self.root)?;
        check_root(&self.pool, &root.shared(), self.id, self.root)?;
        self.last_frame.0.store(root.frame(), Ordering::Relaxed);
        Ok(())
    }
}

/// Refuses a page that is not the root of the tree.
pub(super) fn check_root(
    pool: &BufferPool,
    guard: &SharedGuard<'_>,
    tree: TreeId,
    root: PageId,
) -> Result<()> {
    let bytes = guard.bytes();
    let found = node::get_u32(bytes, node::TREE_ID);
    let whole = || {
        let node = guard.node();
        node.lower_fence().is_empty() && node.upper_fence().is_none()
    };
    if found == tree.0 && bytes[node::KIND] != PageKind::Undo as u8 && whole() {
        return Ok(());
    }
    Err(pool.corrupt(
        root.0,
        format!("expected the root of tree {tree}, found a page of tree {found}"),
    ))
}
