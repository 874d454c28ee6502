//! Rows that a locking cursor passes over: locked to be looked at, or looked at without a lock because
//! another transaction has them.

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::read::cursor::place::Gap;
use crate::read::cursor::{At, BatchExtent, Cursor};
use crate::read::record_cursor::Direction;
use crate::session::transaction::Transaction;
use crate::settings::Isolation;
use crate::table::open_table::TableTrees;
use crate::txn::LastCommitted;

/// A row that is read as it was committed last.
pub(super) struct CommittedRow {
    /// Keeps its large values there to be read.
    _snapshot: LastCommitted,
    /// It is wanted: the next step leads to the row itself, and waits for it.
    again: bool,
}

impl Cursor {
    /// From the next row on, a scan or a range of the clustered index does not wait, under READ COMMITTED,
    /// for a row that another transaction has locked, but returns it as it was committed last, without a lock:
    /// a *semi-consistent* read, of which [`Cursor::was_semi_consistent`] tells. A row that was never
    /// committed is passed over. Who does not want the row calls [`Cursor::unlock_row`] and goes on. Else the
    /// next step, in either direction, leads to the same row again, and now waits for it: it is locked then,
    /// and the newest there is. If it is gone, the step leads to the one behind it. A seek that comes to the row
    /// waits for it, too.
    ///
    /// For whoever changes rows that match a condition. A search for the one row of a whole key waits anyway.
    #[inline]
    pub fn set_semi_consistent(&mut self, tries: bool) {
        self.semi_consistent = tries;
        if !tries && self.committed.is_some() {
            self.committed = None;
        }
    }

    /// Whether the row that the cursor stands on is as it was committed last, and not locked: it must not
    /// be changed.
    pub fn was_semi_consistent(&self) -> bool {
        self.committed.as_ref().is_some_and(|row| row.again)
    }

    /// Gives the lock of the row back that the cursor stands on, since the row is not what was looked
    /// for; those who wait for the row get it. Under READ COMMITTED only: the other levels keep what
    /// they have read as it is. The lock stays where the transaction had held the row before this
    /// cursor came to it, or has locked or written anything since.
    pub fn unlock_row(&mut self, txn: &mut Transaction) {
        if let Some(row) = &mut self.committed {
            // There is no lock.
            row.again = false;
            return;
        }
        let asked = Some((txn.tree_txn.lock_requests(), txn.writes));
        let is_own = self.locked.take() == asked && matches!(self.at, At::Batch | At::Point);
        if is_own
            && txn.isolation() == Isolation::ReadCommitted
            && !is_planted(PlantedFault::KeepPassedRows)
        {
            txn.tree_txn.unlock_new();
        }
    }

    /// The cursor is about to lock the next row.
    pub(super) fn begin_locking(&mut self, txn: &mut Transaction) {
        self.locked = None;
        txn.tree_txn.begin_locking();
    }

    /// The cursor stands on a row that it has locked.
    pub(super) fn has_locked(&mut self, txn: &Transaction) {
        self.locked = Some((txn.tree_txn.lock_requests(), txn.writes));
    }

    /// The row that the cursor has locked last is not what it looks for: others changed it before it was locked. The
    /// cursor does not stand on it, so that nobody could give it back by [`Cursor::unlock_row`].
    pub(super) fn pass_locked(&self, txn: &mut Transaction) {
        if txn.isolation() == Isolation::ReadCommitted
            && !self.newest
            && !is_planted(PlantedFault::KeepRowsOnTheWay)
        {
            txn.tree_txn.unlock_new();
        }
    }

    /// There is no row of the key that the cursor was to find, which it has locked if it locks at all.
    pub(super) fn pass_absent(&self, txn: &mut Transaction) {
        if txn.read_lock(self.options.lock).is_some() && !is_planted(PlantedFault::KeepAbsentRows) {
            self.pass_locked(txn);
        }
    }

    /// Whether the row of the batch, which is to be locked, need not be waited for.
    pub(super) fn may_pass(&self, txn: &Transaction) -> bool {
        self.semi_consistent
            && self.index == 0
            && !self.newest
            && !self.options.skip_locked
            && txn.isolation() == Isolation::ReadCommitted
            && self.again.as_deref() != Some(self.batch.last_key())
            && !is_planted(PlantedFault::WaitForEachRow)
    }

    /// The row of the batch is one that another transaction has.
    pub(super) fn stand_on_committed(&mut self, snapshot: LastCommitted) {
        self.committed = Some(CommittedRow {
            _snapshot: snapshot,
            again: true,
        });
    }

    /// The cursor is about to move: gives the key of the row that it stands on, if that is to be waited for
    /// now.
    #[inline]
    pub(super) fn leaves_committed(&mut self) -> Option<Vec<u8>> {
        // Taken only where there is one: each step comes here.
        self.committed.as_ref()?;
        let row = self.committed.take()?;
        row.again.then(|| self.key().to_vec())
    }

    /// Goes once more to the row that the cursor stands on, and waits for it; to the one behind it where it is
    /// gone.
    #[cold]
    pub(super) fn read_again(
        &mut self,
        key: Vec<u8>,
        txn: &mut Transaction,
        trees: &TableTrees,
        direction: Direction,
        extent: BatchExtent,
    ) -> Result<bool> {
        self.again = Some(key);
        self.leave(Gap::facing(direction));
        let found = self.restart(txn, trees, direction, extent);
        self.again = None;
        found
    }
}
