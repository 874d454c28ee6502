//! Latched pages.

use std::sync::Arc;

use crate::buffer::buffer_pool::BufferPool;
use crate::buffer::frames::FrameState;
use crate::error::{Error, Result};
use crate::ids::{FrameId, LatchVersion, PageId};
use crate::node::edit::NodeMut;
use crate::node::header::*;
use crate::node::view::Node;
use crate::sync::atomic::Ordering;
use crate::sync::{pause, Pause};

/// A page latched for reading.
pub struct SharedGuard<'a> {
    pool: &'a BufferPool,
    frame: FrameId,
    pinned: bool,
}

impl<'a> SharedGuard<'a> {
    /// Latches a frame; waits for the latch.
    #[inline]
    pub(crate) fn lock(pool: &'a BufferPool, frame: FrameId) -> SharedGuard<'a> {
        pool.frames.state(frame).latch.lock_shared();
        pause(Pause::Held);
        SharedGuard {
            pool,
            frame,
            pinned: false,
        }
    }

    pub(super) fn try_lock(pool: &'a BufferPool, frame: FrameId) -> Option<SharedGuard<'a>> {
        let locked = pool.frames.state(frame).latch.try_lock_shared();
        // Not `then_some`: a guard made without the latch would release it when dropped.
        locked.then(|| SharedGuard {
            pool,
            frame,
            pinned: false,
        })
    }

    /// Makes the guard own a pin, which it releases with the latch.
    pub(super) fn owning_pin(mut self) -> SharedGuard<'a> {
        self.pinned = true;
        self
    }

    pub(crate) fn frame(&self) -> FrameId {
        self.frame
    }

    /// Returns the latch's version: while it stays the same, the page does not change.
    pub(crate) fn version(&self) -> LatchVersion {
        self.state().latch.optimistic()
    }

    pub(super) fn state(&self) -> &'a FrameState {
        self.pool.frames.state(self.frame)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &Page {
        // SAFETY: this guard holds the latch shared while the borrow of it lives.
        unsafe { self.pool.frames.page(self.frame) }
    }

    /// Returns the page as a node; only for pages of trees.
    #[inline]
    pub(crate) fn node(&self) -> Node<'_> {
        Node::new(self.bytes())
    }

    /// Returns the page's id.
    pub fn page(&self) -> PageId {
        PageId(self.state().page.load(Ordering::Relaxed))
    }

    /// Returns the bytes after the page header ([`BODY_SIZE`] of them).
    ///
    /// Bytes beyond [`ExclusiveGuard::set_used`] have any value.
    pub fn body(&self) -> &[u8] {
        &self.bytes()[HEADER_SIZE..]
    }

    /// Returns how many of the body's bytes are in use: see [`ExclusiveGuard::set_used`].
    pub fn used(&self) -> usize {
        let hole = get_u16(self.bytes(), HOLE_START);
        hole.saturating_sub(HEADER_SIZE).min(BODY_SIZE)
    }
}

impl Drop for SharedGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let state = self.state();
        state.latch.unlock_shared();
        if self.pinned {
            state.pins.fetch_sub(1, Ordering::Release);
        }
    }
}

/// A page latched for changing.
pub struct ExclusiveGuard<'a> {
    pool: &'a BufferPool,
    frame: FrameId,
    pinned: bool,
}

impl<'a> ExclusiveGuard<'a> {
    /// Makes a guard for a latch that the caller has taken.
    #[inline]
    fn of(pool: &'a BufferPool, frame: FrameId) -> ExclusiveGuard<'a> {
        pause(Pause::Held);
        ExclusiveGuard {
            pool,
            frame,
            pinned: false,
        }
    }

    /// Latches a frame; waits for the latch.
    #[inline]
    pub(crate) fn lock(pool: &'a BufferPool, frame: FrameId) -> ExclusiveGuard<'a> {
        pool.frames.state(frame).latch.lock_exclusive();
        Self::of(pool, frame)
    }

    /// Latches a frame if it can do so without waiting.
    pub(crate) fn try_lock(pool: &'a BufferPool, frame: FrameId) -> Option<ExclusiveGuard<'a>> {
        let locked = pool.frames.state(frame).latch.try_lock_exclusive();
        locked.then(|| Self::of(pool, frame))
    }

    /// Latches a frame without waiting, if nothing has changed since the version was read.
    pub(crate) fn try_upgrade(
        pool: &'a BufferPool,
        frame: FrameId,
        version: LatchVersion,
    ) -> Option<ExclusiveGuard<'a>> {
        let locked = pool.frames.state(frame).latch.try_upgrade(version);
        locked.then(|| Self::of(pool, frame))
    }

    /// Makes the guard own a pin, which it releases with the latch.
    pub(super) fn owning_pin(mut self) -> ExclusiveGuard<'a> {
        self.pinned = true;
        self
    }

    /// Returns the latch's version from before it was taken: that of the page's bytes until the guard's owner changes
    /// them.
    pub(crate) fn version(&self) -> LatchVersion {
        self.state().latch.held_version()
    }

    pub(crate) fn frame(&self) -> FrameId {
        self.frame
    }

    pub(crate) fn state(&self) -> &'a FrameState {
        self.pool.frames.state(self.frame)
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &Page {
        // SAFETY: this guard holds the latch exclusively while the borrow of it lives.
        unsafe { self.pool.frames.page(self.frame) }
    }

    /// Returns the bytes, to be changed.
    ///
    /// The caller decides whether it must call [`ExclusiveGuard::prepare`] before the change and
    /// [`ExclusiveGuard::mark_dirty`].
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut Page {
        // SAFETY: this guard holds the latch exclusively, and is borrowed exclusively.
        unsafe { self.pool.frames.page_mut(self.frame) }
    }

    /// Returns the page as a node; only for pages of trees.
    #[inline]
    pub(crate) fn node(&self) -> Node<'_> {
        Node::new(self.bytes())
    }

    /// Returns the node, to be changed.
    #[inline]
    pub(crate) fn node_mut(&mut self) -> NodeMut<'_> {
        NodeMut::new(self.bytes_mut())
    }

    /// Saves the page's image if the running checkpoint needs it; the caller must call this before a change.
    ///
    /// While the caller stays in the barrier, a further call does nothing.
    #[inline]
    pub(crate) fn prepare(&self) -> Result<()> {
        let epoch = self.pool.epoch.load(Ordering::Acquire);
        if self.state().image_epoch.load(Ordering::Relaxed) < epoch {
            self.pool.save_image(self.frame, self.bytes(), epoch)?;
        }
        Ok(())
    }

    /// Notes that the page has been changed, or will be before the guard is dropped.
    #[inline]
    pub(crate) fn mark_dirty(&self) {
        let state = self.state();
        if !state.dirty.load(Ordering::Relaxed) {
            self.pool.note_dirty(state);
        }
    }

    /// Returns the page's id.
    pub fn page(&self) -> PageId {
        PageId(self.state().page.load(Ordering::Relaxed))
    }

    /// Returns the bytes after the page header.
    pub fn body(&self) -> &[u8] {
        &self.bytes()[HEADER_SIZE..]
    }

    /// Returns the bytes after the page header, to be changed, and marks the page as dirty.
    ///
    /// It first saves the page's image if the running checkpoint needs it. Only this can fail. While the caller stays
    /// in the barrier, only the first call does it.
    pub fn body_mut(&mut self) -> Result<&mut [u8]> {
        self.prepare()?;
        self.mark_dirty();
        Ok(&mut self.bytes_mut()[HEADER_SIZE..])
    }

    /// Says that only the body's first `used` bytes are in use: the store does not write the rest.
    pub fn set_used(&mut self, used: usize) -> Result<()> {
        if used > BODY_SIZE {
            return Err(Error::Internal(format!(
                "{used} bytes used of a page body of {BODY_SIZE}"
            )));
        }
        self.prepare()?;
        self.mark_dirty();
        let page = self.bytes_mut();
        put_u16(page, HOLE_START, HEADER_SIZE + used);
        put_u16(page, HOLE_END, crate::ids::PAGE_SIZE);
        Ok(())
    }
}

impl Drop for ExclusiveGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let state = self.state();
        pause(Pause::Held);
        state.latch.unlock_exclusive();
        if self.pinned {
            state.pins.fetch_sub(1, Ordering::Release);
        }
    }
}

/// A guard of either kind, shared or exclusive.
pub(crate) trait Latched<'a>: Sized {
    fn latch(pool: &'a BufferPool, frame: FrameId) -> Self;
    fn node(&self) -> Node<'_>;
}

impl<'a> Latched<'a> for SharedGuard<'a> {
    #[inline]
    fn latch(pool: &'a BufferPool, frame: FrameId) -> Self {
        SharedGuard::lock(pool, frame)
    }
    #[inline]
    fn node(&self) -> Node<'_> {
        SharedGuard::node(self)
    }
}

impl<'a> Latched<'a> for ExclusiveGuard<'a> {
    #[inline]
    fn latch(pool: &'a BufferPool, frame: FrameId) -> Self {
        ExclusiveGuard::lock(pool, frame)
    }
    #[inline]
    fn node(&self) -> Node<'_> {
        ExclusiveGuard::node(self)
    }
}

impl BufferPool {
    /// Saves a frame's image for the running checkpoint, if needed, under a shared latch.
    ///
    /// The caller does this before it latches several frames exclusively: so readers continue during the write, and
    /// optimistic ones need no restart.
    pub fn save_early(&self, frame: FrameId) -> Result<()> {
        let state = self.frames.state(frame);
        let epoch = self.epoch.load(Ordering::Acquire);
        let needed = || {
            state.dirty.load(Ordering::Relaxed) && state.image_epoch.load(Ordering::Relaxed) < epoch
        };
        if !needed() || !self.wants_images(epoch) {
            return Ok(());
        }
        let guard = SharedGuard::lock(self, frame);
        if needed() {
            self.write_for_checkpoint(frame, guard.bytes())?;
        }
        Ok(())
    }
}

/// A pinned page: see [`crate::buffer::PoolWithThreads::pin`].
pub struct PinnedPage {
    pool: Arc<BufferPool>,
    frame: FrameId,
}

impl PinnedPage {
    /// Takes over a pin.
    pub(super) fn owning_pin(pool: Arc<BufferPool>, frame: FrameId) -> PinnedPage {
        PinnedPage { pool, frame }
    }

    pub(crate) fn frame(&self) -> FrameId {
        self.frame
    }

    /// Returns the page's id.
    pub fn page(&self) -> PageId {
        PageId(
            self.pool
                .frames
                .state(self.frame)
                .page
                .load(Ordering::Relaxed),
        )
    }

    /// Latches the page for reading.
    pub fn shared(&self) -> SharedGuard<'_> {
        SharedGuard::lock(&self.pool, self.frame)
    }

    /// Latches the page for changing.
    pub fn exclusive(&self) -> ExclusiveGuard<'_> {
        ExclusiveGuard::lock(&self.pool, self.frame)
    }
}

impl Drop for PinnedPage {
    fn drop(&mut self) {
        let state = self.pool.frames.state(self.frame);
        state.pins.fetch_sub(1, Ordering::Release);
    }
}
