//! What all tables and transactions of an open database share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::prepared::PreparedTransactions;
use super::registry::Registry;
use crate::log::Log;
use crate::txn::System;

/// See the module's text.
pub(crate) struct Shared {
    pub system: Arc<System>,
    pub log: Arc<Log>,
    pub registry: Arc<Registry>,
    pub rows: RowCounters,
    pub prepared: PreparedTransactions,
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
