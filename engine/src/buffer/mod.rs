//! The buffer pool: pages in memory, and the latches that guard them.
//!
//! - `frames`, `latch`, `optimistic`: the memory; with `guard` they hold the pool's unsafe code;
//! - `pool` (for the layers above), `core`, `guard`, `free_list`, `page_table`, `swip`: which page is where;
//! - `residency`: how a page comes and goes; `read_requests`, `scan_victims`: reads that are asked for, and leaves that
//!   are the first to go;
//! - `narrow`: some columns of a leaf that leaves; `settle`: changes of a record, and of a leaf before it is split.

mod core;
mod frames;
mod free_list;
mod guard;
pub(crate) mod latch;
mod narrow;
pub(crate) mod optimistic;
mod page_table;
mod pool;
mod read_requests;
mod residency;
mod scan_victims;
mod settle;
mod swip;
#[cfg(test)]
mod tests;

pub use guard::{ExclusiveGuard, PinnedPage, SharedGuard};
pub use pool::{PoolWithThreads, PoolStats};
pub use settle::{RecordEdit, LeafFreeze};

pub(crate) use self::core::BufferPool;
pub(crate) use frames::FrameState;
pub(crate) use optimistic::LeafRead;
pub(crate) use residency::{mismatch, ScanExtent, ChildPlace};
pub(crate) use swip::{child, resident, Child};

/// The smallest pool, in pages.
pub const MIN_FRAMES: usize = 64;
