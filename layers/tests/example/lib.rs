//! A crate with a circle.

mod high;
mod low;

pub use high::High;
