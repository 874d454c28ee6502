//! Deadlocks: a transaction that begins to wait looks for them, by a walk over waiters and their holders.
//!
//! The transaction already has its place in the queue, so the last one to close a circle finds the circle. Most
//! waiters are done after one look: if no holder of the row waits itself, there is no circle. The others look one at
//! a time. During a look no transaction takes a place in a queue. So all waits of a circle existed at the same
//! moment, and the circle is found once. The walk goes from a waiter to the holders of its row. Its cost is linear in
//! the chain; the number of other waiters in the same queues does not matter.

use std::collections::HashSet;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::lock::running_transaction::{RunningTransaction, WaitState};
use crate::lock::table::LockTable;
use crate::sync::atomic::Ordering;
use crate::txn::transaction_manager::TransactionManager;

/// A circle of waiters.
pub(super) struct Circle {
    /// Each waits for the next, and the last for the first.
    pub members: Vec<Arc<RunningTransaction>>,
    /// A member that the program interrupts anyway; otherwise the one with the least work to lose, among equals the
    /// first.
    pub victim: Arc<RunningTransaction>,
}

/// The victim of a circle through `me`.
#[cfg(test)]
fn find_victim(locks: &LockTable, me: &Arc<RunningTransaction>) -> Option<Arc<RunningTransaction>> {
    find_circle(locks, me).map(|circle| circle.victim)
}

/// Finds a circle of waiters through `me`, which is its first member.
pub(super) fn find_circle(locks: &LockTable, me: &Arc<RunningTransaction>) -> Option<Circle> {
    let mut visited = HashSet::new();
    let mut path = vec![Step::new(locks, me)];
    loop {
        let step = path.last_mut()?;
        let Some(next) = step.blockers.pop() else {
            path.pop();
            continue;
        };
        if Arc::ptr_eq(&next, me) {
            let mut victim = me;
            for step in &path {
                if step.who.cost() < victim.cost() {
                    victim = &step.who;
                }
            }
            return Some(Circle {
                victim: victim.clone(),
                members: path.into_iter().map(|step| step.who).collect(),
            });
        }
        if visited.insert(Arc::as_ptr(&next)) {
            let step = Step::new(locks, &next);
            if !step.blockers.is_empty() {
                path.push(step);
            }
        }
    }
}

/// Returns whether `who` waits for a transaction that waits itself.
///
/// If not, a transaction that begins to wait later looks itself, and sees that `who` waits.
pub(super) fn may_close_a_circle(locks: &LockTable, who: &Arc<RunningTransaction>) -> bool {
    let mut blockers = Step::new(locks, who).blockers.into_iter();
    blockers.any(|blocker| matches!(blocker.wait_slot.state(), WaitState::Queued(_)))
}

impl TransactionManager {
    /// Chooses a victim in every circle of waiters through `who`, and wakes the victim.
    pub(super) fn break_circles(&self, who: &Arc<RunningTransaction>) {
        let _nobody_else_queues = self.queueing.write();
        let locks = self.locks();
        while let Some(circle) = find_circle(locks, who) {
            // The report must be made before the victim is woken and does something else.
            let report = self.describe_deadlock(&circle);
            if circle.victim.wait_slot.wake(WaitState::Victim) {
                self.counters.deadlocks.fetch_add(1, Ordering::Relaxed);
                *self.latest_deadlock.lock() = Some(Arc::new(report));
            }
        }
    }
}

struct Step {
    who: Arc<RunningTransaction>,
    blockers: SmallVec<[Arc<RunningTransaction>; 4]>,
}

impl Step {
    fn new(locks: &LockTable, who: &Arc<RunningTransaction>) -> Step {
        let blockers = match who.wait_slot.state() {
            WaitState::Queued(row) => locks.blockers(row, who),
            // It runs, or it is a victim already and runs soon.
            _ => SmallVec::new(),
        };
        Step {
            who: who.clone(),
            blockers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TreeId;
    use crate::lock::row_name::{Row, RowName};
    use crate::lock::table::{Enqueued, LockMode};

    fn row(number: u8) -> Row {
        Row::new(TreeId(1), &[number])
    }

    fn name(number: u8) -> RowName {
        RowName::new(TreeId(1), &[number])
    }

    fn people(count: usize) -> Vec<Arc<RunningTransaction>> {
        (0..count)
            .map(|_| RunningTransaction::new(Default::default()))
            .collect()
    }

    fn wait(locks: &LockTable, at: u8, who: &Arc<RunningTransaction>) {
        let outcome = locks.enqueue(row(at), &name(at), who, LockMode::Exclusive, None);
        assert_eq!(outcome, Enqueued::Waiting);
    }

    #[test]
    fn a_ring_is_found_by_its_last_waiter_and_costs_the_least_work() {
        let locks = LockTable::default();
        let ring = people(5);
        for (i, who) in ring.iter().enumerate() {
            assert!(locks.try_lock(row(i as u8), &name(i as u8), who, LockMode::Exclusive));
            who.set_undo_records(10 + i as u64);
        }
        for (i, who) in ring.iter().enumerate().take(4) {
            wait(&locks, i as u8 + 1, who);
            assert!(find_victim(&locks, who).is_none());
        }
        wait(&locks, 0, &ring[4]);
        let victim = find_victim(&locks, &ring[4]).unwrap();
        assert!(Arc::ptr_eq(&victim, &ring[0]));
        // Once a victim is chosen the circle is broken.
        assert!(victim.wait_slot.wake(WaitState::Victim));
        assert!(find_victim(&locks, &ring[4]).is_none());
    }

    #[test]
    fn two_shared_holders_that_want_more_are_a_deadlock() {
        let locks = LockTable::default();
        let two = people(2);
        for who in &two {
            assert!(locks.try_lock(row(1), &name(1), who, LockMode::Shared));
        }
        wait(&locks, 1, &two[0]);
        assert!(find_victim(&locks, &two[0]).is_none());
        wait(&locks, 1, &two[1]);
        let victim = find_victim(&locks, &two[1]).unwrap();
        assert!(Arc::ptr_eq(&victim, &two[1]));
    }

    #[test]
    fn a_long_queue_is_no_deadlock() {
        let locks = LockTable::default();
        let many = people(500);
        assert!(locks.try_lock(row(1), &name(1), &many[0], LockMode::Exclusive));
        for who in &many[1..] {
            wait(&locks, 1, who);
            assert!(find_victim(&locks, who).is_none());
        }
        // The row is granted in the order of arrival.
        for pair in many.windows(2) {
            assert_eq!(pair[1].wait_slot.state(), WaitState::Queued(row(1)));
            locks.release(row(1), &pair[0]);
            assert_eq!(pair[1].wait_slot.state(), WaitState::Granted);
        }
        locks.release(row(1), &many[499]);
        assert_eq!(locks.len(), 0);
    }
}
