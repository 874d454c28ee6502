//! The steps of one checkpoint.

use std::time::Duration;

use super::{Captured, CheckpointSource};
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::knobs;
use crate::log::{Durability, Log};
use crate::store::Store;

/// The outcome of a checkpoint, and its times.
#[derive(Clone, Debug)]
pub struct CheckpointReport {
    /// The checkpoint's number in the store.
    pub epoch: u64,
    /// The log position at which recovery begins to read.
    pub redo_from: Lsn,
    /// The log's end when the barrier opened again.
    pub log_end: Lsn,
    /// Pages that the checkpoint's own thread wrote, without those that writers saved themselves.
    pub pages: u64,
    /// How long the barrier was closed, without the wait for it.
    pub barrier: Duration,
    /// How long the whole checkpoint took.
    pub total: Duration,
}

/// Runs one checkpoint. Only one may run at a time; the [`super::Checkpointer`], or a caller without one, ensures that.
/// During creation and recovery there is no other.
///
/// # Errors
/// The error of the step that failed. The last complete checkpoint stays valid, and work goes on unless the error is
/// [`Error::Stopped`].
pub fn checkpoint(
    store: &Store,
    log: &Log,
    source: &dyn CheckpointSource,
) -> Result<CheckpointReport> {
    store.stop_flag().check()?;
    let began = crate::sync::now();
    let mut begun = None;
    let outcome = steps(store, log, source, &mut begun);
    let Some(epoch) = begun else {
        return outcome.and(Err(Error::Internal(
            "a checkpoint without a beginning".into(),
        )));
    };
    if outcome.is_err() {
        store.abandon_checkpoint(epoch);
    }
    source.end_pages(epoch, outcome.is_ok());
    outcome.map(|report| CheckpointReport {
        total: crate::sync::since(began),
        ..report
    })
}

fn steps(
    store: &Store,
    log: &Log,
    source: &dyn CheckpointSource,
    begun: &mut Option<u64>,
) -> Result<CheckpointReport> {
    // Row operations wait from here …
    let mut barrier = Duration::ZERO;
    let mut taken: Option<(u64, Lsn, Lsn, Captured)> = None;
    source.with_barrier_closed(&mut || {
        let closed = crate::sync::now();
        let epoch = store.begin_checkpoint();
        *begun = Some(epoch);
        source.begin_pages(epoch);
        let redo_from = log.mark()?;
        let captured = source.capture(redo_from)?;
        taken = Some((epoch, redo_from, log.end(), captured));
        barrier = crate::sync::since(closed);
        Ok(())
    })?;
    // … to here.
    let Some((epoch, redo_from, log_end, captured)) = taken else {
        return Err(Error::Internal(
            "the barrier was not closed for a checkpoint".into(),
        ));
    };

    let (mut pages, mut unsynced) = (0, 0);
    source.write_pages(epoch, &mut |written| {
        pages += written;
        unsynced += written;
        if unsynced >= knobs::checkpoint_sync_pages() {
            unsynced = 0;
            store.sync()?;
        }
        Ok(())
    })?;

    // The mark at which recovery begins must be durable. So must all commits before it be: the checkpoint must not
    // contain a commit that the log has lost.
    log.durable(Lsn(redo_from.0 + 1), Durability::SyncAtCommit)?;
    store.complete_checkpoint(epoch, &captured.meta)?;

    if let Err(error) = log.release_before(captured.keep_log_from.min(redo_from)) {
        // The checkpoint is complete; only the log is longer than it has to be.
        tracing::warn!("old log segments could not be recycled: {error}");
    }
    Ok(CheckpointReport {
        epoch,
        redo_from,
        log_end,
        pages,
        barrier,
        total: Duration::ZERO,
    })
}
