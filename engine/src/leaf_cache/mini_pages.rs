//! Which leaves have mini-pages, where these stand, and up to when each stands for its leaf. How they are written,
//! read and given up: see `buffer/mini_page.rs`.
//!
//! A copy is kept while the leaf is in memory, and nobody looks at it. It names the frame and the version
//! of the leaf's latch at which it was made: where the leaf leaves its parent with another one, it has been
//! changed (or is another page of the same number), and the copy goes; where the leaf comes again, the copy
//! takes the new frame's version. So as with [`crate::leaf_cache::evicted_zone_maps`], who finds a copy while the parent refers to
//! the leaf by its number, and the parent's version holding afterwards, has read what the leaf's own bytes say. And as
//! there, the tree is kept with it.

use std::collections::HashMap;

use crate::ids::{FrameId, LatchVersion};
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::AtomicU64;
use crate::sync::Mutex;

/// Where a copy stands, and what it is of.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    pub frame: FrameId,
    /// The number of the filling of the frame.
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

/// The frame that is being filled.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    pub frame: FrameId,
    pub number: u64,
    pub used: usize,
}

/// Where the copies of all leaves are.
pub(crate) struct MiniPages {
    shards: Box<[Mutex<HashMap<u64, Kept>>]>,
    pub(crate) filling: Mutex<Option<Filling>>,
    pub(crate) fillings: AtomicU64,
    /// How often a copy was read instead of its leaf.
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

    /// The copy of a page's leaf, if it is the tree's.
    pub(crate) fn find(&self, page: u64, tree: u32) -> Option<Kept> {
        let kept = self.shard(page).lock().get(&page).copied();
        kept.filter(|kept| kept.tree == tree || is_planted(PlantedFault::KeptByNumber))
    }

    /// The leaf leaves memory, as it was seen last.
    pub fn leave(&self, page: u64, leaf: LeafSeen) {
        let mut shard = self.shard(page).lock();
        if shard.get(&page).is_some_and(|kept| kept.leaf != leaf) {
            shard.remove(&page);
        }
    }

    /// The leaf has come to memory as it left.
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
