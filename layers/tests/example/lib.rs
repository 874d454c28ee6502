//! A crate with a cycle.

mod high;
mod low;

pub use high::High;

pub struct Root;
