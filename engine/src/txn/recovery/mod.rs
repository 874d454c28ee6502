//! What a checkpoint holds of transactions, and what an opening does with it; `work` counts that.

mod capture;
mod work;

pub use capture::Captured;
