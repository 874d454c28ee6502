use crate::lock::table::*;
use proptest::prelude::*;

fn name() -> RowName {
    RowName::new(TreeId(1), b"k")
}

fn admits(locks: &LockTable, key: &[u8], who: &Arc<RunningTransaction>) -> bool {
    let admitted = locks.admits_writer(TreeId(1), key, who, true);
    matches!(admitted, Admitted::Yes)
}

#[test]
fn an_upgrade_whose_hindrance_has_gone_does_not_queue() {
    let locks = LockTable::default();
    let row = Row::new(TreeId(1), b"k");
    let [a, b, c] = [(); 3].map(|()| RunningTransaction::new(Default::default()));
    assert!(locks.try_lock(row, &name(), &a, LockMode::Shared));
    assert!(locks.try_lock(row, &name(), &b, LockMode::Shared));
    let queued = locks.enqueue(row, &name(), &c, LockMode::Exclusive, None);
    assert_eq!(queued, Enqueued::Waiting);
    assert!(!locks.try_lock(row, &name(), &a, LockMode::Exclusive));
    locks.release(row, &b);
    // No thread would wake it: it is the only holder.
    let queued = locks.enqueue(row, &name(), &a, LockMode::Exclusive, None);
    assert_eq!(queued, Enqueued::Retry);
    assert!(locks.try_lock(row, &name(), &a, LockMode::Exclusive));
    locks.release(row, &a);
    assert_eq!(c.wait_slot.state(), WaitState::Granted);
}

/// Otherwise it would wait behind a transaction that waits for it, and no walk over holders would find that.
#[test]
fn who_becomes_a_holder_while_it_waits_goes_first() {
    let locks = LockTable::default();
    let row = Row::new(TreeId(1), b"k");
    let name = RowName::new(TreeId(1), b"k");
    let [holder, early, ranged, late] =
        [(); 4].map(|()| RunningTransaction::new(Default::default()));
    assert!(locks.try_lock(row, &name, &holder, LockMode::Exclusive));
    for who in [&early, &ranged] {
        locks.enqueue(row, &name, who, LockMode::Exclusive, None);
    }
    let in_the_way = [(ranged.clone(), LockMode::Shared)];
    let queued = locks.enqueue_behind(row, &name, &late, LockMode::Exclusive, &in_the_way);
    assert_eq!(queued, Enqueued::WaitingWithHolder);
    locks.release(row, &holder);
    assert_eq!(ranged.wait_slot.state(), WaitState::Granted);
    assert_eq!(early.wait_slot.state(), WaitState::Queued(row));
    for who in [&ranged, &early, &late] {
        locks.release(row, who);
    }
    assert_eq!(locks.len(), 0);
}

/// The earlier waiters then wait for it, too.
#[test]
fn who_becomes_a_holder_while_others_wait_is_in_their_way() {
    for ranged in [true, false] {
        let locks = LockTable::default();
        let row = Row::new(TreeId(1), b"k");
        let [holder, early, comes, late] =
            [(); 4].map(|()| RunningTransaction::new(Default::default()));
        let exclusive = LockMode::Exclusive;
        assert!(locks.try_lock(row, &name(), &holder, exclusive));
        let queued = locks.enqueue(row, &name(), &early, exclusive, None);
        assert_eq!(queued, Enqueued::Waiting);
        let queued = match ranged {
            true => {
                let holders = [(comes.clone(), LockMode::Shared)];
                locks.enqueue_behind(row, &name(), &late, exclusive, &holders)
            }
            false => locks.enqueue(row, &name(), &late, exclusive, Some(&comes)),
        };
        assert_eq!(queued, Enqueued::WaitingWithHolder);
        let mut told = Vec::new();
        locks.waits_in_queue(row, &late, |waiter, holder| {
            told.push((std::ptr::from_ref(waiter), std::ptr::from_ref(holder)));
        });
        let pair = |one, other| (Arc::as_ptr(one), Arc::as_ptr(other));
        let expected = [
            pair(&early, &holder),
            pair(&early, &comes),
            pair(&late, &early),
            pair(&late, &holder),
            pair(&late, &comes),
        ];
        assert_eq!(told, expected);
    }
}

#[test]
fn a_reader_does_not_pass_a_waiting_writer() {
    let locks = LockTable::default();
    let row = Row::new(TreeId(1), b"k");
    let [a, b, c] = [(); 3].map(|()| RunningTransaction::new(Default::default()));
    assert!(locks.try_lock(row, &name(), &a, LockMode::Shared));
    locks.enqueue(row, &name(), &b, LockMode::Exclusive, None);
    assert!(!locks.try_lock(row, &name(), &c, LockMode::Shared));
    let queued = locks.enqueue(row, &name(), &c, LockMode::Shared, None);
    assert_eq!(queued, Enqueued::Waiting);
    // The writer gives up: the reader behind it is granted beside the first.
    assert!(!locks.leave(row, &b));
    assert_eq!(c.wait_slot.state(), WaitState::Granted);
}

/// A waiter has made it a holder because of its range. It has not locked the row.
#[test]
fn who_holds_a_range_does_not_share_a_row_that_another_has_for_itself() {
    let locks = LockTable::default();
    let row = Row::new(TreeId(1), b"k");
    let [holder, ranged, writer] = [(); 3].map(|()| RunningTransaction::new(Default::default()));
    assert!(locks.try_lock(row, &name(), &holder, LockMode::Exclusive));
    let in_the_way = &[(ranged.clone(), LockMode::Shared)];
    locks.enqueue_behind(row, &name(), &writer, LockMode::Exclusive, in_the_way);
    assert!(!locks.try_lock(row, &name(), &ranged, LockMode::Shared));
    let queued = locks.enqueue(row, &name(), &ranged, LockMode::Shared, None);
    assert_eq!(queued, Enqueued::Waiting);
    locks.release(row, &holder);
    assert_eq!(ranged.wait_slot.state(), WaitState::Granted);
    assert!(locks.try_lock(row, &name(), &ranged, LockMode::Shared));
    assert_eq!(writer.wait_slot.state(), WaitState::Queued(row));
    locks.release(row, &ranged);
    assert_eq!(writer.wait_slot.state(), WaitState::Granted);
}

/// A lock request does not wait for ranges. A writer that has waited for them, and gives up, changes nothing of that.
#[test]
fn who_holds_a_range_holds_no_row_once_nobody_waits_for_it() {
    let locks = LockTable::default();
    let row = Row::new(TreeId(1), b"k");
    let [ranged, writer, locker] = [(); 3].map(|()| RunningTransaction::new(Default::default()));
    for locked in [false, true] {
        let in_the_way = &[(ranged.clone(), LockMode::Shared)];
        let queued = locks.enqueue_behind(row, &name(), &writer, LockMode::Exclusive, in_the_way);
        assert_eq!(queued, Enqueued::Waiting);
        if locked {
            assert!(locks.try_lock(row, &name(), &ranged, LockMode::Shared));
        }
        assert!(!locks.leave(row, &writer));
        let exclusive = locks.try_lock(row, &name(), &locker, LockMode::Exclusive);
        assert_eq!(exclusive, !locked);
        locks.release(row, &locker);
    }
    locks.release(row, &ranged);
    assert_eq!(locks.len(), 0);
}

#[test]
fn who_waits_for_a_writer_that_has_ended_tries_again() {
    let locks = LockTable::default();
    let row = Row::new(TreeId(1), b"k");
    let [a, b] = [(); 2].map(|()| RunningTransaction::new(Default::default()));
    assert!(a.take_rows().is_empty());
    let queued = locks.enqueue(row, &name(), &b, LockMode::Exclusive, Some(&a));
    assert_eq!(queued, Enqueued::Retry);
    assert_eq!(locks.len(), 0);
}

/// A transaction that shared a row, and writes it while others wait for it, does not share it any more.
///
/// Otherwise a reader behind a writer that gives up would hold the row beside the first writer, and each would wait
/// for the other.
#[test]
fn nobody_comes_to_share_a_row_with_its_writer() {
    let locks = LockTable::default();
    let (tree, key) = (TreeId(1), b"k");
    let row = Row::new(tree, key);
    let [writer, early, reader] = [(); 3].map(|()| RunningTransaction::new(Default::default()));
    assert!(locks.try_lock(row, &name(), &writer, LockMode::Shared));
    for (who, mode) in [(&early, LockMode::Exclusive), (&reader, LockMode::Shared)] {
        let queued = locks.enqueue(row, &name(), who, mode, None);
        assert_eq!(queued, Enqueued::Waiting);
    }
    assert!(admits(&locks, key, &writer));
    assert!(!locks.leave(row, &early));
    assert_eq!(reader.wait_slot.state(), WaitState::Queued(row));
    // It does not share the row after a rollback of the write, either.
    locks.hold(tree, key, &writer);
    assert!(admits(&locks, key, &writer));
    assert_eq!(reader.wait_slot.state(), WaitState::Queued(row));
    locks.release(row, &writer);
    assert_eq!(reader.wait_slot.state(), WaitState::Granted);
}

/// A third transaction has written the row between the end of the awaited one and the grant. The grant is not in the
/// way of its next write.
#[test]
fn who_is_granted_a_row_beside_its_writer_holds_nothing_of_it() {
    let locks = LockTable::default();
    let (tree, key) = (TreeId(1), b"k");
    let row = Row::new(tree, key);
    let [ended, writer, waiter] = [(); 3].map(|()| RunningTransaction::new(Default::default()));
    let exclusive = LockMode::Exclusive;
    let queued = locks.enqueue(row, &name(), &waiter, exclusive, Some(&ended));
    assert_eq!(queued, Enqueued::Waiting);
    locks.release(row, &ended);
    assert_eq!(waiter.wait_slot.state(), WaitState::Granted);
    let queued = locks.enqueue(row, &name(), &waiter, exclusive, Some(&writer));
    assert_eq!(queued, Enqueued::Waiting);
    // The writer rolls back to a savepoint, and writes again.
    locks.hold(tree, key, &writer);
    assert!(admits(&locks, key, &writer));
    assert_eq!(waiter.wait_slot.state(), WaitState::Queued(row));
    locks.release(row, &writer);
    assert_eq!(waiter.wait_slot.state(), WaitState::Granted);
    locks.release(row, &waiter);
    assert_eq!(locks.len(), 0);
}

/// A transaction may write rows and roll back to a savepoint any number of times.
#[test]
fn who_gives_entries_up_again_and_again_lists_none_of_them() {
    let locks = LockTable {
        escalates_at: usize::MAX,
        ..LockTable::default()
    };
    let who = RunningTransaction::new(Default::default());
    let keys: Vec<[u8; 4]> = (0..8u32).map(u32::to_be_bytes).collect();
    for _ in 0..3 {
        for key in &keys {
            locks.hold(TreeId(1), key, &who);
        }
        assert_eq!(who.held_rows(), keys.len());
        for key in &keys {
            assert!(admits(&locks, key, &who));
        }
        assert_eq!(who.held_rows(), 0);
    }
}

/// The number of rows that the transactions lock.
const KEYS: usize = 8;

/// A step of one of several transactions.
#[derive(Clone, Copy, Debug)]
enum Step {
    Lock(LockMode),
    Write,
    End,
}

fn steps() -> impl Strategy<Value = Vec<(usize, u8, Step)>> {
    let lock = |mode| Just(Step::Lock(mode));
    let step = prop_oneof![
        5 => lock(LockMode::Shared),
        5 => lock(LockMode::Exclusive),
        2 => Just(Step::Write),
        1 => Just(Step::End),
    ];
    prop::collection::vec((0..3usize, 0..KEYS as u8, step), 1..60)
}

proptest! {
    /// A table that lists all rows locks the same rows as one in which ranges replace most entries.
    #[test]
    fn rows_without_entries_are_locked_as_others(steps in steps(), escalates_at in 0..4usize) {
        let [listed, escalating] = [usize::MAX, escalates_at].map(|escalates_at| LockTable {
            escalates_at,
            ..LockTable::default()
        });
        let tables = [&listed, &escalating];
        let mut who = [(); 3].map(|()| [(); 2].map(|()| RunningTransaction::new(Default::default())));
        let tree = TreeId(1);
        for (n, key, step) in steps {
            let key = [key];
            let done = [0, 1].map(|t| match step {
                Step::Lock(mode) => {
                    let taken = tables[t].try_take(tree, &key, &who[n][t], mode).is_ok();
                    tables[t].escalate(tree, &key, &who[n][t]);
                    taken
                }
                // The transaction then rolls back to a savepoint before the write.
                Step::Write => {
                    let admitted = admits(tables[t], &key, &who[n][t]);
                    if admitted {
                        tables[t].hold(tree, &key, &who[n][t]);
                    }
                    admitted
                }
                Step::End => {
                    tables[t].release_escalated(tree, &who[n][t]);
                    for row in who[n][t].take_rows() {
                        tables[t].release(row, &who[n][t]);
                    }
                    who[n][t] = RunningTransaction::new(Default::default());
                    true
                }
            });
            if done[0] && !done[1] && knobs::escalated_ranges() < KEYS {
                // If few ranges are allowed, they also hold rows between, which no transaction has locked. From here
                // on the tables differ.
                break;
            }
            prop_assert_eq!(done[0], done[1], "{} does {:?} at {:?}", n, step, key);
            prop_assert!(who[n][1].held_rows() <= escalates_at);
        }
    }
}

/// A transaction waits for a row without an entry in the row's queue; one that wants to share the row waits behind
/// it.
#[test]
fn rows_without_entries_are_waited_for() {
    let locks = LockTable {
        escalates_at: 0,
        ..LockTable::default()
    };
    let (tree, key) = (TreeId(1), b"k");
    let row = Row::new(tree, key);
    let [holder, second, third] = [(); 3].map(|()| RunningTransaction::new(Default::default()));
    let (shared, exclusive) = (LockMode::Shared, LockMode::Exclusive);
    assert!(locks.try_take(tree, key, &holder, exclusive).is_ok());
    locks.escalate(tree, key, &holder);
    assert_eq!((holder.held_rows(), locks.len()), (0, 1));
    for (who, mode) in [(&second, exclusive), (&third, shared)] {
        let in_the_way = locks.try_take(tree, key, who, mode).unwrap_err();
        assert_eq!(in_the_way.len(), 1);
        let queued = locks.enqueue_behind(row, &name(), who, mode, &in_the_way);
        assert_eq!(queued, Enqueued::Waiting);
    }
    // The holder's own lock stays its own meanwhile.
    assert!(locks.try_take(tree, key, &holder, exclusive).is_ok());
    locks.escalate(tree, key, &holder);
    assert!(!locks.leave(row, &second));
    assert_eq!(third.wait_slot.state(), WaitState::Queued(row));
    locks.release_escalated(tree, &holder);
    for row in holder.take_rows() {
        locks.release(row, &holder);
    }
    assert_eq!(third.wait_slot.state(), WaitState::Granted);
    assert!(locks.try_take(tree, key, &third, shared).is_ok());
    locks.release(row, &third);
    assert_eq!(locks.len(), 0);
}
