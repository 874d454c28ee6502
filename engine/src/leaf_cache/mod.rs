//! What is known of leaves beside their pages.
//!
//! - `zone_map`: what the values of a leaf in memory come to; `evicted_zone_maps`: of a leaf that is not;
//! - `mini_pages`: which leaves have copies of some columns, where, and until when.
#![forbid(unsafe_code)]

pub(crate) mod evicted_zone_maps;
pub(crate) mod mini_pages;
pub(crate) mod zone_map;

pub use zone_map::ZoneMap;

pub(crate) use mini_pages::LeafSeen;
pub(crate) use zone_map::{of_column, LeafZoneMaps};
