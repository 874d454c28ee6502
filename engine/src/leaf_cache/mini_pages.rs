//! Which leaves have mini-pages, where they are, and how long each is valid.
//!
//! See `buffer/mini_page.rs` for how the pool writes, reads and evicts them.
//!
//! A mini-page is kept while its leaf is in memory, but no thread reads it then. Its entry names the leaf's frame,
//! and the version of the leaf's latch at which the mini-page was made. If the leaf is evicted at another version, it
//! has been changed (or is another page with the same number), and the entry is removed. If the leaf is loaded again,
//! the entry takes the new frame and version. So a reader may use an entry if the parent refers to the leaf by its
//! number, and the parent's version still holds afterwards. It has then read what the leaf's own bytes say. As in
//! [`crate::leaf_cache::evicted_zone_maps`], the entry also keeps the tree.

use std::collections::HashMap;

use crate::ids::{FrameId, LatchVersion};
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::AtomicU64;
use crate::sync::Mutex;

/// Where a mini-page is, and which leaf and columns it has.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub frame: FrameId,
    /// The number of the frame's filling.
    pub filling: u64,
    pub at: u16,
    pub len: u16,
    pub tree: u32,
    pub columns: u64,
    pub leaf: LeafSeen,
}

/// A leaf's frame at a version of its latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeafSeen {
    pub frame: FrameId,
    pub version: LatchVersion,
}

/// The frame that is being filled with mini-pages.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    pub frame: FrameId,
    pub number: u64,
    pub used: usize,
}

/// The entries of all mini-pages.
pub(crate) struct MiniPages {
    shards: Box<[Mutex<HashMap<u64, Kept>>]>,
    pub(crate) filling: Mutex<Option<Filling>>,
    pub(crate) fillings: AtomicU64,
    /// Reads that a mini-page answered instead of its leaf.
    pub reads: AtomicU64,
}

impl MiniPages {
    pub fn new() -> MiniPages {
        MiniPages {
            shards: (0..knobs::mini_page_shards())
                .map(|_| Mutex::default())
                .collect(),
            filling: Mutex::new(None),
            fillings: AtomicU64::new(1),
            reads: AtomicU64::new(0),
        }
    }

    pub(crate) fn shard(&self, page: u64) -> &Mutex<HashMap<u64, Kept>> {
        &self.shards[page as usize % knobs::mini_page_shards()]
    }

    /// Returns the entry of a leaf's mini-page, if the leaf is of this tree.
    pub(crate) fn find(&self, page: u64, tree: u32) -> Option<Kept> {
        let kept = self.shard(page).lock().get(&page).copied();
        kept.filter(|kept| kept.tree == tree || is_planted(PlantedFault::KeptByNumber))
    }

    /// Removes the entry of a leaf that is being evicted, unless the mini-page was made at this version of the leaf.
    pub fn leave(&self, page: u64, leaf: LeafSeen) {
        let mut shard = self.shard(page).lock();
        if shard.get(&page).is_some_and(|kept| kept.leaf != leaf) {
            shard.remove(&page);
        }
    }

    /// Notes that a leaf has been loaded, unchanged since its eviction.
    pub fn arrive(&self, page: u64, leaf: LeafSeen) {
        if let Some(kept) = self.shard(page).lock().get_mut(&page) {
            kept.leaf = leaf;
        }
    }

    pub(crate) fn forget_in(&self, page: u64, filling: u64) {
        let mut shard = self.shard(page).lock();
        if shard.get(&page).is_some_and(|kept| kept.filling == filling) {
            shard.remove(&page);
        }
    }
}
