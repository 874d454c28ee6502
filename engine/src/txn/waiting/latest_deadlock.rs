//! The latest deadlock, kept for reports.
//!
//! The waiter that closed the circle writes the report before the victim is woken. Until then every member of the
//! circle waits, so that the statement of each can be asked for.

use std::sync::Arc;

use crate::lock::deadlock_report::{DeadlockMember, DeadlockReport};
use crate::lock::row_name::RowName;
use crate::lock::running_transaction::{micros_now, RunningTransaction, WaitState};
use crate::lock::table::LockMode;
use crate::txn::inspect::shown_id;
use crate::txn::transaction_manager::TransactionManager;
use crate::txn::waiting::deadlock::Circle;

/// The most members of a circle that a report lists, apart from the victim.
const MOST_MEMBERS: usize = 16;

impl TransactionManager {
    /// The latest deadlock.
    pub fn latest_deadlock(&self) -> Option<Arc<DeadlockReport>> {
        self.latest_deadlock.lock().clone()
    }

    /// Makes the report of a circle.
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
            let WaitState::Queued(row) = who.wait_slot.state() else {
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

    fn deadlock_member(
        &self,
        who: &RunningTransaction,
        row: RowName,
        mode: LockMode,
    ) -> DeadlockMember {
        let session = self.session_of(who);
        DeadlockMember {
            id: shown_id(who),
            session,
            undo_records: who.undo_records(),
            row,
            mode,
            statement: self.sessions.statement(session),
        }
    }
}
