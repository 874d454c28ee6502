//! The buffer pool: pages in memory, the latches that guard them, and the node format.

mod settle;

pub use settle::{Change, LeafSettle};

use crate::error::Result;
use crate::ids::PageId;
use std::sync::Arc;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// A tree's leaf: records.
    Leaf = 1,
    /// A tree's inner node: separators and children.
    Inner = 2,
    /// Undo records, laid out by the transaction layer.
    Undo = 3,
}

/// Pages in memory within one budget.
pub struct Pool {}

/// Figures of the pool since it was made.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PoolStats {
    /// Frames in all.
    pub frames: u64,
    /// Frames that hold no page.
    pub free: u64,
    /// Frames whose page is newer than its image on disk.
    pub dirty: u64,
    /// Pages looked for and not found in memory.
    pub misses: u64,
    /// Pages read from the store.
    pub reads: u64,
    /// Pages written to the store, by eviction and checkpoints.
    pub writes: u64,
    /// Pages that gave up their frame.
    pub evictions: u64,
}

/// How far a checkpoint has come.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CheckpointProgress {
    /// Frames looked at.
    pub frames_done: u64,
    /// Frames in all.
    pub frames: u64,
    /// Pages written by this walk.
    pub pages_written: u64,
}

impl Pool {
    /// Gives the pool what settles the records of full leaves. Once; later calls are ignored.
    pub fn set_settle(&self, _settle: Arc<dyn LeafSettle>) {
        todo!()
    }
    /// A new page outside any tree, latched and zeroed. Call with no other latch held.
    pub fn create_unparented(&self, _kind: PageKind) -> Result<(PageId, ExclusiveGuard<'_>)> {
        todo!()
    }
    /// The page, latched for reading; loads it if need be.
    pub fn fetch_shared(&self, _page: PageId) -> Result<SharedGuard<'_>> {
        todo!()
    }
    /// The page, latched for changing; loads it if need be. Best called with no other latch held.
    pub fn fetch_exclusive(&self, _page: PageId) -> Result<ExclusiveGuard<'_>> {
        todo!()
    }
    /// Keeps the page in memory for as long as the pin lives; its latches then cost no look-up.
    pub fn pin(self: &Arc<Self>, _page: PageId) -> Result<PinnedPage> {
        todo!()
    }
    /// Gives a page outside any tree back. Nobody may hold a latch or a pin on it.
    pub fn free(&self, _page: PageId) -> Result<()> {
        todo!()
    }
    /// Starts a checkpoint; to be called while no page is being changed (inside the closed gate),
    /// after `Store::begin_checkpoint`. `epoch` must be larger than any before.
    pub fn begin_checkpoint(&self, _epoch: u64) {
        todo!()
    }
    /// Writes every page that the checkpoint `epoch` still needs. Runs beside everything else.
    pub fn write_checkpoint(
        &self,
        _epoch: u64,
        _progress: &mut dyn FnMut(CheckpointProgress),
    ) -> Result<()> {
        todo!()
    }
    /// Ends the checkpoint (complete or given up): nothing is saved for it any more. To be called
    /// before `Store::complete_checkpoint`, after `write_checkpoint`.
    pub fn end_checkpoint(&self) {
        todo!()
    }
    /// Figures since the pool was made.
    pub fn stats(&self) -> PoolStats {
        todo!()
    }
}

/// A page kept in memory: see [`Pool::pin`].
pub struct PinnedPage {}

impl PinnedPage {
    /// The page's id.
    pub fn page(&self) -> PageId {
        todo!()
    }
    /// Latches for reading.
    pub fn shared(&self) -> SharedGuard<'_> {
        todo!()
    }
    /// Latches for changing.
    pub fn exclusive(&self) -> ExclusiveGuard<'_> {
        todo!()
    }
}

/// A page latched for reading.
pub struct SharedGuard<'a> {
    _pool: std::marker::PhantomData<&'a Pool>,
}

impl SharedGuard<'_> {
    /// The page's id.
    pub fn page(&self) -> PageId {
        todo!()
    }
    /// The bytes after the page header ([`BODY_SIZE`] of them). Those given up by
    /// [`ExclusiveGuard::set_used`] read as anything.
    pub fn body(&self) -> &[u8] {
        todo!()
    }
}

/// A page latched for changing.
pub struct ExclusiveGuard<'a> {
    _pool: std::marker::PhantomData<&'a Pool>,
}

impl ExclusiveGuard<'_> {
    /// The page's id.
    pub fn page(&self) -> PageId {
        todo!()
    }
    /// The bytes after the page header.
    pub fn body(&self) -> &[u8] {
        todo!()
    }
    /// The bytes after the page header, to be changed: saves the page's image first if a running
    /// checkpoint needs it (the only way to fail; within one stay in the gate it happens at the
    /// first call only), and marks the page as changed.
    pub fn body_mut(&mut self) -> Result<&mut [u8]> {
        todo!()
    }
    /// Says that only the body's first `used` bytes mean anything: the rest isn't written to disk.
    pub fn set_used(&mut self, _used: usize) -> Result<()> {
        todo!()
    }
}

/// Bytes of a page after its header: what guards give for pages outside trees.
pub const BODY_SIZE: usize = crate::ids::PAGE_SIZE - 64;
