//! The state of a transaction.

use super::savepoint::Savepoint;
use crate::error::Error;
use crate::ids::Lsn;

/// The state of a transaction, from its beginning to its end; then it is [`State::Active`] again, as the next one.
#[derive(Default)]
pub(super) enum State {
    /// Each of its changes is complete or undone.
    #[default]
    Active,
    /// The rollback to this savepoint has failed. It must be completed before anything else, or all be rolled back.
    HalfUndone(Savepoint),
    /// It can only be rolled back, because of this error: another transaction was in the way, or the log's limit.
    MustRollBack(Error),
    /// It is prepared in a two-phase commit: only commit or rollback can follow.
    Prepared {
        /// Whether the log has a record of it.
        logged: bool,
    },
    /// It was prepared, and is being rolled back; if the log knows of it, the log knows of the rollback, too.
    RollingBack {
        /// The log position behind the rollback's record, if the log has one.
        logged: Option<Lsn>,
    },
}
