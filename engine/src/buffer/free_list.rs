//! Free frames: how threads take and release them, and how a new page gets one.

use crate::buffer::buffer_pool::BufferPool;
use crate::buffer::frames::NO_FRAME;
use crate::buffer::guard::ExclusiveGuard;
use crate::buffer::page_table::Entry;
use crate::error::{Error, Result};
use crate::ids::FrameId;
use crate::knobs;
use crate::node::header::*;
use crate::sync::atomic::Ordering;
use crate::sync::{pause, strikes, Fault, Pause};

impl BufferPool {
    #[cfg(test)]
    pub fn set_waits(&self, waits: u64) {
        self.waits.store(waits, Ordering::Relaxed);
    }

    pub fn free_count(&self) -> usize {
        self.free.lock().len()
    }

    /// Returns how many frames the provider keeps free.
    pub fn free_target(&self) -> usize {
        (self.frames.count() / knobs::free_frames_part())
            .clamp(knobs::least_free_frames(), knobs::most_free_frames())
    }

    fn pop_free(&self) -> Option<FrameId> {
        let (frame, left) = {
            let mut free = self.free.lock();
            (free.pop(), free.len())
        };
        if left < self.free_target() / 2 {
            self.wanted.notify_one();
        }
        frame
    }

    /// Returns a free frame, latched; evicts a page if no frame is free.
    ///
    /// The caller must hold no latch of a page that other threads can reach, because eviction may write a page. Only
    /// readers with an outdated frame number may hold the frame's latch for a moment.
    pub fn take_frame(&self) -> Result<ExclusiveGuard<'_>> {
        if strikes(Fault::NoFrame) {
            return Err(self.all_in_use());
        }
        if let Some(frame) = self.pop_free() {
            return Ok(self.own(frame));
        }
        let mut waits_left = self.waits.load(Ordering::Relaxed);
        loop {
            let evicted = self.evict_some(1);
            if let Some(frame) = self.pop_free() {
                return Ok(self.own(frame));
            }
            evicted?;
            if waits_left == 0 {
                return Err(self.all_in_use());
            }
            let mut free = self.free.lock();
            if free.is_empty()
                && self
                    .freed
                    .wait_for(&mut free, knobs::frame_wait())
                    .timed_out()
            {
                waits_left -= 1;
            }
        }
    }

    /// Makes `wanted` frames free for a caller that needs that many pages at once.
    ///
    /// With fewer free frames its pages would evict one another again and again. The frames are not reserved: other
    /// threads may take them first. A caller that tries again with the same `waits_left` first waits, so that at
    /// least one of several callers makes progress. The caller must hold no latch that other threads wait for.
    ///
    /// # Errors
    /// Why other pages can't be written, or that all frames are in use.
    pub fn make_free(&self, wanted: usize, waits_left: &mut Option<u64>) -> Result<()> {
        let mut waits = waits_left.is_some();
        let left = waits_left.get_or_insert_with(|| self.waits.load(Ordering::Relaxed));
        loop {
            if waits {
                *left = left.checked_sub(1).ok_or_else(|| self.all_in_use())?;
                crate::sync::thread::sleep(knobs::frame_wait());
            }
            let missing = wanted.saturating_sub(self.free_count());
            let evicted = self.evict_some(missing);
            if self.free_count() >= wanted {
                return Ok(());
            }
            // A parent can be evicted only after its children: so as long as one page is evicted, others may follow.
            waits = evicted? == 0;
        }
    }

    /// Like [`BufferPool::take_frame`], but returns `None` if no frame is free and none can be made free at once.
    pub fn take_spare_frame(&self) -> Option<ExclusiveGuard<'_>> {
        if let Some(frame) = self.pop_free() {
            return Some(self.own(frame));
        }
        if let Err(error) = self.evict_some(1) {
            tracing::debug!(%error, "no frame to spare");
        }
        self.pop_free().map(|frame| self.own(frame))
    }

    fn all_in_use(&self) -> Error {
        Error::TooLarge(format!(
            "all {} pages of the buffer pool are in use at once; a larger pool is needed",
            self.frames.count()
        ))
    }

    fn own(&self, frame: FrameId) -> ExclusiveGuard<'_> {
        let guard = ExclusiveGuard::lock(self, frame);
        debug_assert_eq!(guard.state().page.load(Ordering::Relaxed), 0);
        guard
    }

    /// Makes a frame free; its page has been written or freed, or it never got one.
    pub fn release_frame(&self, guard: ExclusiveGuard<'_>) {
        let state = guard.state();
        let frame = guard.frame();
        state.page.store(0, Ordering::Relaxed);
        state.parent.store(NO_FRAME, Ordering::Relaxed);
        self.note_clean(state);
        state.used.store(false, Ordering::Relaxed);
        state.passing.store(false, Ordering::Relaxed);
        debug_assert_eq!(state.pins.load(Ordering::Relaxed), 0);
        // The guard raises the latch's version when it is dropped: so a reader that still reads the frame notices.
        drop(guard);
        pause(Pause::Held);
        self.free.lock().push(frame);
        self.freed.notify_one();
    }

    /// Returns a new page in a frame of its own, latched; its header is written except for the node's fields.
    ///
    /// No other thread can reach it yet.
    pub fn new_page(&self) -> Result<ExclusiveGuard<'_>> {
        let mut guard = self.take_frame()?;
        let id = self.store.allocate_page();
        self.evicted_zone_maps.forget(id.0);
        let page = guard.bytes_mut();
        page.fill(0);
        put_u64(page, PAGE_ID, id.0);
        let state = guard.state();
        state.page.store(id.0, Ordering::Relaxed);
        state
            .image_epoch
            .store(self.epoch.load(Ordering::Acquire), Ordering::Relaxed);
        guard.mark_dirty();
        state.used.store(true, Ordering::Relaxed);
        Ok(guard)
    }

    /// Undoes [`BufferPool::new_page`].
    pub fn discard_new(&self, guard: ExclusiveGuard<'_>) {
        let id = guard.page();
        self.release_frame(guard);
        pause(Pause::Held);
        self.store.free_page(id);
    }

    /// Frees a latched page to which nothing refers.
    pub fn free_latched(&self, guard: ExclusiveGuard<'_>) -> Result<()> {
        guard.prepare()?;
        self.discard_new(guard);
        Ok(())
    }

    /// Enters a new page in the page table, with `pins` pins.
    pub fn register(&self, guard: &ExclusiveGuard<'_>, pins: u32) {
        let id = guard.page().0;
        let mut entries = self.table.lock(id);
        guard.state().pins.store(pins, Ordering::Relaxed);
        entries.insert(id, Entry::Ready(guard.frame()));
    }
}
