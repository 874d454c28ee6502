//! The state that all transactions of a database share.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::abandoned::Abandoned;
use super::checkpoint_barrier::CheckpointBarrier;
use super::recovery_tally::RecoveryTally;
use super::redo::RedoBuffer;
use crate::buffer::{LeafFreeze, PoolWithThreads};
use crate::error::{Error, Result};
use crate::ids::{Csn, TreeId, TxId};
use crate::lock::deadlock_report::DeadlockReport;
use crate::lock::range::RangeTable;
use crate::lock::table::LockTable;
use crate::log::Log;
use crate::mvcc::freeze::Freeze;
use crate::mvcc::order::CommitOrder;
use crate::mvcc::snapshot::SnapshotRegistry;
use crate::sessions::{KnownSessions, Sessions};
use crate::settings::Durability;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Moments, Mutex, RwLock};
use crate::tree::Tree;
use crate::undo::pruning::Pruning;
use crate::undo::purge_thread::PurgeThread;
use crate::undo::streams::UndoStreams;

/// The layer above: how rollback and purge find trees, and what they report when they have finished.
pub trait UndoOwner: Send + Sync {
    /// The tree with this number; `None` if it was dropped, or its table does not change any more: its undo is then
    /// skipped.
    ///
    /// # Errors
    /// The tree exists and can't be opened; the undo for it is not applied.
    fn tree(&self, tree: TreeId) -> Result<Option<Arc<Tree>>>;

    /// Handles a note from [`super::TreeTransaction::note_on_purge`]; its transaction has committed.
    ///
    /// No snapshot sees the state before it any more, so large values that it replaced can be freed. Runs inside the
    /// barrier.
    ///
    /// # Errors
    /// Purge logs the error and tries again later.
    fn purged(&self, _note: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Handles a note from [`super::TreeTransaction::note_on_rollback`]; its operation was rolled back.
    ///
    /// No snapshot could see the operation, so large values that it made can be freed. Runs inside the barrier.
    ///
    /// # Errors
    /// The rollback stops, and can be tried again.
    fn rolled_back(&self, _note: &[u8]) -> Result<()> {
        Ok(())
    }

    /// A rollback at opening could not revert a change in this tree, because of damage. The rollback goes on.
    fn damaged(&self, _tree: TreeId, _error: &Error) {}

    /// Rollbacks at opening could not find all changes of these transactions, because of damage in their undo.
    ///
    /// Each has its error. The layer above must deal with their records. Nothing else runs meanwhile.
    ///
    /// # Errors
    /// I/O errors.
    fn unfinished(&self, _transactions: &BTreeMap<TxId, Error>) -> Result<()> {
        Ok(())
    }

    /// A rollback at opening could not follow a note from [`super::TreeTransaction::note_on_rollback`], because of
    /// damage.
    ///
    /// The rollback goes on.
    fn note_is_lost(&self, _note: &[u8], _error: &Error) {}

    /// Returns whether a transaction fails rather than waits if another one is in its way in this tree.
    fn is_optimistic(&self, _tree: TreeId) -> bool {
        false
    }

    /// Logs a compensating change: a change in this tree is rolled back to a savepoint after its redo went to the
    /// log.
    ///
    /// If the tree is a clustered one, this logs the restored state into `redo`. `previous` is the restored payload,
    /// `None`: no row. Returns whether replay repeats the change in a record of which another transaction could have
    /// its own. Runs inside the barrier.
    ///
    /// # Errors
    /// The rollback stops, and can be tried again.
    fn compensate(
        &self,
        _tree: TreeId,
        _key: &[u8],
        _previous: Option<&[u8]>,
        _redo: &mut RedoBuffer,
    ) -> Result<Replayed> {
        Ok(Replayed::Not)
    }
}

/// How replay treats a change that was rolled back to a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It does nothing, or nothing that conflicts with another transaction's record.
    Not,
    /// It repeats the change and reverts it, under this key, where another transaction can have its own record.
    Again,
}

/// Figures since the transaction manager was made.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SystemStats {
    /// Commits of transactions that had written.
    pub commits: u64,
    /// Rollbacks of transactions that had written.
    pub rollbacks: u64,
    /// Lock waits begun.
    pub lock_waits: u64,
    /// Transactions that wait for a lock now.
    pub lock_waits_now: u64,
    /// Microseconds of all lock waits that have ended.
    pub lock_wait_us: u64,
    /// Microseconds of the longest lock wait.
    pub longest_lock_wait_us: u64,
    /// Lock waits that reached their limit.
    pub lock_timeouts: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
    /// Entries of the lock table, and transactions with ranges in place of entries.
    pub locked_rows: u64,
    /// Transactions that hold searched key ranges, counted once for each tree.
    pub range_holders: u64,
    /// Ended transactions whose undo is not purged yet.
    pub unpurged: u64,
    /// Dropped transactions whose rollback failed and is tried again.
    pub abandoned: u64,
    /// Undo pages in use.
    pub undo_pages: u64,
    /// Undo pages emptied and freed while a snapshot held purge back.
    pub pruned_pages: u64,
    /// Bytes of the status directory.
    pub status_bytes: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub commits: AtomicU64,
    pub rollbacks: AtomicU64,
    pub lock_waits: AtomicU64,
    pub lock_waits_now: AtomicU64,
    pub lock_wait_us: AtomicU64,
    pub longest_lock_wait_us: AtomicU64,
    pub lock_timeouts: AtomicU64,
    pub deadlocks: AtomicU64,
    /// Ends of transactions that had parts of their redo in the log.
    pub large_ends: AtomicU64,
}

/// The state that all transactions of a database share: commit order, snapshots, locks, undo, barrier, purge.
pub struct TransactionManager {
    pool: Arc<PoolWithThreads>,
    log: Arc<Log>,
    /// The place of a [`Durability`] in [`DURABILITIES`].
    durability: AtomicUsize,
    longest_kept_log: AtomicU64,
    lock_wait_timeout_us: AtomicU64,
    trees: OnceLock<Arc<dyn UndoOwner>>,
    order: Arc<CommitOrder>,
    snapshots: Arc<SnapshotRegistry>,
    locks: LockTable,
    ranges: RangeTable,
    /// Held shared while a waiter enters a queue, exclusively while a waiter looks for circles.
    pub(super) queueing: RwLock<()>,
    streams: UndoStreams,
    barrier: CheckpointBarrier,
    pub(super) purge: PurgeThread,
    pub(super) pruning: Pruning,
    pub(super) abandoned: Abandoned,
    pub(super) counters: Counters,
    tally: RecoveryTally,
    /// The moments at which schedules pause and tests act.
    pub(crate) moments: Moments,
    #[cfg(feature = "broken")]
    pub(super) stale: crate::sync::Mutex<Option<crate::mvcc::stale::Stale>>,
    pub(super) latest_deadlock: Mutex<Option<Arc<DeadlockReport>>>,
    pub(super) sessions: KnownSessions,
}

const DURABILITIES: [Durability; 3] = [
    Durability::SyncAtCommit,
    Durability::WriteAtCommit,
    Durability::Later,
];

fn place_of(durability: Durability) -> usize {
    match durability {
        Durability::SyncAtCommit => 0,
        Durability::WriteAtCommit => 1,
        Durability::Later => 2,
    }
}

impl TransactionManager {
    /// Makes a transaction manager for a new or a just opened database; `durability` is what commits wait for.
    pub fn new(
        pool: Arc<PoolWithThreads>,
        log: Arc<Log>,
        durability: Durability,
    ) -> Arc<TransactionManager> {
        Arc::new(TransactionManager {
            pool,
            log,
            durability: AtomicUsize::new(place_of(durability)),
            longest_kept_log: AtomicU64::new(u64::MAX),
            lock_wait_timeout_us: AtomicU64::new(50_000_000),
            trees: OnceLock::new(),
            order: Arc::new(CommitOrder::new(TxId(1))),
            snapshots: SnapshotRegistry::new(),
            locks: LockTable::default(),
            ranges: RangeTable::default(),
            queueing: RwLock::new(()),
            streams: UndoStreams::default(),
            barrier: CheckpointBarrier::default(),
            purge: PurgeThread::default(),
            pruning: Pruning::default(),
            abandoned: Abandoned::default(),
            counters: Counters::default(),
            tally: RecoveryTally::default(),
            moments: Moments::default(),
            #[cfg(feature = "broken")]
            stale: crate::sync::Mutex::new(None),
            latest_deadlock: Mutex::default(),
            sessions: KnownSessions::default(),
        })
    }

    /// Sets how trees are found. Once, before any restore and before the first write; later calls are ignored.
    pub fn set_trees(&self, trees: Arc<dyn UndoOwner>) {
        let _already_set = self.trees.set(trees);
    }

    /// Returns the code that freezes records of full leaves, for [`PoolWithThreads::set_freeze`].
    pub fn leaf_freeze(&self) -> Arc<dyn LeafFreeze> {
        Arc::new(Freeze {
            order: self.order.clone(),
        })
    }

    /// The barrier between operations and checkpoints.
    pub fn barrier(&self) -> &CheckpointBarrier {
        &self.barrier
    }

    /// Sets what later commits wait for.
    pub fn set_durability(&self, durability: Durability) {
        self.durability
            .store(place_of(durability), Ordering::Relaxed);
    }

    /// Sets the most bytes of log that are kept for a running transaction.
    pub fn set_longest_kept_log(&self, bytes: u64) {
        self.longest_kept_log.store(bytes, Ordering::Relaxed);
    }

    /// Sets how long transactions that begin later wait for a lock; 50 s until set.
    pub fn set_lock_wait_timeout(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        self.lock_wait_timeout_us.store(limit, Ordering::Relaxed);
    }

    /// Leaves out a rule of isolation from here on.
    #[cfg(feature = "broken")]
    pub fn set_broken(&self, rule: Option<crate::broken::IsolationFault>) {
        self.order.broken.set(rule);
    }

    /// Returns whether a test build leaves out this rule; always false in other builds.
    #[inline(always)]
    pub(super) fn breaks(&self, rule: crate::broken::IsolationFault) -> bool {
        self.order.broken.is(rule)
    }

    /// Returns the figures.
    pub fn stats(&self) -> SystemStats {
        let (mut undo_pages, mut unpurged) = (0, 0);
        for stream in self.streams.all() {
            let (pages, ends) = stream.counts();
            undo_pages += pages;
            unpurged += ends;
        }
        SystemStats {
            commits: self.counters.commits.load(Ordering::Relaxed),
            rollbacks: self.counters.rollbacks.load(Ordering::Relaxed),
            lock_waits: self.counters.lock_waits.load(Ordering::Relaxed),
            lock_waits_now: self.counters.lock_waits_now.load(Ordering::Relaxed),
            lock_wait_us: self.counters.lock_wait_us.load(Ordering::Relaxed),
            longest_lock_wait_us: self.counters.longest_lock_wait_us.load(Ordering::Relaxed),
            lock_timeouts: self.counters.lock_timeouts.load(Ordering::Relaxed),
            deadlocks: self.counters.deadlocks.load(Ordering::Relaxed),
            locked_rows: self.locks.len() as u64,
            range_holders: self.ranges.len() as u64,
            unpurged,
            abandoned: self.abandoned.len() as u64,
            undo_pages: undo_pages + self.pruning.reclamation.waiting().len() as u64,
            pruned_pages: self.pruning.emptied.load(Ordering::Relaxed),
            status_bytes: self.order.status_bytes() as u64,
        }
    }

    /// Sets what the program knows of its sessions. Once; later calls are ignored.
    pub fn set_sessions(&self, sessions: Arc<dyn Sessions>) {
        self.sessions.set(sessions);
    }

    pub(crate) fn pool(&self) -> &Arc<PoolWithThreads> {
        &self.pool
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn longest_kept_log(&self) -> u64 {
        self.longest_kept_log.load(Ordering::Relaxed)
    }

    pub(super) fn tally(&self) -> &RecoveryTally {
        &self.tally
    }

    pub(super) fn durability(&self) -> Durability {
        DURABILITIES[self.durability.load(Ordering::Relaxed)]
    }

    pub(super) fn lock_wait_timeout(&self) -> Duration {
        Duration::from_micros(self.lock_wait_timeout_us.load(Ordering::Relaxed))
    }

    /// Gives a change that belongs to no transaction its own number in the order of commits.
    ///
    /// Snapshots taken before are older than the number; later ones are not.
    pub fn pass(&self) -> Csn {
        self.order.pass()
    }

    pub(super) fn order(&self) -> &CommitOrder {
        &self.order
    }

    pub(super) fn snapshots(&self) -> &Arc<SnapshotRegistry> {
        &self.snapshots
    }

    pub(super) fn locks(&self) -> &LockTable {
        &self.locks
    }

    pub(super) fn ranges(&self) -> &RangeTable {
        &self.ranges
    }

    pub(super) fn streams(&self) -> &UndoStreams {
        &self.streams
    }

    /// Returns whether conflicts in a tree fail at once; called only if there is a conflict.
    pub(super) fn is_optimistic(&self, tree: TreeId) -> bool {
        let trees = self.trees.get();
        trees.is_some_and(|trees| trees.is_optimistic(tree))
    }

    pub(super) fn trees(&self) -> Result<&Arc<dyn UndoOwner>> {
        self.trees.get().ok_or_else(|| {
            Error::Internal("trees were not given to the transaction manager".into())
        })
    }
}

impl Drop for TransactionManager {
    fn drop(&mut self) {
        self.purge.stop();
    }
}
