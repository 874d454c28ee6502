//! How pages come into memory, and leave it: read when they are asked for, read ahead, evicted.
#![forbid(unsafe_code)]

pub(crate) mod evict;
pub(crate) mod load;
pub(crate) mod read_ahead;

pub(crate) use load::{mismatch, ChildPlace};
pub(crate) use read_ahead::ScanExtent;
