//! The memory of the pool: one region of page-sized frames, and what is known about each.

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

/// No frame.
pub(crate) const NO_FRAME: FrameId = u32::MAX;

/// Stands for the page of a frame with mini-pages.
pub(super) const COPIES: u64 = u64::MAX;

/// Cache lines of a page that are asked for ahead: the header, heads and slots of some seventy records.
const PREFETCH_LINES: usize = 12;

/// Cache lines that are asked for where a record most likely stands: lengths differ, so it may stand a few
/// lines from there.
const RECORD_LINES: usize = 8;

/// So many of them behind where the record would end if all had the same length.
const LATER_LINES: usize = 2;

/// Bytes on both sides of where a head, and a slot, are expected.
const HEADS_AROUND: usize = 12;
const SLOTS_AROUND: usize = 20;

/// Large pages, where the system gives them, begin at multiples of this.
const REGION_ALIGN: usize = 2 << 20;

/// What is known about a frame. A cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct FrameState {
    pub latch: Latch,
    /// The page in the frame; 0 for none, [`COPIES`] for mini-pages. Written under the exclusive latch.
    pub page: AtomicU64,
    /// The newest checkpoint that needs nothing of the frame any more, should the frame be dirty.
    pub image_epoch: AtomicU64,
    /// The frame of the parent, whose reference to this frame says where it is; [`NO_FRAME`] while
    /// the page is found through the page table. Written under the parent's exclusive latch.
    pub parent: AtomicU32,
    /// How many want the page to stay. Raised from zero under the page table's lock only.
    pub pins: AtomicU32,
    /// The page is newer than its image in the store.
    pub dirty: AtomicBool,
    /// The page was used since the clock's hand last passed.
    pub used: AtomicBool,
    /// The page was brought for somebody who passes through, and nobody else has used it so far.
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

    /// The page in the frame; `None` where it is free, or has mini-pages. While the frame is latched that
    /// stays so. Without the latch it is a hint: by the time the latch is taken the frame may be another's.
    #[inline]
    pub fn holds(&self) -> Option<u64> {
        Some(self.page.load(Ordering::Relaxed)).filter(|page| !matches!(*page, 0 | COPIES))
    }

    /// Notes the page's use for the clock.
    #[inline]
    pub fn note_use(&self) {
        // Most often noted already: then the line stays shared between cores.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }
}

/// All frames.
pub(crate) struct Frames {
    /// The first frame.
    base: NonNull<u8>,
    /// The mapping around all frames.
    mapping: NonNull<u8>,
    mapped: usize,
    states: Box<[FrameState]>,
    /// The number of the last frame.
    last: usize,
}

// SAFETY: the region is plain memory owned by this value; every access to a frame's bytes goes
// through `page`, `page_mut` (which demand the frame's latch) or `optimistic` (volatile reads that
// are thrown away unless the latch's version proves that no change ran beside them).
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
        // Mapped, not allocated: zeroed pages come as they are first used, and can be large ones.
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

    /// What is known about a frame. Frame numbers come from this pool, or from an optimistic read
    /// of a reference, which may be torn: those past the end give the last frame's state, and the
    /// reader finds out by its version.
    #[inline]
    pub fn state(&self, frame: FrameId) -> &FrameState {
        // SAFETY: as many states as frames, and the number is that of a frame.
        unsafe { self.states.get_unchecked(self.index(frame)) }
    }

    /// The number of a frame: of the last one, for numbers past the end.
    #[inline(always)]
    fn index(&self, frame: FrameId) -> usize {
        (frame as usize).min(self.last)
    }

    #[inline]
    fn start(&self, frame: FrameId) -> *mut u8 {
        // SAFETY: the number is that of a frame, and all frames lie within the region.
        unsafe { self.base.as_ptr().add(self.index(frame) * PAGE_SIZE) }
    }

    /// A frame's bytes.
    ///
    /// # Safety
    /// The caller holds the frame's latch, shared or exclusive, for as long as the reference lives.
    #[inline]
    pub unsafe fn page(&self, frame: FrameId) -> &Page {
        // SAFETY: in bounds and initialised (zeroed at first); the latch keeps writers out.
        unsafe { &*self.start(frame).cast::<Page>() }
    }

    /// A frame's bytes, to be changed.
    ///
    /// # Safety
    /// The caller holds the frame's latch exclusively for as long as the reference lives, and has
    /// no other reference to the frame's bytes.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn page_mut(&self, frame: FrameId) -> &mut Page {
        // SAFETY: in bounds and initialised; the exclusive latch makes the reference the only one.
        // Optimistic readers may look at the bytes meanwhile, with volatile reads, and throw away
        // what they saw.
        unsafe { &mut *self.start(frame).cast::<Page>() }
    }

    /// Asks the processor for what a search in the frame's page will touch first: its state, the
    /// header and the heads. The waits for them then overlap, instead of following one another.
    #[inline]
    pub fn prefetch(&self, frame: FrameId) {
        prefetch(std::ptr::from_ref(self.state(frame)).cast());
        for line in 0..PREFETCH_LINES {
            self.prefetch_at(frame, 64 * line);
        }
    }

    /// Asks the processor for what a point read of a leaf will touch: its state, its header, and where the record's
    /// head, slot and bytes are expected, if it has so many 65,536ths of the leaf's records before it.
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

    /// Asks the processor for the `part`th of `parts` parts of a frame's page.
    #[inline]
    pub fn prefetch_part(&self, frame: FrameId, part: usize, parts: usize) {
        const LINES: usize = PAGE_SIZE / 64;
        let parts = parts.max(1);
        let end = LINES.min(LINES * (part + 1) / parts);
        for line in (LINES * part / parts)..end {
            self.prefetch_at(frame, 64 * line);
        }
    }

    /// Asks the processor for one line of a frame's page.
    #[inline(always)]
    fn prefetch_at(&self, frame: FrameId, at: usize) {
        prefetch(self.start(frame).wrapping_add(at.min(PAGE_SIZE - 1)));
    }

    /// A frame's bytes as an optimistic reader sees them.
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

/// Asks the system to back the region with large pages: fewer misses in address translation.
/// It may refuse; nothing depends on it.
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
