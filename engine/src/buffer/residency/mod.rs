//! How pages are loaded and evicted: read when a thread needs them, or read ahead.
#![forbid(unsafe_code)]

pub(crate) mod evict;
pub(crate) mod load;
pub(crate) mod read_ahead;

pub(crate) use load::{mismatch, ChildPlace};
pub(crate) use read_ahead::ScanExtent;
