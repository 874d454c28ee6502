//! The latest deadlock, kept for whoever wants to know how it came about.
//!
//! It is written down by the waiter that closed the circle, before the victim is woken: until then
//! everybody in the circle stands still, and what each was doing can be asked.

use std::sync::{Arc, OnceLock};

use super::deadlock::Circle;
use super::inspect::shown_id;
use super::lock::{LockMode, LockTable};
use super::participant::{micros_now, Participant, WaitState};
use super::row_name::RowName;
use super::snapshot::SnapshotRegistry;
use crate::sync::atomic::Ordering;
use crate::sync::Mutex;

/// How many of a circle are written down.
const MOST_MEMBERS: usize = 16;

/// What the embedding program knows of its sessions.
pub trait Statements: Send + Sync {
    /// The text of what a session is executing; `None` where that is not known. Called while the
    /// session waits for a row lock; must not wait for it, nor call the engine.
    fn statement(&self, session: u64) -> Option<String>;
}

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
    /// What it was executing, as [`Statements`] says.
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

#[derive(Default)]
pub(super) struct LatestDeadlock {
    statements: OnceLock<Arc<dyn Statements>>,
    report: Mutex<Option<Arc<DeadlockReport>>>,
}

impl LatestDeadlock {
    pub fn set_statements(&self, statements: Arc<dyn Statements>) {
        let _already_set = self.statements.set(statements);
    }

    pub fn get(&self) -> Option<Arc<DeadlockReport>> {
        self.report.lock().clone()
    }

    pub fn set(&self, report: DeadlockReport) {
        *self.report.lock() = Some(Arc::new(report));
    }

    /// Writes a circle down.
    pub fn describe(
        &self,
        circle: &Circle,
        locks: &LockTable,
        snapshots: &SnapshotRegistry,
    ) -> DeadlockReport {
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
            if let Some((row, mode)) = locks.waited(row, who) {
                if is_victim {
                    report.victim = report.members.len();
                }
                report.members.push(self.member(who, row, mode, snapshots));
            }
        }
        report
    }

    fn member(
        &self,
        who: &Participant,
        row: RowName,
        mode: LockMode,
        snapshots: &SnapshotRegistry,
    ) -> DeadlockMember {
        let owner = snapshots.owner(who.parker.slot());
        let session = owner.map_or(0, |owner| owner.session.load(Ordering::Relaxed));
        DeadlockMember {
            id: shown_id(who),
            session,
            undo_records: who.work(),
            row,
            mode,
            statement: self
                .statements
                .get()
                .and_then(|statements| statements.statement(session)),
        }
    }
}
