//! Which pages are in memory without a parent that refers to their frame.
//!
//! These are undo pages, roots, and tree pages that have been loaded but are not yet in their parent.
//! [`Entry::Loading`] is a load claim. While a page has an entry, no other thread reads the page from the store.

use std::collections::HashMap;

use crate::ids::FrameId;
use crate::knobs;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Where a page without a parent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A thread is reading the page; the number identifies its load claim.
    Loading(u64),
    /// The page is in this frame.
    Ready(FrameId),
}

#[derive(Default)]
pub(crate) struct Shard {
    map: Mutex<HashMap<u64, Entry>>,
    changed: Condvar,
}

/// The page table, in shards of one mutex each.
///
/// A thread may lock a shard while it holds latches. While it has a shard locked, it waits for nothing but a change
/// of that shard.
pub(crate) struct PageTable {
    /// The number of the last load claim.
    last: AtomicU64,
    shards: Box<[Shard]>,
}

pub(crate) type Entries<'a> = MutexGuard<'a, HashMap<u64, Entry>>;

impl PageTable {
    pub fn new() -> PageTable {
        PageTable {
            last: AtomicU64::new(0),
            shards: (0..knobs::page_table_shards())
                .map(|_| Shard::default())
                .collect(),
        }
    }

    /// Returns a new load claim for a thread that is about to read pages.
    pub fn loading(&self) -> Entry {
        Entry::Loading(self.last.fetch_add(1, Ordering::Relaxed))
    }

    pub fn shard(&self, page: u64) -> &Shard {
        // Page ids are given out in sequence: their low bits spread well.
        &self.shards[page as usize % knobs::page_table_shards()]
    }

    pub fn lock(&self, page: u64) -> Entries<'_> {
        self.shard(page).map.lock()
    }
}

impl Shard {
    pub fn lock(&self) -> Entries<'_> {
        self.map.lock()
    }

    /// Waits until an entry of the shard has changed.
    pub fn wait(&self, entries: &mut Entries<'_>) {
        self.changed.wait(entries);
    }

    /// Wakes the threads that wait for an entry.
    pub fn notify(&self) {
        self.changed.notify_all();
    }
}
