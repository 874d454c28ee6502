//! Purge: continuously removes versions and undo that no snapshot can need any more.
//!
//! Each undo stream has its transactions in the order of their ends. As the horizon passes an end, purge does three
//! things: it removes the transaction's delete marks from their trees, passes its notes to the layer above, and frees
//! its undo pages. A transaction that deleted nothing and left no note costs purge only the count.

pub(crate) mod prune;

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::transaction_manager::UndoOwner;
use super::TransactionManager;
use crate::buffer::{PoolWithThreads, RecordEdit};
use crate::error::{Error, Result};
use crate::ids::{Csn, TxId, UndoPtr};
use crate::knobs;
use crate::mvcc::version::Header;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;
use crate::sync::Moment;
use crate::undo::record::{ChainWalk, Kind, UndoCopy, UndoRecord};
use crate::undo::stream::{Finished, Stream};

impl TransactionManager {
    /// Starts the purge thread; a second call does nothing.
    ///
    /// # Errors
    /// [`Error::Internal`] if the thread can't be made.
    pub fn start_purge(self: &Arc<Self>) -> Result<()> {
        let mut handle = self.purge.handle.lock();
        if handle.is_some() {
            return Ok(());
        }
        let transactions = Arc::downgrade(self);
        let thread = crate::sync::thread::Builder::new()
            .name("peregrine-purge".into())
            .spawn(move || run(&transactions))
            .map_err(|error| Error::Internal(format!("the purge thread: {error}")))?;
        *handle = Some(thread);
        Ok(())
    }

    /// Stops and joins the purge thread, and leaves abandoned transactions to the next opening.
    pub fn shutdown(&self) {
        self.purge.stop();
        self.forget_abandoned();
    }

    /// Does one bounded step of purge, as the thread does; returns whether more can be done at once.
    ///
    /// Not inside the barrier.
    ///
    /// # Errors
    /// I/O errors; a later step does the rest.
    pub fn purge_step(&self) -> Result<bool> {
        let mut first = self.purge.step.lock();
        // A long rollback proceeds in parts, so that it does not stop the purge of others.
        let more = self.retry_abandoned();
        match self.purge_some(&mut first) {
            // Nor does a purge that fails delay a rollback, because others may wait for its locks. A later step meets
            // the error again.
            Err(error) if more && !is_planted(PlantedFault::RestBetweenParts) => {
                tracing::debug!(%error, "purge failed beside a rollback");
                Ok(true)
            }
            purged => Ok(purged? || more),
        }
    }

    /// Does the part of a step beside rollbacks.
    fn purge_some(&self, first: &mut usize) -> Result<bool> {
        // A checkpoint may lack space for changes of purge, so purge waits until after it.
        if self.pool().check_room().is_err() {
            return Ok(false);
        }
        let Some(horizon) = self.snapshots().horizon(self.order()) else {
            return Ok(false);
        };
        let horizon = if self.order().is_advanced_by(horizon) {
            let _nobody_prunes = self.pruning.horizon.write();
            self.order().advance_horizon(horizon)
        } else {
            // Threads that prune under an old snapshot are not stopped.
            horizon
        };
        self.summarise_ends(horizon.low);
        self.aim_pruning(horizon);
        let mut budget = knobs::purge_step();
        let mut purged = Ok(());
        let streams = self.streams().all();
        if is_planted(PlantedFault::PurgeFromFirst) {
            *first = 0;
        }
        for place in (*first..).take(streams.len()) {
            let stream = &streams[place % streams.len()];
            match self.purge_stream(stream, horizon.csn, &mut budget) {
                Ok(true) => {}
                Ok(false) => {
                    *first = (place + 1) % streams.len();
                    return Ok(true);
                }
                // An error in one stream does not stop the purge of others.
                Err(error) => purged = Err(error),
            }
        }
        let more = self.prune_step()?;
        purged.map(|()| more)
    }

    /// Purges the ends that the horizon has passed in a stream; returns false if the budget was used up before.
    pub(super) fn purge_stream(
        &self,
        stream: &Stream,
        horizon: Csn,
        budget: &mut usize,
    ) -> Result<bool> {
        if stream.oldest_passed(horizon).is_none() {
            return Ok(true);
        }
        let _nobody_prunes =
            (!is_planted(PlantedFault::PurgeReplacedEnd)).then(|| stream.pruning.lock());
        let mut copy = UndoCopy::default();
        while let Some(mut end) = stream.oldest_passed(horizon) {
            if !self.purge_end(stream, &mut end, horizon, budget, &mut copy)? {
                return Ok(false);
            }
            *budget = budget.saturating_sub(1);
        }
        Ok(true)
    }

    /// Purges all that can be purged at present, and gives back the memory and pages that only purge needed.
    ///
    /// The thread does the same once nothing is left. For databases without that thread.
    ///
    /// # Errors
    /// I/O errors; a later call does the rest.
    pub fn purge_all(&self) -> Result<()> {
        while self.purge_step()? {}
        self.give_back()
    }

    /// Continues to roll back each abandoned transaction by a part; returns whether more can be undone at once.
    fn retry_abandoned(&self) -> bool {
        if self.abandoned.len() == 0 {
            return false;
        }
        let most = match is_planted(PlantedFault::RetryAtOnce) {
            false => knobs::purge_step(),
            true => usize::MAX,
        };
        let mut more = false;
        for mut transaction in self.abandoned.take() {
            let undone = transaction.rollback_some(most);
            more |= matches!(undone, Ok(false));
            if !matches!(undone, Ok(true)) {
                self.abandoned.push(transaction);
            }
        }
        more
    }

    /// Leaves abandoned transactions, present and later ones, to the next opening, which rolls them back.
    fn forget_abandoned(&self) {
        self.abandoned.close();
        for mut transaction in self.abandoned.take() {
            transaction.leave_for_recovery();
        }
    }

    pub(super) fn give_back(&self) -> Result<()> {
        self.release_survivors();
        let _inside = self.barrier().enter();
        self.streams().trim(self.pool(), &self.pruning.reclamation)
    }

    /// Merges statuses if many transactions have ended since the oldest one began, or since the oldest snapshot.
    fn summarise_ends(&self, low: TxId) {
        let next = self.order().next_txid().0;
        let before = self.purge.summarised.load(Ordering::Relaxed);
        if next - before.max(low.0) < knobs::purge_summarise() {
            return;
        }
        if let Some(live) = self.snapshots().live(self.order()) {
            self.order().summarise(&live);
            self.purge.summarised.store(next, Ordering::Relaxed);
        }
    }

    /// Purges the oldest end of a stream; returns false if the budget was used up before.
    fn purge_end(
        &self,
        stream: &Stream,
        end: &mut Finished,
        horizon: Csn,
        budget: &mut usize,
        copy: &mut UndoCopy,
    ) -> Result<bool> {
        let mut walk = ChainWalk::from(end.head);
        while !end.head.is_none() {
            if *budget == 0 {
                return Ok(false);
            }
            let Some(record) = read_past_damage(self.pool(), end.txid, end.head, copy)? else {
                break;
            };
            let _inside = self.barrier().enter();
            purge_past_damage(self.trees()?, end.txid, &record)?;
            // A record that fails uses no budget. Otherwise it would use all of a small budget in each step.
            *budget -= 1;
            if go_on_past_damage(end.txid, &mut walk, record.previous)?.is_none() {
                break;
            }
            if !stream.set_head(end, record.previous) {
                return Ok(*budget > 0);
            }
        }
        self.moments.come_to(Moment::EndLookedAt);
        let _inside = self.barrier().enter();
        if stream.drop_oldest(self.pool(), &self.pruning.reclamation, end, horizon)? {
            self.purge.passed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(*budget > 0)
    }
}

/// Returns whether an error stops only one rollback, purge or change.
///
/// That is a page that can't be read, or one whose contents make no sense although its checksum is right. The latter
/// comes from a program error, and would stop each further attempt.
pub(crate) fn is_damage(error: &Error) -> bool {
    match error {
        Error::Corrupt { .. } => true,
        Error::Internal(_) => !is_planted(PlantedFault::NonsenseStopsOpening),
        _ => false,
    }
}

/// Returns `None` in place of damage. Everything that the record and earlier ones would have purged stays, and does
/// no harm.
fn past_damage<T>(txid: TxId, done: Result<T>) -> Result<Option<T>> {
    match done {
        Err(error) if is_damage(&error) => {
            tracing::error!("transaction {txid} can't be purged as a whole: {error}");
            Ok(None)
        }
        done => done.map(Some),
    }
}

/// Reads the undo record at `head`; `None` if it can't be read, or makes no sense.
pub(super) fn read_past_damage<'a>(
    pool: &PoolWithThreads,
    txid: TxId,
    head: UndoPtr,
    copy: &'a mut UndoCopy,
) -> Result<Option<UndoRecord<'a>>> {
    past_damage(txid, copy.read(pool, head))
}

/// Like [`ChainWalk::go_on`]; `None` if the chain leads in a circle.
pub(super) fn go_on_past_damage(
    txid: TxId,
    walk: &mut ChainWalk,
    to: UndoPtr,
) -> Result<Option<()>> {
    past_damage(txid, walk.go_on(to))
}

/// Like [`purge_record`], but leaves records in damaged pages as they are.
pub(super) fn purge_past_damage(
    trees: &Arc<dyn UndoOwner>,
    txid: TxId,
    record: &UndoRecord<'_>,
) -> Result<()> {
    past_damage(txid, purge_record(trees, txid, record)).map(|_| ())
}

/// Does what one undo record of committed transaction `txid` asks of purge.
fn purge_record(trees: &Arc<dyn UndoOwner>, txid: TxId, record: &UndoRecord<'_>) -> Result<()> {
    if record.kind == Kind::PurgeNote {
        return trees.purged(record.value);
    }
    if !record.marks_delete {
        return Ok(());
    }
    let Some(tree) = trees.tree(record.tree)? else {
        return Ok(());
    };
    tree.modify(record.key, 0, 0, |current, _| {
        let header = current.and_then(|value| Some(Header::decode(value).ok()?.0));
        match header {
            Some(header) if header.deleted && header.txid() == Some(txid) => {
                (RecordEdit::Remove, ())
            }
            _ => (RecordEdit::Keep, ()),
        }
    })
}

fn run(transactions: &Weak<TransactionManager>) {
    let mut passed = 0;
    let mut trimmed = true;
    loop {
        let Some(transactions) = transactions.upgrade() else {
            return;
        };
        let outcome = transactions.purge_step();
        let before = std::mem::replace(
            &mut passed,
            transactions.purge.passed.load(Ordering::Relaxed),
        );
        let (pause, idle) = match outcome {
            Ok(true) => (Duration::ZERO, false),
            // While ends are left, the thread wakes by itself; transactions that end need not wake it.
            Ok(false) if before != passed || transactions.stats().unpurged > 0 => {
                trimmed = false;
                (knobs::purge_held_back(), false)
            }
            Ok(false) => {
                if !std::mem::replace(&mut trimmed, true) {
                    if let Err(error) = transactions.give_back() {
                        tracing::warn!(%error, "giving undo pages back failed");
                    }
                }
                (knobs::purge_idle(), true)
            }
            Err(error) => {
                tracing::warn!(%error, "purge failed; it will be tried again");
                (knobs::purge_idle(), false)
            }
        };
        // A transaction may have ended after the step looked and before `idle` was set: that takes one more step.
        if idle && !transactions.purge.idle.swap(true, Ordering::AcqRel) {
            continue;
        }
        if !transactions.purge.pause(pause, idle) {
            return;
        }
    }
}
