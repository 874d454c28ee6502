//! Which pages are in memory without a parent to say so: undo pages, roots, and tree pages that
//! have been read and whose parent doesn't know yet.
//!
//! An entry is the right to load: while a page has one, nobody else reads it from the store.

use std::collections::HashMap;

use crate::ids::FrameId;
use crate::knobs;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Where a page without a parent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Somebody is reading it: whoever has this number.
    Loading(u64),
    /// In this frame.
    Ready(FrameId),
}

#[derive(Default)]
pub(crate) struct Shard {
    map: Mutex<HashMap<u64, Entry>>,
    changed: Condvar,
}

/// The table, in shards of one mutex each. A shard is locked below any latch, and nothing is
/// waited for while it is locked, but the shard's own change.
pub(crate) struct PageTable {
    /// The last number given to a reader.
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

    /// The entry of somebody who is about to read a page.
    pub fn loading(&self) -> Entry {
        Entry::Loading(self.last.fetch_add(1, Ordering::Relaxed))
    }

    pub fn shard(&self, page: u64) -> &Shard {
        // Ids are given out in a row: their low bits spread well.
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

    /// Waits until an entry has changed.
    pub fn wait(&self, entries: &mut Entries<'_>) {
        self.changed.wait(entries);
    }

    /// Wakes who waits for an entry.
    pub fn notify(&self) {
        self.changed.notify_all();
    }
}
