//! The effects of purge: what it removes and what it leaves.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::fixture::{delete, get, put, scan, Fixture, OTHER, TREE};
use crate::error::Error;
use crate::settings::Isolation::{ReadCommitted, RepeatableRead};
use crate::tree::Tree;
use crate::txn::{PutMode, Savepoint, TreeTransaction};

fn key(i: u32) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

fn deleted_marks(fixture: &Fixture) -> usize {
    let records = fixture.records(&fixture.tree);
    records
        .iter()
        .filter(|(_, header, _)| header.deleted)
        .count()
}

#[test]
fn a_long_reader_keeps_its_snapshot_and_then_all_goes() {
    let fixture = Fixture::new();
    let rows = 400;
    fixture.load((0..rows).map(|i| (key(i), vec![1; 50])));
    let mut reader = fixture.begin(RepeatableRead);
    let view = reader.view();
    let before = scan(&reader, &fixture.tree, &view);
    for round in 0..20u8 {
        let mut txn = fixture.begin(ReadCommitted);
        for i in 0..rows {
            if (i + u32::from(round)) % 3 == 0 {
                let _ = delete(&mut txn, &fixture.tree, &key(i));
            } else {
                let row = vec![round; 20 + usize::from(round) * 10];
                put(&mut txn, &fixture.tree, &key(i), &row, PutMode::Upsert).unwrap();
            }
        }
        if round % 5 == 4 {
            txn.rollback().unwrap();
        } else {
            txn.commit().unwrap();
        }
        fixture.purge();
        assert_eq!(scan(&reader, &fixture.tree, &view), before);
        assert_eq!(
            get(&mut reader, &fixture.tree, &key(7)).unwrap(),
            vec![1; 50]
        );
    }
    // On a slow machine the reader may be old already, so that some pages are pruned.
    let stats = fixture.transactions.stats();
    assert!(stats.undo_pages + stats.pruned_pages > 10, "{stats:?}");
    drop(reader);
    // This includes survivors that pruning has kept for the reader.
    fixture.transactions.purge_all().unwrap();
    assert_eq!(deleted_marks(&fixture), 0);
    assert_eq!(fixture.transactions.stats().unpurged, 0);
    assert_eq!(fixture.transactions.stats().undo_pages, 0);
}

#[test]
fn purge_waits_for_the_snapshot_that_sees_the_row() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut reader = fixture.begin(RepeatableRead);
    reader.view();
    let mut txn = fixture.begin(ReadCommitted);
    delete(&mut txn, &fixture.tree, b"k").unwrap();
    txn.commit().unwrap();
    fixture.purge();
    assert_eq!(deleted_marks(&fixture), 1);
    assert_eq!(get(&mut reader, &fixture.tree, b"k").unwrap(), b"0");
    reader.commit().unwrap();
    fixture.purge();
    assert_eq!(fixture.records(&fixture.tree), []);
}

/// A running writer covers a delete mark while the mark's purge comes by. The writer's rollback restores the mark.
#[test]
fn a_delete_mark_restored_after_its_purge_does_not_stay() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut reader = fixture.begin(RepeatableRead);
    reader.view();
    let mut txn = fixture.begin(ReadCommitted);
    delete(&mut txn, &fixture.tree, b"k").unwrap();
    txn.commit().unwrap();
    let mut writer = fixture.begin(ReadCommitted);
    put(&mut writer, &fixture.tree, b"k", b"1", PutMode::Insert).unwrap();
    reader.commit().unwrap();
    fixture.purge();
    writer.rollback().unwrap();
    fixture.purge();
    assert_eq!(fixture.records(&fixture.tree), []);
}

/// In one stream, transactions end as fast as purge passes them; another stream has one end.
#[test]
fn a_busy_stream_keeps_no_other_from_being_purged() {
    let fixture = Fixture::new();
    let (transactions, tree, other) = (&fixture.transactions, &fixture.tree, &fixture.other);
    let a_step = crate::knobs::purge_step().min(4096) as u32;
    for tree in [tree, other] {
        let mut txn = fixture.begin(ReadCommitted);
        for i in 0..a_step {
            put(&mut txn, tree, &key(i), b"0", PutMode::Insert).unwrap();
        }
        txn.commit().unwrap();
    }
    transactions.purge_all().unwrap();
    // The two overlap, so that each has its own stream.
    let mut busy = fixture.begin(ReadCommitted);
    delete(&mut busy, tree, &key(0)).unwrap();
    let mut quiet = fixture.begin(ReadCommitted);
    delete(&mut quiet, other, &key(0)).unwrap();
    busy.commit().unwrap();
    quiet.commit().unwrap();
    // The holder takes the quiet transaction's stream.
    let mut holder = fixture.begin(ReadCommitted);
    put(&mut holder, other, &key(a_step), b"0", PutMode::Insert).unwrap();
    for _ in 0..8 {
        let mut txn = fixture.begin(ReadCommitted);
        for i in 0..a_step {
            put(&mut txn, tree, &key(i), b"1", PutMode::Upsert).unwrap();
            delete(&mut txn, tree, &key(i)).unwrap();
        }
        txn.commit().unwrap();
        assert!(transactions.purge_step().unwrap(), "there is more to do");
    }
    let marks = fixture.records(other).into_iter();
    assert_eq!(marks.filter(|(_, header, _)| header.deleted).count(), 0);
}

#[test]
fn short_transactions_need_no_new_undo_pages() {
    // With small limits for full pages there are more of them.
    if crate::knobs::SHAKEN {
        return;
    }
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    for i in 0..5000u32 {
        let mut txn = fixture.begin(ReadCommitted);
        put(
            &mut txn,
            &fixture.tree,
            b"k",
            &i.to_le_bytes(),
            PutMode::Update,
        )
        .unwrap();
        txn.commit().unwrap();
        if i % 50 == 0 {
            fixture.purge();
        }
        assert!(fixture.transactions.stats().undo_pages <= 3);
    }
}

#[test]
fn status_memory_follows_the_running_span() {
    let fixture = Fixture::new();
    for i in 0..30_000u32 {
        let mut txn = fixture.begin(ReadCommitted);
        let row = i.to_le_bytes();
        put(&mut txn, &fixture.tree, &key(i % 10), &row, PutMode::Upsert).unwrap();
        txn.commit().unwrap();
        if i % 1000 == 0 {
            fixture.purge();
            assert!(fixture.transactions.stats().status_bytes <= 3 * 8192 * 8);
        }
    }
}

#[test]
fn notes_are_told_once_each_in_the_right_case() {
    let fixture = Fixture::new();
    let note = |txn: &mut TreeTransaction, note: &[u8], purge: bool| {
        let inside = fixture.transactions.barrier().enter();
        if purge {
            txn.note_on_purge(&inside, note).unwrap();
        } else {
            txn.note_on_rollback(&inside, note).unwrap();
        }
    };
    let mut reader = fixture.begin(RepeatableRead);
    reader.view();
    let mut a = fixture.begin(ReadCommitted);
    note(&mut a, b"a purge", true);
    note(&mut a, b"a rollback", false);
    let savepoint: Savepoint = a.savepoint();
    note(&mut a, b"a purge, taken back", true);
    note(&mut a, b"a rollback, taken back", false);
    a.rollback_to(&savepoint).unwrap();
    assert_eq!(
        *fixture.trees.rolled_back.lock(),
        [b"a rollback, taken back"]
    );
    a.commit().unwrap();
    let mut b = fixture.begin(ReadCommitted);
    note(&mut b, b"b purge", true);
    note(&mut b, b"b rollback", false);
    b.rollback().unwrap();
    fixture.purge();
    assert!(fixture.trees.purged.lock().is_empty());
    drop(reader);
    fixture.purge();
    assert_eq!(*fixture.trees.purged.lock(), [b"a purge"]);
    let rolled_back = fixture.trees.rolled_back.lock().clone();
    assert_eq!(rolled_back, [&b"a rollback, taken back"[..], b"b rollback"]);
}

/// The owner can try a rollback again that failed half-way (here its note is refused). If the owner is gone, purge
/// does.
#[test]
fn a_failed_rollback_is_tried_again() {
    let fixture = Fixture::new();
    fixture.load([
        (b"k".to_vec(), b"0".to_vec()),
        (b"l".to_vec(), b"0".to_vec()),
    ]);
    let refuse = |refuse| {
        fixture
            .trees
            .refuse_rollback
            .store(refuse, Ordering::Relaxed)
    };
    for owner_tries_again in [true, false] {
        refuse(true);
        let mut txn = fixture.begin(ReadCommitted);
        put(&mut txn, &fixture.tree, b"k", b"1", PutMode::Update).unwrap();
        let inside = fixture.transactions.barrier().enter();
        txn.note_on_rollback(&inside, b"note").unwrap();
        drop(inside);
        put(&mut txn, &fixture.tree, b"l", b"1", PutMode::Update).unwrap();
        assert!(matches!(txn.rollback(), Err(Error::NoSpace { .. })));
        if !owner_tries_again {
            drop(txn);
            fixture.purge();
            assert_eq!(fixture.transactions.stats().abandoned, 1);
            refuse(false);
            fixture.purge();
        } else {
            refuse(false);
            txn.rollback().unwrap();
        }
        assert_eq!(fixture.transactions.stats().abandoned, 0);
        let mut reader = fixture.begin(ReadCommitted);
        for key in [b"k", b"l"] {
            assert_eq!(get(&mut reader, &fixture.tree, key).unwrap(), b"0");
            put(&mut reader, &fixture.tree, key, b"2", PutMode::Update).unwrap();
        }
        reader.rollback().unwrap();
    }
}

/// The failed rollback keeps only the locks of what it has written.
#[test]
fn a_rollback_that_stands_still_keeps_no_old_versions_and_nothing_of_the_log() {
    let fixture = Fixture::new();
    let (transactions, tree) = (&fixture.transactions, &fixture.tree);
    fixture.load((0..10).map(|i| (key(i), vec![1])));
    let mut txn = fixture.begin(RepeatableRead);
    txn.view();
    {
        let inside = transactions.barrier().enter();
        txn.note_on_rollback(&inside, b"note").unwrap();
    }
    put(&mut txn, tree, &key(0), b"2", PutMode::Update).unwrap();
    {
        let inside = transactions.barrier().enter();
        txn.append_part(&inside).unwrap();
    }
    let refuse = &fixture.trees.refuse_rollback;
    refuse.store(true, Ordering::Relaxed);
    assert!(matches!(txn.rollback(), Err(Error::NoSpace { .. })));
    drop(txn);
    assert_eq!(transactions.stats().abandoned, 1);

    let mut other = fixture.begin(ReadCommitted);
    for i in 1..10 {
        delete(&mut other, tree, &key(i)).unwrap();
    }
    other.commit().unwrap();
    fixture.purge();
    assert_eq!(deleted_marks(&fixture), 0);
    let closed = transactions.barrier().close();
    let at = fixture.log.mark().unwrap();
    assert_eq!(transactions.capture(&closed).redo_from(at), at);
    drop(closed);

    refuse.store(false, Ordering::Relaxed);
    fixture.purge();
    assert_eq!(transactions.stats().abandoned, 0);
    let mut reader = fixture.begin(ReadCommitted);
    assert_eq!(get(&mut reader, tree, &key(0)).unwrap(), [1]);
}

/// One step undoes a part only, because nothing else is purged during a step.
#[test]
fn a_step_takes_back_a_part_of_what_was_abandoned() {
    let fixture = Fixture::new();
    let (transactions, tree) = (&fixture.transactions, &fixture.tree);
    let mut txn = fixture.begin(ReadCommitted);
    let rows = 2 * crate::knobs::purge_step() as u32;
    for i in 0..rows {
        put(&mut txn, tree, &key(i), b"1", PutMode::Insert).unwrap();
    }
    {
        let inside = transactions.barrier().enter();
        txn.note_on_rollback(&inside, b"note").unwrap();
    }
    let refuse = &fixture.trees.refuse_rollback;
    refuse.store(true, Ordering::Relaxed);
    drop(txn);
    assert_eq!(transactions.stats().abandoned, 1);
    // A rollback that can't go on does not ask for another step at once.
    assert!(!transactions.purge_step().unwrap());
    refuse.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        assert!(transactions.purge_step().unwrap(), "there is more to do");
        assert_eq!(transactions.stats().abandoned, 1);
    }
    fixture.purge();
    assert_eq!(transactions.stats().abandoned, 0);
    assert!(fixture.records(tree).is_empty());
}

/// Purge normally pauses after an error, such as a page that the disk does not return.
#[test]
fn what_purge_can_not_read_slows_no_rollback_down() {
    let fixture = Fixture::new();
    let (transactions, tree, other) = (&fixture.transactions, &fixture.tree, &fixture.other);
    let mut txn = fixture.begin(ReadCommitted);
    put(&mut txn, other, &key(0), b"1", PutMode::Insert).unwrap();
    txn.commit().unwrap();
    delete(&mut txn, other, &key(0)).unwrap();
    txn.commit().unwrap();
    for i in 0..2 * crate::knobs::purge_step() as u32 {
        put(&mut txn, tree, &key(i), b"1", PutMode::Insert).unwrap();
    }
    {
        let inside = transactions.barrier().enter();
        txn.note_on_rollback(&inside, b"note").unwrap();
    }
    let refuse = &fixture.trees.refuse_rollback;
    refuse.store(true, Ordering::Relaxed);
    drop(txn);
    refuse.store(false, Ordering::Relaxed);
    *fixture.trees.unopened.lock() = Some(OTHER);
    for _ in 0..2 {
        assert!(transactions.purge_step().unwrap(), "there is more to do");
        assert_eq!(transactions.stats().abandoned, 1);
    }
    assert!(transactions.purge_step().is_err());
    assert_eq!(transactions.stats().abandoned, 0);
    *fixture.trees.unopened.lock() = None;
    fixture.purge();
    assert!(fixture.records(tree).is_empty());
    assert!(fixture.records(other).is_empty());
}

/// The next opening does the rest of its rollback.
#[test]
fn a_transaction_that_outlives_its_database_is_let_go_though_its_rollback_fails() {
    let fixture = Fixture::new();
    let mut txn = fixture.begin(ReadCommitted);
    put(&mut txn, &fixture.tree, b"k", b"1", PutMode::Insert).unwrap();
    {
        let inside = fixture.transactions.barrier().enter();
        txn.note_on_rollback(&inside, b"note").unwrap();
    }
    let refuse = &fixture.trees.refuse_rollback;
    refuse.store(true, Ordering::Relaxed);
    let transactions = Arc::downgrade(&fixture.transactions);
    fixture.transactions.shutdown();
    drop(txn);
    drop(fixture);
    assert_eq!(transactions.strong_count(), 0, "it is kept in memory");
}

#[test]
fn undo_of_a_dropped_tree_is_skipped() {
    let fixture = Fixture::new();
    fixture.load([(b"k".to_vec(), b"0".to_vec())]);
    let mut txn = fixture.begin(ReadCommitted);
    delete(&mut txn, &fixture.tree, b"k").unwrap();
    txn.commit().unwrap();
    let mut running = fixture.begin(ReadCommitted);
    put(&mut running, &fixture.tree, b"l", b"1", PutMode::Insert).unwrap();
    fixture.trees.trees.lock().remove(&TREE);
    fixture.purge();
    running.rollback().unwrap();
    fixture.purge();
    assert_eq!(fixture.transactions.stats().unpurged, 0);
}

/// Undo and rows are many times as large as the pool: old versions are read from disk, for a reader and for the
/// rollback.
#[test]
fn undo_larger_than_the_pool_spills_and_comes_back() {
    let fixture = Fixture::with_pool(1 << 20);
    let rows = 4000;
    fixture.load((0..rows).map(|i| (key(i), vec![1; 400])));
    let mut reader = fixture.begin(RepeatableRead);
    let view = reader.view();
    let mut txn = fixture.begin(ReadCommitted);
    for round in 2..5u8 {
        for i in 0..rows {
            let row = vec![round; 300 + usize::from(round) * 50];
            put(&mut txn, &fixture.tree, &key(i), &row, PutMode::Update).unwrap();
        }
    }
    assert!(fixture.transactions.stats().undo_pages > 3 * fixture.pool.stats().frames);
    let seen = scan(&reader, &fixture.tree, &view);
    assert_eq!(seen.len(), rows as usize);
    assert!(seen.values().all(|row| row == &vec![1; 400]));
    txn.rollback().unwrap();
    let seen = scan(&reader, &fixture.tree, &view);
    assert_eq!(seen.len(), rows as usize);
    assert!(seen.values().all(|row| row == &vec![1; 400]));
    drop(reader);
    fixture.purge();
    assert!(fixture.transactions.stats().undo_pages <= 4);
}

/// A transaction far larger than one undo page, rolled back to savepoints and then completely.
#[test]
fn a_large_transaction_rolls_back_byte_for_byte() {
    let fixture = Fixture::new();
    fixture.load((0..300).map(|i| (key(i), vec![i as u8; (i as usize * 37) % 900])));
    fixture.purge();
    let before = fixture.records(&fixture.tree);
    let mut txn = fixture.begin(RepeatableRead);
    let change = |txn: &mut TreeTransaction, tree: &Tree, round: u32| {
        for i in 0..350 {
            match (i + round) % 3 {
                0 => drop(delete(txn, tree, &key(i))),
                _ => {
                    let row = vec![round as u8; ((i + round) as usize * 53) % 1500];
                    put(txn, tree, &key(i), &row, PutMode::Upsert).unwrap();
                }
            }
        }
    };
    change(&mut txn, &fixture.tree, 1);
    let view = txn.view();
    let after_first = scan(&txn, &fixture.tree, &view);
    let savepoint = txn.savepoint();
    for round in 2..6 {
        change(&mut txn, &fixture.tree, round);
    }
    txn.rollback_to(&savepoint).unwrap();
    assert_eq!(scan(&txn, &fixture.tree, &view), after_first);
    change(&mut txn, &fixture.tree, 9);
    txn.rollback().unwrap();
    assert!(txn.rollback_to(&savepoint).is_err());
    // A freeze may have stripped headers meanwhile; the rows must be the same.
    let rows = |records: Vec<(Vec<u8>, crate::mvcc::Header, Vec<u8>)>| {
        let live = records.into_iter().filter(|(_, header, _)| !header.deleted);
        live.map(|(key, _, row)| (key, row)).collect::<Vec<_>>()
    };
    assert_eq!(rows(fixture.records(&fixture.tree)), rows(before));
}
