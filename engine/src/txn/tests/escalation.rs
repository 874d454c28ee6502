//! Transactions that lock more rows than can have entries.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Barrier;
use std::time::Duration;

use super::fixture::{get_locked, put, try_put, Fixture};
use crate::error::Error;
use crate::ids::TreeId;
use crate::knobs;
use crate::lock::LockMode;
use crate::settings::Isolation::ReadCommitted;
use crate::txn::{LockRow, Put, PutMode, TreeTransaction};

/// Rows that one transaction locks: 3,000 more than get entries, or ranges of their own.
fn rows() -> u32 {
    (knobs::rows_before_escalation() + knobs::escalated_ranges() + 3_000) as u32
}

fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

fn lock_all(txn: &mut TreeTransaction, fixture: &Fixture, mode: LockMode) {
    for n in 0..rows() {
        txn.lock_row(&fixture.tree, &key(n), mode).unwrap();
    }
}

/// Some of the rows, around the limits of entries and of ranges.
fn some_rows() -> impl Iterator<Item = u32> {
    let entries = knobs::rows_before_escalation() as u32;
    let ranges = entries + knobs::escalated_ranges() as u32;
    let around = [0, entries, ranges, rows()].map(|n| n.saturating_sub(3)..(n + 3).min(rows()));
    around.into_iter().flatten()
}

#[test]
fn rows_stay_locked_though_few_have_entries() {
    let fixture = Fixture::new();
    let tree = &fixture.tree;
    for mode in [LockMode::Shared, LockMode::Exclusive] {
        let mut locker = fixture.begin(ReadCommitted);
        lock_all(&mut locker, &fixture, mode);
        let entries = fixture.transactions.stats().locked_rows as usize;
        assert!(entries <= knobs::rows_before_escalation() + 1, "{entries}");
        let mut other = fixture.begin(ReadCommitted);
        for n in some_rows() {
            let done = try_put(&mut other, tree, &key(n), b"1", PutMode::Upsert).unwrap();
            assert!(matches!(done, Put::Conflict(_)), "{n}: {done:?}");
            let locked = other.try_lock_row(tree, &key(n), LockMode::Exclusive);
            assert!(matches!(locked, Ok(LockRow::Conflict(_))), "{n}");
            let shared = other.try_lock_row(tree, &key(n), LockMode::Shared);
            let is_free = matches!(shared, Ok(LockRow::Done));
            assert_eq!(is_free, mode == LockMode::Shared, "{n}");
        }
        other.rollback().unwrap();
        let mut other = fixture.begin(ReadCommitted);
        let done = try_put(&mut other, tree, &key(rows()), b"1", PutMode::Upsert).unwrap();
        assert!(matches!(done, Put::Done { .. }), "nobody has locked it");
        other.rollback().unwrap();
        // It may write a row that it has locked.
        let own = try_put(&mut locker, tree, &key(rows() - 9), b"1", PutMode::Upsert).unwrap();
        assert!(matches!(own, Put::Done { .. }));
        locker.rollback().unwrap();
        assert_eq!(fixture.transactions.stats().locked_rows, 0);
        let mut other = fixture.begin(ReadCommitted);
        for n in some_rows() {
            let done = try_put(&mut other, tree, &key(n), b"1", PutMode::Upsert).unwrap();
            assert!(matches!(done, Put::Done { .. }), "{n}: {done:?}");
        }
        other.rollback().unwrap();
    }
}

#[test]
fn rows_without_entries_are_waited_for_and_granted() {
    let fixture = Fixture::new();
    let last = key(rows() - 9);
    let mut locker = fixture.begin(ReadCommitted);
    lock_all(&mut locker, &fixture, LockMode::Exclusive);
    let mut hasty = fixture.begin(ReadCommitted);
    hasty.set_lock_wait_timeout(Duration::from_millis(20));
    let outcome = get_locked(&mut hasty, &fixture.tree, &last);
    assert!(matches!(outcome, Err(Error::LockWaitTimeout)));
    std::thread::scope(|scope| {
        let waits = [true, false].map(|writes| {
            let fixture = &fixture;
            scope.spawn(move || {
                let mut txn = fixture.begin(ReadCommitted);
                match writes {
                    true => drop(put(&mut txn, &fixture.tree, &last, b"2", PutMode::Upsert)),
                    false => drop(get_locked(&mut txn, &fixture.tree, &last)),
                }
                txn.commit().unwrap();
            })
        });
        while fixture.transactions.stats().lock_waits < 3 {
            std::thread::yield_now();
        }
        assert!(waits.iter().all(|wait| !wait.is_finished()));
        locker.commit().unwrap();
    });
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

/// Rows stay locked after a rollback to a savepoint, too.
#[test]
fn rows_that_are_taken_back_stay_locked_without_entries() {
    let fixture = Fixture::new();
    fixture.load((0..rows()).map(|n| (key(n).to_vec(), b"0".to_vec())));
    let mut writer = fixture.begin(ReadCommitted);
    let savepoint = writer.savepoint();
    for n in 0..rows() {
        put(&mut writer, &fixture.tree, &key(n), b"1", PutMode::Update).unwrap();
    }
    writer.rollback_to(&savepoint).unwrap();
    let entries = fixture.transactions.stats().locked_rows as usize;
    assert!(entries <= knobs::rows_before_escalation() + 1, "{entries}");
    let mut other = fixture.begin(ReadCommitted);
    for n in some_rows() {
        let done = try_put(&mut other, &fixture.tree, &key(n), b"2", PutMode::Update).unwrap();
        assert!(matches!(done, Put::Conflict(_)), "{n}: {done:?}");
    }
    writer.commit().unwrap();
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn a_circle_through_rows_without_entries_has_one_victim() {
    let fixture = Fixture::new();
    let ends = Barrier::new(2);
    let victims = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..2u32 {
            let (fixture, ends, victims) = (&fixture, &ends, &victims);
            scope.spawn(move || {
                let first = |n: u32| n * 2 * rows();
                let mut txn = fixture.begin(ReadCommitted);
                for row in 0..rows() {
                    let key = key(first(n) + row);
                    txn.lock_row(&fixture.tree, &key, LockMode::Exclusive)
                        .unwrap();
                }
                ends.wait();
                let others = key(first(1 - n) + rows() - 9);
                match txn.lock_row(&fixture.tree, &others, LockMode::Exclusive) {
                    Ok(()) => txn.commit().unwrap(),
                    Err(Error::Deadlock) => {
                        victims.fetch_add(1, Ordering::Relaxed);
                        txn.rollback().unwrap();
                    }
                    Err(error) => panic!("{error}"),
                }
            });
        }
    });
    assert_eq!(victims.load(Ordering::Relaxed), 1);
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

/// A range has grown over a row that its holder skipped, and that another transaction shares.
///
/// A waiter for the range makes an entry for the holder. That entry does not lock the row exclusively beside the
/// other transaction.
#[test]
fn a_shared_row_within_an_exclusive_range_is_not_its_holders_alone() {
    for shares_before in [true, false] {
        let fixture = Fixture::new();
        let tree = &fixture.tree;
        let row = key(rows() - 9);
        let mut other = fixture.begin(ReadCommitted);
        other.lock_row(tree, &row, LockMode::Shared).unwrap();
        let mut locker = fixture.begin(ReadCommitted);
        if shares_before {
            locker.lock_row(tree, &row, LockMode::Shared).unwrap();
        }
        for n in 0..rows() {
            let skip = LockMode::Exclusive;
            let locked = locker.lock_row_or_skip(tree, &key(n), skip, true).unwrap();
            assert_eq!(locked, key(n) != row, "{n}");
        }
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut waiter = fixture.begin(ReadCommitted);
                waiter.set_lock_wait_timeout(Duration::from_millis(300));
                let outcome = waiter.lock_row(tree, &row, LockMode::Shared);
                assert!(matches!(outcome, Err(Error::LockWaitTimeout)));
            });
            while fixture.transactions.stats().lock_waits < 1 {
                std::thread::yield_now();
            }
            let shared = locker.try_lock_row(tree, &row, LockMode::Shared);
            assert!(matches!(shared, Ok(LockRow::Done)), "{shared:?}");
            let alone = locker.try_lock_row(tree, &row, LockMode::Exclusive);
            assert!(matches!(alone, Ok(LockRow::Conflict(_))), "{alone:?}");
            waiter.join().unwrap();
        });
        let alone = locker.try_lock_row(tree, &row, LockMode::Exclusive);
        assert!(matches!(alone, Ok(LockRow::Conflict(_))), "{alone:?}");
        other.commit().unwrap();
        let alone = locker.try_lock_row(tree, &row, LockMode::Exclusive);
        assert!(matches!(alone, Ok(LockRow::Done)), "{alone:?}");
        locker.commit().unwrap();
        assert_eq!(fixture.transactions.stats().locked_rows, 0);
    }
}

/// Rows for which the transaction had to wait need no more entries than others.
#[test]
fn rows_that_were_waited_for_become_ranges_too() {
    let fixture = Fixture::new();
    let tree = &fixture.tree;
    let mut locker = fixture.begin(ReadCommitted);
    lock_all(&mut locker, &fixture, LockMode::Exclusive);
    let entries = fixture.transactions.stats().locked_rows;
    for n in 0..100 {
        let key = key(2 * rows() + n);
        let mut before = fixture.begin(ReadCommitted);
        before.lock_row(tree, &key, LockMode::Exclusive).unwrap();
        let waits = fixture.transactions.stats().lock_waits;
        std::thread::scope(|scope| {
            let (fixture, locker) = (&fixture, &mut locker);
            let waiter = scope.spawn(move || locker.lock_row(tree, &key, LockMode::Exclusive));
            while fixture.transactions.stats().lock_waits == waits {
                std::thread::yield_now();
            }
            before.commit().unwrap();
            waiter.join().unwrap().unwrap();
        });
    }
    assert!(fixture.transactions.stats().locked_rows <= entries + 1);
}

fn is_free(txn: &mut TreeTransaction, tree: TreeId, n: u32) -> bool {
    match txn.lock_name(tree, &key(n)) {
        Ok(lock) => {
            txn.unlock_name(lock);
            true
        }
        Err(Error::LockNotAvailable) => false,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn names_stay_locked_though_few_have_entries() {
    let fixture = Fixture::new();
    let tree = fixture.tree.id();
    let mut locker = fixture.begin(ReadCommitted);
    let mut locks = Vec::new();
    for n in 0..rows() {
        locks.push(locker.lock_name(tree, &key(n)).unwrap());
    }
    let entries = fixture.transactions.stats().locked_rows as usize;
    assert!(entries <= knobs::rows_before_escalation() + 1, "{entries}");
    let mut other = fixture.begin(ReadCommitted);
    other.set_lock_wait_timeout(Duration::ZERO);
    assert!(some_rows().all(|n| !is_free(&mut other, tree, n)));
    assert!(is_free(&mut other, tree, rows()));
    // A name's lock does not lock the row, and can be released before the end.
    let own = locker.lock_name(tree, &key(rows() - 9)).unwrap();
    let row = other.try_lock_row(&fixture.tree, &key(rows() - 9), LockMode::Exclusive);
    assert!(matches!(row, Ok(LockRow::Done)));
    for lock in locks.into_iter().chain([own]) {
        locker.unlock_name(lock);
    }
    assert!(some_rows().all(|n| is_free(&mut other, tree, n)));
    other.rollback().unwrap();
    locker.rollback().unwrap();
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn names_without_entries_are_waited_for_until_the_end() {
    let fixture = Fixture::new();
    let tree = fixture.tree.id();
    let mut locker = fixture.begin(ReadCommitted);
    for n in 0..rows() {
        locker.lock_name(tree, &key(n)).unwrap();
    }
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut txn = fixture.begin(ReadCommitted);
            txn.lock_name(tree, &key(rows() - 9)).unwrap();
            txn.commit().unwrap();
        });
        while fixture.transactions.stats().lock_waits == 0 {
            std::thread::yield_now();
        }
        assert!(!waits.is_finished());
        locker.commit().unwrap();
    });
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}
