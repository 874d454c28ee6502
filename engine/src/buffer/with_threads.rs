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

/// Pages in memory within one budget.
pub struct PoolWithThreads {
    pool: Arc<BufferPool>,
    threads: Vec<crate::sync::thread::JoinHandle<()>>,
}

/// Figures of the pool since it was made.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Frames in all.
    pub frames: u64,
    /// Frames that hold no page.
    pub free: u64,
    /// Frames whose page is newer than its image in the store.
    pub dirty: u64,
    /// Pages looked for and not found in memory.
    pub misses: u64,
    /// Pages read from the store.
    pub reads: u64,
    /// Pages written to the store, by eviction and checkpoints.
    pub writes: u64,
    /// Pages that gave up their frame.
    pub evictions: u64,
    /// How often a mini-page was read instead of its leaf.
    pub mini_page_reads: u64,
}

impl PoolWithThreads {
    /// A pool of `bytes` (at least [`crate::buffer::MIN_FRAMES`] pages' worth) above `store`. Beyond them it
    /// takes 64 bytes a page.
    pub fn new(bytes: usize, store: Arc<Store>) -> Result<Arc<PoolWithThreads>> {
        let mut pool = PoolWithThreads::alone(bytes, store)?;
        let failed = |error| Error::io("start a thread for", "the buffer pool", error);
        pool.threads
            .push(start_provider(&pool.pool).map_err(failed)?);
        pool.threads
            .extend(start_readers(&pool.pool).map_err(failed)?);
        Ok(Arc::new(pool))
    }

    /// As [`PoolWithThreads::new`], without threads that keep frames free and read ahead: whoever needs a frame
    /// makes it free, and pages are brought when they are needed.
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

    /// The store below.
    pub fn store(&self) -> &Arc<Store> {
        &self.pool.store
    }

    /// Gives the pool what freezes the records of full leaves. Once; later calls are ignored.
    pub fn set_freeze(&self, freeze: Arc<dyn LeafFreeze>) {
        // A second call is ignored, as documented.
        let _ = self.pool.freeze.set(freeze);
    }

    /// A new page outside any tree, latched and zeroed. Call with no other latch held.
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

    /// The page, latched for reading; loads it if need be.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where it is a tree's: its bytes mean other things, and must not be changed.
    pub fn fetch_shared(&self, page: PageId) -> Result<SharedGuard<'_>> {
        let frame = self.fetch(page)?;
        let guard = SharedGuard::lock(&self.pool, frame).owning_pin();
        match is_outside_trees(guard.bytes()) {
            true => Ok(guard),
            false => Err(self.not_outside(page)),
        }
    }

    /// As [`PoolWithThreads::fetch_shared`], latched for changing. Best called with no other latch held.
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

    /// The page, latched for reading, if it is in memory and no tree's: no I/O, so a leaf may be latched.
    pub fn resident_shared(&self, page: PageId) -> Option<SharedGuard<'_>> {
        let frame = self.pool.find_resident(page)?;
        let guard = SharedGuard::lock(&self.pool, frame).owning_pin();
        is_outside_trees(guard.bytes()).then_some(guard)
    }

    /// The page, latched for changing, if it is in memory and no tree's: no I/O, so a leaf may be latched.
    pub fn resident_exclusive(&self, page: PageId) -> Option<ExclusiveGuard<'_>> {
        let frame = self.pool.find_resident(page)?;
        let guard = ExclusiveGuard::lock(&self.pool, frame).owning_pin();
        is_outside_trees(guard.bytes()).then_some(guard)
    }

    /// Keeps the page in memory for as long as the pin lives; its latches then cost no look-up.
    pub fn pin(&self, page: PageId) -> Result<PinnedPage> {
        self.pool.pin_page(page)
    }

    /// Gives a page outside any tree back. Nobody may hold a latch or a pin on it. Inside the barrier,
    /// as any change.
    pub fn free(&self, page: PageId) -> Result<()> {
        self.pool.drop_unparented(page.0)?;
        self.pool.store.free_page(page);
        Ok(())
    }

    /// Starts a checkpoint; to be called while no page is being changed (inside the closed barrier),
    /// after `Store::begin_checkpoint`, whose number `epoch` is.
    pub fn begin_checkpoint(&self, epoch: u64) {
        self.pool.epoch.store(epoch, Ordering::Release);
    }

    /// Writes every page that the checkpoint `epoch` still needs; `progress` gets the number of
    /// pages written since its last call, now and then. Runs beside everything else.
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
            // Outside the latch this can only change from true to false for this checkpoint.
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

    /// For whoever is about to change rows, outside the barrier: whether the next checkpoint will find room for the
    /// pages that become newer thereby. One load, most often; else the disk is asked for more.
    ///
    /// # Errors
    /// [`Error::NoSpace`] when there is none: after a checkpoint, which begins by itself, there is.
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

    /// Keeps room in the file for the next checkpoint; `many`: pages become newer quickly. Returns why there is
    /// not as much as wanted. From the first call on [`PoolWithThreads::check_room`] counts.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn keep_room(&self, many: bool) -> Result<Option<Error>> {
        let pool = &*self.pool;
        let (dirty, frames) = (pool.dirty_count() as u64, pool.frames.count() as u64);
        let room = pool.store.keep_room(dirty, frames, many)?;
        // The disk may take its time: what has become newer meanwhile counts, too.
        let since = match is_planted(PlantedFault::CountBeforeRoom) {
            true => 0,
            false => (pool.dirty_count() as i64 - dirty as i64).max(0),
        };
        pool.set_headroom(room.more_pages.map(|pages| pages - since));
        Ok(room.short)
    }

    /// Figures since the pool was made.
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

/// Whether a page is one that no tree has: an undo pointer may be wrong.
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
