//! The state that a checkpoint takes from the layers of an open database.

use std::sync::Arc;
use std::time::Duration;

use crate::buffer::PoolWithThreads;
use crate::checkpoint::{Captured, CheckpointSource, OpenWork, PageCounts, ReplayPace, ReplayWork};
use crate::error::{Error, Result};
use crate::ids::{Lsn, PAGE_SIZE};
use crate::lock::UndoWork;
use crate::recovery::{Counters, Meta};
use crate::sync::{Moment, Mutex};
use crate::table::ddl::{Numbers, Tables};
use crate::table::shared::Shared;
use crate::txn;

/// See [`CheckpointSource`].
pub(super) struct Source {
    shared: Arc<Shared>,
    tables: Arc<Tables>,
    pool: Arc<PoolWithThreads>,
    /// State of the moment when the barrier was closed, until `capture` takes it.
    taken: Mutex<Option<(Numbers, txn::Captured)>>,
    replay_pace: Mutex<ReplayPace>,
    reads: Mutex<PageReads>,
}

/// Numbers of page reads at the beginning of checkpoints.
#[derive(Default)]
struct PageReads {
    /// Of the last complete checkpoint.
    complete: u64,
    /// Of the last checkpoint.
    begun: u64,
}

impl Source {
    pub fn new(shared: Arc<Shared>, tables: Arc<Tables>, pool: Arc<PoolWithThreads>) -> Self {
        Source {
            shared,
            tables,
            pool,
            taken: Mutex::default(),
            replay_pace: Mutex::default(),
            reads: Mutex::default(),
        }
    }

    /// Sets the duration of openings that checkpoints store from now on.
    pub fn set_replay_pace(&self, pace: ReplayPace) {
        *self.replay_pace.lock() = pace;
    }

    /// How long an opening would take if the process were killed now.
    pub fn recovery_time(&self) -> Duration {
        let pace = *self.replay_pace.lock();
        pace.time_of(self.open_work().now)
    }

    /// The counters, in the order of the tables' numbers.
    fn counters(&self) -> Vec<Counters> {
        let mut counters = Vec::new();
        self.shared.registry.each_counted(|table, rows, next_auto| {
            counters.push(Counters {
                table,
                rows,
                next_auto,
            });
        });
        counters.sort_unstable_by_key(|c| c.table);
        counters
    }
}

impl CheckpointSource for Source {
    fn with_barrier_closed(&self, inside: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        // A change of definitions takes this mutex and then enters the barrier: the same order.
        let reads = self.pool.stats().reads;
        self.reads.lock().begun = reads;
        let numbers = self.tables.numbers.lock();
        let closed = self.shared.transactions.barrier().close();
        *self.taken.lock() = Some((*numbers, self.shared.transactions.capture(&closed)));
        inside()
    }

    fn begin_pages(&self, epoch: u64) {
        self.pool.begin_checkpoint(epoch);
    }

    fn capture(&self, redo_from: Lsn) -> Result<Captured> {
        let Some((numbers, transactions)) = self.taken.lock().take() else {
            return Err(Error::Internal("a checkpoint outside the barrier".into()));
        };
        let meta = Meta {
            checkpoint: redo_from,
            catalog: self.tables.catalog.root(),
            numbers,
            transactions,
            counters: self.counters(),
            replay_pace: *self.replay_pace.lock(),
            is_current: true,
        };
        Ok(Captured {
            keep_log_from: meta.log_from(),
            meta: meta.encode()?,
        })
    }

    fn open_work(&self) -> OpenWork {
        let work = self.shared.transactions.recovery_work();
        let pool = self.pool.stats();
        let pages = self.pool.store().stats().file_bytes / PAGE_SIZE as u64;
        let reads = pool.reads.saturating_sub(self.reads.lock().complete);
        let rolled_back = |work: ReplayWork, undo: UndoWork| {
            work.and_rollback(undo.records, undo.bytes, undo.leaves, pool.frames, pages)
        };
        let replayed =
            ReplayWork::since(work.log_replayed, reads, pool.dirty).and_again(work.log_again);
        OpenWork {
            now: rolled_back(replayed.and_reading(work.log_read), work.undo),
            standing: rolled_back(
                ReplayWork::default()
                    .and_again(work.log_promised)
                    .and_reading(work.kept_log),
                work.running,
            ),
        }
    }

    fn large_ends(&self) -> u64 {
        self.shared.transactions.large_ends()
    }

    fn end_pages(&self, _epoch: u64, complete: bool) {
        self.shared.transactions.checkpoint_ended(complete);
        let mut reads = self.reads.lock();
        if complete {
            reads.complete = reads.begun;
        }
    }

    fn page_counts(&self) -> PageCounts {
        let stats = self.pool.stats();
        PageCounts {
            reads: stats.reads,
            dirty: stats.dirty,
        }
    }

    fn keep_room(&self) -> Result<Option<Error>> {
        self.pool.keep_room(false)
    }

    fn write_pages(&self, epoch: u64, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.shared
            .transactions
            .moments
            .come_to(Moment::CheckpointBegun);
        self.pool.write_checkpoint(epoch, progress)
    }
}
