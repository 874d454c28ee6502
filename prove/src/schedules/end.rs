//! The reasons for which a transaction ends, and the check that something in the schedule provoked them.

use peregrine::{Error, Isolation};

use super::plan::{is_refused, Ending, Plan};

/// The reason for which a transaction can't continue.
pub enum End {
    /// A conflict with another transaction: rolled back.
    Conflict(Error),
    /// A lock wait timed out: the statement changed nothing.
    TimedOut,
    /// A wait or the statement was interrupted: the statement changed nothing.
    Interrupted,
    /// A call to the operating system failed, or there was no memory or no frame.
    ///
    /// The outcome of a commit is unknown then.
    Failed(String),
    /// The transaction refuses to continue: right after a failed call, or where rows lack entries.
    Refused(String),
    /// Something is wrong.
    Wrong(String),
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        match error {
            Error::LockWaitTimeout => End::TimedOut,
            Error::Interrupted => End::Interrupted,
            Error::Deadlock | Error::WriteConflict | Error::RowChanged => End::Conflict(error),
            error if is_refused(&error) => End::Failed(error.to_string()),
            Error::Invalid(what) => End::Refused(format!("fails: {what}")),
            other => End::Wrong(format!("fails: {other}")),
        }
    }
}

/// The sessions with which a transaction shares its tables.
#[derive(Clone, Copy)]
pub struct Beside {
    /// The number of sessions that use the same tables, including its own.
    pub sessions: u64,
    /// Whether a table may be optimistic, so that the second of two conflicting transactions fails at once.
    pub is_optimistic: bool,
}

impl End {
    /// Returns the same end where something in the schedule can have provoked it, else that it is wrong.
    ///
    /// A session that is alone in its tables waits for no other. Without a limit no wait times out. Without a snapshot
    /// no row is newer than it.
    ///
    /// After a failed call all ends are allowed: a transaction may keep its locks until the database is opened again.
    pub fn unless_unprovoked(self, plan: &Plan, isolation: Isolation, beside: Beside) -> End {
        if plan.ending == Ending::CallFails {
            return self;
        }
        let is_alone = beside.sessions == 1;
        let why = match &self {
            End::Conflict(_) | End::TimedOut if is_alone => "nobody else uses its tables",
            End::Conflict(Error::WriteConflict) if isolation != Isolation::RepeatableRead => {
                "it has no snapshot that lasts"
            }
            End::Conflict(Error::RowChanged) if !beside.is_optimistic => "its tables let it wait",
            End::TimedOut if !plan.limits_waits() => "no wait has a limit",
            End::Interrupted if !plan.interrupts() => "nobody interrupts it",
            _ => return self,
        };
        match self {
            End::Conflict(error) => End::Wrong(format!("{error}, though {why}")),
            End::TimedOut => End::Wrong(format!("a wait timed out, though {why}")),
            _ => End::Wrong(format!("interrupted, though {why}")),
        }
    }
}

pub(super) fn wrong<T>(what: String) -> std::result::Result<T, End> {
    Err(End::Wrong(what))
}

pub(super) type Step = std::result::Result<(), End>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a plan that fits and in which nothing fails.
    fn plan(fits: impl Fn(&Plan) -> bool) -> Plan {
        let plans = (0..).map(Plan::new);
        let mut plans = plans.filter(|plan| plan.ending != Ending::CallFails);
        plans.find(fits).expect("one of them")
    }

    fn is_wrong(error: Error, plan: &Plan, isolation: Isolation, sessions: u64) -> bool {
        let beside = Beside {
            sessions,
            is_optimistic: false,
        };
        let end = End::from(error).unless_unprovoked(plan, isolation, beside);
        matches!(end, End::Wrong(_))
    }

    #[test]
    fn a_conflict_needs_another_session_and_a_timeout_a_limit() {
        let some = plan(|plan| plan.limits_waits());
        let level = Isolation::RepeatableRead;
        for error in [
            Error::Deadlock,
            Error::WriteConflict,
            Error::LockWaitTimeout,
        ] {
            assert!(is_wrong(error, &some, level, 1));
        }
        for error in [
            Error::Deadlock,
            Error::WriteConflict,
            Error::LockWaitTimeout,
        ] {
            assert!(!is_wrong(error, &some, level, 2));
        }
        assert!(is_wrong(Error::RowChanged, &some, level, 2));
        for level in [Isolation::ReadCommitted, Isolation::Serializable] {
            assert!(is_wrong(Error::WriteConflict, &some, level, 2));
        }
        let endless = plan(|plan| !plan.limits_waits());
        assert!(is_wrong(Error::LockWaitTimeout, &endless, level, 2));
        let quiet = plan(|plan| !plan.interrupts());
        assert!(is_wrong(Error::Interrupted, &quiet, level, 2));
        let disturbed = plan(|plan| plan.interrupts());
        assert!(!is_wrong(Error::Interrupted, &disturbed, level, 2));
    }
}
