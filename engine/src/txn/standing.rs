//! Whether a transaction can go on.

use super::checkpoint_barrier::BarrierGuard;
use super::state::State;
use super::TreeTransaction;
use crate::error::{Error, Result};
use crate::ids::TreeId;
use crate::planted::{is_planted, PlantedFault};

impl TreeTransaction {
    /// Returns an error unless the transaction can be added to and committed.
    ///
    /// Each of its changes must be complete or undone, and it must not be one that can only be rolled back.
    ///
    /// # Errors
    /// [`Error::Invalid`]: a rollback to a savepoint has failed. [`Error::Deadlock`], [`Error::WriteConflict`] and
    /// [`Error::LogLimit`], from the first one on.
    #[inline]
    pub fn check_whole(&self) -> Result<()> {
        match &self.state {
            State::Active | State::Prepared { .. } => Ok(()),
            State::HalfUndone(_) if is_planted(PlantedFault::ForgetHalfUndone) => Ok(()),
            State::HalfUndone(_) | State::RollingBack { .. } => Err(half_undone()),
            State::MustRollBack(error) => Err(error.clone()),
        }
    }

    /// The error because of which the transaction can only be rolled back, if there was one.
    pub fn must_roll_back(&self) -> Option<&Error> {
        match &self.state {
            State::MustRollBack(error) => Some(error),
            _ => None,
        }
    }

    /// Returns the error for a row of a tree that was changed after this transaction's snapshot.
    ///
    /// Unless the tree's locking is optimistic, the transaction can then only be rolled back.
    pub fn changed_since(&mut self, tree: TreeId) -> Error {
        match self.transactions.is_optimistic(tree) {
            true => Error::RowChanged,
            false => self.doom(Error::WriteConflict),
        }
    }

    /// Returns an error if the log has given up redo that this transaction needs to commit.
    ///
    /// Inside the barrier, so that no checkpoint gives it up meanwhile.
    ///
    /// # Errors
    /// [`Error::LogLimit`]: the transaction can only be rolled back.
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

    /// Dooms the transaction: only a rollback can follow. Returns the error.
    ///
    /// Otherwise a caller that ignores the error could commit the rest of the transaction's work.
    #[cold]
    pub(super) fn doom(&mut self, error: Error) -> Error {
        // A prepared transaction stays prepared, whatever its commit meets; so does its rollback.
        let is_decided = matches!(
            self.state,
            State::Prepared { .. } | State::RollingBack { .. }
        );
        if !is_decided && !is_planted(PlantedFault::DoomedGoesOn) {
            self.state = State::MustRollBack(error.clone());
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
