//! Mini-pages of leaves that are not in memory: their keys, and the columns that are asked for.
//!
//! Where a table is many times larger than the pool and rows are read one by one, or a few in a row, a page of
//! 16 KiB would be kept for what is asked for once; of the columns that queries look at several times more rows have
//! room in the same memory (as the 2-Tree keeps hot records apart from cold pages: Zhou, Yu, Graefe and
//! Stonebraker, "Two is Better Than One", 2023). The layers above make the copies and know what they mean;
//! here they stand in frames of the pool, as many as the clock leaves them, each frame filled from front to
//! back and given up as a whole.
//!
//! ```text
//! u64 the frame's number among all that were filled · u16 where its free room begins ·
//! per copy: u64 page · u16 bytes · the copy
//! ```
//! Which leaf has a copy, where, and how long it stands for the leaf: see [`crate::leaf_cache::mini_pages`].

use crate::buffer::buffer_pool::BufferPool;
use crate::buffer::frames::COPIES;
use crate::buffer::guard::{ExclusiveGuard, SharedGuard};
use crate::buffer::residency::load::ChildPlace;
use crate::ids::{FrameId, PAGE_SIZE};
use crate::leaf_cache::mini_pages::{Filling, Kept, LeafSeen};
use crate::node::header::{get_u16, get_u32, get_u64, put_u16, put_u64, TREE_ID};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

/// The number and the room of a frame of copies.
const FRAME_HEADER: usize = 10;
/// The page and the length of a copy.
const COPY_HEADER: usize = 10;

impl BufferPool {
    /// The columns of which there is a copy of a page's leaf, of this tree.
    pub fn mini_page_columns(&self, page: u64, tree: u32) -> Option<u64> {
        self.mini_pages.find(page, tree).map(|kept| kept.columns)
    }

    /// Whether there is a copy of a page's leaf, of this tree, with these columns.
    pub fn has_mini_page(&self, page: u64, tree: u32, columns: u64) -> bool {
        self.mini_page_columns(page, tree)
            .is_some_and(|kept| columns & !kept == 0)
    }

    /// Calls `f` with the copy of a tree's leaf that is not in memory, and the columns that are in it; `None` where
    /// there is none with these columns, or the leaf has come meanwhile.
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

    /// Whether copies are worth their room: the pool has no frames to spare.
    pub fn wants_mini_page(&self) -> bool {
        // The provider makes a few more free than it must.
        self.free_count() <= 2 * self.free_target()
    }

    /// Keeps a copy of a leaf that was seen at this version; the leaf itself is one of the first to go then.
    /// Nothing is kept where the leaf has changed, or there is no frame for it. To be called without any latch.
    pub fn keep_mini_page(&self, page: u64, leaf: LeafSeen, columns: u64, copy: &[u8]) {
        if let Some(place) = self.place_copy(page, copy) {
            self.enter_copy(page, leaf, columns, copy.len(), place);
        }
    }

    /// Makes a copy known that stands at a place that [`BufferPool::place_copy`] gave.
    pub(super) fn enter_copy(
        &self,
        page: u64,
        leaf: LeafSeen,
        columns: u64,
        len: usize,
        (filling, at): (Filling, u16),
    ) {
        // While the leaf is latched it can't leave: nobody misses the entry then.
        let Some(guard) = SharedGuard::try_lock(self, leaf.frame) else {
            return;
        };
        if guard.version() != leaf.version || guard.page().0 != page {
            return;
        }
        // Who gives the frame up forgets what is known of it then: it may have gone since.
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

    /// Writes a copy into the frame that is being filled, or the next: where it stands.
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
            // Others may do the same meanwhile: then a frame stays emptier than it could.
            // Who has asked for a row has it, and waits for no copy.
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

    /// Latches the frame that is being filled, if it is still that and has room for so many bytes.
    fn latch_filling(&self, filling: Filling, len: usize) -> Option<ExclusiveGuard<'_>> {
        if filling.used + len > PAGE_SIZE {
            return None;
        }
        let guard = ExclusiveGuard::try_lock(self, filling.frame)?;
        let is_it = guard.page().0 == COPIES && get_u64(guard.bytes(), 0) == filling.number;
        is_it.then_some(guard)
    }

    /// Gives a frame of copies up, if nobody reads there.
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
