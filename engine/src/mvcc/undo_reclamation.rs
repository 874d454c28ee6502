//! When an undo page that nothing leads to any more can be freed.
//!
//! A reader that follows undo pointers may be on its way to a page while the last pointer to it is
//! taken out of its row's chain. So readers say that they are walking, and a page is freed when all
//! have arrived who set out before it was retired (epoch-based reclamation, Fraser 2004). A reader
//! with a copy of a leaf compares the count of retired pages with what it was before the copy was
//! made: where it has changed, the copy's pointers may be stale, and it looks at the leaf again.

use std::collections::VecDeque;

use crate::buffer::PoolWithThreads;
use crate::error::Result;
use crate::ids::PageId;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{fence, AtomicU64, Ordering};
use crate::sync::Mutex;

/// See the module's text.
#[derive(Default)]
pub(crate) struct UndoReclamation {
    /// How many times pages were retired.
    retired: AtomicU64,
    /// Retired and not yet freed, each with the count that its retirement made.
    waiting: Mutex<VecDeque<(u64, PageId)>>,
}

impl UndoReclamation {
    /// How many times pages were retired.
    #[inline]
    pub fn retired(&self) -> u64 {
        self.retired.load(Ordering::Acquire)
    }

    /// A page to which nothing leads any more.
    pub fn retire(&self, page: PageId) {
        let mut waiting = self.waiting.lock();
        let count = self.retired.fetch_add(1, Ordering::SeqCst) + 1;
        waiting.push_back((count, page));
    }

    /// The pages that can be freed, when the oldest walk under way began at the count `oldest`
    /// gives.
    pub fn take_free(&self, oldest: impl FnOnce() -> u64) -> Vec<PageId> {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            return Vec::new();
        }
        fence(Ordering::SeqCst);
        let oldest = oldest();
        let free = waiting.partition_point(|(count, _)| *count <= oldest);
        waiting.drain(..free).map(|(_, page)| page).collect()
    }

    /// Frees pages to which nobody is on the way. Those for which that fails wait, and are tried again
    /// with the retired ones. Inside the barrier.
    pub fn free_all(&self, pool: &PoolWithThreads, pages: Vec<PageId>) -> Result<()> {
        let mut outcome = Ok(());
        for page in pages {
            if let Err(error) = pool.free(page) {
                if !is_planted(PlantedFault::LoseUnfreed) {
                    self.retire(page);
                }
                outcome = Err(error);
            }
        }
        outcome
    }

    /// Pages that wait. Stable while the barrier is closed.
    pub fn waiting(&self) -> Vec<PageId> {
        self.waiting.lock().iter().map(|(_, page)| *page).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_wait_for_walks_that_began_before_they_were_retired() {
        let reclamation = UndoReclamation::default();
        reclamation.retire(PageId(1));
        let walk = reclamation.retired();
        reclamation.retire(PageId(2));
        reclamation.retire(PageId(3));
        assert_eq!(reclamation.take_free(|| walk), [PageId(1)]);
        assert_eq!(reclamation.take_free(|| walk), []);
        assert_eq!(reclamation.waiting(), [PageId(2), PageId(3)]);
        assert_eq!(reclamation.take_free(|| u64::MAX), [PageId(2), PageId(3)]);
    }
}
