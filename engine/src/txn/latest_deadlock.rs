//! The latest deadlock, kept for whoever wants to know how it came about.
//!
//! It is written down by the waiter that closed the circle, before the victim is woken: until then
//! everybody in the circle stands still, and what each was doing can be asked.

use std::sync::Arc;

use super::deadlock::Circle;
use super::inspect::shown_id;
use super::lock::LockMode;
use super::participant::{micros_now, Participant, WaitState};
use super::row_name::RowName;
use super::system::System;

/// How many of a circle are written down.
const MOST_MEMBERS: usize = 16;

/// A transaction of a deadlock. It waits for a row that the next member holds, the last one for a
/// row of the first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadlockMember {
    /// Its number, as in [`super::TransactionEntry::id`].
    pub id: u64,
    /// What [`super::Transaction::set_session`] said, or 0.
    pub session: u64,
    /// Undo records: what its rollback costs.
    pub undo_records: u64,
    /// The row it waits for.
    pub row: RowName,
    /// How it wants to lock it.
    pub mode: LockMode,
    /// What it was executing, as [`super::Sessions`] say.
    pub statement: Option<String>,
}

/// A deadlock that was found and broken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeadlockReport {
    /// When, in microseconds since 1970.
    pub at_us: u64,
    /// The circle, from the transaction that closed it; of long circles the first 16 and the victim.
    pub members: Vec<DeadlockMember>,
    /// How many transactions the circle had.
    pub length: usize,
    /// Which of the members was rolled back.
    pub victim: usize,
}

impl System {
    /// The latest deadlock.
    pub fn latest_deadlock(&self) -> Option<Arc<DeadlockReport>> {
        self.latest_deadlock.lock().clone()
    }

    /// Writes a circle down.
    pub(super) fn describe_deadlock(&self, circle: &Circle) -> DeadlockReport {
        let mut report = DeadlockReport {
            at_us: micros_now(),
            members: Vec::new(),
            length: circle.members.len(),
            victim: 0,
        };
        for who in &circle.members {
            let is_victim = Arc::ptr_eq(who, &circle.victim);
            if report.members.len() >= MOST_MEMBERS && !is_victim {
                continue;
            }
            let WaitState::Queued(row) = who.parker.state() else {
                continue;
            };
            if let Some((row, mode)) = self.locks().waited(row, who) {
                if is_victim {
                    report.victim = report.members.len();
                }
                report.members.push(self.deadlock_member(who, row, mode));
            }
        }
        report
    }

    fn deadlock_member(&self, who: &Participant, row: RowName, mode: LockMode) -> DeadlockMember {
        let session = self.session_of(who);
        DeadlockMember {
            id: shown_id(who),
            session,
            undo_records: who.work(),
            row,
            mode,
            statement: self.sessions.statement(session),
        }
    }
}
