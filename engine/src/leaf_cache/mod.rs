//! Data about leaves that is kept outside their pages.
//!
//! - `zone_map`: zone maps of leaves in memory; `evicted_zone_maps`: of evicted leaves;
//! - `mini_pages`: which leaves have mini-pages, where they are, and how long each is valid.
#![forbid(unsafe_code)]

pub(crate) mod evicted_zone_maps;
pub(crate) mod mini_pages;
pub(crate) mod zone_map;

pub use zone_map::ZoneMap;

pub(crate) use mini_pages::LeafSeen;
pub(crate) use zone_map::{of_column, LeafZoneMaps};
