//! Rollback: follows the undo chain from its newest record to the rollback's target.

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
use crate::txn::state::State;
use crate::txn::transaction_manager::{Replayed, UndoOwner};
use crate::txn::{TransactionManager, TreeTransaction};
use crate::undo::record::{ChainWalk, Kind, UndoCopy, UndoRecord};

/// The extent of a rollback.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    /// Back to a savepoint.
    Part {
        /// Some of the redo is in the log, so the log must get compensating changes, too.
        logged: bool,
    },
}

impl TreeTransaction {
    /// Undoes everything since `savepoint`, which stays valid.
    ///
    /// Locks stay; rows updated or deleted since stay locked, too. Not inside the barrier: it enters by itself, once
    /// for each change.
    ///
    /// # Errors
    /// [`Error::Invalid`], and nothing is undone: `savepoint` is of another transaction; the transaction has rolled
    /// back to an earlier one since; or `savepoint` comes after one to which a rollback has failed. After an I/O
    /// error the transaction is half undone: it can only try this again, with the same savepoint or an earlier one,
    /// or be rolled back. [`Error::Deadlock`] and [`Error::WriteConflict`], from the first one on: it can only be
    /// rolled back, and nothing is undone.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> Result<()> {
        if let Some(error) = self.must_roll_back() {
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

    /// Lets later changes use the undo space that was given up.
    ///
    /// Has no effect if undo from before the savepoint has been given up since the savepoint was made. Then the
    /// records in the stream need not begin where the savepoint was made.
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

    /// Like [`TreeTransaction::rollback_to`], for a refused operation that is half done, with its own savepoint.
    ///
    /// No other savepoint was made since, so none becomes invalid, and the rollback need not be remembered. It also
    /// works in a transaction that can only be rolled back: no half-done operation may remain in it until then.
    ///
    /// # Errors
    /// Like [`TreeTransaction::rollback_to`], without the errors because of other transactions.
    pub fn take_operation_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        self.go_back(savepoint)?;
        // None of the savepoints that are still valid was made since, so none needs to know of this.
        if let Some(undo) = &mut self.undo {
            undo.take_back(savepoint.undo_kept);
        }
        Ok(())
    }

    fn go_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        if matches!(
            self.state,
            State::Prepared { .. } | State::RollingBack { .. }
        ) {
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
        let begun = match &self.state {
            State::HalfUndone(begun) => Some(begun.clone()),
            // After an error for which it must be rolled back, what the log gets until then does not count.
            _ => None,
        };
        if let Some(begun) = begun.filter(|_| !is_planted(PlantedFault::ForgetHalfUndone)) {
            if savepoint.undo_records > begun.undo_records {
                return Err(half_undone());
            }
            // The retry goes the way of the first try. Either the log has all of it, and also gets compensating
            // changes; or the log has nothing, and the buffer is cut at the end. Between the tries, the log gets only
            // the compensating changes of the first kind (`append_part`).
            self.take_part_back(&begun)?;
        }
        self.take_part_back(savepoint)
    }

    fn take_part_back(&mut self, savepoint: &Savepoint) -> Result<()> {
        // Redo in the buffer is dropped. For redo in the log, the log must get compensating changes, too.
        let logged = match is_planted(PlantedFault::SavepointByLength) {
            false => savepoint.redo_parts != self.redo_parts,
            true => savepoint.redo_len > self.redo.len(),
        };
        let undone = self.undo_to(savepoint.undo, Extent::Part { logged }, usize::MAX);
        if self.must_roll_back().is_none() {
            self.state = match undone {
                Ok(_) => State::Active,
                Err(_) => State::HalfUndone(savepoint.clone()),
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

    /// Undoes everything, releases all locks, and leaves the transaction empty. Not inside the barrier.
    ///
    /// For a prepared transaction, it returns when the rollback is as durable as commits are.
    ///
    /// # Errors
    /// I/O errors; the transaction still holds what it could not undo, and this can be tried again. A prepared
    /// transaction may still be prepared ([`TreeTransaction::is_prepared`]): then nothing was undone.
    /// If all is undone and only the wait for durability fails, the transaction is empty; it is then unknown whether a
    /// restart finds it prepared.
    pub fn rollback(&mut self) -> Result<()> {
        self.rollback_some(usize::MAX).map(|_| ())
    }

    /// Like [`TreeTransaction::rollback`], but undoes at most `most` records.
    ///
    /// Returns false if there are more; the caller must then call it again.
    ///
    /// # Errors
    /// As [`TreeTransaction::rollback`].
    pub(super) fn rollback_some(&mut self, most: usize) -> Result<bool> {
        let logged = match self.state {
            State::Prepared { .. } | State::RollingBack { .. } => {
                let transactions = self.transactions.clone();
                let inside = transactions.barrier().enter();
                self.log_rollback(&inside)?
            }
            State::Active | State::HalfUndone(_) | State::MustRollBack(_) => None,
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

    /// Gives up the snapshot, and the redo in the log, because this transaction reads nothing more and never commits.
    ///
    /// Its rollback may be long, or be stopped by a damaged page. Meanwhile it must keep neither old versions from
    /// purge nor the log.
    fn let_go_of_what_only_commits_need(&mut self) {
        self.drop_view();
        if let Some(running) = &self.running {
            // A checkpoint has it with its redo, or comes later and has it without.
            let _inside = self.transactions.barrier().enter();
            running.forget_redo();
        }
    }

    /// Undoes at most `most` records of those since `target`; returns false if there are more.
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
            // The page may have to be read from disk, which must not happen inside the barrier. It stays pinned,
            // because pruning may change the pointer to older versions up to the last moment.
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
                // The log gets this before the change is reverted, because it can fail for want of memory or of a
                // page.
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
            // Set if no header at the key names this transaction any more.
            let freed = Cell::new(false);
            let keeps = |previous: Option<&[u8]>| {
                let header = match previous {
                    Some(value) => Some(Header::decode(value)?.0),
                    None => None,
                };
                if let (Extent::Part { .. }, Some(running)) = (extent, &self.running) {
                    // The header's lock ends with the header.
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
                // Only a test build lets another transaction overwrite the record. Its version stays.
                Err(Error::Internal(_))
                    if transactions.breaks(IsolationFault::OverwriteUncommitted) => {}
                Err(error) => {
                    // The change is still there, and a commit would commit it.
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
            // From here on the change is undone, even if the log has no space for a part.
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

/// Returns whether a key needs an entry in the lock table once `restored` is its record.
///
/// It needs one if `restored` is a row: this transaction has read it in order to write it. It also needs one if
/// replay repeats the change before it reverts it: replay must not meet another transaction's record under this key.
fn stays_locked(own: TxId, restored: Option<&Header>, replayed: Replayed) -> bool {
    let is_own = restored.is_some_and(|header| header.txid() == Some(own));
    let is_row = restored.is_some_and(|header| !header.deleted);
    let again = replayed == Replayed::Again && !is_planted(PlantedFault::UnlockedTakenBack);
    !is_own && (is_row || again)
}

/// Returns whether a rollback must keep the version that it restores.
///
/// It drops a delete mark whose purge came by while this transaction's version covered the mark: no later purge would
/// remove the mark.
fn keeps_restored(transactions: &TransactionManager, own: TxId, header: &Header) -> bool {
    match header.txid() {
        _ if !header.deleted => true,
        None => false,
        Some(writer) => writer == own || !transactions.order().is_frozen(writer),
    }
}

/// Replaces the pointer in `value`, a copy of the undo record at `ptr`, by the record's present pointer.
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

/// Reverts one change of transaction `txid`.
///
/// `keeps` decides under the leaf's latch whether the value before is restored or dropped. It is dropped if there was
/// none, or if it is a delete mark that no transaction needs. `refresh` may change a restored value.
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
