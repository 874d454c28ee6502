//! Commit, and what every end of a transaction does.

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

/// A commit that others see, and that may not be durable yet.
#[must_use]
pub struct Committed {
    logged: Option<Lsn>,
    to_prune: Option<Arc<Stream>>,
}

impl Committed {
    /// This commit together with an `earlier` one, which has not been finished.
    pub fn after(self, earlier: Committed) -> Committed {
        Committed {
            // What is durable up to here is durable up to there.
            logged: self.logged.max(earlier.logged),
            // What one stream keeps is pruned later.
            to_prune: self.to_prune.or(earlier.to_prune),
        }
    }
}

impl TreeTransaction {
    /// Redo: the row of `key` is now `payload` (parts are joined; large values included). Inside
    /// the barrier, with the change itself. [`TreeTransaction::log_full_part`] is to follow when the operation is whole.
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

    /// Redo: the row of `key` is gone. As [`TreeTransaction::log_put`].
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

    /// The redo collected and not yet in the log, to add to in other ways than `log_put`.
    pub fn redo(&mut self) -> &mut RedoBuffer {
        &mut self.redo
    }

    /// Between one operation and the next: what has been collected goes to the log, if it is enough for a part.
    /// Not within an operation, for it may still fail: of what is taken back then the log has nothing, or all.
    /// Half of it could not be made again, nor taken back. Inside the barrier, with the operation itself.
    ///
    /// # Errors
    /// I/O errors; what has been collected is as before.
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

    /// The log gets what has been collected.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid): the way back to a savepoint has failed. The log would get what was
    /// undone already, and not that it was. I/O errors; what has been collected is as before.
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
            // Replay of this transaction begins here, also from a checkpoint taken later.
            self.running().note_redo(begin);
        }
        self.redo_parts += 1;
        let len = self.redo.len() as u64;
        self.running().add_logged(len);
        self.redo.clear();
        Ok(())
    }

    /// Commits, gives up all locks, and leaves the transaction empty. Returns when the commit is
    /// as durable as the system's setting says; others see it, and take its locks, a moment
    /// earlier. Not inside the barrier.
    ///
    /// # Errors
    /// An error before the commit record is in the log leaves the transaction running: roll it
    /// back. [`Error::Stopped`](crate::Error::Stopped) or an I/O error after it: committed for
    /// everybody in this run, but whether a restart finds it is unknown; the object is empty.
    pub fn commit(&mut self) -> Result<()> {
        let committed = self.commit_visibly(|_| ())?;
        self.finish_commit(committed, true)
    }

    /// The first half of [`TreeTransaction::commit`]: others see the commit, and take its locks. Waits
    /// for nothing. Not inside the barrier: `count`, which counts what has been written, runs there, so that
    /// a checkpoint has the commit with its counts.
    ///
    /// # Errors
    /// The commit record is not in the log: the transaction goes on running, or being prepared.
    pub fn commit_visibly(&mut self, count: impl FnOnce(&BarrierGuard<'_>)) -> Result<Committed> {
        self.check_whole()?;
        let (mut logged, mut to_prune) = (None, None);
        if self.txid.0 != 0 {
            let transactions = self.transactions.clone();
            // A checkpoint sees the log record and the new status, or neither.
            let inside = transactions.barrier().enter();
            self.check_kept(&inside)?;
            logged = self.append_commit()?;
            // It is in the log, and nobody sees it.
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

    /// The second half: returns when the commit is as durable as the system's setting says, or, if
    /// not to `wait`, at once (for who knows that the commit will be found anyway). Not inside the
    /// barrier.
    ///
    /// # Errors
    /// Whether a restart finds the commit is unknown.
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

    /// A transaction without logical changes (all rolled back to a savepoint) leaves no record.
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
            // The log has all its changes.
            return Ok(Some(self.append_end(KIND_COMMIT, &[&owner])?));
        }
        let payload = [&owner[..], self.redo.bytes()];
        Ok(Some(self.transactions.log().append(KIND_COMMIT, &payload)?))
    }

    /// Puts the end in the order of ends, and the undo in the queue for purging. Inside the barrier.
    /// Returns the undo stream, when some of it is to be pruned by who filled it.
    pub(super) fn end_writing(&mut self, end: End) -> Option<Arc<Stream>> {
        let csn = self.transactions.order().end(self.txid, end);
        // Others see it, and purge does not know of it.
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

    /// Where nothing has been written yet, gives the number and the undo stream back: many may wait
    /// for one row, and the one that gets it then finds the stream that was used last. Not inside
    /// the barrier.
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

    /// Gives every row and every range back to those who wait for it.
    pub(super) fn end_locking(&mut self) {
        if let Some(running) = self.running.take() {
            // Before the rows: who waits for a range stands in the queue of a row, and must not
            // find the range again when it is woken.
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
