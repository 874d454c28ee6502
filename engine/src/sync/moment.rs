//! Moments: named places between two steps, at which a step of another thread may come between, or once did unnoticed.
//!
//! A thread of a schedule may pause there. A test can leave an act at a moment, and the thread that comes to the moment
//! performs it: the test need not wait until another thread does the same there by chance.

#[cfg(test)]
use parking_lot::Mutex;

use super::{pause, Pause};

/// A place between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Purge has processed all undo records of an ended transaction, and is about to drop it.
    EndLookedAt,
    /// Pruning is about to read an undo page that was not in memory.
    PageMissing,
    /// Pruning has chosen a row, and is about to enter the barrier for it.
    BeforeVisit,
    /// A checkpoint has begun, and is about to write its pages.
    CheckpointBegun,
    /// Statistics have copied a leaf, and are about to read a row of it.
    RowSampled,
    /// A commit is visible to others, and its rows are about to be counted.
    CommitSeen,
    /// A transaction is about to drop a table that it has used, and knows the table's number.
    TableToDrop,
    /// The catalog has a table's changed definition, and the change is about to be logged.
    DefinitionWritten,
    /// The catalog could not store a table's changed definition, and is about to get the one before.
    DefinitionRefused,
    /// The log has an auto-increment counter, and the table's state does not say so yet.
    CounterLogged,
    /// A reader has found a version that its snapshot does not see, and is about to read the one before.
    VersionPassed,
    /// A look-up by a unique index has read its entry, and is about to read the row.
    EntryFound,
    /// A row has been read from a leaf that was loaded for it, and a mini-page of the leaf is about to be made.
    RowBrought,
    /// A leaf scan knows where a leaf ends, and is about to lock the range of keys up to there.
    RangeSeen,
    /// A flush of gathered images has written those that no other thread writes, and is about to wait for the rest.
    FlushWaits,
    /// The flush has waited, and another thread's write has failed: the flush is about to try it again.
    FlushTriesAgain,
    /// A table's roots have been read, and other threads are about to find the table.
    TableOpened,
}

#[cfg(test)]
type Act = Box<dyn FnOnce() + Send>;

/// The acts that tests have left at moments; empty in other builds.
#[derive(Default)]
pub(crate) struct Moments {
    #[cfg(test)]
    left: Mutex<Vec<(Moment, Act)>>,
}

impl std::fmt::Debug for Moments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moments").finish_non_exhaustive()
    }
}

impl Moments {
    /// Notes that this thread has come to a moment.
    #[inline]
    pub fn come_to(&self, moment: Moment) {
        pause(Pause::Moment);
        self.act(moment);
    }

    #[cfg(not(test))]
    #[inline]
    fn act(&self, _: Moment) {}

    #[cfg(test)]
    fn act(&self, moment: Moment) {
        let mut left = self.left.lock();
        let Some(at) = left.iter().position(|(at, _)| *at == moment) else {
            return;
        };
        let (_, act) = left.remove(at);
        drop(left);
        act();
    }

    /// Leaves an act for the next thread that comes to `moment`, once.
    #[cfg(test)]
    pub fn at(&self, moment: Moment, act: impl FnOnce() + Send + 'static) {
        self.left.lock().push((moment, Box::new(act)));
    }

    /// Returns whether all acts were performed.
    #[cfg(test)]
    pub fn passed(&self) -> bool {
        self.left.lock().is_empty()
    }
}
