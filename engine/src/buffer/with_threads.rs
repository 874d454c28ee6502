//! The pool as the layers above see it.

use std::sync::Arc;

use crate::buffer::buffer_pool::{frames_for, BufferPool};
use crate::buffer::frames::Frames;
use crate::buffer::freeze::LeafFreeze;
use crate::buffer::guard::{ExclusiveGuard, PinnedPage, SharedGuard};
use crate::buffer::residency::evict::start_provider;
use crate::buffer::residency::read_ahead::start_readers;
use crate::error::{Error, Result};
use crate::ids::{FrameId, PageId, PAGE_SIZE};
use crate::knobs;
use crate::node::header::*;
use crate::planted::{is_planted, PlantedFault};
use crate::store::Store;
use crate::sync::atomic::Ordering;

/// A buffer pool with the threads that evict and read ahead.
pub struct PoolWithThreads {
    pool: Arc<BufferPool>,
    threads: Vec<crate::sync::thread::JoinHandle<()>>,
}

/// Figures of the pool since it was created.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// All frames.
    pub frames: u64,
    /// Frames that hold no page.
    pub free: u64,
    /// Frames whose page is newer than its image in the store.
    pub dirty: u64,
    /// Page requests that did not find the page in memory.
    pub misses: u64,
    /// Pages read from the store.
    pub reads: u64,
    /// Pages written to the store, by eviction and checkpoints.
    pub writes: u64,
    /// Pages that were evicted.
    pub evictions: u64,
    /// Reads that a mini-page answered instead of its leaf.
    pub mini_page_reads: u64,
}

impl PoolWithThreads {
    /// Creates a pool of `bytes` (at least [`crate::buffer::MIN_FRAMES`] pages' worth) above `store`.
    ///
    /// The states of its frames take 64 bytes a page in addition.
    pub fn new(bytes: usize, store: Arc<Store>) -> Result<Arc<PoolWithThreads>> {
        let mut pool = PoolWithThreads::alone(bytes, store)?;
        let failed = |error| Error::io("start a thread for", "the buffer pool", error);
        pool.threads
            .push(start_provider(&pool.pool).map_err(failed)?);
        pool.threads
            .extend(start_readers(&pool.pool).map_err(failed)?);
        Ok(Arc::new(pool))
    }

    /// Like [`PoolWithThreads::new`], but without threads that keep frames free and read ahead.
    ///
    /// A thread that needs a frame evicts a page itself. The pool loads pages only when they are needed.
    pub fn without_thread(bytes: usize, store: Arc<Store>) -> Result<Arc<PoolWithThreads>> {
        PoolWithThreads::alone(bytes, store).map(Arc::new)
    }

    fn alone(bytes: usize, store: Arc<Store>) -> Result<PoolWithThreads> {
        Ok(PoolWithThreads {
            pool: Arc::new(BufferPool::new(Frames::new(frames_for(bytes)?)?, store)),
            threads: Vec::new(),
        })
    }

    pub(crate) fn buffer_pool(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// The store that the pool reads from and writes to.
    pub fn store(&self) -> &Arc<Store> {
        &self.pool.store
    }

    /// Sets the [`LeafFreeze`] that freezes the records of full leaves; only the first call has an effect.
    pub fn set_freeze(&self, freeze: Arc<dyn LeafFreeze>) {
        let _ = self.pool.freeze.set(freeze);
    }

    /// Creates a page outside any tree, zeroed and latched; the caller must hold no other latch.
    pub fn create_unparented(&self, kind: PageKind) -> Result<(PageId, ExclusiveGuard<'_>)> {
        let mut guard = self.pool.new_page()?;
        let page = guard.bytes_mut();
        page[KIND] = kind as u8;
        put_u16(page, HOLE_START, PAGE_SIZE);
        put_u16(page, HOLE_END, PAGE_SIZE);
        self.pool.register(&guard, 1);
        Ok((guard.page(), guard.owning_pin()))
    }

    fn fetch(&self, page: PageId) -> Result<FrameId> {
        self.pool.fetch(page)
    }

    /// Returns the page latched for reading, and loads it if it is not in memory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the page belongs to a tree: its bytes have another meaning, and the caller must not
    /// change them.
    pub fn fetch_shared(&self, page: PageId) -> Result<SharedGuard<'_>> {
        let frame = self.fetch(page)?;
        let guard = SharedGuard::lock(&self.pool, frame).owning_pin();
        match is_outside_trees(guard.bytes()) {
            true => Ok(guard),
            false => Err(self.not_outside(page)),
        }
    }

    /// Like [`PoolWithThreads::fetch_shared`], but latched for changing; the caller should hold no other latch.
    pub fn fetch_exclusive(&self, page: PageId) -> Result<ExclusiveGuard<'_>> {
        let frame = self.fetch(page)?;
        let guard = ExclusiveGuard::lock(&self.pool, frame).owning_pin();
        match is_outside_trees(guard.bytes()) {
            true => Ok(guard),
            false => Err(self.not_outside(page)),
        }
    }

    #[cold]
    fn not_outside(&self, page: PageId) -> Error {
        let what = "expected a page outside trees, found a node".into();
        self.pool.corrupt(page.0, what)
    }

    /// Returns the page latched for reading if it is in memory and outside any tree.
    ///
    /// It does no I/O, so the caller may hold the latch of a leaf.
    pub fn resident_shared(&self, page: PageId) -> Option<SharedGuard<'_>> {
        let frame = self.pool.find_resident(page)?;
        let guard = SharedGuard::lock(&self.pool, frame).owning_pin();
        is_outside_trees(guard.bytes()).then_some(guard)
    }

    /// Like [`PoolWithThreads::resident_shared`], but latched for changing.
    pub fn resident_exclusive(&self, page: PageId) -> Option<ExclusiveGuard<'_>> {
        let frame = self.pool.find_resident(page)?;
        let guard = ExclusiveGuard::lock(&self.pool, frame).owning_pin();
        is_outside_trees(guard.bytes()).then_some(guard)
    }

    /// Pins the page: it stays in memory while the pin lives, and latching it needs no look-up in the page table.
    pub fn pin(&self, page: PageId) -> Result<PinnedPage> {
        self.pool.pin_page(page)
    }

    /// Frees a page outside any tree.
    ///
    /// No thread may hold a latch or a pin on it. The caller must be inside the barrier, as for any change.
    pub fn free(&self, page: PageId) -> Result<()> {
        self.pool.drop_unparented(page.0)?;
        self.pool.store.free_page(page);
        Ok(())
    }

    /// Starts the checkpoint `epoch`, the number that `Store::begin_checkpoint` has returned.
    ///
    /// The caller must have closed the barrier, so that no thread is changing a page.
    pub fn begin_checkpoint(&self, epoch: u64) {
        self.pool.epoch.store(epoch, Ordering::Release);
    }

    /// Writes every page that the checkpoint `epoch` still needs, while other threads read and change pages.
    ///
    /// `progress` is called now and then with the number of pages written since its last call.
    pub fn write_checkpoint(
        &self,
        epoch: u64,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        let pool = &*self.pool;
        let mut written = 0;
        for frame in 0..pool.frames.count() as FrameId {
            let state = pool.frames.state(frame);
            let needed = || {
                state.dirty.load(Ordering::Relaxed)
                    && state.image_epoch.load(Ordering::Relaxed) < epoch
            };
            // Without the latch, this can change only from true to false for this checkpoint.
            if !needed() {
                continue;
            }
            let guard = SharedGuard::lock(pool, frame);
            if needed() && written == 0 && is_planted(PlantedFault::ForgetPage) {
                pool.note_clean(state);
            }
            if needed() {
                pool.write_for_checkpoint(frame, guard.bytes())?;
                written += 1;
            }
            drop(guard);
            if written >= knobs::checkpoint_pages_a_look() {
                progress(written)?;
                written = 0;
            }
        }
        progress(written)
    }

    /// Checks that the file has room to checkpoint the pages that the caller's changes will make dirty.
    ///
    /// A session calls this before it changes rows, outside the barrier. Most calls are one load; otherwise the store
    /// asks the disk for more room.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if there is no room. A checkpoint starts by itself and makes room.
    #[inline]
    pub fn check_room(&self) -> Result<()> {
        match self.pool.headroom() > 0 {
            true => Ok(()),
            false => self.make_room(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&self) -> Result<()> {
        match self.keep_room(true)? {
            Some(error) if self.pool.headroom() <= 0 => {
                self.pool.store.note_refused();
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Reserves room in the file for the next checkpoint, and returns why there is less room than wanted.
    ///
    /// `many` says that pages become dirty quickly. [`PoolWithThreads::check_room`] has a limit only after the first
    /// call of this function.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn keep_room(&self, many: bool) -> Result<Option<Error>> {
        let pool = &*self.pool;
        let (dirty, frames) = (pool.dirty_count() as u64, pool.frames.count() as u64);
        let room = pool.store.keep_room(dirty, frames, many)?;
        // The disk may be slow: pages that became dirty meanwhile count, too.
        let since = match is_planted(PlantedFault::CountBeforeRoom) {
            true => 0,
            false => (pool.dirty_count() as i64 - dirty as i64).max(0),
        };
        pool.set_headroom(room.more_pages.map(|pages| pages - since));
        Ok(room.short)
    }

    /// Returns figures since the pool was created.
    pub fn stats(&self) -> PoolStats {
        let pool = &*self.pool;
        let counters = &pool.counters;
        PoolStats {
            frames: pool.frames.count() as u64,
            free: pool.free_count() as u64,
            dirty: pool.dirty_count() as u64,
            misses: counters.misses.load(Ordering::Relaxed),
            reads: counters.reads.load(Ordering::Relaxed),
            writes: counters.writes.load(Ordering::Relaxed),
            evictions: counters.evictions.load(Ordering::Relaxed),
            mini_page_reads: pool.mini_pages.reads.load(Ordering::Relaxed),
        }
    }
}

/// Returns whether a page belongs to no tree; it may belong to one if an undo pointer is wrong.
#[inline]
fn is_outside_trees(page: &Page) -> bool {
    page[KIND] == PageKind::Undo as u8 || is_planted(PlantedFault::NodeAsUndo)
}

impl Drop for PoolWithThreads {
    fn drop(&mut self) {
        *self.pool.provider.lock() = true;
        self.pool.wanted.notify_all();
        self.pool.stop_readers();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a background thread of the pool has panicked");
            }
        }
    }
}
