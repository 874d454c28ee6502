//! Mini-pages of leaves that are not in memory: their keys, and the columns that reads asked for.
//!
//! They pay where a table is many times larger than the pool and queries read single rows, or a few in a row. For one
//! such row, the pool would keep a page of 16 KiB. In the same memory, it can keep the columns that queries ask for of
//! several times more rows. (The 2-Tree keeps hot records apart from cold pages in the same way: Zhou, Yu, Graefe and
//! Stonebraker, "Two is Better Than One", 2023.) The layers above build the mini-pages and know what their bytes mean.
//! The pool stores them in frames, as many as the clock leaves them. It fills each frame from front to back, and evicts
//! it as a whole.
//!
//! ```text
//! u64 the frame's number among all that were filled · u16 where its free room begins ·
//! per copy: u64 page · u16 bytes · the copy
//! ```
//! See [`crate::leaf_cache::mini_pages`]: which leaf has a mini-page, where it is, and how long it is valid.

use crate::buffer::buffer_pool::BufferPool;
use crate::buffer::frames::COPIES;
use crate::buffer::guard::{ExclusiveGuard, SharedGuard};
use crate::buffer::residency::load::ChildPlace;
use crate::ids::{FrameId, PAGE_SIZE};
use crate::leaf_cache::mini_pages::{Filling, Kept, LeafSeen};
use crate::node::header::{get_u16, get_u32, get_u64, put_u16, put_u64, TREE_ID};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

/// Bytes before the first mini-page of a frame: the filling's number, and where free room begins.
const FRAME_HEADER: usize = 10;
/// Bytes before each mini-page: the page and the mini-page's length.
const COPY_HEADER: usize = 10;

impl BufferPool {
    /// Returns the columns of the mini-page of a leaf of this tree, if it has one.
    pub fn mini_page_columns(&self, page: u64, tree: u32) -> Option<u64> {
        self.mini_pages.find(page, tree).map(|kept| kept.columns)
    }

    /// Returns whether a leaf of this tree has a mini-page with these columns.
    pub fn has_mini_page(&self, page: u64, tree: u32, columns: u64) -> bool {
        self.mini_page_columns(page, tree)
            .is_some_and(|kept| columns & !kept == 0)
    }

    /// Calls `f` with the mini-page of a leaf that is not in memory, and with the columns in it.
    ///
    /// `None` if there is no mini-page with these columns, or the leaf has been loaded meanwhile.
    pub fn read_mini_page<R>(
        &self,
        place: ChildPlace,
        (page, tree): (u64, u32),
        columns: u64,
        f: impl FnOnce(&[u8], u64) -> R,
    ) -> Option<R> {
        let kept = self.mini_pages.find(page, tree)?;
        if columns & !kept.columns != 0 {
            return None;
        }
        let state = self.frames.state(kept.frame);
        if state.page.load(Ordering::Relaxed) != COPIES {
            return None;
        }
        let guard = SharedGuard::lock(self, kept.frame);
        let bytes = guard.bytes();
        if state.page.load(Ordering::Relaxed) != COPIES || get_u64(bytes, 0) != kept.filling {
            return None;
        }
        let from = usize::from(kept.at);
        let result = f(bytes.get(from..from + usize::from(kept.len))?, kept.columns);
        drop(guard);
        let parent = self.frames.state(place.parent);
        if !parent.latch.still(place.version) {
            return None;
        }
        state.note_use();
        self.mini_pages.reads.fetch_add(1, Ordering::Relaxed);
        Some(result)
    }

    /// Returns whether mini-pages are worth their room: the pool has few free frames.
    pub fn wants_mini_page(&self) -> bool {
        // The provider frees a few more frames than its target.
        self.free_count() <= 2 * self.free_target()
    }

    /// Keeps a mini-page of a leaf that was read at this version; the leaf then becomes one of the first to be
    /// evicted.
    ///
    /// The pool keeps nothing if the leaf has changed, or no frame is to be had. The caller must hold no latch.
    pub fn keep_mini_page(&self, page: u64, leaf: LeafSeen, columns: u64, copy: &[u8]) {
        if let Some(place) = self.place_copy(page, copy) {
            self.enter_copy(page, leaf, columns, copy.len(), place);
        }
    }

    /// Makes a mini-page known that [`BufferPool::place_copy`] has stored at this place.
    pub(super) fn enter_copy(
        &self,
        page: u64,
        leaf: LeafSeen,
        columns: u64,
        len: usize,
        (filling, at): (Filling, u16),
    ) {
        // A latched leaf can't be evicted: so no eviction misses the new entry.
        let Some(guard) = SharedGuard::try_lock(self, leaf.frame) else {
            return;
        };
        if guard.version() != leaf.version || guard.page().0 != page {
            return;
        }
        // The evictor removes the entries of a frame's mini-pages: this frame may have been evicted since.
        let Some(there) = SharedGuard::try_lock(self, filling.frame) else {
            return;
        };
        let is_there = there.page().0 == COPIES && get_u64(there.bytes(), 0) == filling.number;
        if !is_there && !is_planted(PlantedFault::EnterGoneCopies) {
            return;
        }
        let kept = Kept {
            frame: filling.frame,
            filling: filling.number,
            at,
            len: len as u16,
            tree: get_u32(guard.bytes(), TREE_ID),
            columns,
            leaf,
        };
        self.mini_pages.shard(page).lock().insert(page, kept);
        self.pass(leaf.frame);
    }

    /// Writes a mini-page into the frame that is being filled, or into a new one, and returns its place.
    pub(super) fn place_copy(&self, page: u64, copy: &[u8]) -> Option<(Filling, u16)> {
        let len = COPY_HEADER + copy.len();
        if FRAME_HEADER + len > PAGE_SIZE {
            return None;
        }
        for _ in 0..2 {
            if let Some(filling) = &mut *self.mini_pages.filling.lock() {
                let from = filling.used;
                if let Some(mut guard) = self.latch_filling(*filling, len) {
                    let bytes = guard.bytes_mut();
                    put_u64(bytes, from, page);
                    put_u16(bytes, from + 8, copy.len());
                    let at = from + COPY_HEADER;
                    bytes[at..at + copy.len()].copy_from_slice(copy);
                    filling.used = at + copy.len();
                    put_u16(bytes, 8, filling.used);
                    return Some((*filling, at as u16));
                }
            }
            // Other threads may do the same at the same time: then a frame stays emptier than it could. The caller
            // already has its row, so it must not wait to keep a mini-page.
            let mut guard = match is_planted(PlantedFault::WaitForCopy) {
                true => self.take_frame().ok()?,
                false => self.take_spare_frame()?,
            };
            let number = self.mini_pages.fillings.fetch_add(1, Ordering::Relaxed);
            let bytes = guard.bytes_mut();
            put_u64(bytes, 0, number);
            put_u16(bytes, 8, FRAME_HEADER);
            let state = guard.state();
            state.page.store(COPIES, Ordering::Relaxed);
            state.used.store(true, Ordering::Relaxed);
            *self.mini_pages.filling.lock() = Some(Filling {
                frame: guard.frame(),
                number,
                used: FRAME_HEADER,
            });
        }
        None
    }

    /// Latches the frame if it is still the one being filled and has `len` bytes of room.
    fn latch_filling(&self, filling: Filling, len: usize) -> Option<ExclusiveGuard<'_>> {
        if filling.used + len > PAGE_SIZE {
            return None;
        }
        let guard = ExclusiveGuard::try_lock(self, filling.frame)?;
        let is_it = guard.page().0 == COPIES && get_u64(guard.bytes(), 0) == filling.number;
        is_it.then_some(guard)
    }

    /// Evicts a frame of mini-pages, if no thread has it latched.
    pub(super) fn evict_copies(&self, frame: FrameId) -> bool {
        let Some(guard) = ExclusiveGuard::try_lock(self, frame) else {
            return false;
        };
        if guard.page().0 != COPIES {
            return false;
        }
        let bytes = guard.bytes();
        let (filling, end) = (get_u64(bytes, 0), get_u16(bytes, 8).min(PAGE_SIZE));
        let mut at = FRAME_HEADER;
        while at + COPY_HEADER <= end {
            self.mini_pages.forget_in(get_u64(bytes, at), filling);
            at += COPY_HEADER + get_u16(bytes, at + 8);
        }
        self.release_frame(guard);
        true
    }
}
