//! State that all tables and transactions of an open database share.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::prepared_transactions::PreparedTransactions;
use super::registry::Registry;
use crate::log::Log;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::txn::TransactionManager;

/// See the module's text.
pub(crate) struct Shared {
    pub transactions: Arc<TransactionManager>,
    pub log: Arc<Log>,
    pub registry: Arc<Registry>,
    pub rows: RowCounters,
    pub prepared: PreparedTransactions,
    pub scans: Scans,
    /// Bytes of deferred entries of all bulk inserts, counted in steps.
    pub deferred_bytes: AtomicUsize,
}

/// The number of threads for scans.
pub(crate) struct Scans {
    /// The most threads of one scan, its caller included.
    most: AtomicUsize,
    /// Helper threads that work for all scans.
    helpers: AtomicUsize,
}

/// Helper threads that a scan may start; dropping this releases them.
pub(crate) struct Helpers<'a> {
    scans: &'a Scans,
    count: usize,
}

impl Scans {
    /// At most `most` threads for each scan.
    pub fn new(most: usize) -> Self {
        Scans {
            most: AtomicUsize::new(most),
            helpers: AtomicUsize::new(0),
        }
    }

    /// Changes the number of threads, from the next scan on.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// The most threads of a scan, its caller included.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed).max(1)
    }

    /// Takes up to `wanted` helpers, such that all scans together have no more than one alone may have.
    ///
    /// With many clients, more helpers would have no processor.
    pub fn helpers(&self, wanted: usize) -> Helpers<'_> {
        let most = self.most() - 1;
        let take = |busy: usize| Some(busy + wanted.min(most.saturating_sub(busy)));
        let order = Ordering::Relaxed;
        let before = self.helpers.fetch_update(order, order, take);
        let before = before.unwrap_or(most);
        Helpers {
            scans: self,
            count: wanted.min(most.saturating_sub(before)),
        }
    }
}

impl Helpers<'_> {
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Helpers<'_> {
    fn drop(&mut self) {
        self.scans.helpers.fetch_sub(self.count, Ordering::Relaxed);
    }
}

/// Row operations of ended transactions.
#[derive(Default)]
pub(crate) struct RowCounters {
    pub inserted: CachePadded<AtomicU64>,
    pub updated: CachePadded<AtomicU64>,
    pub deleted: CachePadded<AtomicU64>,
}

/// Row operations of one transaction, before they go to [`RowCounters`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowCounts {
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
}

impl RowCounters {
    pub fn add(&self, counts: RowCounts) {
        for (total, n) in [
            (&self.inserted, counts.inserted),
            (&self.updated, counts.updated),
            (&self.deleted, counts.deleted),
        ] {
            if n != 0 {
                total.fetch_add(n, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_scans_together_have_the_helpers_of_one() {
        let scans = Scans::new(4);
        let first = scans.helpers(2);
        let second = scans.helpers(2);
        assert_eq!((first.count(), second.count()), (2, 1));
        assert_eq!(scans.helpers(9).count(), 0);
        drop(first);
        assert_eq!(scans.helpers(9).count(), 2);
        scans.set_most(2);
        assert_eq!(scans.helpers(9).count(), 0);
        drop(second);
        assert_eq!(scans.helpers(9).count(), 1);
    }
}
