//! Loading pages. The loading thread holds no latch of another page while the store reads.

use std::sync::Arc;

use crate::buffer::buffer_pool::BufferPool;
use crate::buffer::frames::NO_FRAME;
use crate::buffer::guard::{ExclusiveGuard, PinnedPage, SharedGuard};
use crate::buffer::page_table::Entry;
use crate::buffer::swip;
use crate::buffer::swip::Child;
use crate::error::Result;
use crate::ids::{FrameId, LatchVersion, PageId};
use crate::leaf_cache::mini_pages::LeafSeen;
use crate::node::header::*;
use crate::node::view::Node;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

/// Where an inner node refers to a child, as read at a version of the node's latch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildPlace {
    pub parent: FrameId,
    pub version: LatchVersion,
    /// The number of the child in the node.
    pub at: usize,
}

impl BufferPool {
    /// Loads the child to which an inner node refers as page `id`, and makes the node refer to its frame.
    ///
    /// `passing` says that a long scan needs the child. If another thread was faster or the node has changed, the
    /// reference stays as it is. In either case, the caller starts again from the root. It must hold no latch.
    pub fn make_resident(&self, place: ChildPlace, id: u64, passing: bool) -> Result<()> {
        let unchanged = || self.frames.state(place.parent).latch.still(place.version);
        let Some(frame) = self.find_or_load(id, 0, passing, unchanged)? else {
            return Ok(());
        };
        if frame == place.parent {
            // No error if the parent was evicted meanwhile, and its frame holds the child.
            if !unchanged() {
                return Ok(());
            }
            let what = "expected the child of a node, found the node itself";
            return Err(self.corrupt(id, what.into()));
        }
        let Some(mut parent) = self.latch_seen(place) else {
            return Ok(());
        };
        // While no parent refers to the child, a thread that holds its latch exclusively is evicting or freeing it.
        let Some(child) = SharedGuard::try_lock(self, frame) else {
            crate::sync::spin_loop();
            return Ok(());
        };
        let mut entries = self.table.lock(id);
        if entries.get(&id) != Some(&Entry::Ready(frame)) {
            return Ok(());
        }
        debug_assert_eq!(
            swip::child(parent.node().child(place.at)),
            Child::Page(id),
            "the version holds, so the reference must"
        );
        if let Some(what) = mismatch(parent.bytes(), place.at, child.bytes()) {
            return Err(self.corrupt(id, what));
        }
        if child.bytes()[KIND] == PageKind::Leaf as u8 {
            let tree = get_u32(child.bytes(), TREE_ID);
            for (column, zone_map) in self.evicted_zone_maps.of(id, tree).into_iter().flatten() {
                self.zone_maps
                    .put(frame, child.version(), column, &zone_map);
            }
            let version = child.version();
            self.mini_pages.arrive(id, LeafSeen { frame, version });
        }
        drop(child);
        // The parent's image in the store stays right: the parent does not become dirty.
        parent.node_mut().set_child(place.at, swip::resident(frame));
        let state = self.frames.state(frame);
        state.parent.store(place.parent, Ordering::Relaxed);
        if !passing {
            state.note_use();
        }
        // While the parent is still latched: a thread that has read the page id before finds the version changed, and
        // does not load the page.
        entries.remove(&id);
        Ok(())
    }

    /// Latches a parent that was read at a version; `None` if it has changed since.
    ///
    /// A thread that holds it shared may be writing it, which may take long. So this function waits for the latch
    /// instead of trying again and again. It may wait for a latch above: the caller has no latch that other threads
    /// wait for.
    fn latch_seen(&self, place: ChildPlace) -> Option<ExclusiveGuard<'_>> {
        let latched = ExclusiveGuard::try_upgrade(self, place.parent, place.version);
        if latched.is_some() || is_planted(PlantedFault::SpinForParent) {
            return latched;
        }
        if !self.frames.state(place.parent).latch.still(place.version) {
            crate::sync::spin_loop();
            return None;
        }
        let guard = ExclusiveGuard::lock(self, place.parent);
        (guard.version() == place.version).then_some(guard)
    }

    /// Returns the frame of a page without a parent, pinned.
    pub fn fetch(&self, page: PageId) -> Result<FrameId> {
        loop {
            if let Some(frame) = self.find_or_load(page.0, 1, false, || true)? {
                return Ok(frame);
            }
        }
    }

    /// Returns the frame of a page without a parent, pinned, if the page is in memory.
    pub fn find_resident(&self, page: PageId) -> Option<FrameId> {
        match self.table.lock(page.0).get(&page.0) {
            Some(Entry::Ready(frame)) => {
                let state = self.frames.state(*frame);
                state.pins.fetch_add(1, Ordering::Relaxed);
                state.note_use();
                Some(*frame)
            }
            Some(Entry::Loading(_)) | None => None,
        }
    }

    /// Returns whether the page table has an entry for a page: then the page needs no further frame.
    pub fn is_brought(&self, id: u64) -> bool {
        self.table.lock(id).contains_key(&id)
    }

    /// Returns the page, pinned.
    pub fn pin_page(self: &Arc<Self>, page: PageId) -> Result<PinnedPage> {
        let frame = self.fetch(page)?;
        Ok(PinnedPage::owning_pin(self.clone(), frame))
    }

    /// Like [`BufferPool::pin_page`], but returns `None` if the page is not in memory.
    pub fn pin_resident(self: &Arc<Self>, page: PageId) -> Option<PinnedPage> {
        let frame = self.find_resident(page)?;
        Some(PinnedPage::owning_pin(self.clone(), frame))
    }

    /// Returns the page's frame from the page table, or loads the page; adds `pins` to its pins.
    ///
    /// Returns `None` if the page is not cached and `wanted()` is false when checked under the load claim.
    fn find_or_load(
        &self,
        id: u64,
        pins: u32,
        passing: bool,
        wanted: impl Fn() -> bool,
    ) -> Result<Option<FrameId>> {
        let shard = self.table.shard(id);
        let mut entries = shard.lock();
        loop {
            match entries.get(&id) {
                Some(Entry::Ready(frame)) => {
                    let state = self.frames.state(*frame);
                    if pins > 0 {
                        state.pins.fetch_add(pins, Ordering::Relaxed);
                        state.note_use();
                    }
                    return Ok(Some(*frame));
                }
                Some(Entry::Loading(_)) => shard.wait(&mut entries),
                None => break,
            }
        }
        let claim = self.table.loading();
        entries.insert(id, claim);
        drop(entries);
        let loaded = if wanted() {
            self.load(id, pins, passing).map(Some)
        } else {
            Ok(None)
        };
        self.end_claim(id, claim, loaded.as_ref().ok().copied().flatten());
        loaded
    }

    /// Loads a page that a thread needs.
    fn load(&self, id: u64, pins: u32, passing: bool) -> Result<FrameId> {
        self.counters.misses.fetch_add(1, Ordering::Relaxed);
        self.fill(id, pins, passing, &mut |bytes| {
            self.store.read_page(PageId(id), bytes)
        })
    }

    /// Takes a free frame and lets `read` fill it with the page; the caller has the page's load claim.
    pub(super) fn fill(
        &self,
        id: u64,
        pins: u32,
        passing: bool,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<FrameId> {
        let mut guard = self.take_frame()?;
        let filled = read(guard.bytes_mut()).and_then(|()| self.check_loaded(id, guard.bytes()));
        if let Err(error) = filled {
            self.release_frame(guard);
            return Err(error);
        }
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        let state = guard.state();
        state.page.store(id, Ordering::Relaxed);
        state.parent.store(NO_FRAME, Ordering::Relaxed);
        state.pins.store(pins, Ordering::Relaxed);
        self.note_clean(state);
        // The clock spares the page once: the thread that needs it has not used it yet.
        state.used.store(true, Ordering::Relaxed);
        state.passing.store(passing, Ordering::Relaxed);
        Ok(guard.frame())
    }

    /// Checks the page's structure, so that no byte can lead the node code astray; the store has compared checksums.
    fn check_loaded(&self, id: u64, page: &Page) -> Result<()> {
        let found = get_u64(page, PAGE_ID);
        if found != id {
            return Err(self.corrupt(id, format!("the page says that it is page {found}")));
        }
        if page[KIND] == PageKind::Undo as u8 {
            return Ok(());
        }
        let node = Node::new(page);
        node.validate()
            .and_then(|()| node.validate_order())
            .map_err(|what| self.corrupt(id, what))
    }

    /// Removes a page from memory that is to be freed and to which no parent refers.
    ///
    /// If the running checkpoint needs its image, saves the image first.
    pub fn drop_unparented(&self, id: u64) -> Result<()> {
        loop {
            let shard = self.table.shard(id);
            let mut entries = shard.lock();
            let frame = match entries.get(&id) {
                None => return Ok(()),
                Some(Entry::Loading(_)) => {
                    shard.wait(&mut entries);
                    continue;
                }
                Some(Entry::Ready(frame)) => *frame,
            };
            drop(entries);
            let guard = ExclusiveGuard::lock(self, frame);
            // The frame may hold another page by now; this call must not save that page's image.
            if guard.page().0 != id {
                continue;
            }
            guard.prepare()?;
            let mut entries = shard.lock();
            if entries.get(&id) == Some(&Entry::Ready(frame)) && guard.page().0 == id {
                entries.remove(&id);
                drop(entries);
                self.release_frame(guard);
                return Ok(());
            }
        }
    }
}

/// Returns what in a child contradicts its parent; `None` if nothing does.
pub(crate) fn mismatch(parent: &Page, at: usize, child: &Page) -> Option<String> {
    let (tree, found) = (get_u32(parent, TREE_ID), get_u32(child, TREE_ID));
    if tree != found {
        return Some(format!(
            "expected a node of tree {tree}, found tree {found}"
        ));
    }
    if child[KIND] == PageKind::Undo as u8 {
        return Some(format!("expected a node of tree {tree}, found undo"));
    }
    let (parent, child) = (Node::new(parent), Node::new(child));
    let level = parent.level().wrapping_sub(1);
    if child.level() != level {
        return Some(format!(
            "expected a node at level {level}, found level {}",
            child.level()
        ));
    }
    let lower_is_right = match at.checked_sub(1) {
        None => child.lower_fence() == parent.lower_fence(),
        Some(before) => child.lower_fence() == parent.key(before),
    };
    let upper_is_right = if at == parent.count() {
        child.upper_fence() == parent.upper_fence()
    } else {
        child.upper_fence() == Some(&parent.key(at))
    };
    (!lower_is_right || !upper_is_right)
        .then(|| "its fences are not the keys between which its parent has it".to_string())
}
