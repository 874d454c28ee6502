//! Nodes: how the bytes of a page form a node. No memory of its own, no latches.
//!
//! - `header`, `view`, `edit`, `build`, `split`, `window`: reading a page, changing it, writing it anew, splitting
//!   it, and copying parts of it;
//! - `heads`, `search_key`, `vector`: searching in it, several heads at once;
//! - `leaf_layout_hint`: where in a leaf a record most likely is; `prefetch`: asking the processor for memory;
//!   `value_copy`: buffers for values.
//!
//! `vector` and `prefetch` contain this folder's unsafe code.

mod build;
pub(crate) mod edit;
pub(crate) mod header;
pub(crate) mod heads;
pub(crate) mod leaf_layout_hint;
pub(crate) mod prefetch;
pub(crate) mod search_key;
mod split;
#[cfg(test)]
mod tests;
pub(crate) mod value_copy;
pub(crate) mod vector;
pub(crate) mod view;
mod window;

pub use header::{PageKind, BODY_SIZE};

pub(crate) use build::{write_empty, Frame as NodeFrame};
pub(crate) use header::{get_u32, Page, KIND, TREE_ID};
pub(crate) use leaf_layout_hint::LeafLayoutHint;
pub(crate) use search_key::SearchKey;
pub(crate) use split::{collapse_root, merge, plan_inner, plan_leaf, split, write_root, SplitPlan};
pub(crate) use value_copy::{Prefix, ValueCopy};
pub(crate) use view::Node;
pub(crate) use window::copy_window;
