//! The transactions in a checkpoint, and what an opening does with them.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::ids::{Lsn, PageId, TxId, UndoPtr};
use crate::mvcc::version::Header;
use crate::planted::{is_planted, PlantedFault};
use crate::txn::checkpoint_barrier::ClosedBarrier;
use crate::txn::end::rollback::take_back;
use crate::txn::purge::{go_on_past_damage, is_damage, purge_past_damage, read_past_damage};
use crate::txn::TransactionManager;
use crate::undo::record::{ChainWalk, Kind, UndoCopy};
use crate::undo::stream::Finished;

/// The state of transactions that a checkpoint must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Captured {
    next_txid: TxId,
    running: Vec<Running>,
    finished: Vec<Finished>,
    undo_pages: Vec<PageId>,
}

/// A transaction that was running.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Running {
    txid: TxId,
    undo_head: UndoPtr,
    first_redo: Option<Lsn>,
}

impl Captured {
    /// Returns the first log position that replay from this checkpoint needs.
    ///
    /// That is the checkpoint's own position, or an earlier one if a running transaction had appended changes before.
    /// Replay applies only transactions whose commit record is at or after the checkpoint's position.
    pub fn redo_from(&self, checkpoint: Lsn) -> Lsn {
        self.running
            .iter()
            .filter_map(|running| running.first_redo)
            .fold(checkpoint, Lsn::min)
    }

    /// The first transaction number that was not given at the checkpoint.
    pub fn next_txid(&self) -> TxId {
        self.next_txid
    }

    /// The transactions that were running.
    pub fn running(&self) -> impl Iterator<Item = TxId> + '_ {
        self.running.iter().map(|running| running.txid)
    }

    /// All undo pages; together with the pages of all trees, these are the pages in use.
    pub fn undo_pages(&self) -> &[PageId] {
        &self.undo_pages
    }
}

impl TransactionManager {
    /// Returns the state of transactions that a checkpoint must have; the barrier is closed.
    ///
    /// A transaction for which the log would have to be kept longer than allowed can't commit from here on.
    /// [`TransactionManager::checkpoint_ended`] must follow.
    pub fn capture(&self, _closed: &ClosedBarrier<'_>) -> Captured {
        let mut captured = Captured {
            next_txid: self.order().next_txid(),
            ..Captured::default()
        };
        let running = self.order().all_running();
        let end = self.log().end();
        let longest = self.longest_kept_log();
        for (_, who) in &running {
            who.let_log_go(end, longest);
        }
        self.tally().begin(end, &running);
        for (txid, who) in running {
            captured.running.push(Running {
                txid,
                undo_head: who.undo_head(),
                first_redo: who.first_redo(),
            });
        }
        for stream in self.streams().all() {
            let (pages, finished) = stream.contents();
            captured.undo_pages.extend(pages);
            captured
                .finished
                .extend(finished.iter().filter(|end| !end.head.is_none()));
        }
        captured
            .undo_pages
            .extend(self.pruning.reclamation.waiting());
        captured
    }

    /// Rolls back and purges on opening, with the pages of the checkpoint, before replay and before any transaction.
    ///
    /// It rolls back transactions that were running; replay repeats those that committed later. It purges
    /// transactions that had ended, and frees all undo pages of the last run. Later transactions get higher numbers.
    ///
    /// It reports pages of tables that can't be read to
    /// [`UndoOwner::damaged`](crate::txn::transaction_manager::UndoOwner::damaged) or
    /// [`UndoOwner::note_is_lost`](crate::txn::transaction_manager::UndoOwner::note_is_lost), and transactions whose
    /// undo can't be read to [`UndoOwner::unfinished`](crate::txn::transaction_manager::UndoOwner::unfinished).
    /// Contents that can be read but make no sense, and contradictions between undo and trees, count as damage, too.
    ///
    /// Returns the number of undo records that were reverted.
    ///
    /// # Errors
    /// I/O errors.
    pub fn roll_back_losers(&self, captured: &Captured) -> Result<u64> {
        let trees = self.trees()?;
        let mut copy = UndoCopy::default();
        let mut unfinished = BTreeMap::new();
        let mut taken_back = 0;
        for running in &captured.running {
            if is_planted(PlantedFault::KeepLosers) {
                break;
            }
            let mut head = running.undo_head;
            let mut walk = ChainWalk::from(head);
            while !head.is_none() {
                let record = match copy.read(self.pool(), head) {
                    Err(error) if is_damage(&error) && !is_planted(PlantedFault::NeedUndo) => {
                        unfinished.insert(running.txid, error);
                        break;
                    }
                    record => record?,
                };
                // No snapshot survives, so only this transaction's own delete marks are restored: its older records
                // may still have to be restored over them.
                let taken = take_back(
                    trees,
                    running.txid,
                    &record,
                    &|previous| {
                        let Some(value) = previous else {
                            return Ok(false);
                        };
                        let (header, _) = Header::decode(value)?;
                        Ok(!header.deleted || header.txid() == Some(running.txid))
                    },
                    &|_| Ok(()),
                );
                match taken {
                    // The note names no tree: only the layer above knows what it is about.
                    Err(error)
                        if is_damage(&error)
                            && record.kind == Kind::RollbackNote
                            && !is_planted(PlantedFault::DropLostNotes) =>
                    {
                        trees.note_is_lost(record.value, &error);
                    }
                    Err(error) if is_damage(&error) => trees.damaged(record.tree, &error),
                    taken => taken?,
                }
                taken_back += 1;
                head = record.previous;
                if let Err(error) = walk.go_on(head) {
                    unfinished.insert(running.txid, error);
                    break;
                }
            }
        }
        if !unfinished.is_empty() {
            trees.unfinished(&unfinished)?;
        }
        for finished in &captured.finished {
            let mut head = finished.head;
            let mut walk = ChainWalk::from(head);
            while !head.is_none() {
                let record = read_past_damage(self.pool(), finished.txid, head, &mut copy)?;
                let Some(record) = record else {
                    break;
                };
                purge_past_damage(trees, finished.txid, &record)?;
                head = record.previous;
                if go_on_past_damage(finished.txid, &mut walk, head)?.is_none() {
                    break;
                }
            }
        }
        for page in &captured.undo_pages {
            self.pool().free(*page)?;
        }
        self.order().raise(captured.next_txid);
        Ok(taken_back)
    }

    /// Called after replay and before any transaction: numbers up to `seen`, the highest in the log, are not given
    /// again.
    pub fn raise_txid(&self, seen: TxId) {
        self.order().raise(TxId(seen.0 + 1));
    }
}
