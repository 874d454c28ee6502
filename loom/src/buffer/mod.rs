//! Latches.

#[path = "../../../engine/src/buffer/latch.rs"]
pub(crate) mod latch;
pub mod latches;

use crate::error::Result;
use crate::ids::PageId;

/// Takes freed pages; in a model it drops them.
pub(crate) struct PoolWithThreads;

impl PoolWithThreads {
    pub fn free(&self, _: PageId) -> Result<()> {
        Ok(())
    }
}
