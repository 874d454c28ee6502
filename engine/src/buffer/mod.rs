//! The buffer pool: pages in memory, and the latches that guard them.
//!
//! - `frames`, `latch`, `optimistic`: the memory; with `guard` they hold the pool's unsafe code;
//! - `with_threads` (for the layers above), `buffer_pool`, `guard`, `free_list`, `page_table`, `swip`: which page is
//!   in which frame;
//! - `residency`: how pages are loaded and evicted; `read_requests`: queued reads; `scan_victims`: leaves that are
//!   evicted first;
//! - `mini_page`: some columns of an evicted leaf; `freeze`: how a record changes, and how a full leaf is freed of
//!   old versions before it is split.

mod buffer_pool;
mod frames;
mod free_list;
mod freeze;
mod guard;
pub(crate) mod latch;
mod mini_page;
pub(crate) mod optimistic;
mod page_table;
mod read_requests;
mod residency;
mod scan_victims;
mod swip;
#[cfg(test)]
mod tests;
mod with_threads;

pub use freeze::{LeafFreeze, RecordEdit};
pub(crate) use guard::Latched;
pub use guard::{ExclusiveGuard, PinnedPage, SharedGuard};
pub use with_threads::{PoolStats, PoolWithThreads};

pub(crate) use self::buffer_pool::BufferPool;
pub(crate) use frames::{FrameState, Frames};
pub(crate) use optimistic::{LeafRead, OptimisticNode};
pub(crate) use residency::{mismatch, ChildPlace, ScanExtent};
pub(crate) use swip::{child, resident, Child};

/// The smallest pool, in pages.
pub const MIN_FRAMES: usize = 64;
