//! The state of a transaction.

use super::savepoint::Savepoint;
use crate::error::Error;
use crate::ids::Lsn;

/// The phase of a transaction in two-phase commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Running,
    /// Only commit or rollback can follow.
    Prepared {
        /// The log has a record of it.
        logged: bool,
    },
    /// The transaction was prepared, and is being rolled back; if the log knows of it, the log knows of the rollback,
    /// too.
    RollingBack {
        /// The log position behind the rollback's record, if the log has one.
        logged: Option<Lsn>,
    },
}

/// Whether a transaction can go on.
#[derive(Default)]
pub(super) enum Standing {
    /// Each of its changes is complete or undone.
    #[default]
    Whole,
    /// The rollback to this savepoint has failed, and must be completed before anything else.
    HalfUndone(Savepoint),
    /// It can only be rolled back, because of this error: another transaction was in the way, or the log's limit.
    Doomed(Error),
}
