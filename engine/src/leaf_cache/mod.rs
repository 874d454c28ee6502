//! What is known of leaves beside their pages.
//!
//! - `summary`: what the values of a leaf in memory come to; `left_summary`: of a leaf that is not;
//! - `narrow_copies`: which leaves have copies of some columns, where, and until when.
#![forbid(unsafe_code)]

pub(crate) mod left_summary;
pub(crate) mod narrow_copies;
pub(crate) mod summary;

pub use summary::LeafSummary;

pub(crate) use narrow_copies::LeafSeen;
pub(crate) use summary::{of_column, LeafZoneMaps};
