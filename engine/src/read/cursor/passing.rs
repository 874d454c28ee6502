//! Rows that a locking cursor passes over.
//!
//! The cursor locks such a row to check it, or reads it without a lock because another transaction has locked it.

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::read::cursor::place::Gap;
use crate::read::cursor::{At, BatchExtent, Cursor};
use crate::read::record_cursor::Direction;
use crate::session::transaction::Transaction;
use crate::settings::Isolation;
use crate::table::open_table::TableTrees;
use crate::txn::LastCommitted;

/// A row that the cursor read as its last committed version.
pub(super) struct CommittedRow {
    /// Keeps the version's large values readable.
    _snapshot: LastCommitted,
    /// The caller wants the row: the next step leads to the row itself, and waits for it.
    again: bool,
}

impl Cursor {
    /// Turns *semi-consistent* reads on or off, under READ COMMITTED, from the next row on.
    ///
    /// A scan or a range of the clustered index then does not wait for a row that another transaction has locked. The
    /// cursor returns the row's last committed version, without a lock; [`Cursor::was_semi_consistent`] tells so. It
    /// passes over a row that was never committed. A caller that does not want the row calls [`Cursor::unlock_row`] and
    /// goes on. Otherwise the next step, in either direction, leads to the same row again and waits for it: the row is
    /// then locked, and the newest version. If the row is gone, the step leads to the one behind it. A seek that comes
    /// to the row waits for it, too.
    ///
    /// For statements that change rows that match a condition. A search for the one row of a whole key waits anyway.
    #[inline]
    pub fn set_semi_consistent(&mut self, tries: bool) {
        self.semi_consistent = tries;
        if !tries && self.committed.is_some() {
            self.committed = None;
        }
    }

    /// Whether the current row is the last committed version, and not locked: the caller must not change it.
    pub fn was_semi_consistent(&self) -> bool {
        self.committed.as_ref().is_some_and(|row| row.again)
    }

    /// Releases the lock of the current row, since the row does not match; transactions that wait for the row get it.
    ///
    /// Under READ COMMITTED only: the other levels keep locks of rows that they have read. The lock also stays if the
    /// transaction had locked the row before this cursor came to it, or has locked or written anything since.
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

    /// Must be called before the cursor locks the next row.
    pub(super) fn begin_locking(&mut self, txn: &mut Transaction) {
        self.locked = None;
        txn.tree_txn.begin_locking();
    }

    /// Must be called when the cursor is on a row that it has locked.
    pub(super) fn has_locked(&mut self, txn: &Transaction) {
        self.locked = Some((txn.tree_txn.lock_requests(), txn.writes));
    }

    /// Releases the row that the cursor has locked last: another transaction changed it before, and it does not match.
    ///
    /// The cursor is not on that row, so that [`Cursor::unlock_row`] could not release it.
    pub(super) fn pass_locked(&self, txn: &mut Transaction) {
        if txn.isolation() == Isolation::ReadCommitted
            && !self.newest
            && !is_planted(PlantedFault::KeepRowsOnTheWay)
        {
            txn.tree_txn.unlock_new();
        }
    }

    /// Releases the lock of a key that has no row, if the cursor locks.
    pub(super) fn pass_absent(&self, txn: &mut Transaction) {
        if txn.read_lock(self.options.lock).is_some() && !is_planted(PlantedFault::KeepAbsentRows) {
            self.pass_locked(txn);
        }
    }

    /// Whether the cursor need not wait for the row of the batch, which it is about to lock.
    pub(super) fn may_pass(&self, txn: &Transaction) -> bool {
        self.semi_consistent
            && self.index == 0
            && !self.newest
            && !self.options.skip_locked
            && txn.isolation() == Isolation::ReadCommitted
            && self.again.as_deref() != Some(self.batch.last_key())
            && !is_planted(PlantedFault::WaitForEachRow)
    }

    /// Puts the cursor on the row of the batch, which another transaction has locked.
    pub(super) fn stand_on_committed(&mut self, snapshot: LastCommitted) {
        self.committed = Some(CommittedRow {
            _snapshot: snapshot,
            again: true,
        });
    }

    /// Returns the key of the current row if the cursor must wait for that row.
    ///
    /// Called before the cursor moves.
    #[inline]
    pub(super) fn leaves_committed(&mut self) -> Option<Vec<u8>> {
        // Each step comes here, and mostly there is none.
        self.committed.as_ref()?;
        let row = self.committed.take()?;
        row.again.then(|| self.key().to_vec())
    }

    /// Goes to the current row once more, and waits for it; if it is gone, goes to the one behind it.
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
