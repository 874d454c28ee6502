//! The work that an opening would have to do for transactions if the process were killed at this moment.
//!
//! An opening begins at the last complete checkpoint. It rolls back the transactions that were running then, and
//! repeats those that have committed since. It reads the log from the first record that one of these may need. So the
//! tally records two figures of each transaction with parts of its redo in the log: the bytes there, and how many of
//! these a checkpoint has found there. Short transactions have no such parts, and the tally keeps nothing of them.

use std::sync::Arc;

use crate::ids::{Lsn, TxId};
use crate::knobs;
use crate::lock::running_transaction::{RunningTransaction, UndoWork};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

/// The work of an opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryWork {
    /// Bytes of log that it reads, more than once.
    pub log_read: u64,
    /// Bytes of log since the checkpoint whose changes it repeats.
    pub log_replayed: u64,
    /// Bytes of log from before the checkpoint whose changes it repeats: of transactions that were running then.
    pub log_again: u64,
    /// Bytes of log of prepared transactions, which it would repeat from any checkpoint.
    pub log_promised: u64,
    /// The undo that it rolls back.
    pub undo: UndoWork,
    /// The part of the log it reads that is kept for running transactions, in bytes.
    pub kept_log: u64,
    /// The undo that it would roll back if a checkpoint were taken at this moment.
    pub running: UndoWork,
}

/// Returns whether the tally counts a transaction with so many bytes of redo in the log.
///
/// A small transaction also has redo there if it is prepared.
pub(super) fn is_large(bytes: u64) -> bool {
    bytes >= knobs::redo_part() as u64
}

/// See the module's text.
#[derive(Default)]
pub(super) struct RecoveryTally {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last complete checkpoint.
    complete: Found,
    /// The last one begun, until it is complete or given up.
    begun: Option<Found>,
    /// Transactions that had parts of their redo in the log, and have ended since the complete checkpoint.
    ended: Vec<Ended>,
}

/// The state that a checkpoint has found.
#[derive(Default)]
struct Found {
    at: Lsn,
    log_from: Lsn,
    undo: UndoWork,
    /// Bytes of redo in the log for each large running transaction, in the order of their numbers.
    parts: Vec<(TxId, u64)>,
    /// The length of `ended` at that time.
    ended: usize,
}

impl Found {
    fn parts_of(&self, txid: TxId) -> u64 {
        let at = self.parts.binary_search_by_key(&txid, |part| part.0);
        at.map_or(0, |at| self.parts[at].1)
    }
}

struct Ended {
    txid: TxId,
    bytes: u64,
    committed: bool,
}

impl RecoveryTally {
    /// Begins a checkpoint, inside the closed barrier; the log ends at `at`.
    pub fn begin(&self, at: Lsn, running: &[(TxId, Arc<RunningTransaction>)]) {
        let mut found = Found {
            at,
            log_from: at,
            ..Found::default()
        };
        for (txid, who) in running {
            found.undo.add(who.undo_work());
            if let Some(first) = who.first_redo() {
                found.log_from = found.log_from.min(first);
            }
            let bytes = who.logged();
            if is_large(bytes) {
                found.parts.push((*txid, bytes));
            }
        }
        found.parts.sort_unstable();
        let mut state = self.state.lock();
        found.ended = state.ended.len();
        state.begun = Some(found);
    }

    /// Begins with the checkpoint of an opening, until there is another one.
    pub fn open(&self, at: Lsn, log_from: Lsn) {
        let mut state = self.state.lock();
        (state.complete.at, state.complete.log_from) = (at, log_from);
    }

    /// Ends the checkpoint that was begun, which is complete or given up.
    pub fn end(&self, complete: bool) {
        let mut state = self.state.lock();
        let Some(mut found) = state.begun.take().filter(|_| complete) else {
            return;
        };
        state.ended.drain(..found.ended);
        found.ended = 0;
        state.complete = found;
    }

    /// The work that an opening would have to do if the process were killed at this moment; the log ends at `end`.
    pub fn work(&self, running: &[(TxId, Arc<RunningTransaction>)], end: Lsn) -> RecoveryWork {
        let state = self.state.lock();
        let found = &state.complete;
        let mut work = RecoveryWork {
            log_read: end.0.saturating_sub(found.log_from.0),
            undo: found.undo,
            ..RecoveryWork::default()
        };
        let (mut again, mut void) = (0, 0);
        for ended in &state.ended {
            let before = found.parts_of(ended.txid);
            match ended.committed {
                true => again += before,
                false => void += ended.bytes.saturating_sub(before),
            }
        }
        for (txid, who) in running {
            let before = found.parts_of(*txid);
            work.running.add(who.undo_work());
            if let Some(first) = who.first_redo() {
                work.kept_log = work.kept_log.max(end.0.saturating_sub(first.0));
            }
            match who.is_promised() {
                true => {
                    again += before;
                    work.log_promised += who.logged();
                }
                false => void += who.logged().saturating_sub(before),
            }
        }
        if is_planted(PlantedFault::ForgetLongTransactions) {
            (again, void, work.undo) = (0, 0, UndoWork::default());
            work.log_read = end.0.saturating_sub(found.at.0);
        }
        let since = end.0.saturating_sub(found.at.0);
        work.log_replayed = since.saturating_sub(void);
        work.log_again = again;
        work
    }

    /// Records the end of a large transaction. Inside the barrier.
    pub fn ended(&self, txid: TxId, bytes: u64, committed: bool) {
        let mut state = self.state.lock();
        let has = |found: &Found| found.parts_of(txid) != 0;
        let is_found = has(&state.complete) || state.begun.as_ref().is_some_and(has);
        // A transaction that has committed, and that no checkpoint has found, counts with the log since the
        // checkpoint.
        if is_found || !committed {
            state.ended.push(Ended {
                txid,
                bytes,
                committed,
            });
        }
    }
}
