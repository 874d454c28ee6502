//! A full disk, and a data file with its free space in pieces, none longer than the longest image.

use std::path::Path;
use std::sync::Arc;

use super::{page_of, DIR};
use crate::error::Result;
use crate::ids::{PageId, PAGE_SIZE};
use crate::os::simulated::SimulatedOs;
use crate::store::space::extents::LONGEST;
use crate::store::table::CHUNK;
use crate::store::Store;

/// Pieces of free space: more than a checkpoint of these pages needs.
const PIECES: u64 = 2_000;

pub(super) struct Scattered {
    pub os: SimulatedOs,
    pub store: Store,
    /// The last page of each chunk of the place table, so that chunks are long. Together, the chunks need more than a
    /// run.
    pub pages: Vec<PageId>,
}

impl Scattered {
    /// A store with its free space in one piece.
    pub fn unscattered() -> Scattered {
        let os = SimulatedOs::new(7);
        let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
        let all = (0..3 * CHUNK).map(|_| store.allocate_page());
        let is_last = |page: &PageId| page.0 % CHUNK as u64 == CHUNK as u64 - 1;
        let pages = all.filter(|page| is_last(page) || page.0 <= 60).collect();
        let scattered = Scattered { os, store, pages };
        scattered.checkpoint(1, b"first");
        scattered
    }

    pub fn new() -> Scattered {
        let scattered = Scattered::unscattered();
        // Takes all free space, then gives pieces back, with used space between.
        let (space, file) = (&scattered.store.space, &*scattered.store.file);
        for units in [1_000, LONGEST, 1] {
            while space.take_below(units, u64::MAX).is_some() {}
        }
        let first = space.take(2 * PIECES * LONGEST, file).unwrap();
        for piece in 0..PIECES {
            space.give(first + 2 * piece * LONGEST, LONGEST);
        }
        scattered
    }

    /// A checkpoint with an image of each page, and with this metadata.
    fn checkpoint(&self, seed: u64, meta: &[u8]) {
        self.try_checkpoint(seed, meta).unwrap();
    }

    pub fn try_checkpoint(&self, seed: u64, meta: &[u8]) -> Result<()> {
        let epoch = self.store.begin_checkpoint();
        for (&page, n) in self.pages.iter().zip(seed * 100..) {
            let image = page_of(n);
            self.store.write_checkpoint_page(page, &image, true)?;
        }
        self.store.complete_checkpoint(epoch, meta)
    }

    /// Limits the disk to the space that is kept.
    pub fn fill_disk(&self) {
        let kept = self.store.keep_room(70, 100, false).unwrap();
        assert!(kept.short.is_none(), "{:?}", kept.short);
        self.os.set_capacity(Some(self.os.used()));
    }

    pub fn is_found_again(&self, seed: u64, meta: &[u8]) {
        let crashed = Arc::new(self.os.crash(1));
        let (store, found) = Store::open(crashed, Path::new(DIR)).unwrap();
        assert_eq!(found, meta);
        let mut buf = vec![0; PAGE_SIZE];
        for (&page, n) in self.pages.iter().zip(seed * 100..) {
            store.read_page(page, &mut buf).unwrap();
            assert!(buf == page_of(n));
        }
    }
}

#[test]
fn a_full_disk_has_room_for_the_chunks_of_the_place_table() {
    let scattered = Scattered::new();
    scattered.fill_disk();
    scattered.checkpoint(2, b"second");
    scattered.is_found_again(2, b"second");
}

#[test]
fn a_full_disk_has_room_for_a_checkpoints_record() {
    let scattered = Scattered::new();
    let meta = vec![7; 60_000];
    scattered.checkpoint(2, &meta);
    scattered.fill_disk();
    scattered.checkpoint(3, &meta);
    scattered.is_found_again(3, &meta);
}
