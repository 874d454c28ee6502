//! Checkpoints: what is captured inside the gate, and the thread that takes them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::page::Pool;
use crate::recovery::{Counters, Meta};
use crate::settings::Durability;
use crate::table::ddl::Tables;
use crate::table::shared::Shared;

/// How often the thread looks whether a checkpoint is due.
const LOOK: Duration = Duration::from_millis(100);

/// Takes checkpoints, one at a time.
pub(super) struct Checkpointer {
    shared: Arc<Shared>,
    tables: Arc<Tables>,
    pool: Arc<Pool>,
    /// Where the log ended at the last complete checkpoint.
    last: Mutex<Lsn>,
    completed: AtomicU64,
}

impl Checkpointer {
    pub fn new(shared: Arc<Shared>, tables: Arc<Tables>, pool: Arc<Pool>) -> Self {
        Checkpointer {
            shared,
            tables,
            pool,
            last: Mutex::new(Lsn(0)),
            completed: AtomicU64::new(0),
        }
    }

    /// Checkpoints completed.
    pub fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Takes a checkpoint.
    ///
    /// The gate is closed only while positions and counters are noted; pages are written beside
    /// everything else, as they were inside the gate.
    pub fn run(&self) -> Result<()> {
        let mut last = self.last.lock();
        let store = self.pool.store();
        store.stop_flag().check()?;
        // Outside the gate: definitions change under this mutex, and inside the gate.
        let numbers = self.tables.numbers.lock();
        let (epoch, meta, end) = {
            let closed = self.shared.system.gate().close();
            let checkpoint = self.shared.log.mark()?;
            let meta = Meta {
                checkpoint,
                catalog: self.tables.catalog.root(),
                numbers: *numbers,
                transactions: self.shared.system.capture(&closed),
                counters: self.counters(),
            };
            let epoch = store.begin_checkpoint();
            self.pool.begin_checkpoint(epoch);
            (epoch, meta, self.shared.log.end())
        };
        drop(numbers);
        let result = self.complete(epoch, &meta, end);
        if result.is_err() {
            store.abandon_checkpoint();
        } else {
            *last = end;
            self.completed.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    fn complete(&self, epoch: u64, meta: &Meta, end: Lsn) -> Result<()> {
        let bytes = meta.encode()?;
        self.pool.write_checkpoint(epoch, &mut |_| Ok(()))?;
        // Recovery from this checkpoint begins at its mark.
        self.shared.log.durable(end, Durability::SyncAtCommit)?;
        self.pool.store().complete_checkpoint(&bytes)?;
        self.shared.log.release_before(meta.log_from())
    }

    fn counters(&self) -> Vec<Counters> {
        let states = self.shared.registry.states();
        let mut counters: Vec<Counters> = states
            .iter()
            .map(|(table, state)| Counters {
                table: *table,
                rows: state.rows(),
                next_auto: state.next_auto(),
            })
            .collect();
        counters.sort_by_key(|c| c.table);
        counters
    }

    /// Bytes of log since the last complete checkpoint.
    fn log_since(&self) -> u64 {
        let last = match self.last.try_lock() {
            Some(last) => *last,
            // One is running.
            None => return 0,
        };
        self.shared.log.end().0.saturating_sub(last.0)
    }
}

/// The thread that takes checkpoints when they are due. Dropping it stops and joins it.
pub(super) struct CheckpointThread {
    stop: Arc<(Mutex<bool>, Condvar)>,
    handle: Option<JoinHandle<()>>,
}

impl CheckpointThread {
    /// Starts it: a checkpoint after so many bytes of log, and after so long when there is any.
    pub fn start(
        checkpointer: Arc<Checkpointer>,
        log_bytes: u64,
        interval: Duration,
    ) -> Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = stop.clone();
        let handle = std::thread::Builder::new()
            .name("peregrine-checkpoint".into())
            .spawn(move || work(&checkpointer, &seen, log_bytes, interval))
            .map_err(|e| Error::io("start a thread for", "checkpoints", e))?;
        Ok(CheckpointThread {
            stop,
            handle: Some(handle),
        })
    }
}

impl Drop for CheckpointThread {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(handle) = self.handle.take() {
            if handle.join().is_err() {
                tracing::error!("the checkpoint thread panicked");
            }
        }
    }
}

fn work(
    checkpointer: &Checkpointer,
    stop: &(Mutex<bool>, Condvar),
    log_bytes: u64,
    interval: Duration,
) {
    let mut last = Instant::now();
    let mut stopped = stop.0.lock();
    while !*stopped {
        stop.1.wait_for(&mut stopped, LOOK);
        if *stopped {
            return;
        }
        let since = checkpointer.log_since();
        let due = since >= log_bytes || (last.elapsed() >= interval && since > 0);
        if !due {
            continue;
        }
        drop(stopped);
        if let Err(error) = checkpointer.run() {
            // Tried again when the interval has passed, or more log has come.
            tracing::error!("a checkpoint failed: {error}");
            std::thread::sleep(LOOK);
        }
        last = Instant::now();
        stopped = stop.0.lock();
    }
}
