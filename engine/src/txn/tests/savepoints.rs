//! Savepoints: where they lead, and which ones are gone.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::fixture::{get, put, Fixture};
use crate::error::Error;
use crate::lock::LockMode;
use crate::settings::Isolation::{ReadCommitted, RepeatableRead};
use crate::txn::{LockRow, PutMode, Savepoint, TreeTransaction};

fn write(fixture: &Fixture, txn: &mut TreeTransaction, key: &[u8]) {
    put(txn, &fixture.tree, key, b"1", PutMode::Upsert).unwrap();
}

/// After the rollback beyond the savepoint, the transaction does as much work as before, but it is other work.
#[test]
fn a_savepoint_that_is_gone_is_an_error_and_nothing_is_undone() {
    for since in 0..4 {
        let fixture = Fixture::new();
        let mut txn = fixture.begin(ReadCommitted);
        write(&fixture, &mut txn, b"before");
        let first = txn.savepoint();
        write(&fixture, &mut txn, b"between");
        let second = txn.savepoint();
        write(&fixture, &mut txn, b"after");
        txn.rollback_to(&first).unwrap();
        for i in 0..since {
            write(&fixture, &mut txn, &[i]);
        }
        let gone = txn.rollback_to(&second);
        assert!(matches!(gone, Err(Error::Invalid(_))), "{gone:?}");
        for i in 0..since {
            assert!(get(&mut txn, &fixture.tree, &[i]).is_some());
        }
        txn.commit().unwrap();
        let kept: Vec<Vec<u8>> = (0..since).map(|i| vec![i]).collect();
        let found = fixture.records(&fixture.tree).into_iter();
        let found: Vec<Vec<u8>> = found.map(|(key, ..)| key).collect();
        assert_eq!(found, [kept, vec![b"before".to_vec()]].concat());
    }
}

/// This holds whatever amount of work the two have done.
#[test]
fn a_savepoint_of_another_transaction_is_an_error_and_nothing_is_undone() {
    let fixture = Fixture::new();
    let (one, mut other) = (fixture.begin(ReadCommitted), fixture.begin(ReadCommitted));
    let before = one.savepoint();
    write(&fixture, &mut other, b"k");
    drop(one);
    let mut third = fixture.begin(ReadCommitted);
    write(&fixture, &mut third, b"l");
    for txn in [&mut other, &mut third] {
        let refused = txn.rollback_to(&before);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        txn.commit().unwrap();
    }
    assert_eq!(fixture.records(&fixture.tree).len(), 2);
}

/// Any number of operations may be refused half done.
#[test]
fn nothing_is_remembered_of_operations_taken_back() {
    let fixture = Fixture::new();
    let mut txn = fixture.begin(ReadCommitted);
    for n in 0..100u8 {
        write(&fixture, &mut txn, &[n]);
        let start = txn.savepoint();
        write(&fixture, &mut txn, b"refused");
        txn.take_operation_back(&start).unwrap();
    }
    assert_eq!(txn.returns.count(), 0);
    txn.commit().unwrap();
    assert_eq!(fixture.records(&fixture.tree).len(), 100);
}

/// A transaction with many refused operations keeps the undo of the others between them.
#[test]
fn operations_taken_back_need_no_undo_pages() {
    let fixture = Fixture::new();
    let mut txn = fixture.begin(ReadCommitted);
    let mut most = 0;
    for n in 0..5000u32 {
        if n % 1000 == 0 {
            write(&fixture, &mut txn, &n.to_be_bytes());
        }
        let start = txn.savepoint();
        for part in 0..3 {
            write(&fixture, &mut txn, format!("refused {part}").as_bytes());
        }
        txn.take_operation_back(&start).unwrap();
        most = most.max(fixture.transactions.stats().undo_pages);
    }
    // With small limits for full pages there are more of them.
    assert!(crate::knobs::SHAKEN || most <= 3, "{most}");
    assert_eq!(fixture.records(&fixture.tree).len(), 5);
    txn.rollback().unwrap();
    assert_eq!(fixture.records(&fixture.tree).len(), 0);
}

/// Rolls back to a savepoint that is made anew each time, or to the same one.
#[test]
fn inserts_taken_back_to_savepoints_need_no_undo_pages() {
    for anew in [true, false] {
        let fixture = Fixture::new();
        let mut txn = fixture.begin(ReadCommitted);
        let mut savepoint = txn.savepoint();
        let mut most = 0;
        for n in 0..5000u32 {
            if n % 1000 == 0 {
                write(&fixture, &mut txn, &n.to_be_bytes());
                savepoint = txn.savepoint();
            }
            if anew {
                savepoint = txn.savepoint();
            }
            for part in 0..3 {
                write(&fixture, &mut txn, format!("taken back {part}").as_bytes());
            }
            txn.rollback_to(&savepoint).unwrap();
            most = most.max(fixture.transactions.stats().undo_pages);
        }
        // With small limits for full pages there are more of them.
        assert!(crate::knobs::SHAKEN || most <= 3, "{most}");
        assert_eq!(fixture.records(&fixture.tree).len(), 5);
        txn.rollback().unwrap();
        assert_eq!(fixture.records(&fixture.tree).len(), 0);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Write,
    Mark,
    /// A rollback to one of the savepoints made so far, valid or gone.
    Back(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Write),
        2 => Just(Step::Mark),
        1 => any::<prop::sample::Index>().prop_map(Step::Back),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    /// A savepoint is valid as long as all work before it remains.
    #[test]
    fn savepoints_lead_back_to_where_they_were_made(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let fixture = Fixture::new();
        let mut txn = fixture.begin(ReadCommitted);
        let mut written: Vec<u32> = Vec::new();
        let mut marks: Vec<(Savepoint, Vec<u32>)> = Vec::new();
        for (n, step) in (0u32..).zip(steps) {
            match step {
                Step::Write => {
                    write(&fixture, &mut txn, &n.to_be_bytes());
                    written.push(n);
                }
                Step::Mark => marks.push((txn.savepoint(), written.clone())),
                Step::Back(_) if marks.is_empty() => {}
                Step::Back(to) => {
                    let (mark, then) = to.get(&marks);
                    let back = txn.rollback_to(mark);
                    prop_assert_eq!(back.is_ok(), written.starts_with(then), "{:?}", back);
                    if back.is_ok() {
                        written.truncate(then.len());
                    }
                }
            }
        }
        txn.commit().unwrap();
        let found = fixture.records(&fixture.tree).into_iter();
        let found: Vec<Vec<u8>> = found.map(|(key, ..)| key).collect();
        let kept: Vec<Vec<u8>> = written.iter().map(|n| n.to_be_bytes().to_vec()).collect();
        prop_assert_eq!(found, kept);
    }

    /// Like the test above, for rows that a snapshot goes on reading: the undo that it needs stays where it is.
    #[test]
    fn rows_that_a_snapshot_reads_are_taken_back_to_savepoints(
        steps in proptest::collection::vec((step(), 0u32..6), 1..60),
    ) {
        let fixture = Fixture::new();
        let rows = || (0..3u32).map(|row| (row.to_be_bytes().to_vec(), b"before".to_vec()));
        fixture.load(rows());
        let mut reader = fixture.begin(RepeatableRead);
        let mut txn = fixture.begin(ReadCommitted);
        let mut written: Vec<(u32, u32)> = Vec::new();
        let mut marks: Vec<(Savepoint, Vec<(u32, u32)>)> = Vec::new();
        for (n, (step, row)) in (0u32..).zip(steps) {
            match step {
                Step::Write => {
                    // Half of the rows are new.
                    let row = if row < 3 { row } else { 100 + n };
                    let (key, payload) = (row.to_be_bytes(), n.to_be_bytes());
                    put(&mut txn, &fixture.tree, &key, &payload, PutMode::Upsert).unwrap();
                    written.push((row, n));
                }
                Step::Mark => marks.push((txn.savepoint(), written.clone())),
                Step::Back(_) if marks.is_empty() => {}
                Step::Back(to) => {
                    let (mark, then) = to.get(&marks);
                    let back = txn.rollback_to(mark);
                    prop_assert_eq!(back.is_ok(), written.starts_with(then), "{:?}", back);
                    if back.is_ok() {
                        written.truncate(then.len());
                    }
                }
            }
            for (key, payload) in rows() {
                prop_assert_eq!(get(&mut reader, &fixture.tree, &key), Some(payload));
            }
        }
        txn.commit().unwrap();
        let mut kept: BTreeMap<Vec<u8>, Vec<u8>> = rows().collect();
        for (row, n) in written {
            kept.insert(row.to_be_bytes().to_vec(), n.to_be_bytes().to_vec());
        }
        let records = fixture.records(&fixture.tree).into_iter();
        let found = records.map(|(key, _, payload)| (key, payload));
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), kept);
    }
}

/// A transaction waits for a key with a lock or a write. It gets the key when its insertion is rolled back, not
/// later.
#[test]
fn who_waits_for_an_inserted_key_gets_it_when_it_is_taken_back() {
    for writes in [true, false] {
        let fixture = Fixture::new();
        let mut txn = fixture.begin(ReadCommitted);
        write(&fixture, &mut txn, b"before");
        let savepoint = txn.savepoint();
        write(&fixture, &mut txn, b"k");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let mut other = fixture.begin(ReadCommitted);
                other.set_lock_wait_timeout(Duration::from_secs(5));
                let got = match writes {
                    true => put(&mut other, &fixture.tree, b"k", b"2", PutMode::Insert).map(drop),
                    false => other.lock_row(&fixture.tree, b"k", LockMode::Exclusive),
                };
                other.commit().unwrap();
                got
            });
            while fixture.transactions.stats().lock_waits == 0 {
                std::thread::yield_now();
            }
            txn.rollback_to(&savepoint).unwrap();
            waits.join().unwrap().unwrap();
        });
        // The first transaction runs on, and gets the row like any other transaction.
        txn.lock_row(&fixture.tree, b"k", LockMode::Exclusive)
            .unwrap();
        txn.commit().unwrap();
        assert_eq!(fixture.transactions.stats().locked_rows, 0);
    }
}

/// The key was locked before it was inserted. So no other transaction may insert it before the end.
#[test]
fn a_key_that_was_locked_before_it_was_inserted_stays_locked_when_it_is_taken_back() {
    let fixture = Fixture::new();
    let mut txn = fixture.begin(ReadCommitted);
    txn.lock_row(&fixture.tree, b"k", LockMode::Exclusive)
        .unwrap();
    let savepoint = txn.savepoint();
    write(&fixture, &mut txn, b"k");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut other = fixture.begin(ReadCommitted);
            put(&mut other, &fixture.tree, b"k", b"2", PutMode::Insert).unwrap();
            other.commit().unwrap();
        });
        while fixture.transactions.stats().lock_waits == 0 {
            std::thread::yield_now();
        }
        txn.rollback_to(&savepoint).unwrap();
        let mut hasty = fixture.begin(ReadCommitted);
        let lock = hasty.try_lock_row(&fixture.tree, b"k", LockMode::Shared);
        assert!(matches!(lock, Ok(LockRow::Conflict(_))));
        assert!(!waits.is_finished());
        txn.commit().unwrap();
    });
    assert_eq!(fixture.transactions.stats().locked_rows, 0);
}
