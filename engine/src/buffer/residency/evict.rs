//! Eviction: a clock (second chance) over all frames.
//!
//! A background thread, the provider, keeps some frames free, so that loading a page rarely waits for a write.
//! Eviction never waits for a latch, it only tries: so a thread may evict while it holds latches.

use std::sync::{Arc, Weak};

use crate::buffer::buffer_pool::BufferPool;
use crate::buffer::frames::{COPIES, NO_FRAME};
use crate::buffer::guard::{ExclusiveGuard, SharedGuard};
use crate::buffer::page_table::Entry;
use crate::buffer::swip;
use crate::buffer::swip::Child;
use crate::error::Result;
use crate::ids::FrameId;
use crate::knobs;
use crate::leaf_cache::mini_pages::LeafSeen;
use crate::node::header::*;
use crate::node::view::Node;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

impl BufferPool {
    /// Makes up to `wanted` frames free; the hand passes each frame twice at most.
    ///
    /// Returns an error only if a write failed and no frame became free.
    pub fn evict_some(&self, wanted: usize) -> Result<usize> {
        let frames = self.frames.count();
        let mut evicted = 0;
        let mut failed = None;
        // Scan victims are evicted first; the hand does not move for them.
        while evicted < wanted {
            let Some((frame, page)) = self.passed.pop() else {
                break;
            };
            let state = self.frames.state(frame);
            if state.page.load(Ordering::Relaxed) != page
                || state.used.load(Ordering::Relaxed)
                || state.pins.load(Ordering::Relaxed) > 0
            {
                continue;
            }
            match self.evict(frame, page) {
                Ok(true) => evicted += 1,
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        for _ in 0..2 * frames {
            if evicted >= wanted {
                break;
            }
            let frame = (self.hand.fetch_add(1, Ordering::Relaxed) % frames) as FrameId;
            let state = self.frames.state(frame);
            let page = state.page.load(Ordering::Relaxed);
            if page == 0 || state.pins.load(Ordering::Relaxed) > 0 {
                continue;
            }
            if state.used.load(Ordering::Relaxed) {
                state.used.store(false, Ordering::Relaxed);
                continue;
            }
            if page == COPIES {
                evicted += usize::from(self.evict_copies(frame));
                continue;
            }
            match self.evict(frame, page) {
                Ok(true) => evicted += 1,
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        }
        self.counters
            .evictions
            .fetch_add(evicted as u64, Ordering::Relaxed);
        match failed {
            Some(error) if evicted == 0 => Err(error),
            _ => Ok(evicted),
        }
    }

    /// Evicts a page that was in the frame when the caller read its number; false if it can't be evicted now.
    ///
    /// When the frame is latched, it may hold another page. Then its bytes are not read, because they may be
    /// mini-pages.
    pub(crate) fn evict(&self, frame: FrameId, page: u64) -> Result<bool> {
        let state = self.frames.state(frame);
        let is_still_there = || {
            state.holds() == Some(page)
                || is_planted(PlantedFault::ParseReusedFrame)
                    && state.page.load(Ordering::Relaxed) != 0
        };
        // Write first, under a shared latch: readers continue meanwhile.
        if state.dirty.load(Ordering::Relaxed) {
            let Some(guard) = SharedGuard::try_lock(self, frame) else {
                return Ok(false);
            };
            if !is_still_there() || has_resident_children(guard.bytes()) {
                return Ok(false);
            }
            if state.dirty.load(Ordering::Relaxed) {
                self.write_evicted(frame, guard.bytes())?;
            }
        }
        let Some(victim) = ExclusiveGuard::try_lock(self, frame) else {
            return Ok(false);
        };
        if !is_still_there()
            || state.dirty.load(Ordering::Relaxed) && !is_planted(PlantedFault::EvictChanged)
            || state.pins.load(Ordering::Relaxed) > 0
            || has_resident_children(victim.bytes())
        {
            return Ok(false);
        }
        match state.parent.load(Ordering::Relaxed) {
            NO_FRAME => {
                let is_root = victim.bytes()[KIND] != PageKind::Undo as u8;
                if is_root && is_planted(PlantedFault::PinnedRoots) {
                    return Ok(false);
                }
                let mut entries = self.table.lock(page);
                // Threads take pins under the shard's lock: if there are none now, there are none from now on.
                // Without an entry the page is new, and its creator is not yet done with it.
                if state.pins.load(Ordering::Relaxed) > 0
                    || entries.get(&page) != Some(&Entry::Ready(frame))
                {
                    return Ok(false);
                }
                entries.remove(&page);
            }
            parent => {
                if !self.detach(frame, &victim, parent, page) {
                    return Ok(false);
                }
            }
        }
        self.release_frame(victim);
        Ok(true)
    }

    /// Returns whether the page table has an entry for a page that is in memory below its parent.
    ///
    /// A wrong child id or undo pointer has led a thread to load it a second time. Its copy may be older than the
    /// page. If the page were evicted, a descent through its parent would find the copy. So the page stays in memory
    /// while the entry exists.
    fn has_copy(&self, page: u64) -> bool {
        self.table.lock(page).contains_key(&page) && !is_planted(PlantedFault::EvictBesideCopy)
    }

    /// Makes the parent refer to the page by its id again, and returns whether it does.
    ///
    /// It does not if the parent is latched, the parent hint is wrong, or the page table has an entry for the page.
    fn detach(
        &self,
        frame: FrameId,
        victim: &ExclusiveGuard<'_>,
        parent: FrameId,
        id: u64,
    ) -> bool {
        let Some(mut parent) = ExclusiveGuard::try_lock(self, parent) else {
            return false;
        };
        let has_page = parent.state().holds().is_some()
            || is_planted(PlantedFault::ParseReusedFrame) && parent.page().0 != 0;
        if !has_page || parent.bytes()[KIND] != PageKind::Inner as u8 {
            return false;
        }
        let node = parent.node();
        let lower = victim.node().lower_fence();
        // If the parent hint is wrong, the frame may hold another node: search only within its fences.
        if node.lower_fence() > lower || node.upper_fence().is_some_and(|upper| upper <= lower) {
            return false;
        }
        let at = node.child_for(lower);
        if swip::child(node.child(at)) != Child::Frame(frame) {
            return false;
        }
        // A thread that loads the page from here on gets its present state: it has been written, and is latched.
        if self.has_copy(id) {
            return false;
        }
        // Before another thread can see that the leaf is not in memory.
        if victim.bytes()[KIND] == PageKind::Leaf as u8 {
            let version = victim.version();
            let zone_maps = self.zone_maps.all(frame, version);
            let tree = get_u32(victim.bytes(), TREE_ID);
            self.evicted_zone_maps.leave(id, tree, zone_maps);
            self.mini_pages.leave(id, LeafSeen { frame, version });
        }
        parent.node_mut().set_child(at, id);
        true
    }
}

/// Returns whether a page refers to pages in memory.
fn has_resident_children(page: &Page) -> bool {
    if page[KIND] != PageKind::Inner as u8 {
        return false;
    }
    let node = Node::new(page);
    (0..=node.count()).any(|i| matches!(swip::child(node.child(i)), Child::Frame(_)))
}

/// Starts the provider, which runs until the pool ends.
pub(crate) fn start_provider(
    pool: &Arc<BufferPool>,
) -> std::io::Result<crate::sync::thread::JoinHandle<()>> {
    let weak = Arc::downgrade(pool);
    crate::sync::thread::Builder::new()
        .name("peregrine-frames".into())
        .spawn(move || provide(&weak))
}

fn provide(pool: &Weak<BufferPool>) {
    while let Some(pool) = pool.upgrade() {
        {
            let mut stop = pool.provider.lock();
            if !*stop && pool.free_count() >= pool.free_target() / 2 {
                pool.wanted
                    .wait_for(&mut stop, knobs::provider_poll_interval());
            }
            if *stop {
                return;
            }
        }
        let target = pool.free_target();
        while !*pool.provider.lock() {
            let wanted = target
                .saturating_sub(pool.free_count())
                .min(knobs::frames_at_once());
            if wanted == 0 {
                break;
            }
            match pool.evict_some(wanted) {
                Ok(0) => {
                    // All frames are in use: threads that need a frame try to evict pages themselves meanwhile.
                    crate::sync::thread::sleep(knobs::provider_all_in_use());
                    break;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%error, "no page could be written to make its frame free");
                    crate::sync::thread::sleep(knobs::provider_rest());
                    break;
                }
            }
        }
    }
}
