//! Undo reclamation: decides when an undo page that no pointer leads to can be freed.
//!
//! A reader that follows undo pointers may be about to read a page while pruning removes the last pointer to it. So
//! each reader registers its walk. A page is freed when all walks that began before its retirement have ended
//! (epoch-based reclamation, Fraser 2004).
//!
//! A reader with a copy of a leaf compares the count of retired pages with the count from before it made the copy. If
//! the count differs, the copy's pointers may be stale, and the reader reads the leaf again.

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
    /// Pages that are retired and not yet freed, each with the count that its retirement made.
    waiting: Mutex<VecDeque<(u64, PageId)>>,
}

impl UndoReclamation {
    /// How many times pages were retired.
    #[inline]
    pub fn retired(&self) -> u64 {
        self.retired.load(Ordering::Acquire)
    }

    /// Retires a page to which no pointer leads.
    pub fn retire(&self, page: PageId) {
        let mut waiting = self.waiting.lock();
        let count = self.retired.fetch_add(1, Ordering::SeqCst) + 1;
        waiting.push_back((count, page));
    }

    /// Takes the pages that can be freed; `oldest` returns the count at which the oldest active walk began.
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

    /// Frees pages that no reader can be about to read. Runs inside the barrier.
    ///
    /// If that fails for a page, the page is retired again, and its free is tried again later.
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

    /// The pages that wait to be freed. They don't change while the barrier is closed.
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
