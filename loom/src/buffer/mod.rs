//! Latches.

#[path = "../../../engine/src/buffer/latch.rs"]
pub(crate) mod latch;
pub mod latches;

use crate::error::Result;
use crate::ids::PageId;

/// What takes freed pages; here they only go.
pub(crate) struct PoolWithThreads;

impl PoolWithThreads {
    pub fn free(&self, _: PageId) -> Result<()> {
        Ok(())
    }
}
