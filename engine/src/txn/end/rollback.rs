//! Rollback: the undo chain, walked from its newest record to where it shall end.

use std::cell::Cell;
use std::sync::Arc;

use crate::broken::IsolationFault;
use crate::buffer::{PinnedPage, RecordEdit};
use crate::error::{Error, Result};
use crate::ids::{TxId, UndoPtr};
use crate::mvcc::order::End;
use crate::mvcc::version::{live_payload, Header, Origin};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;
use crate::txn::abandoned::Unfinished;
use crate::txn::savepoint::Savepoint;
use crate::txn::standing::half_undone;
use crate::txn::state::{Phase, Standing};
use crate::txn::transaction_manager::{Replayed, UndoOwner};
use crate::txn::{TransactionManager, TreeTransaction};
use crate::undo::record::{ChainWalk, Kind, UndoCopy, UndoRecord};

/// How much is undone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Back to a savepoint.
    Part {
        /// Some of its redo is in the log, and has to be taken back there.
        logged: bool,
    },
}

impl TreeTransaction {
    /// Undoes everything since `savepoint`, which stays good. Locks stay: also the rows that were
    /// updated or deleted since stay locked. Not inside the barrier: it enters by itself, once for
    /// each change.
    ///
    /// # Errors
    /// [`Error::Invalid`], and nothing is undone: `savepoint` is of another transaction; the transaction has gone
    /// back to an earlier one since; or it comes after one to which the way back has failed. I/O errors: the
    /// transaction is half undone then. All that can be done with it is to try this again, with the same savepoint
    /// or an earlier one, or to roll it back. [`Error::Deadlock`] and [`Error::WriteConflict`], from the first one on:
    /// it can only be rolled back, and nothing is undone.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        if let Some(error) = self.doomed_by() {
            return Err(error.clone());
        }
        let work = self.undo_records;
        self.go_back(savepoint)?;
        if savepoint.undo_records != work {
            self.returns.add(savepoint.undo_records);
        }
        self.cut_undo(savepoint);
        Ok(())
    }

    /// Leaves the room of undo that was taken back to what comes. Not where undo from before the savepoint has been cut
    /// off since: what stands there by now need not begin where the savepoint was made.
    fn cut_undo(&mut self, savepoint: &Savepoint) {
        let moved = self.cuts.went_below(savepoint.cuts, savepoint.undo_kept);
        if moved || is_planted(PlantedFault::KeepUndoneParts) {
            return;
        }
        if let Some(undo) = &mut self.undo {
            let before = undo.kept();
            undo.take_back(savepoint.undo_kept);
            if undo.kept() != before {
                self.cuts.add(undo.kept());
            }
        }
    }

    /// As [`TreeTransaction::rollback_to`], for an operation that is refused half done, with a savepoint of its own. No
    /// other was made since, so none can be gone: nothing need be remembered of the way back. Also of a transaction
    /// that can only be rolled back: nothing half done may be in it until then.
    ///
    /// # Errors
    /// As [`TreeTransaction::rollback_to`], without those of other transactions in the way.
    pub fn take_operation_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.go_back(savepoint)?;
        // Of the savepoints that are still there none was made since: none need know of it.
        if let Some(undo) = &mut self.undo {
            undo.take_back(savepoint.undo_kept);
        }
        Ok(())
    }

    fn go_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        if self.phase != Phase::Running {
            return Err(Error::Invalid(
                "a prepared transaction can only be committed or rolled back".into(),
            ));
        }
        if savepoint.generation != self.generation {
            return Err(Error::Invalid(
                "the savepoint belongs to another transaction, or to one that has ended".into(),
            ));
        }
        let gone = match is_planted(PlantedFault::SavepointByWork) {
            false => self.returns.passed(savepoint),
            true => savepoint.undo_records > self.undo_records,
        };
        if gone {
            return Err(Error::Invalid(
                "the savepoint is gone: the transaction went back to an earlier one".into(),
            ));
        }
        let begun = match &self.standing {
            Standing::HalfUndone(begun) => Some(begun.clone()),
            // Only a rollback of all follows: nothing of what the log gets until then counts.
            Standing::Whole | Standing::Doomed(_) => None,
        };
        if let Some(begun) = begun.filter(|_| !is_planted(PlantedFault::ForgetHalfUndone)) {
            if savepoint.undo_records > begun.undo_records {
                return Err(half_undone());
            }
            // In the way in which it was begun: either the log has all of it, and what was taken back
            // is taken back there, or it has nothing, and the buffer is cut at the end. Nothing goes to the log
            // between the two tries but what the first kind takes back (`append_part`).
            self.take_part_back(&begun)?;
        }
        self.take_part_back(savepoint)
    }

    fn take_part_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        // What is still in the buffer is simply dropped; what the log has must be taken back there.
        let logged = match is_planted(PlantedFault::SavepointByLength) {
            false => savepoint.redo_parts != self.redo_parts,
            true => savepoint.redo_len > self.redo.len(),
        };
        let undone = self.undo_to(savepoint.undo, Extent::Part { logged }, usize::MAX);
        if self.doomed_by().is_none() {
            self.standing = match undone {
                Ok(_) => Standing::Whole,
                Err(_) => Standing::HalfUndone(savepoint.clone()),
            };
        }
        undone?;
        if !logged {
            self.redo.truncate(savepoint.redo_len);
        }
        self.undo_records = savepoint.undo_records;
        if let Some(running) = &self.running {
            running.set_undo_records(self.undo_records);
        }
        Ok(())
    }

    /// Undoes everything, gives up all locks, and leaves the transaction empty. Of a prepared one it
    /// returns when the rollback is as durable as commits are. Not inside the barrier.
    ///
    /// # Errors
    /// I/O errors; the transaction then still holds what it could not undo, and this can be tried
    /// again. A prepared one may still be so ([`TreeTransaction::is_prepared`]): then nothing was undone.
    pub fn rollback(&mut self) -> Result<()> {
        self.rollback_some(usize::MAX).map(|_| ())
    }

    /// As [`TreeTransaction::rollback`], of so many undo records at most; false: there are more, and this is to be called
    /// again.
    ///
    /// # Errors
    /// As [`TreeTransaction::rollback`].
    pub(super) fn rollback_some(&mut self, most: usize) -> Result<bool> {
        let logged = match self.phase {
            Phase::Running => None,
            _ => {
                let transactions = self.transactions.clone();
                let inside = transactions.barrier().enter();
                self.log_rollback(&inside)?
            }
        };
        if self.txid.0 != 0 {
            if let Some(running) = &self.running {
                let shown = &running.monitoring.rolling_back;
                shown.store(true, Ordering::Relaxed);
            }
            if !is_planted(PlantedFault::HoldRollingBack) {
                self.let_go_of_what_only_commits_need();
            }
            if !self.undo_to(UndoPtr::NONE, Extent::Whole, most)? {
                return Ok(false);
            }
            let transactions = self.transactions.clone();
            let inside = transactions.barrier().enter();
            self.end_writing(End::Abort);
            drop(inside);
            transactions
                .counters
                .rollbacks
                .fetch_add(1, Ordering::Relaxed);
        }
        self.end_locking();
        self.reset();
        if let Some(lsn) = logged {
            self.transactions
                .log()
                .durable(lsn, self.transactions.durability())?;
        }
        Ok(true)
    }

    /// It reads nothing more, and never commits. Its rollback may last for long, or stand still at a damaged page:
    /// meanwhile it keeps no old versions from purge, and nothing of the log.
    fn let_go_of_what_only_commits_need(&mut self) {
        self.drop_view();
        if let Some(running) = &self.running {
            // A checkpoint has it with its redo, or one after that without.
            let _inside = self.transactions.barrier().enter();
            running.forget_redo();
        }
    }

    /// Undoes at most so many records of what was done since `target`; false: there are more.
    fn undo_to(&mut self, target: UndoPtr, extent: Extent, most: usize) -> Result<bool> {
        if self.undo_head == target {
            return Ok(true);
        }
        let mut left = most;
        let transactions = self.transactions.clone();
        let trees = transactions.trees()?.clone();
        let mut copy = UndoCopy::default();
        let mut page: Option<PinnedPage> = None;
        let mut walk = ChainWalk::from(self.undo_head);
        while self.undo_head != target && !self.undo_head.is_none() {
            if left == 0 {
                return Ok(false);
            }
            left -= 1;
            // The page may have to be read from disk: not inside the barrier. It stays in memory, for
            // pruning may change the pointer to still older versions up to the last moment.
            let head = self.undo_head;
            if page.as_ref().map(PinnedPage::page) != Some(head.page()) {
                page = Some(transactions.pool().pin(head.page())?);
            }
            let record = copy.read(transactions.pool(), head)?;
            let refresh = |value: &mut Vec<u8>| match &page {
                Some(page) => refresh_older(page, head, value),
                None => Ok(()),
            };
            let inside = transactions.barrier().enter();
            let logged = self.redo.len();
            let mut replayed = Replayed::Not;
            if extent == (Extent::Part { logged: true }) {
                // Before the change is taken back, for this can fail: for want of memory, or of a page.
                let previous = match record.kind {
                    Kind::Absent => Some(None),
                    Kind::Previous => Some(live_payload(record.value)?),
                    Kind::PurgeNote | Kind::RollbackNote => None,
                };
                if let Some(previous) = previous {
                    let redo = &mut self.redo;
                    replayed = trees.compensate(record.tree, record.key, previous, redo)?;
                }
            }
            // Nothing names this transaction at the key any more.
            let freed = Cell::new(false);
            let keeps = |previous: Option<&[u8]>| {
                let header = match previous {
                    Some(value) => Some(Header::decode(value)?.0),
                    None => None,
                };
                if let (Extent::Part { .. }, Some(running)) = (extent, &self.running) {
                    // The header's lock goes with the header.
                    if stays_locked(self.txid, header.as_ref(), replayed) {
                        transactions.locks().hold(record.tree, record.key, running);
                    } else {
                        let is_own = header.as_ref().and_then(Header::txid) == Some(self.txid);
                        freed.set(!is_own);
                    }
                }
                Ok(header.is_some_and(|header| keeps_restored(&transactions, self.txid, &header)))
            };
            let taken = take_back(&trees, self.txid, &record, &keeps, &refresh);
            match taken {
                // Another has overwritten it, which only a test build allows: that stays.
                Err(Error::Internal(_))
                    if transactions.breaks(IsolationFault::OverwriteUncommitted) => {}
                Err(error) => {
                    // The change stands as before, and who commits now commits it.
                    self.redo.truncate(logged);
                    return Err(error);
                }
                Ok(()) => {}
            }
            if let (true, Some(running)) = (freed.get(), &self.running) {
                if !is_planted(PlantedFault::WaitForTakenBack) {
                    let locks = transactions.locks();
                    locks.header_gone(record.tree, record.key, running);
                }
            }
            // From here on the change is undone, also when the log has no room for a part now.
            self.undo_head = record.previous;
            if let Some(running) = &self.running {
                running.set_undo_head(self.undo_head);
            }
            if extent == (Extent::Part { logged: true }) {
                self.log_full_part(&inside)?;
            }
            drop(inside);
            walk.go_on(self.undo_head)?;
        }
        if self.undo_head != target {
            return Err(Error::Internal(
                "a savepoint's undo record is not in the transaction's chain".into(),
            ));
        }
        Ok(true)
    }
}

/// Whether a record needs an entry in the lock table once `restored` stands in its place: a row that this
/// transaction has read, to write it. And what replay makes once more, before it takes it back: there
/// it must not meet what another has put in its place meanwhile.
fn stays_locked(own: TxId, restored: Option<&Header>, replayed: Replayed) -> bool {
    let is_own = restored.is_some_and(|header| header.txid() == Some(own));
    let is_row = restored.is_some_and(|header| !header.deleted);
    let again = replayed == Replayed::Again && !is_planted(PlantedFault::UnlockedTakenBack);
    !is_own && (is_row || again)
}

/// Whether what a rollback restores is to stay: a delete mark whose purge has passed already, while
/// this transaction's version covered it, would never go.
fn keeps_restored(transactions: &TransactionManager, own: TxId, header: &Header) -> bool {
    match header.txid() {
        _ if !header.deleted => true,
        None => false,
        Some(writer) => writer == own || !transactions.order().is_frozen(writer),
    }
}

/// Puts into `value`, copied from the undo record at `ptr`, the pointer that stands there now.
fn refresh_older(page: &PinnedPage, ptr: UndoPtr, value: &mut [u8]) -> Result<()> {
    let page = page.shared();
    let now = UndoRecord::value_range(ptr.page(), page.body(), ptr.offset())
        .and_then(|range| page.body().get(range))
        .ok_or_else(|| Error::Internal("an undo record has gone during its rollback".into()))?;
    if let Origin::Chained(_, older) = Header::decode(now)?.0.origin {
        Header::set_older(value, older);
    }
    Ok(())
}

/// Takes one change of transaction `txid` back. `keeps` says, under the leaf's latch, whether the value
/// before is to be put back, or (there was none, or a delete mark that nobody needs) dropped; `refresh` may
/// change it then.
pub(crate) fn take_back(
    trees: &Arc<dyn UndoOwner>,
    txid: TxId,
    record: &UndoRecord<'_>,
    keeps: &dyn Fn(Option<&[u8]>) -> Result<bool>,
    refresh: &dyn Fn(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    match record.kind {
        Kind::PurgeNote => return Ok(()),
        Kind::RollbackNote => return trees.rolled_back(record.value),
        Kind::Absent | Kind::Previous => {}
    }
    let Some(tree) = trees.tree(record.tree)? else {
        return Ok(());
    };
    tree.modify(record.key, record.value.len(), txid.0, |current, out| {
        let written_by = current.and_then(|value| Header::decode(value).ok()?.0.txid());
        if written_by != Some(txid) {
            let error = Error::Internal(format!(
                "transaction {txid} rolls back a record of tree {} that it did not write",
                record.tree
            ));
            return (RecordEdit::Keep, Err(error));
        }
        let before = (record.kind == Kind::Previous).then_some(record.value);
        match keeps(before) {
            Ok(true) => {
                out.extend_from_slice(record.value);
                match refresh(out) {
                    Ok(()) => (RecordEdit::Put, Ok(())),
                    Err(error) => (RecordEdit::Keep, Err(error)),
                }
            }
            Ok(false) => (RecordEdit::Remove, Ok(())),
            Err(error) => (RecordEdit::Keep, Err(error)),
        }
    })?
}

impl Unfinished for TreeTransaction {
    fn rollback_some(&mut self, most: usize) -> Result<bool> {
        TreeTransaction::rollback_some(self, most)
    }

    fn leave_for_recovery(&mut self) {
        TreeTransaction::leave_for_recovery(self);
    }
}
