//! Starts checkpoints when they are due, and orders their steps.
//!
//! A checkpoint is an action-consistent snapshot of all pages, with a position in the log. Recovery uses the last
//! complete checkpoint and the log from that position. A checkpoint runs beside other work: only its beginning, in
//! which it takes roots, counters and the log position, keeps row operations waiting.
//!
//! | file | holds |
//! |---|---|
//! | `sequence.rs` | one checkpoint, step by step |
//! | `mod.rs` | the checkpointer's thread, and when it starts a checkpoint |
//! | `recovery_time.rs` | how much log a recovery can replay in the time that it may take |
#![forbid(unsafe_code)]

mod recovery_time;
mod sequence;
#[cfg(test)]
mod tests;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::recovery_time::{ReplayPace, ReplayWork};
pub use self::sequence::{checkpoint, CheckpointReport};
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::knobs;
use crate::log::Log;
use crate::store::Store;
use crate::sync::thread::JoinHandle;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// The parts of a checkpoint besides pages.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Opaque to the store; `Store::open` returns it.
    pub meta: Vec<u8>,
    /// The oldest log position that recovery from this checkpoint reads; usually the checkpoint's `redo_from`.
    pub keep_log_from: Lsn,
}

/// The interface of the layers above for the checkpointer.
///
/// The [`Checkpointer`] keeps its source alive, so the source must not own it.
pub trait CheckpointSource: Send + Sync {
    /// Closes the barrier, so that no row operation and no commit runs, calls `inside`, and opens the barrier.
    fn with_barrier_closed(&self, inside: &mut dyn FnMut() -> Result<()>) -> Result<()>;
    /// Inside the barrier: the buffer pool notes which frames the checkpoint needs.
    fn begin_pages(&self, epoch: u64);
    /// Inside the barrier: captures roots, counters, active transactions, …. Recovery will begin to read the log at
    /// `redo_from`, and must find that position in `meta`.
    fn capture(&self, redo_from: Lsn) -> Result<Captured>;
    /// Outside the barrier: writes the pages that the checkpoint needs. Calls `progress` repeatedly with the number of
    /// pages written since the last call.
    fn write_pages(&self, epoch: u64, progress: &mut dyn FnMut(u64) -> Result<()>) -> Result<()>;
    /// The work of an opening, were the process killed now, and the part of it that remains right after a checkpoint.
    fn open_work(&self) -> OpenWork {
        OpenWork::default()
    }
    /// A number that changes when an opening has more or less to do though little was logged.
    fn large_ends(&self) -> u64 {
        0
    }
    /// Pages read and dirty, to estimate what replay would have to read.
    fn page_counts(&self) -> PageCounts {
        PageCounts::default()
    }
    /// Keeps space in the data file for the next checkpoint; returns why there is less than wanted.
    fn keep_room(&self) -> Result<Option<Error>> {
        Ok(None)
    }
    /// Ends the checkpoint, complete or given up; no frame is needed for it any more.
    fn end_pages(&self, _epoch: u64, _complete: bool) {}
}

/// Conditions under which the checkpointer starts a checkpoint by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triggers {
    /// Bytes of log since the last checkpoint.
    pub log_bytes: u64,
    /// Time since the last checkpoint, if anything was logged.
    pub interval: Duration,
    /// The longest time that recovery may take; a checkpoint starts when the log would make it longer.
    pub recovery_target: Option<Duration>,
    /// How long recoveries take, relative to the estimate.
    pub replay_pace: ReplayPace,
}

/// The work of an opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenWork {
    /// From the last complete checkpoint on.
    pub now: ReplayWork,
    /// From a checkpoint on that is taken now.
    pub standing: ReplayWork,
}

/// Pages, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Read from the store so far.
    pub reads: u64,
    /// Pages that are newer in memory than in the store.
    pub dirty: u64,
}

/// Counters of the checkpointer, and its last outcome.
#[derive(Clone, Debug, Default)]
pub struct CheckpointStats {
    /// Complete checkpoints.
    pub completed: u64,
    /// Failed ones.
    pub failed: u64,
    /// Whether a checkpoint is running.
    pub running: bool,
    /// The last complete one.
    pub last: Option<CheckpointReport>,
    /// Why the last one failed, until one succeeds.
    pub error: Option<Error>,
}

/// The thread that runs checkpoints.
#[derive(Debug)]
pub struct Checkpointer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    log: Arc<Log>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    triggers: Triggers,
    /// Number of the newest checkpoint that was asked for.
    wanted: u64,
    /// Numbers of the newest checkpoint begun, and of the newest ended.
    begun: u64,
    ended: u64,
    /// The number of the newest checkpoint that succeeded.
    succeeded: u64,
    closing: bool,
    stats: CheckpointStats,
    /// The log's end when the last checkpoint began, and when that was.
    log_end: Lsn,
    began_at: Instant,
    /// The checkpointer starts none by itself before this time.
    not_before: Option<Instant>,
    /// When the time of an opening was last estimated: bytes logged since the last checkpoint, and
    /// [`CheckpointSource::large_ends`].
    reckoned: (u64, u64),
    /// The work that came together for an opening while the last checkpoint ran.
    meanwhile: ReplayWork,
    /// Log position and time at which the current stretch of little log began.
    quiet_from: (Lsn, Instant),
    room: Room,
}

/// The state of the disk's space.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    /// A thread was refused space since the last checkpoint began.
    refused: bool,
    /// There is less space for a checkpoint than wanted.
    short: bool,
}

impl Checkpointer {
    /// Starts the thread. The log's present content is not counted as new: after an opening, the caller asks for a
    /// checkpoint if recovery replayed anything.
    pub fn start(
        store: Arc<Store>,
        log: Arc<Log>,
        source: Arc<dyn CheckpointSource>,
        triggers: Triggers,
    ) -> Result<Checkpointer> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                triggers,
                wanted: 0,
                begun: 0,
                ended: 0,
                succeeded: 0,
                closing: false,
                stats: CheckpointStats::default(),
                log_end: log.end(),
                began_at: crate::sync::now(),
                not_before: None,
                reckoned: (0, 0),
                meanwhile: ReplayWork::default(),
                quiet_from: (log.end(), crate::sync::now()),
                room: Room::default(),
            }),
            changed: Condvar::new(),
            log,
        });
        let thread = crate::sync::thread::Builder::new()
            .name("peregrine-ckpt".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || run(&shared, &store, &*source)
            })
            .map_err(|source| Error::io("start a thread for", Path::new("checkpoints"), source))?;
        Ok(Checkpointer {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Asks for a checkpoint and does not wait.
    pub fn request(&self) {
        let mut state = self.shared.state.lock();
        state.wanted = state.wanted.max(state.begun + 1);
        self.shared.changed.notify_all();
    }

    /// Runs a checkpoint that begins after this call, and waits until it ends.
    ///
    /// # Errors
    /// The error of that checkpoint, or of a later one that failed, too; [`Error::Stopped`] if the checkpointer was shut down.
    pub fn now(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        let mine = state.begun + 1;
        state.wanted = state.wanted.max(mine);
        self.shared.changed.notify_all();
        while state.ended < mine {
            if state.closing {
                return Err(Error::Stopped("the database is being closed".into()));
            }
            self.shared.changed.wait(&mut state);
        }
        // A later one may have failed since.
        match &state.stats.error {
            Some(error) if state.succeeded < mine => Err(error.clone()),
            _ => Ok(()),
        }
    }

    fn end_thread(&self) {
        self.shared.state.lock().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // The thread catches panics itself.
            let _ = thread.join();
        }
    }

    /// Returns counters and the last outcome.
    pub fn stats(&self) -> CheckpointStats {
        self.shared.state.lock().stats.clone()
    }
}

impl Drop for Checkpointer {
    /// Ends the thread after the running checkpoint, without a last one.
    fn drop(&mut self) {
        self.end_thread();
    }
}

impl State {
    fn is_due(&mut self, log: &Log, store: &Store, source: &dyn CheckpointSource) -> bool {
        let quiet = self.is_quiet(log.end(), crate::sync::now());
        if self.wanted > self.begun {
            return true;
        }
        if self
            .not_before
            .is_some_and(|moment| crate::sync::now() < moment)
        {
            return false;
        }
        let logged = log.end().0.saturating_sub(self.log_end.0);
        logged >= self.triggers.log_bytes
            || self.is_long_to_replay(logged, source)
            || (logged > 0
                && crate::sync::since(self.began_at)
                    >= self
                        .triggers
                        .interval
                        .min(knobs::longest_checkpoint_interval()))
            || ((self.room.refused || self.room.short && logged > 0)
                && crate::sync::since(self.began_at) >= knobs::checkpoint_while_full())
            || (logged >= log.segment_bytes() && quiet)
            || (logged < knobs::little_log()
                && crate::sync::since(self.began_at) >= knobs::checkpoint_to_shrink()
                && store.is_slack())
    }

    /// Returns whether an opening would take longer to replay the log than the target allows.
    fn is_long_to_replay(&mut self, logged: u64, source: &dyn CheckpointSource) -> bool {
        let Some(target) = self.triggers.recovery_target else {
            return false;
        };
        let ends = source.large_ends();
        if logged < self.reckoned.0 + knobs::replay_reckoned_every() && ends == self.reckoned.1 {
            return false;
        }
        self.reckoned = (logged, ends);
        let OpenWork { now, standing } = source.open_work();
        let pace = self.triggers.replay_pace;
        pace.is_due(target, now, self.meanwhile, standing)
    }

    /// Returns whether little has been logged for a while.
    fn is_quiet(&mut self, end: Lsn, now: Instant) -> bool {
        let (from, since) = self.quiet_from;
        if end.0.saturating_sub(from.0) >= knobs::little_log() {
            self.quiet_from = (end, now);
            return false;
        }
        now.saturating_duration_since(since) >= knobs::checkpoint_idle_after()
    }
}

/// Keeps space for the next checkpoint; if there is too little, gives the log's spare segments back for it.
fn keep_room(log: &Log, store: &Store, source: &dyn CheckpointSource) -> Room {
    let (log_refused, store_refused) = (log.take_refused(), store.take_refused());
    let mut kept = source.keep_room();
    if store_refused || matches!(kept, Ok(Some(_))) {
        if let Err(error) = log.give_spares_back() {
            tracing::warn!("a spare log segment could not be removed: {error}");
        }
        kept = source.keep_room();
    }
    Room {
        refused: log_refused || store_refused,
        short: matches!(kept, Ok(Some(_))),
    }
}

fn run(shared: &Shared, store: &Store, source: &dyn CheckpointSource) {
    let mut state = shared.state.lock();
    while !state.closing {
        let room = MutexGuard::unlocked(&mut state, || keep_room(&shared.log, store, source));
        state.room.refused |= room.refused;
        state.room.short = room.short;
        if state.closing {
            break;
        }
        if !state.is_due(&shared.log, store, source) {
            shared
                .changed
                .wait_for(&mut state, knobs::checkpoint_poll_interval());
            continue;
        }
        state.begun += 1;
        state.room = Room::default();
        state.stats.running = true;
        state.reckoned = (0, source.large_ends());
        let reads = source.page_counts().reads;
        let before = (state.log_end, state.began_at);
        (state.log_end, state.began_at) = (shared.log.end(), crate::sync::now());
        let outcome = MutexGuard::unlocked(&mut state, || {
            let steps = || checkpoint(store, &shared.log, source);
            std::panic::catch_unwind(AssertUnwindSafe(steps)).unwrap_or_else(|_| {
                // The panic may have left the checkpoint's steps half done.
                Err(store.stop_flag().stop("a checkpoint panicked"))
            })
        });
        state.ended = state.begun;
        state.stats.running = false;
        match outcome {
            Ok(report) => {
                tracing::debug!(
                    "checkpoint {}: {} pages, {:?} in all, {:?} of it with the barrier closed; recovery begins at {}",
                    report.epoch,
                    report.pages,
                    report.total,
                    report.barrier,
                    report.redo_from.0
                );
                state.log_end = report.log_end;
                let logged = shared.log.end().0.saturating_sub(report.log_end.0);
                let now = source.page_counts();
                let read = now.reads.saturating_sub(reads);
                state.meanwhile = ReplayWork::since(logged, read, now.dirty);
                state.stats.completed += 1;
                state.succeeded = state.begun;
                state.stats.last = Some(report);
                (state.stats.error, state.not_before) = (None, None);
            }
            Err(error) => {
                tracing::error!("a checkpoint failed: {error}");
                (state.log_end, state.began_at) = before;
                state.room.refused = matches!(error, Error::NoSpace { .. });
                state.not_before = Some(crate::sync::now() + knobs::checkpoint_retry());
                state.stats.failed += 1;
                state.stats.error = Some(error);
            }
        }
        shared.changed.notify_all();
    }
    shared.changed.notify_all();
}
