//! The memory of the pool: one region of page-sized frames, and the state of each frame.

use std::ptr::NonNull;

use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

use crate::buffer::latch::Latch;
use crate::buffer::optimistic::OptimisticNode;
use crate::error::{Error, Result};
use crate::ids::{FrameId, PAGE_SIZE};
use crate::node::header::Page;
use crate::node::leaf_layout_hint::{InArrays, LeafLayoutHint};
use crate::node::prefetch::prefetch;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The number that means no frame.
pub(crate) const NO_FRAME: FrameId = u32::MAX;

/// The page number of a frame that holds mini-pages.
pub(super) const COPIES: u64 = u64::MAX;

/// Cache lines of a page that are prefetched: the header, and the heads and slots of some seventy records.
const PREFETCH_LINES: usize = 12;

/// Cache lines that are prefetched where a record most likely is; lengths differ, so it may be a few lines away.
const RECORD_LINES: usize = 8;

/// How many of these lines follow the place where the record would end if all records had the same length.
const LATER_LINES: usize = 2;

/// Bytes before and after the expected place of a head, and of a slot, that are prefetched.
const HEADS_AROUND: usize = 12;
const SLOTS_AROUND: usize = 20;

/// Large pages, where the system gives them, begin at multiples of this number of bytes.
const REGION_ALIGN: usize = 2 << 20;

/// The state of a frame, in a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct FrameState {
    pub latch: Latch,
    /// The page in the frame; 0 for none, [`COPIES`] for mini-pages.
    ///
    /// Written under the exclusive latch.
    pub page: AtomicU64,
    /// The newest checkpoint that needs no image of the page; it has a meaning only while the frame is dirty.
    pub image_epoch: AtomicU64,
    /// The frame of the parent, which refers to the page by this frame; [`NO_FRAME`] while the page is found through
    /// the page table.
    ///
    /// Written under the parent's exclusive latch.
    pub parent: AtomicU32,
    /// The number of pins; a pin keeps the page in memory.
    ///
    /// Raised from zero only under the page table's lock.
    pub pins: AtomicU32,
    /// Whether the page is newer than its image in the store.
    pub dirty: AtomicBool,
    /// Whether the page was used since the clock's hand last passed.
    pub used: AtomicBool,
    /// Whether the page was loaded for a cursor that passes through the leaves, and no cursor has been at it yet.
    pub passing: AtomicBool,
}

impl FrameState {
    fn new() -> FrameState {
        FrameState {
            latch: Latch::default(),
            page: AtomicU64::new(0),
            image_epoch: AtomicU64::new(0),
            parent: AtomicU32::new(NO_FRAME),
            pins: AtomicU32::new(0),
            dirty: AtomicBool::new(false),
            used: AtomicBool::new(false),
            passing: AtomicBool::new(false),
        }
    }

    /// Returns the page in the frame, or `None` if the frame is free or holds mini-pages.
    ///
    /// The answer stays true while the frame is latched. Without the latch it is a hint: when the caller takes the
    /// latch, the frame may hold another page.
    #[inline]
    pub fn holds(&self) -> Option<u64> {
        Some(self.page.load(Ordering::Relaxed)).filter(|page| !matches!(*page, 0 | COPIES))
    }

    /// Notes the page's use for the clock.
    #[inline]
    pub fn note_use(&self) {
        // The bit is set already in most cases. Not storing it again keeps the cache line shared between cores.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }
}

/// All frames.
pub(crate) struct Frames {
    /// The start of the first frame.
    base: NonNull<u8>,
    /// The mapping around all frames.
    mapping: NonNull<u8>,
    mapped: usize,
    states: Box<[FrameState]>,
    /// The number of the last frame.
    last: usize,
}

// SAFETY: this value owns the region, which is plain memory. Every access to a frame's bytes goes through `page` or
// `page_mut`, which demand the frame's latch, or through `optimistic`, whose reads are volatile. The reader discards
// these unless the latch's version proves that no change ran beside them.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    pub fn new(count: usize) -> Result<Frames> {
        let too_large = || Error::TooLarge(format!("a buffer pool of {count} pages"));
        if count >= NO_FRAME as usize {
            return Err(too_large());
        }
        let last = count.checked_sub(1).ok_or_else(too_large)?;
        let bytes = count.checked_mul(PAGE_SIZE).ok_or_else(too_large)?;
        let mapped = bytes.checked_add(REGION_ALIGN).ok_or_else(too_large)?;
        // Mapped, not allocated: the system gives zeroed pages at their first use, and can give large ones.
        // SAFETY: a new anonymous mapping, at a place that the system chooses.
        let mapping = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let no_memory = || Error::TooLarge(format!("no memory for a buffer pool of {bytes} bytes"));
        let mapping = mapping
            .ok()
            .and_then(|start| NonNull::new(start.cast::<u8>()))
            .ok_or_else(no_memory)?;
        let skip = mapping.as_ptr().align_offset(REGION_ALIGN);
        // SAFETY: `skip` is below REGION_ALIGN, by which the mapping is longer than the frames.
        let base = unsafe { mapping.add(skip) };
        ask_for_large_pages(base, bytes);
        Ok(Frames {
            base,
            mapping,
            mapped,
            states: (0..count).map(|_| FrameState::new()).collect(),
            last,
        })
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// Returns the state of a frame.
    ///
    /// A frame number comes from this pool, or from an optimistic read of a reference, which may be torn. A number
    /// past the end gives the last frame's state; the reader finds the error when it checks its version.
    #[inline]
    pub fn state(&self, frame: FrameId) -> &FrameState {
        // SAFETY: as many states as frames, and the number is that of a frame.
        unsafe { self.states.get_unchecked(self.index(frame)) }
    }

    /// Returns the frame number, or that of the last frame for numbers past the end.
    #[inline(always)]
    fn index(&self, frame: FrameId) -> usize {
        (frame as usize).min(self.last)
    }

    #[inline]
    fn start(&self, frame: FrameId) -> *mut u8 {
        // SAFETY: the number is that of a frame, and all frames lie within the region.
        unsafe { self.base.as_ptr().add(self.index(frame) * PAGE_SIZE) }
    }

    /// Returns a frame's bytes.
    ///
    /// # Safety
    /// The caller holds the frame's latch, shared or exclusive, for as long as the reference lives.
    #[inline]
    pub unsafe fn page(&self, frame: FrameId) -> &Page {
        // SAFETY: in bounds and initialised (zeroed at first); the latch keeps writers out.
        unsafe { &*self.start(frame).cast::<Page>() }
    }

    /// Returns a frame's bytes, to be changed.
    ///
    /// # Safety
    /// The caller holds the frame's latch exclusively for as long as the reference lives, and has
    /// no other reference to the frame's bytes.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn page_mut(&self, frame: FrameId) -> &mut Page {
        // SAFETY: in bounds and initialised; the exclusive latch makes the reference the only one. Optimistic readers
        // may read the bytes meanwhile, with volatile reads, and discard what they read.
        unsafe { &mut *self.start(frame).cast::<Page>() }
    }

    /// Prefetches what a search in the frame's page reads first: the frame's state, the page's header and its heads.
    ///
    /// The waits for these cache lines then overlap instead of following one another.
    #[inline]
    pub fn prefetch(&self, frame: FrameId) {
        prefetch(std::ptr::from_ref(self.state(frame)).cast());
        for line in 0..PREFETCH_LINES {
            self.prefetch_at(frame, 64 * line);
        }
    }

    /// Prefetches what a point read of a leaf reads: the frame's state, the page's header, and the record's expected
    /// head, slot and bytes.
    ///
    /// `before` is the share of the leaf's records that come before the record, in 65,536ths.
    #[inline(always)]
    pub fn prefetch_record(&self, frame: FrameId, before: usize, shape: &LeafLayoutHint) {
        let page = self.start(frame).cast_const();
        let line = |at: usize| prefetch(page.wrapping_add(at % PAGE_SIZE));
        let expected = shape.expected(before);
        match expected.in_arrays {
            Some(InArrays { head, slot }) => {
                prefetch(std::ptr::from_ref(self.state(frame)).cast());
                line(0);
                line(head.wrapping_sub(HEADS_AROUND));
                line(head + HEADS_AROUND);
                line(slot.wrapping_sub(SLOTS_AROUND));
                line(slot + SLOTS_AROUND);
            }
            None => self.prefetch(frame),
        }
        let end = (expected.end + 64 * LATER_LINES).clamp(64 * RECORD_LINES, PAGE_SIZE);
        let first = page.wrapping_add(end - 64 * RECORD_LINES);
        for n in 0..RECORD_LINES {
            prefetch(first.wrapping_add(64 * n));
        }
    }

    /// Prefetches the `part`th of `parts` parts of a frame's page.
    #[inline]
    pub fn prefetch_part(&self, frame: FrameId, part: usize, parts: usize) {
        const LINES: usize = PAGE_SIZE / 64;
        let parts = parts.max(1);
        let end = LINES.min(LINES * (part + 1) / parts);
        for line in (LINES * part / parts)..end {
            self.prefetch_at(frame, 64 * line);
        }
    }

    /// Prefetches one cache line of a frame's page.
    #[inline(always)]
    fn prefetch_at(&self, frame: FrameId, at: usize) {
        prefetch(self.start(frame).wrapping_add(at.min(PAGE_SIZE - 1)));
    }

    /// Returns a frame's bytes for an optimistic read.
    #[inline]
    pub fn optimistic(&self, frame: FrameId) -> OptimisticNode<'_> {
        // SAFETY: PAGE_SIZE bytes from the start lie within the region, which lives as long as
        // the borrow of `self`; the start is aligned to PAGE_SIZE.
        unsafe { OptimisticNode::new(self.start(frame)) }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length; no reference outlives the borrow of `self`.
        if let Err(error) = unsafe { munmap(self.mapping.as_ptr().cast(), self.mapped) } {
            tracing::warn!(%error, "the buffer pool's memory could not be given back");
        }
    }
}

/// Asks the system to back the region with large pages, which reduces misses in address translation.
///
/// The system may refuse; nothing depends on it.
fn ask_for_large_pages(base: NonNull<u8>, bytes: usize) {
    let whole = bytes / REGION_ALIGN * REGION_ALIGN;
    if whole == 0 {
        return;
    }
    // SAFETY: the range lies within memory that this process has mapped; the advice changes
    // nothing about its contents.
    let asked = unsafe { madvise(base.as_ptr().cast(), whole, Advice::LinuxHugepage) };
    if let Err(error) = asked {
        tracing::debug!(%error, "no large pages for the buffer pool");
    }
}
