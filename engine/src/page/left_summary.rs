//! Summaries of leaves that are not in memory.
//!
//! While a leaf is not there, nobody changes it: what its values came to when it left still holds when
//! somebody asks. An entry is made, or taken away, when the leaf leaves its parent, under the latches of
//! both, and taken away when the page's number is given to a new page. So who finds that the parent
//! referred to the leaf by its number all the time, has found an entry that speaks of its bytes.

use std::collections::HashMap;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::summary::LeafSummary;

const SHARDS: usize = 64;
/// Entries for each frame of the pool: so many times more leaves than it holds have one.
const A_FRAME: usize = 6;

/// The summaries of a leaf, by column; `None`: of the number of records alone.
pub(crate) type OfLeaf = SmallVec<[(Option<usize>, LeafSummary); 1]>;

/// All of them.
pub(crate) struct LeftSummaries {
    shards: Box<[Mutex<HashMap<u64, OfLeaf>>]>,
    most_a_shard: usize,
}

impl LeftSummaries {
    pub fn new(frames: usize) -> LeftSummaries {
        LeftSummaries {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            most_a_shard: (frames * A_FRAME / SHARDS).max(1),
        }
    }

    fn shard(&self, page: u64) -> &Mutex<HashMap<u64, OfLeaf>> {
        &self.shards[page as usize % SHARDS]
    }

    /// The summaries of a leaf that leaves; without any, there is no entry from now on.
    pub fn leave(&self, page: u64, summaries: OfLeaf) {
        let mut shard = self.shard(page).lock();
        if summaries.is_empty() {
            shard.remove(&page);
            return;
        }
        if shard.len() >= self.most_a_shard && !shard.contains_key(&page) {
            // Any other makes room.
            let other = shard.keys().next().copied();
            other.map(|other| shard.remove(&other));
        }
        shard.insert(page, summaries);
    }

    /// What a page's leaf came to when it left.
    pub fn of(&self, page: u64) -> Option<OfLeaf> {
        self.shard(page).lock().get(&page).cloned()
    }

    /// The number is that of another page from now on.
    pub fn forget(&self, page: u64) {
        self.shard(page).lock().remove(&page);
    }
}

/// The summary of a column among a leaf's; without a column, any: the number of records is the same
/// in all.
pub(crate) fn of_column(summaries: &OfLeaf, column: Option<usize>) -> Option<LeafSummary> {
    summaries
        .iter()
        .find(|(of, _)| column.is_none() || *of == column)
        .map(|(_, summary)| *summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(records: u32) -> LeafSummary {
        LeafSummary {
            max_txid: 1,
            records,
            values: records,
            sum: 0,
            min: 0,
            max: 0,
        }
    }

    #[test]
    fn there_are_no_more_than_the_pool_allows_and_none_of_a_page_that_went() {
        let left = LeftSummaries::new(64);
        for page in 0..10_000 {
            let of_leaf: OfLeaf = [(Some(3), summary(page as u32))].into_iter().collect();
            left.leave(page, of_leaf);
            let found = left.of(page).unwrap();
            assert_eq!(of_column(&found, Some(3)), Some(summary(page as u32)));
            assert_eq!(of_column(&found, None), Some(summary(page as u32)));
            assert_eq!(of_column(&found, Some(2)), None);
        }
        let kept = (0..10_000).filter(|page| left.of(*page).is_some()).count();
        assert_eq!(kept, 64 * A_FRAME);
        left.leave(9_999, OfLeaf::new());
        assert!(left.of(9_999).is_none());
        left.forget(9_998);
        assert!(left.of(9_998).is_none());
    }
}
