//! Commit, and the parts that commit and rollback share.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::{Lsn, TableId, TxId, UndoPtr};
use crate::knobs;
use crate::mvcc::order::End;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;
use crate::sync::{pause, Moment, Pause};
use crate::txn::checkpoint_barrier::BarrierGuard;
use crate::txn::purge::prune::stream_to_prune;
use crate::txn::redo::{encode_owner, RedoBuffer, KIND_CHANGES, KIND_COMMIT};
use crate::txn::TreeTransaction;
use crate::undo::stream::Stream;

/// A commit that others see, but that may not be durable yet.
#[must_use]
pub struct Committed {
    logged: Option<Lsn>,
    to_prune: Option<Arc<Stream>>,
}

impl Committed {
    /// Merges this commit with an `earlier` one that has not been finished.
    pub fn after(self, earlier: Committed) -> Committed {
        Committed {
            // If the log is durable up to the later commit, it is durable up to the earlier one.
            logged: self.logged.max(earlier.logged),
            // One of the two streams is pruned later.
            to_prune: self.to_prune.or(earlier.to_prune),
        }
    }
}

impl TreeTransaction {
    /// Adds to the redo: the row of `key` becomes `payload` (parts are joined; large values included).
    ///
    /// Inside the barrier, with the change itself. [`TreeTransaction::log_full_part`] must follow when the operation
    /// is complete.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory); nothing is collected then.
    pub fn log_put(
        &mut self,
        inside: &BarrierGuard<'_>,
        table: TableId,
        key: &[u8],
        payload: &[&[u8]],
    ) -> Result<()> {
        self.redo.put(table, key, payload)?;
        self.changed_within(inside)
    }

    /// Adds to the redo: the row of `key` is deleted. Like [`TreeTransaction::log_put`].
    ///
    /// # Errors
    /// As [`TreeTransaction::log_put`].
    pub fn log_delete(
        &mut self,
        inside: &BarrierGuard<'_>,
        table: TableId,
        key: &[u8],
    ) -> Result<()> {
        self.redo.delete(table, key);
        self.changed_within(inside)
    }

    #[inline]
    fn changed_within(&mut self, inside: &BarrierGuard<'_>) -> Result<()> {
        match is_planted(PlantedFault::PartWithinChange) {
            true => self.log_full_part(inside),
            false => Ok(()),
        }
    }

    /// The redo that is not in the log yet, for callers that add to it in other ways than `log_put`.
    pub fn redo(&mut self) -> &mut RedoBuffer {
        &mut self.redo
    }

    /// Appends the collected redo to the log if it is enough for a part.
    ///
    /// Called between operations, inside the barrier together with the operation before. Not within an operation,
    /// because it may still fail. The log must then have all of what is rolled back, or nothing: replay could neither
    /// repeat half of it nor revert it.
    ///
    /// # Errors
    /// I/O errors; the collected redo is unchanged.
    #[inline]
    pub fn log_full_part(&mut self, inside: &BarrierGuard<'_>) -> Result<()> {
        if self.redo.len() < knobs::redo_part() {
            return Ok(());
        }
        if self.logged_as.is_some() {
            self.redo.clear();
            return Ok(());
        }
        self.append(inside)
    }

    /// Appends the collected redo to the log.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid): a rollback to a savepoint has failed. The log would otherwise get
    /// changes that are already undone, but not the compensating changes. I/O errors; the collected redo is
    /// unchanged.
    pub fn append_part(&mut self, inside: &BarrierGuard<'_>) -> Result<()> {
        if !is_planted(PlantedFault::AppendHalfUndone) {
            self.check_whole()?;
        }
        self.append(inside)
    }

    fn append(&mut self, inside: &BarrierGuard<'_>) -> Result<()> {
        self.check_kept(inside)?;
        let txid = self.begin_writing();
        let transactions = self.transactions.clone();
        let begin = match self.redo_parts {
            0 => Some(transactions.log().mark()?),
            _ => None,
        };
        let owner = encode_owner(txid);
        transactions
            .log()
            .append(KIND_CHANGES, &[&owner, self.redo.bytes()])?;
        if let Some(begin) = begin {
            // Replay of this transaction begins here, also from a later checkpoint.
            self.running().note_redo(begin);
        }
        self.redo_parts += 1;
        let len = self.redo.len() as u64;
        self.running().add_logged(len);
        self.redo.clear();
        Ok(())
    }

    /// Commits, releases all locks, and leaves the transaction empty.
    ///
    /// Returns when the commit is as durable as the system's setting says. Others see the commit, and can take its
    /// locks, a moment earlier. Not inside the barrier.
    ///
    /// # Errors
    /// After an error before the commit record is in the log, the transaction still runs: roll it back. After
    /// [`Error::Stopped`](crate::Error::Stopped) or a later I/O error, the transaction has committed for all others
    /// in this run, and the object is empty. It is then unknown whether a restart finds the commit.
    pub fn commit(&mut self) -> Result<()> {
        let committed = self.commit_visibly(|_| ())?;
        self.finish_commit(committed, true)
    }

    /// Does the first half of [`TreeTransaction::commit`]: others see the commit, and can take its locks.
    ///
    /// Does not wait. Not inside the barrier: it enters by itself, and calls `count` there, which counts the changes.
    /// So a checkpoint has the commit together with its counts.
    ///
    /// # Errors
    /// The commit record is not in the log; the transaction still runs, or is still prepared.
    pub fn commit_visibly(&mut self, count: impl FnOnce(&BarrierGuard<'_>)) -> Result<Committed> {
        self.check_whole()?;
        let (mut logged, mut to_prune) = (None, None);
        if self.txid.0 != 0 {
            let transactions = self.transactions.clone();
            // A checkpoint must see both the log record and the new status, or neither.
            let inside = transactions.barrier().enter();
            self.check_kept(&inside)?;
            logged = self.append_commit()?;
            // Here the commit is in the log, but no other transaction sees it.
            pause(Pause::Held);
            to_prune = self.end_writing(End::Commit);
            let inside = match is_planted(PlantedFault::CountOutsideBarrier) {
                true => {
                    drop(inside);
                    None
                }
                false => Some(inside),
            };
            transactions.moments.come_to(Moment::CommitSeen);
            let inside = inside.unwrap_or_else(|| transactions.barrier().enter());
            count(&inside);
            drop(inside);
            transactions
                .counters
                .commits
                .fetch_add(1, Ordering::Relaxed);
        }
        self.end_locking();
        self.reset();
        Ok(Committed { logged, to_prune })
    }

    /// Does the second half of the commit: returns when it is as durable as the system's setting says.
    ///
    /// Without `wait` it returns at once, for callers for which a restart finds the commit anyway. Not inside the
    /// barrier.
    ///
    /// # Errors
    /// It is unknown whether a restart finds the commit.
    pub fn finish_commit(&self, committed: Committed, wait: bool) -> Result<()> {
        let durable = match committed.logged {
            Some(lsn) if wait => self
                .transactions
                .log()
                .durable(lsn, self.transactions.durability()),
            _ => Ok(()),
        };
        if let Some(stream) = committed.to_prune {
            self.transactions.prune_own(&stream);
        }
        durable
    }

    /// Appends the commit record; a transaction whose changes were all rolled back to a savepoint has none.
    fn append_commit(&mut self) -> Result<Option<Lsn>> {
        if let Some(number) = self.logged_as {
            let owner = encode_owner(number);
            return Ok(Some(self.append_end(KIND_COMMIT, &[&owner])?));
        }
        if self.redo.is_empty() && self.redo_parts == 0 {
            return Ok(None);
        }
        let owner = encode_owner(self.txid);
        if self.is_prepared() {
            // The log already has all its changes.
            return Ok(Some(self.append_end(KIND_COMMIT, &[&owner])?));
        }
        let payload = [&owner[..], self.redo.bytes()];
        Ok(Some(self.transactions.log().append(KIND_COMMIT, &payload)?))
    }

    /// Ends the transaction in the commit order, and queues its undo for purge. Inside the barrier.
    ///
    /// Returns the undo stream if this transaction must prune some of it, because it filled a page.
    pub(super) fn end_writing(&mut self, end: End) -> Option<Arc<Stream>> {
        let csn = self.transactions.order().end(self.txid, end);
        // Here others see the end, but purge does not know of it.
        pause(Pause::Held);
        if let (true, Some(running)) = (self.redo_parts != 0, &self.running) {
            let committed = matches!(end, End::Commit);
            self.transactions
                .count_end(self.txid, running.logged(), committed);
        }
        let head = match end {
            End::Commit if self.needs_purge => self.undo_head,
            _ => UndoPtr::NONE,
        };
        let undo = self.undo.take()?;
        undo.finish(self.txid, csn, head);
        let to_prune = stream_to_prune(&self.transactions, &undo);
        self.transactions.streams().release(undo);
        self.transactions.purge.ended();
        to_prune
    }

    /// Gives the number and the undo stream back if nothing has been written yet. Not inside the barrier.
    ///
    /// Many transactions may wait for one row. The one that gets it then finds the stream that was used last.
    pub(crate) fn stop_writing(&mut self) {
        if self.txid.0 == 0 || self.undo.as_ref().is_none_or(|undo| undo.appended() != 0) {
            return;
        }
        let transactions = self.transactions.clone();
        let inside = transactions.barrier().enter();
        if let Some(undo) = self.undo.take() {
            transactions.streams().release(undo);
        }
        transactions.order().end(self.txid, End::Unused);
        drop(inside);
        self.txid = TxId(0);
        if let Some(running) = &self.running {
            running.monitoring.txid.store(0, Ordering::Relaxed);
        }
        if let Some(view) = &mut self.view {
            view.own = self.txid;
        }
    }

    /// Releases every row and every range.
    pub(super) fn end_locking(&mut self) {
        if let Some(running) = self.running.take() {
            // Ranges go before rows: a transaction that waits for a range is in the queue of a row. When it is woken,
            // it must not find the range again.
            for tree in running.take_ranged_trees() {
                self.transactions.ranges().release(tree, &running);
                self.transactions.locks().release_escalated(tree, &running);
            }
            for row in running.take_rows() {
                self.transactions.locks().release(row, &running);
            }
        }
    }
}
