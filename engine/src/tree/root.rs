//! Where a tree's root is.
//!
//! The root is evicted like other pages, and no parent refers to it. The tree itself remembers the frame in which the
//! root was last. A descent reads which page this frame holds, and checks the frame's version afterwards. If it is
//! another page, the tree finds the root through the page table, and loads it if need be. So open trees, however
//! many, keep no page in memory.

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
    /// Returns the root, if it is still in the frame where it was last.
    #[inline(always)]
    pub(super) fn root_in_memory(&self) -> Option<RootSeen<'_>> {
        let frame = self.last_frame.0.load(Ordering::Relaxed);
        let state = self.pool.frames.state(frame);
        if !self.may_be_in(state) {
            return None;
        }
        let version = state.latch.optimistic();
        // A frame's page changes only under its exclusive latch: while the version holds, the frame has this page.
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

    /// Returns the root, and loads it if it is not in memory.
    #[inline]
    pub(super) fn seen_root(&self) -> Result<RootSeen<'_>> {
        loop {
            if let Some(seen) = self.root_in_memory() {
                return Ok(seen);
            }
            self.find_root()?;
        }
    }

    /// Returns the root, latched, and loads it if it is not in memory.
    ///
    /// The caller must hold no latch of a page that other threads can reach.
    pub(super) fn latch_root<'a, G: Latched<'a>>(&'a self) -> Result<G> {
        loop {
            let frame = self.last_frame.0.load(Ordering::Relaxed);
            if let Some(root) = self.latch_root_in(frame) {
                return Ok(root);
            }
            self.find_root()?;
        }
    }

    /// Latches the root, if it is in this frame: it stays there while it is latched.
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

    /// Returns whether the tree is destroyed: then the frame may have another tree's page under the root's number.
    ///
    /// Such a page is likely, because free frames and free numbers are the next to be used. The caller must have read
    /// the frame's version, or hold its latch. Then the version or the latch is of the time before the tree was
    /// destroyed, or this function returns true.
    #[inline(always)]
    fn is_destroyed(&self) -> bool {
        self.destroyed.load(Ordering::Acquire) && !is_planted(PlantedFault::RootByNumber)
    }

    /// Returns whether the caller may wait for a frame's latch.
    ///
    /// A frame that has been given to another page may be the new one that this very thread has latched, to split the
    /// tree. The thread would wait for its own latch forever.
    #[inline(always)]
    fn may_be_in(&self, state: &FrameState) -> bool {
        state.page.load(Ordering::Relaxed) == self.root.0
            || is_planted(PlantedFault::WaitByRootHint)
    }

    /// Finds the root's frame, loads the root if it is not in memory, and remembers the frame.
    #[cold]
    #[inline(never)]
    fn find_root(&self) -> Result<()> {
        // Estimates are made outside the barrier, perhaps of a table that is being dropped. Its root's number may be
        // another page's by now: the tree must not load it then.
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
