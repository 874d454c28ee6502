//! Waits, wake-ups, deadlocks, time limits, kills.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::fixture::{delete, get, get_locked, put, try_put, Fixture};
use crate::error::Error;
use crate::lock::LockMode;
use crate::settings::Isolation::{ReadCommitted, RepeatableRead};
use crate::txn::{Put, PutMode};

/// Waits until `count` transactions are waiting for locks.
fn until_waiting(fixture: &Fixture, count: u64) {
    while fixture.transactions.stats().lock_waits < count {
        std::thread::yield_now();
    }
}

#[test]
fn a_writer_waits_for_the_writer_before_it() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut first = fixture.begin(ReadCommitted);
    put(&mut first, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = fixture.begin(ReadCommitted);
            put(&mut second, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
            second.commit().unwrap();
        });
        until_waiting(&fixture, 1);
        assert!(!second.is_finished());
        first.commit().unwrap();
    });
    let mut reader = fixture.begin(ReadCommitted);
    assert_eq!(get(&mut reader, &fixture.tree, b"k").unwrap(), b"2");
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn after_a_rollback_the_waiter_finds_the_old_row() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut first = fixture.begin(RepeatableRead);
    delete(&mut first, &fixture.tree, b"k").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut second = fixture.begin(RepeatableRead);
            put(&mut second, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
            second.commit().unwrap();
        });
        until_waiting(&fixture, 1);
        first.rollback().unwrap();
    });
    let mut reader = fixture.begin(ReadCommitted);
    assert_eq!(get(&mut reader, &fixture.tree, b"k").unwrap(), b"2");
}

#[test]
fn repeatable_read_refuses_a_row_changed_since_its_snapshot() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    // It has no snapshot before its first read, so it waits rather than fails.
    let mut fresh = fixture.begin(RepeatableRead);
    let mut old = fixture.begin(RepeatableRead);
    assert_eq!(get(&mut old, &fixture.tree, b"k").unwrap(), b"0");
    fixture.load([(b"k".to_vec(), b"1".to_vec())]);
    let done = try_put(&mut old, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
    assert_eq!(done, Put::Changed);
    let locked = old.lock_row(&fixture.tree, b"k", LockMode::Exclusive);
    assert!(matches!(locked, Err(Error::WriteConflict)));
    assert_eq!(get(&mut old, &fixture.tree, b"k").unwrap(), b"0");
    fresh
        .lock_row(&fixture.tree, b"k", LockMode::Exclusive)
        .unwrap();
    let view = fresh.locking_view();
    let newest = fresh
        .read(&fixture.tree, b"k", &view, <[u8]>::to_vec)
        .unwrap();
    assert_eq!(newest.unwrap(), b"1");
    put(&mut fresh, &fixture.tree, b"k", b"3", PutMode::Update).unwrap();
    assert_eq!(get(&mut fresh, &fixture.tree, b"k").unwrap(), b"3");
}

#[test]
fn for_update_is_granted_in_the_order_of_arrival() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut first = fixture.begin(ReadCommitted);
    get_locked(&mut first, &fixture.tree, b"k").unwrap();
    let order = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for i in 0..20u64 {
            let (fixture, order) = (&fixture, &order);
            scope.spawn(move || {
                let mut txn = fixture.begin(ReadCommitted);
                get_locked(&mut txn, &fixture.tree, b"k").unwrap();
                order.lock().push(i);
                if i % 2 == 0 {
                    put(&mut txn, &fixture.tree, b"k", &[i as u8], PutMode::Update).unwrap();
                }
                txn.commit().unwrap();
            });
            until_waiting(fixture, i + 1);
        }
        first.commit().unwrap();
    });
    assert_eq!(*order.lock(), (0..20).collect::<Vec<_>>());
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn writers_respect_a_lock_without_a_write() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    for key in [&b"k"[..], b"absent"] {
        for mode in [LockMode::Shared, LockMode::Exclusive] {
            let mut locker = fixture.begin(ReadCommitted);
            locker.lock_row(&fixture.tree, key, mode).unwrap();
            let mut writer = fixture.begin(ReadCommitted);
            let done = try_put(&mut writer, &fixture.tree, key, b"1", PutMode::Upsert).unwrap();
            assert!(matches!(done, Put::Conflict(_)), "{done:?}");
            // The holder itself may write; no other transaction may.
            let own = try_put(&mut locker, &fixture.tree, key, b"1", PutMode::Upsert).unwrap();
            assert!(matches!(own, Put::Done { .. }));
            locker.rollback().unwrap();
            let done = try_put(&mut writer, &fixture.tree, key, b"1", PutMode::Upsert).unwrap();
            assert!(matches!(done, Put::Done { .. }));
            writer.rollback().unwrap();
        }
    }
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn shared_locks_go_together_and_an_upgrade_waits_for_the_others() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut a = fixture.begin(ReadCommitted);
    let mut b = fixture.begin(ReadCommitted);
    a.lock_row(&fixture.tree, b"k", LockMode::Shared).unwrap();
    b.lock_row(&fixture.tree, b"k", LockMode::Shared).unwrap();
    std::thread::scope(|scope| {
        let upgrade = scope.spawn(|| {
            put(&mut a, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
            a.commit().unwrap();
        });
        until_waiting(&fixture, 1);
        assert!(!upgrade.is_finished());
        b.commit().unwrap();
    });
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn a_lock_survives_the_rollback_of_a_later_write() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut a = fixture.begin(ReadCommitted);
    get_locked(&mut a, &fixture.tree, b"k").unwrap();
    let savepoint = a.savepoint();
    put(&mut a, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
    a.rollback_to(&savepoint).unwrap();
    let mut b = fixture.begin(ReadCommitted);
    let done = try_put(&mut b, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
    assert!(matches!(done, Put::Conflict(_)), "{done:?}");
    drop(a);
    let done = try_put(&mut b, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
    assert!(matches!(done, Put::Done { .. }), "{done:?}");
}

/// A waiter has entered the writer as holder. It does not get the row when the writer rolls its write back and runs
/// on.
#[test]
fn a_waiter_waits_on_after_the_write_was_rolled_back_to_a_savepoint() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut a = fixture.begin(ReadCommitted);
    let savepoint = a.savepoint();
    put(&mut a, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut b = fixture.begin(ReadCommitted);
            put(&mut b, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
            b.commit().unwrap();
        });
        until_waiting(&fixture, 1);
        a.rollback_to(&savepoint).unwrap();
        assert!(!waiting.is_finished());
        put(&mut a, &fixture.tree, b"k", b"3", PutMode::Update).unwrap();
        a.commit().unwrap();
    });
    let mut reader = fixture.begin(ReadCommitted);
    assert_eq!(get(&mut reader, &fixture.tree, b"k").unwrap(), b"2");
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn a_lock_and_then_a_write_leave_no_entry() {
    let fixture = Fixture::new();
    fixture.load((0..50).map(|i| (vec![i], b"0".to_vec())));
    let mut a = fixture.begin(ReadCommitted);
    for i in 0..50 {
        get_locked(&mut a, &fixture.tree, &[i]).unwrap();
        put(&mut a, &fixture.tree, &[i], b"1", PutMode::Update).unwrap();
    }
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
    let mut b = fixture.begin(ReadCommitted);
    let done = try_put(&mut b, &fixture.tree, &[7], b"2", PutMode::Update).unwrap();
    assert!(matches!(done, Put::Conflict(_)));
}

#[test]
fn a_deadlock_ring_has_exactly_one_victim_at_once() {
    ring(6, 20);
    ring(100, 2);
}

fn ring(size: u8, rounds: u64) {
    let fixture = Fixture::new();
    fixture.load((0..size).map(|i| (vec![i], b"0".to_vec())));
    for _ in 0..rounds {
        let barrier = Barrier::new(usize::from(size));
        let victims = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for i in 0..size {
                let (fixture, barrier, victims) = (&fixture, &barrier, &victims);
                scope.spawn(move || {
                    let mut txn = fixture.begin(ReadCommitted);
                    put(&mut txn, &fixture.tree, &[i], b"1", PutMode::Update).unwrap();
                    barrier.wait();
                    let next = [(i + 1) % size];
                    match put(&mut txn, &fixture.tree, &next, b"2", PutMode::Update) {
                        Ok(_) => txn.commit().unwrap(),
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
    }
    assert_eq!(fixture.transactions.stats().deadlocks, rounds);
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}

#[test]
fn a_wait_ends_at_its_limit_and_leaves_the_queue() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut holder = fixture.begin(ReadCommitted);
    put(&mut holder, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
    let mut late = fixture.begin(ReadCommitted);
    late.set_lock_wait_timeout(Duration::from_millis(30));
    let started = Instant::now();
    let outcome = put(&mut late, &fixture.tree, b"k", b"2", PutMode::Update);
    assert!(matches!(outcome, Err(Error::LockWaitTimeout)));
    assert!(started.elapsed() >= Duration::from_millis(30));
    late.set_lock_wait_timeout(Duration::ZERO);
    let outcome = put(&mut late, &fixture.tree, b"k", b"2", PutMode::Update);
    assert!(matches!(outcome, Err(Error::LockNotAvailable)));
    holder.commit().unwrap();
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
    put(&mut late, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
    late.commit().unwrap();
}

/// Otherwise many waiters for one row would need many numbers and undo streams.
#[test]
fn who_waits_has_a_number_only_when_it_has_written() {
    let fixture = Fixture::new();
    fixture.load([
        (b"k".to_vec(), b"0".to_vec()),
        (b"m".to_vec(), b"0".to_vec()),
    ]);
    let mut holder = fixture.begin(RepeatableRead);
    put(&mut holder, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
    for writes_before in [false, true] {
        let mut late = fixture.begin(RepeatableRead);
        late.set_lock_wait_timeout(Duration::from_millis(1));
        if writes_before {
            put(&mut late, &fixture.tree, b"m", b"2", PutMode::Update).unwrap();
        }
        let outcome = put(&mut late, &fixture.tree, b"k", b"2", PutMode::Update);
        assert!(matches!(outcome, Err(Error::LockWaitTimeout)));
        assert_eq!(late.id().is_some(), writes_before);
        put(&mut late, &fixture.tree, b"m", b"3", PutMode::Update).unwrap();
        assert_eq!(get(&mut late, &fixture.tree, b"m").unwrap(), b"3");
        late.commit().unwrap();
    }
    holder.rollback().unwrap();
    let mut reader = fixture.begin(ReadCommitted);
    assert_eq!(get(&mut reader, &fixture.tree, b"m").unwrap(), b"3");
    assert_eq!(get(&mut reader, &fixture.tree, b"k").unwrap(), b"0");
    drop((reader, holder));
    fixture.purge();
    assert_eq!(fixture.transactions.stats().unpurged, 0);
}

#[test]
fn a_kill_wakes_a_waiter_and_holds_until_cleared() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut holder = fixture.begin(ReadCommitted);
    put(&mut holder, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
    let mut waiter = fixture.begin(ReadCommitted);
    let handle = waiter.kill_handle();
    std::thread::scope(|scope| {
        let (tree, waiter) = (fixture.tree.clone(), &mut waiter);
        let waiting = scope.spawn(move || put(waiter, &tree, b"k", b"2", PutMode::Update));
        until_waiting(&fixture, 1);
        handle.kill();
        assert!(matches!(waiting.join().unwrap(), Err(Error::Interrupted)));
    });
    let again = put(&mut waiter, &fixture.tree, b"k", b"2", PutMode::Update);
    assert!(matches!(again, Err(Error::Interrupted)));
    waiter.rollback().unwrap();
    handle.clear();
    holder.commit().unwrap();
    put(&mut waiter, &fixture.tree, b"k", b"2", PutMode::Update).unwrap();
    waiter.commit().unwrap();
}

/// A locking read before the first snapshot protects what it has copied, also if the snapshot is taken later.
#[test]
fn a_snapshot_taken_after_a_locking_read_does_not_let_its_undo_go() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    fixture.purge();
    let mut writer = fixture.begin(RepeatableRead);
    put(&mut writer, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
    let mut reader = fixture.begin(RepeatableRead);
    let latest = reader.locking_view();
    let mut image = crate::tree::LeafImage::new();
    let copied = reader.versions().before_copy();
    let found = fixture
        .tree
        .copy_leaf(crate::tree::Position::First, &mut image);
    assert!(found.unwrap());
    writer.rollback().unwrap();
    reader.view();
    fixture.purge();
    // The image still has the version that was rolled back; its undo must still exist.
    let mut buf = Vec::new();
    let seen = reader
        .versions()
        .visible(
            &latest,
            image.value(0),
            &mut buf,
            copied,
            &fixture.tree,
            |key| image.key(0, key),
        )
        .unwrap();
    assert_eq!(seen, Some(&b"0"[..]));
    assert_eq!(fixture.transactions.stats().unpurged, 1);
    reader.commit().unwrap();
    fixture.purge();
    assert_eq!(fixture.transactions.stats().unpurged, 0);
}

/// Many transactions wait for one row, each gets it in turn, and the total is right.
#[test]
fn a_hundred_waiters_on_one_row_all_get_their_turn() {
    let fixture = Arc::new(Fixture::new());
    fixture.load([(b"k".to_vec(), 0u64.to_le_bytes().to_vec())]);
    let mut holder = fixture.begin(ReadCommitted);
    get_locked(&mut holder, &fixture.tree, b"k").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..100 {
            let fixture = fixture.clone();
            scope.spawn(move || {
                let mut txn = fixture.begin(ReadCommitted);
                let row = get_locked(&mut txn, &fixture.tree, b"k").unwrap().unwrap();
                let count = u64::from_le_bytes(row.try_into().unwrap()) + 1;
                put(
                    &mut txn,
                    &fixture.tree,
                    b"k",
                    &count.to_le_bytes(),
                    PutMode::Update,
                )
                .unwrap();
                txn.commit().unwrap();
            });
        }
        until_waiting(&fixture, 100);
        holder.commit().unwrap();
    });
    let mut reader = fixture.begin(ReadCommitted);
    let row = get(&mut reader, &fixture.tree, b"k").unwrap();
    assert_eq!(u64::from_le_bytes(row.try_into().unwrap()), 100);
    assert_eq!(fixture.transactions.stats().deadlocks, 0);
}
