//! The transactions in a checkpoint, and what an opening does with them; `work` counts that work.

mod capture;
mod work;

pub use capture::Captured;
