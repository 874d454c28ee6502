//! What a checkpoint holds of transactions, what an opening does with it, and how much that would be.

mod capture;
mod work;

pub use capture::Captured;
