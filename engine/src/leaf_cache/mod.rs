//! What is known of leaves beside their pages.
//!
//! - `summary`: what the values of a leaf in memory come to; `left_summary`: of a leaf that is not;
//! - `narrow_copies`: which leaves have copies of some columns, where, and until when.
#![forbid(unsafe_code)]

pub(crate) mod evicted_zone_maps;
pub(crate) mod mini_pages;
pub(crate) mod zone_map;

pub use zone_map::ZoneMap;

pub(crate) use mini_pages::LeafSeen;
pub(crate) use zone_map::{of_column, LeafZoneMaps};
