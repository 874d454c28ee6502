//! What all parts of the pool share: frames, free frames, figures.

use std::sync::{Arc, OnceLock};

use crate::buffer::frames::{FrameState, Frames};
use crate::buffer::freeze::LeafFreeze;
use crate::buffer::page_table::PageTable;
use crate::buffer::read_requests::Requests;
use crate::buffer::scan_victims::ScanVictims;
use crate::buffer::swip;
use crate::buffer::swip::Child;
use crate::error::{Error, Result};
use crate::ids::{FrameId, PageId, PAGE_SIZE};
use crate::leaf_cache::evicted_zone_maps::EvictedZoneMaps;
use crate::leaf_cache::mini_pages::MiniPages;
use crate::leaf_cache::zone_map::ZoneMaps;
use crate::node::header::*;
use crate::planted::{is_planted, PlantedFault};
use crate::store::Store;
use crate::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex};

/// So many waits in which no frame became free, and it gives up: only a pool whose frames are all held
/// for good lets a call fail. Counted in waits, not by a clock: while the machine stands still nobody can
/// let a frame go.
const WAITS: u64 = 5_000;

/// More pages than there will ever be.
const UNLIMITED: i64 = i64::MAX / 2;

#[derive(Default)]
pub(crate) struct Counters {
    pub misses: AtomicU64,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub evictions: AtomicU64,
}

/// The pool without its background thread.
pub(crate) struct BufferPool {
    pub frames: Frames,
    pub store: Arc<Store>,
    pub table: PageTable,
    pub(super) free: Mutex<Vec<FrameId>>,
    /// Told when a frame has become free.
    pub(super) freed: Condvar,
    /// Told when free frames run low, and at the end.
    pub wanted: Condvar,
    /// The provider thread's reason to run: see `residency/evict.rs`.
    pub provider: Mutex<bool>,
    /// The clock's hand.
    pub hand: AtomicUsize,
    /// The newest checkpoint that has begun.
    pub epoch: AtomicU64,
    pub freeze: OnceLock<Arc<dyn LeafFreeze>>,
    pub zone_maps: ZoneMaps,
    pub evicted_zone_maps: EvictedZoneMaps,
    pub mini_pages: MiniPages,
    /// Reads that are asked for.
    pub requests: Requests,
    /// Pages that are the first to go.
    pub passed: ScanVictims,
    pub counters: Counters,
    /// Pages newer than their image in the store.
    dirty: AtomicUsize,
    /// How many more may become so: see [`crate::buffer::PoolWithThreads::check_room`].
    headroom: AtomicI64,
    /// [`WAITS`].
    pub(super) waits: AtomicU64,
}

impl BufferPool {
    pub fn new(frames: Frames, store: Arc<Store>) -> BufferPool {
        let count = frames.count() as FrameId;
        let epoch = store.epoch();
        BufferPool {
            frames,
            store,
            table: PageTable::new(),
            free: Mutex::new((0..count).rev().collect()),
            freed: Condvar::new(),
            wanted: Condvar::new(),
            provider: Mutex::new(false),
            hand: AtomicUsize::new(0),
            epoch: AtomicU64::new(epoch),
            freeze: OnceLock::new(),
            zone_maps: ZoneMaps::new(count as usize),
            evicted_zone_maps: EvictedZoneMaps::new(count as usize),
            mini_pages: MiniPages::new(),
            requests: Requests::default(),
            passed: ScanVictims::default(),
            counters: Counters::default(),
            dirty: AtomicUsize::new(0),
            headroom: AtomicI64::new(UNLIMITED),
            waits: AtomicU64::new(WAITS),
        }
    }

    /// How many pages are newer than their image in the store.
    pub fn dirty_count(&self) -> usize {
        self.dirty.load(Ordering::Relaxed)
    }

    /// How many more pages may become newer than their images.
    #[inline]
    pub fn headroom(&self) -> i64 {
        self.headroom.load(Ordering::Relaxed)
    }

    /// Sets [`BufferPool::headroom`]; `None`: without a limit.
    pub fn set_headroom(&self, pages: Option<i64>) {
        self.headroom
            .store(pages.unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// A page has become newer than its image. Its frame is latched exclusively.
    pub fn note_dirty(&self, state: &FrameState) {
        state.dirty.store(true, Ordering::Relaxed);
        self.dirty.fetch_add(1, Ordering::Relaxed);
        self.headroom.fetch_sub(1, Ordering::Relaxed);
    }

    /// The page's image is as it is, or it has none. Its frame is latched, perhaps by several who wrote it.
    pub fn note_clean(&self, state: &FrameState) {
        if state.dirty.swap(false, Ordering::Relaxed) {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Writes the frame's page to the store, because its frame is wanted. The caller holds its
    /// latch, shared at least.
    ///
    /// The store is told up to which checkpoint the image has been seen to: if a newer one has
    /// begun, then this image is the page's state at its barrier, and becomes that checkpoint's too.
    pub fn write_evicted(&self, frame: FrameId, bytes: &Page) -> Result<()> {
        let seen = self.frames.state(frame).image_epoch.load(Ordering::Relaxed);
        self.write_out(frame, bytes, |id, image| {
            self.store.write_page_seen(id, image, seen)
        })
    }

    /// Writes the frame's page to the store, because the running checkpoint needs it as it is now.
    /// The caller holds its latch, shared at least, and has made sure that the frame has been dirty
    /// since before the checkpoint began.
    pub fn write_for_checkpoint(&self, frame: FrameId, bytes: &Page) -> Result<()> {
        self.write_out(frame, bytes, |id, image| {
            self.store.write_checkpoint_page(id, image, true)
        })
    }

    fn write_out(
        &self,
        frame: FrameId,
        bytes: &Page,
        write: impl FnOnce(PageId, &Page) -> Result<()>,
    ) -> Result<()> {
        let state = self.frames.state(frame);
        let id = PageId(state.page.load(Ordering::Relaxed));
        if bytes[KIND] == PageKind::Inner as u8 {
            let mut image = *bytes;
            self.unswizzle(&mut image);
            write(id, &image)?;
        } else {
            write(id, bytes)?;
        }
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        self.note_clean(state);
        Ok(())
    }

    /// Puts page ids in the place of frames. While the parent is latched, its children stay.
    fn unswizzle(&self, image: &mut Page) {
        let count = get_u16(image, COUNT);
        for at in (0..count).map(|i| HEADER_SIZE + 8 * i).chain([UPPER_CHILD]) {
            if let Child::Frame(frame) = swip::child(get_u64(image, at)) {
                let id = self.frames.state(frame).page.load(Ordering::Relaxed);
                put_u64(image, at, id);
            }
        }
    }

    /// Whether checkpoint `epoch` still runs. Behind one that was given up nobody needs images: on a full disk they
    /// would take the room that is kept for the next.
    pub(super) fn wants_images(&self, epoch: u64) -> bool {
        self.store.is_running(epoch) || is_planted(PlantedFault::SaveForAbandoned)
    }

    /// Before a change: if the frame was dirty when checkpoint `epoch` began and is still to be
    /// written for it, writes it.
    #[cold]
    pub fn save_image(&self, frame: FrameId, bytes: &Page, epoch: u64) -> Result<()> {
        let state = self.frames.state(frame);
        if state.dirty.load(Ordering::Relaxed) && self.wants_images(epoch) {
            self.write_for_checkpoint(frame, bytes)?;
        }
        state.image_epoch.store(epoch, Ordering::Relaxed);
        Ok(())
    }

    /// The error for a page whose bytes can't be.
    pub fn corrupt(&self, page: u64, what: String) -> Error {
        self.store.corrupt(PageId(page), what)
    }
}

/// Frames a pool of `bytes` has.
pub(crate) fn frames_for(bytes: usize) -> Result<usize> {
    let count = bytes / PAGE_SIZE;
    if count < crate::buffer::MIN_FRAMES {
        return Err(Error::Invalid(format!(
            "a buffer pool of {bytes} bytes is too small; it takes at least {}",
            crate::buffer::MIN_FRAMES * PAGE_SIZE
        )));
    }
    Ok(count)
}
