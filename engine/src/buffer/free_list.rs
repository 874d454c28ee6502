//! Frames that are nobody's: how they are taken and given back, and new pages, which come to be in them.

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

    /// How many free frames the provider keeps at hand.
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

    /// A frame of nobody's, latched. To be called without any latch: it may write a page to make
    /// a frame free. The latch is waited for only by readers that lost their way.
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

    /// Makes so many frames free, for who needs that many pages at once: where there are fewer, one page goes for the
    /// other, and comes again, for ever. The frames are not reserved: others may take them first. Who then comes again
    /// with the same `waits_left` waits, so that of several at least one goes on. To be called without any latch that
    /// others wait for.
    ///
    /// # Errors
    /// Why the pages of the others can't be written, or that all are in use.
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
            // A parent goes after its children: so as long as any goes, others may.
            waits = evicted? == 0;
        }
    }

    /// As [`BufferPool::take_frame`], for who can do without: where none is free, or can be made free at once, there is none.
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

    /// Makes a frame nobody's. Its page has been written, freed, or never was.
    pub fn release_frame(&self, guard: ExclusiveGuard<'_>) {
        let state = guard.state();
        let frame = guard.frame();
        state.page.store(0, Ordering::Relaxed);
        state.parent.store(NO_FRAME, Ordering::Relaxed);
        self.note_clean(state);
        state.used.store(false, Ordering::Relaxed);
        state.passing.store(false, Ordering::Relaxed);
        debug_assert_eq!(state.pins.load(Ordering::Relaxed), 0);
        // Leaving the latch raises its version: whoever still looks at the frame will notice.
        drop(guard);
        pause(Pause::Held);
        self.free.lock().push(frame);
        self.freed.notify_one();
    }

    /// A new page in a frame of its own, latched, its header written but for the node's fields.
    /// It is in nobody's reach yet.
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

    /// Frees a latched page that nothing refers to any more.
    pub fn free_latched(&self, guard: ExclusiveGuard<'_>) -> Result<()> {
        guard.prepare()?;
        self.discard_new(guard);
        Ok(())
    }

    /// Makes a new page known by its id, with `pins` pins.
    pub fn register(&self, guard: &ExclusiveGuard<'_>, pins: u32) {
        let id = guard.page().0;
        let mut entries = self.table.lock(id);
        guard.state().pins.store(pins, Ordering::Relaxed);
        entries.insert(id, Entry::Ready(guard.frame()));
    }
}
