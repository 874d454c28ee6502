//! The state of a transaction.

use super::savepoint::Savepoint;
use crate::error::Error;

/// Where a transaction stands in two-phase commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Running,
    /// Only commit or rollback can follow.
    Prepared {
        /// The log has a record of it.
        logged: bool,
    },
    /// The log knows that it was prepared, and that it rolls back.
    RollingBack,
}

/// How a transaction stands.
#[derive(Default)]
pub(super) enum Standing {
    /// All that was done so far stands, or is undone.
    #[default]
    Whole,
    /// The way back to this savepoint has failed: before all else it is to be gone to its end.
    HalfUndone(Savepoint),
    /// Another transaction was in the way, or the log's limit, and this one can only be rolled back: the error that
    /// said so.
    Doomed(Error),
}
