//! Moments: named places between two steps, at which what another thread does has once been forgotten, or may be.
//!
//! A thread of a schedule may stay there for a while. A test leaves something to be done there, by the thread that
//! comes to it: what another thread could have done just then, without waiting for it to happen.

#[cfg(test)]
use parking_lot::Mutex;

use super::{pause, Pause};

/// A place between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Purge has looked at all of an end, and is about to drop it.
    EndLookedAt,
    /// Pruning is about to read an undo page that was not in memory.
    PageMissing,
    /// Pruning knows a row to look at, and is about to enter the barrier for it.
    BeforeVisit,
    /// A checkpoint has begun, and is about to write its pages.
    CheckpointBegun,
    /// Statistics have a copy of a leaf, and are about to read a row of it.
    RowSampled,
    /// Others see a commit, and its rows are about to be counted.
    CommitSeen,
    /// The number of a table is known that is about to be dropped, by the transaction that has used it.
    TableToDrop,
    /// The catalog has a table's changed definition, and the log is about to get the change.
    DefinitionWritten,
    /// The catalog has no room for a table's changed definition, and is about to get what it had before.
    DefinitionRefused,
    /// The log has an auto-increment counter, and nobody has been told so yet.
    CounterLogged,
    /// A reader has found a version that its view does not see, and is about to look at the one before.
    VersionPassed,
    /// A look-up by a unique index has read its entry, and is about to read the row.
    EntryFound,
    /// A row has been read from a leaf that was brought for it, and a copy of its columns is about to be kept.
    RowBrought,
    /// A walk knows where a leaf ends, and is about to lock the range of keys up to there.
    RangeSeen,
    /// Who flushes what is gathered has written what nobody else is writing, and is about to wait for the rest.
    FlushWaits,
    /// The flush has waited, and another's write has failed: it is about to be tried again.
    FlushTriesAgain,
    /// A table's roots have been read, and it is about to be the one that others find.
    TableOpened,
}

#[cfg(test)]
type Act = Box<dyn FnOnce() + Send>;

/// What tests have left to be done at moments; in other builds nothing.
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
    /// This thread comes to a moment.
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

    /// The next thread that comes to `moment` does this, once.
    #[cfg(test)]
    pub fn at(&self, moment: Moment, act: impl FnOnce() + Send + 'static) {
        self.left.lock().push((moment, Box::new(act)));
    }

    /// Whether all was done.
    #[cfg(test)]
    pub fn passed(&self) -> bool {
        self.left.lock().is_empty()
    }
}
