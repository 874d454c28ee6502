//! The buffer pool: pages in memory, the latches that guard them, and the node format.
//!
//! - `frames`, `latch`, `optimistic`, `prefetch`, `vector`: the memory, and the only unsafe code of the engine's core;
//! - `pool` (for the layers above), `core`, `guard`, `free_list`, `load`, `ahead`, `evict`, `page_table`, `swip`:
//!   which page is where, and how it comes and goes; `read_requests`, `scan_victims`: reads that are asked for, and
//!   leaves that are the first to go; `summary`, `left_summary`: what a leaf's values come to;
//!   `narrow_copies`, `narrow`: some columns of leaves that are not in memory;
//! - `header`, `node`, `node_edit`, `node_build`, `node_split`, `node_window`: what the bytes of a page mean; `heads`,
//!   `search_key`: searching in it; `leaf_shape`: where in a leaf a record most likely stands; `value_copy`: where
//!   values are copied to.

mod ahead;
mod core;
mod evict;
mod frames;
mod free_list;
mod guard;
mod header;
mod heads;
mod latch;
mod leaf_shape;
mod left_summary;
mod load;
mod narrow;
mod narrow_copies;
mod node;
mod node_build;
mod node_edit;
mod node_split;
#[cfg(test)]
mod node_tests;
mod node_window;
mod optimistic;
mod page_table;
mod pool;
#[cfg(test)]
mod pool_tests;
mod prefetch;
mod read_requests;
#[cfg(test)]
mod reuse_tests;
mod scan_victims;
mod search_key;
mod settle;
mod summary;
mod swip;
mod value_copy;
mod vector;

pub use guard::{ExclusiveGuard, PinnedPage, SharedGuard};
pub use header::{PageKind, BODY_SIZE};
pub use pool::{Pool, PoolStats};
pub use settle::{Change, LeafSettle};
pub use summary::LeafSummary;

pub(crate) use self::core::Core;
pub(crate) use ahead::Ahead;
pub(crate) use frames::FrameState;
pub(crate) use header::{get_u32, Page, KIND, TREE_ID};
pub(crate) use leaf_shape::LeafShape;
pub(crate) use load::{mismatch, ChildPlace};
pub(crate) use narrow_copies::LeafSeen;
pub(crate) use node::Node;
pub(crate) use node_build::{write_empty, Frame as NodeFrame};
pub(crate) use node_split::{lift, merge, plan_inner, plan_leaf, split, write_root, SplitPlan};
pub(crate) use node_window::copy_window;
pub(crate) use optimistic::LeafRead;
pub(crate) use search_key::SearchKey;
pub(crate) use summary::{of_column, OfLeaf};
pub(crate) use swip::{child, resident, Child};
pub(crate) use value_copy::{Front, ValueCopy};

/// The smallest pool, in pages.
pub const MIN_FRAMES: usize = 64;
