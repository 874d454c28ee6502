//! The end of a transaction: commit, in one phase or two, and rollback.

mod commit;
mod prepare;
pub(crate) mod rollback;

pub use commit::Committed;
