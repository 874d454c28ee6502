//! Bringing pages into memory. No latch of another page is held while the store reads.

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

/// Where an inner node refers to a child, seen at a version of its latch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChildPlace {
    pub parent: FrameId,
    pub version: LatchVersion,
    /// Which child.
    pub at: usize,
}

impl BufferPool {
    /// Makes the child of an inner node, seen to be the page `id` in the store, resident; `passing`:
    /// for a cursor that passes through. Whether that worked or somebody else was faster, the caller
    /// starts again from the root. To be called without any latch.
    pub fn make_resident(&self, place: ChildPlace, id: u64, passing: bool) -> Result<()> {
        let unchanged = || self.frames.state(place.parent).latch.still(place.version);
        let Some(frame) = self.find_or_load(id, 0, passing, unchanged)? else {
            return Ok(());
        };
        if frame == place.parent {
            // Unless the parent has gone meanwhile, and its frame has the child now.
            if !unchanged() {
                return Ok(());
            }
            let what = "expected the child of a node, found the node itself";
            return Err(self.corrupt(id, what.into()));
        }
        let Some(mut parent) = self.latch_seen(place) else {
            return Ok(());
        };
        // Who has it now, before any parent has, evicts it.
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
        // The image in the store means the same: the parent does not become dirty by this.
        parent.node_mut().set_child(place.at, swip::resident(frame));
        let state = self.frames.state(frame);
        state.parent.store(place.parent, Ordering::Relaxed);
        if !passing {
            state.note_use();
        }
        // While the parent is still latched: whoever saw the page id before will find the version
        // changed, and load nothing.
        entries.remove(&id);
        Ok(())
    }

    /// Latches a parent as it was seen; none where it has changed since. Whoever holds it shared may be writing it, which
    /// may take long: so this sleeps, and does not look at the same node again and again. It may wait upwards, for the
    /// caller has no latch that others can come to.
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

    /// The frame of a page without a parent, pinned.
    pub fn fetch(&self, page: PageId) -> Result<FrameId> {
        loop {
            if let Some(frame) = self.find_or_load(page.0, 1, false, || true)? {
                return Ok(frame);
            }
        }
    }

    /// The frame of a page without a parent, pinned, if it is in memory.
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

    /// Whether a page that no parent has yet is in memory, or about to be: who asks for it needs no frame for it.
    pub fn is_brought(&self, id: u64) -> bool {
        self.table.lock(id).contains_key(&id)
    }

    /// The page, kept in memory.
    pub fn pin_page(self: &Arc<Self>, page: PageId) -> Result<PinnedPage> {
        let frame = self.fetch(page)?;
        Ok(PinnedPage::owning_pin(self.clone(), frame))
    }

    /// As [`BufferPool::pin_page`], if it is in memory.
    pub fn pin_resident(self: &Arc<Self>, page: PageId) -> Option<PinnedPage> {
        let frame = self.find_resident(page)?;
        Some(PinnedPage::owning_pin(self.clone(), frame))
    }

    /// Finds the page in the table, or reads it from the store; adds `pins` to its pins. None if
    /// it would have to be read, but `wanted` no longer holds once nobody else can be reading it.
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

    /// Reads a page into a frame, because it is needed.
    fn load(&self, id: u64, pins: u32, passing: bool) -> Result<FrameId> {
        self.counters.misses.fetch_add(1, Ordering::Relaxed);
        self.fill(id, pins, passing, &mut |bytes| {
            self.store.read_page(PageId(id), bytes)
        })
    }

    /// Puts a page into a frame that `read` fills. The caller has the page's entry.
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
        // Spared once by the clock: whoever it was read for is still to come.
        state.used.store(true, Ordering::Relaxed);
        state.passing.store(passing, Ordering::Relaxed);
        Ok(guard.frame())
    }

    /// The store has compared checksums; this makes sure that no byte can lead the node code astray.
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

    /// Takes a page that is to be freed, and that no parent refers to any more, out of memory, if
    /// it is there. Its image is saved first if a running checkpoint needs it.
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
            // It may be another page's by now, whose image is none of this call's business.
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

/// What of a child is not as its parent says; None where all is well.
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
