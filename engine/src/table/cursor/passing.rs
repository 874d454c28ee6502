//! Rows that were locked to be looked at, and then passed over.

use super::{At, Cursor};
use crate::planted::{is_planted, PlantedFault};
use crate::settings::Isolation;
use crate::table::transaction::Transaction;

impl Cursor {
    /// Gives the lock of the row back that the cursor stands on, since the row is not what was looked
    /// for; those who wait for the row get it. Under READ COMMITTED only: the other levels keep what
    /// they have read as it is. The lock stays where the transaction had held the row before this
    /// cursor came to it, or has locked or written anything since.
    pub fn unlock_row(&mut self, txn: &mut Transaction) {
        let asked = Some((txn.inner.lock_requests(), txn.writes));
        let is_own = self.locked.take() == asked && matches!(self.at, At::Batch | At::Point);
        if is_own
            && txn.isolation() == Isolation::ReadCommitted
            && !is_planted(PlantedFault::KeepPassedRows)
        {
            txn.inner.unlock_new();
        }
    }

    /// The cursor is about to lock the next row.
    pub(super) fn begin_locking(&mut self, txn: &mut Transaction) {
        self.locked = None;
        txn.inner.begin_locking();
    }

    /// The cursor stands on a row that it has locked.
    pub(super) fn has_locked(&mut self, txn: &Transaction) {
        self.locked = Some((txn.inner.lock_requests(), txn.writes));
    }
}
