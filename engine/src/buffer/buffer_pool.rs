//! State that all parts of the pool share: frames, free frames, figures.

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

/// Waits without a free frame after which a call gives up.
///
/// A call fails only if the pool's frames stay in use. The limit counts waits, not time: while the machine is
/// suspended, no thread can release a frame.
const WAITS: u64 = 5_000;

/// More pages than a store can have.
const UNLIMITED: i64 = i64::MAX / 2;

#[derive(Default)]
pub(crate) struct Counters {
    pub misses: AtomicU64,
    pub reads: AtomicU64,
    pub writes: AtomicU64,
    pub evictions: AtomicU64,
}

/// The pool without its background threads.
pub(crate) struct BufferPool {
    pub frames: Frames,
    pub store: Arc<Store>,
    pub table: PageTable,
    pub(super) free: Mutex<Vec<FrameId>>,
    /// Signalled when a frame has become free.
    pub(super) freed: Condvar,
    /// Signalled when free frames run low, and when the pool ends.
    pub wanted: Condvar,
    /// Whether the provider thread must stop: see `residency/evict.rs`.
    pub provider: Mutex<bool>,
    /// The clock's hand.
    pub hand: AtomicUsize,
    /// The newest checkpoint that has begun.
    pub epoch: AtomicU64,
    pub freeze: OnceLock<Arc<dyn LeafFreeze>>,
    pub zone_maps: ZoneMaps,
    pub evicted_zone_maps: EvictedZoneMaps,
    pub mini_pages: MiniPages,
    /// Reads that wait for a thread.
    pub requests: Requests,
    /// Leaves that are evicted first.
    pub passed: ScanVictims,
    pub counters: Counters,
    /// The number of pages that are newer than their image in the store.
    dirty: AtomicUsize,
    /// How many more pages may become dirty: see [`crate::buffer::PoolWithThreads::check_room`].
    headroom: AtomicI64,
    /// Waits after which [`BufferPool::take_frame`] gives up; [`WAITS`] but in tests.
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

    /// Returns how many pages are newer than their image in the store.
    pub fn dirty_count(&self) -> usize {
        self.dirty.load(Ordering::Relaxed)
    }

    /// Returns how many more pages may become newer than their images.
    #[inline]
    pub fn headroom(&self) -> i64 {
        self.headroom.load(Ordering::Relaxed)
    }

    /// Sets [`BufferPool::headroom`]; `None` means no limit.
    pub fn set_headroom(&self, pages: Option<i64>) {
        self.headroom
            .store(pages.unwrap_or(UNLIMITED), Ordering::Relaxed);
    }

    /// Notes that a page has become newer than its image; its frame is latched exclusively.
    pub fn note_dirty(&self, state: &FrameState) {
        state.dirty.store(true, Ordering::Relaxed);
        self.dirty.fetch_add(1, Ordering::Relaxed);
        self.headroom.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that the page equals its image, or that the frame holds no page.
    ///
    /// The frame is latched, perhaps shared by several threads that wrote the page.
    pub fn note_clean(&self, state: &FrameState) {
        if state.dirty.swap(false, Ordering::Relaxed) {
            self.dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Writes the frame's page to the store because its frame is needed; the caller holds the latch, shared at least.
    ///
    /// The store gets the newest checkpoint for which the image is known to be saved. If a newer checkpoint has
    /// begun, the page is as it was at its barrier, and the image belongs to that checkpoint, too.
    pub fn write_evicted(&self, frame: FrameId, bytes: &Page) -> Result<()> {
        let seen = self.frames.state(frame).image_epoch.load(Ordering::Relaxed);
        self.write_out(frame, bytes, |id, image| {
            self.store.write_page_seen(id, image, seen)
        })
    }

    /// Writes the frame's page to the store because the running checkpoint needs its present state.
    ///
    /// The caller holds the latch, shared at least. It has checked that the frame has been dirty since before the
    /// checkpoint began.
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

    /// Replaces frames by page ids; the children stay in their frames while the parent is latched.
    fn unswizzle(&self, image: &mut Page) {
        let count = get_u16(image, COUNT);
        for at in (0..count).map(|i| HEADER_SIZE + 8 * i).chain([UPPER_CHILD]) {
            if let Child::Frame(frame) = swip::child(get_u64(image, at)) {
                let id = self.frames.state(frame).page.load(Ordering::Relaxed);
                put_u64(image, at, id);
            }
        }
    }

    /// Returns whether checkpoint `epoch` still runs.
    ///
    /// An abandoned checkpoint needs no images. On a full disk they would take the room that is kept for the next
    /// checkpoint.
    pub(super) fn wants_images(&self, epoch: u64) -> bool {
        self.store.is_running(epoch) || is_planted(PlantedFault::SaveForAbandoned)
    }

    /// Writes the page, before a change, if it was dirty when checkpoint `epoch` began and is not yet written for it.
    #[cold]
    pub fn save_image(&self, frame: FrameId, bytes: &Page, epoch: u64) -> Result<()> {
        let state = self.frames.state(frame);
        if state.dirty.load(Ordering::Relaxed) && self.wants_images(epoch) {
            self.write_for_checkpoint(frame, bytes)?;
        }
        state.image_epoch.store(epoch, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the error for a page with impossible bytes.
    pub fn corrupt(&self, page: u64, what: String) -> Error {
        self.store.corrupt(PageId(page), what)
    }
}

/// Returns the number of frames in a pool of `bytes`.
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
