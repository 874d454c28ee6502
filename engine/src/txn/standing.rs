//! Whether a transaction may go on.

use super::checkpoint_barrier::BarrierGuard;
use super::state::Standing;
use super::TreeTransaction;
use crate::error::{Error, Result};
use crate::ids::TreeId;
use crate::planted::{is_planted, PlantedFault};

impl TreeTransaction {
    /// Whether all that was done so far stands, or is undone, and no other transaction was in the way for good: only
    /// then can anything be added to it, or can it be committed.
    ///
    /// # Errors
    /// [`Error::Invalid`]: the way back to a savepoint has failed. [`Error::Deadlock`], [`Error::WriteConflict`] and
    /// [`Error::LogLimit`], from the first one on.
    #[inline]
    pub fn check_whole(&self) -> Result<()> {
        match &self.standing {
            Standing::Whole => Ok(()),
            Standing::HalfUndone(_) if is_planted(PlantedFault::ForgetHalfUndone) => Ok(()),
            Standing::HalfUndone(_) => Err(half_undone()),
            Standing::Doomed(error) => Err(error.clone()),
        }
    }

    /// Why it can only be rolled back, where another transaction was in the way.
    pub fn doomed_by(&self) -> Option<&Error> {
        match &self.standing {
            Standing::Doomed(error) => Some(error),
            Standing::Whole | Standing::HalfUndone(_) => None,
        }
    }

    /// The error for a row of a tree that was changed after this transaction's snapshot. Unless the tree's locking
    /// is optimistic, nothing but a rollback can follow it.
    pub fn changed_since(&mut self, tree: TreeId) -> Error {
        match self.transactions.is_optimistic(tree) {
            true => Error::RowChanged,
            false => self.doom(Error::WriteConflict),
        }
    }

    /// Whether the log still has all of what this transaction needs to commit. Inside the barrier: no checkpoint lets go
    /// of it meanwhile.
    ///
    /// # Errors
    /// [`Error::LogLimit`]; it can only be rolled back.
    #[inline]
    pub(super) fn check_kept(&mut self, _inside: &BarrierGuard<'_>) -> Result<()> {
        match &self.running {
            Some(running)
                if running.is_out_of_log() && !is_planted(PlantedFault::CommitOutOfLog) =>
            {
                let limit = self.transactions.longest_kept_log();
                Err(self.doom(Error::LogLimit { limit }))
            }
            _ => Ok(()),
        }
    }

    /// Nothing but a rollback can follow. Gives the error back. A caller that takes no notice of it, and goes on,
    /// would commit what is left of its work.
    #[cold]
    pub(super) fn doom(&mut self, error: Error) -> Error {
        if !is_planted(PlantedFault::DoomedGoesOn) {
            self.standing = Standing::Doomed(error.clone());
        }
        error
    }
}

#[cold]
pub(super) fn half_undone() -> Error {
    Error::Invalid(
        "a part of the transaction could not be undone: it can only be rolled back".into(),
    )
}
