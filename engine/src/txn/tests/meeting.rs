//! Purge, pruning, commits and readers in one stream or row at the same time, and their behaviour after errors.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};

use super::fixture::{delete, put, scan, Fixture, OTHER, TREE};
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::settings::Isolation::{ReadCommitted, RepeatableRead};
use crate::sync::Moment;
use crate::tree::Tree;
use crate::txn::{PutMode, TransactionManager};
use crate::undo::pruning::Pace;

fn key(i: u32) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

/// Runs a transaction that writes some rows, all alike.
fn write(transactions: &Arc<TransactionManager>, tree: &Tree, rows: Range<u32>, row: &[u8]) {
    let mut txn = transactions.begin(ReadCommitted);
    for i in rows {
        put(&mut txn, tree, &key(i), row, PutMode::Upsert).unwrap();
    }
    txn.commit().unwrap();
}

/// Makes every snapshot count as old, and lets pruning look at survivors again without delay.
fn without_delay(fixture: &Fixture) {
    *fixture.transactions.pruning.pace.lock() = Pace {
        old: Duration::ZERO,
        again: Duration::ZERO,
        few: 0,
    };
}

/// After purge has looked at the oldest end, a transaction ends in the same page; the horizon has not passed it.
#[test]
fn an_end_that_joins_another_while_purge_looks_at_it_is_not_dropped_with_it() {
    let fixture = Fixture::new();
    let (transactions, tree) = (fixture.transactions.clone(), fixture.tree.clone());
    write(&transactions, &tree, 0..40, &[1; 100]);
    fixture.purge();
    write(&transactions, &tree, 0..1, &[2; 100]);
    let mut reader = fixture.begin(RepeatableRead);
    let view = reader.view();
    let before = scan(&reader, &tree, &view);
    let (writer, rows) = (transactions.clone(), tree.clone());
    transactions.moments.at(Moment::EndLookedAt, move || {
        write(&writer, &rows, 5..15, &[3; 100]);
    });
    fixture.purge();
    assert!(transactions.moments.passed());
    // If purge had dropped that end, too, this undo would overwrite its undo.
    write(&transactions, &tree, 20..30, &[4; 100]);
    assert_eq!(scan(&reader, &tree, &view), before);
    drop(reader);
    fixture.purge();
    assert_eq!(transactions.stats().unpurged, 0);
}

/// After purge has looked at the oldest end, pruning empties the end's page, and the end leaves the list. The horizon
/// has not passed the next end.
#[test]
fn purge_drops_no_end_that_pruning_has_put_in_the_place_of_another() {
    let fixture = Fixture::new();
    let (transactions, tree) = (fixture.transactions.clone(), fixture.tree.clone());
    write(&transactions, &tree, 0..200, &[1; 600]);
    transactions.purge_all().unwrap();
    let mut first = fixture.begin(RepeatableRead);
    first.view();
    write(&transactions, &tree, 0..3, &[2; 600]);
    let mut second = fixture.begin(RepeatableRead);
    let view = second.view();
    let before = scan(&second, &tree, &view);
    // Several pages of undo, all of which `second` needs.
    write(&transactions, &tree, 0..200, &[3; 600]);
    drop(first);
    let pruner = transactions.clone();
    transactions.moments.at(Moment::EndLookedAt, move || {
        pruner.prune_own_now();
    });
    transactions.purge_step().unwrap();
    assert!(transactions.moments.passed());
    for round in 4..8 {
        write(&transactions, &tree, 0..200, &[round; 600]);
    }
    assert_eq!(scan(&second, &tree, &view), before);
    drop(second);
    transactions.purge_all().unwrap();
    assert_eq!(transactions.stats().undo_pages, 0);
}

/// The end with most notes is the survivors' newest when pruning looks at them again.
#[test]
fn notes_left_with_survivors_are_told_once_each() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::new();
    without_delay(&fixture);
    let (transactions, tree) = (fixture.transactions.clone(), fixture.tree.clone());
    write(&transactions, &tree, 0..20, &[1; 100]);
    let mut first = fixture.begin(RepeatableRead);
    first.view();
    write(&transactions, &tree, 20..40, &[1; 100]);
    let mut second = fixture.begin(RepeatableRead);
    second.view();
    let notes: Vec<Vec<u8>> = (0..20_000u32)
        .map(|i| [&i.to_be_bytes()[..], &[0; 16]].concat())
        .collect();
    let mut txn = fixture.begin(ReadCommitted);
    for note in &notes {
        let inside = transactions.barrier().enter();
        txn.note_on_purge(&inside, note).unwrap();
    }
    txn.commit().unwrap();
    transactions.prune_now();
    let pruned = transactions.stats().pruned_pages;
    drop(first);
    for _ in 0..200 {
        transactions.prune_now();
    }
    assert!(transactions.stats().pruned_pages > pruned, "no second look");
    drop(second);
    fixture.purge();
    let mut told = fixture.trees.purged.lock().clone();
    told.sort_unstable();
    assert!(told == notes, "{} of {} notes", told.len(), notes.len());
}

#[test]
fn looking_through_survivors_again_comes_to_an_end() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::new();
    without_delay(&fixture);
    let (transactions, tree) = (fixture.transactions.clone(), fixture.tree.clone());
    write(&transactions, &tree, 0..2000, &[1; 600]);
    let mut first = fixture.begin(RepeatableRead);
    first.view();
    write(&transactions, &tree, 0..1000, &[2; 600]);
    let mut second = fixture.begin(RepeatableRead);
    let view = second.view();
    let before = scan(&second, &tree, &view);
    write(&transactions, &tree, 0..2000, &[3; 600]);
    write(&transactions, &tree, 0..2000, &[4; 600]);
    transactions.prune_now();
    let kept = transactions.stats().undo_pages;
    drop(first);
    // There are a few hundred pages of survivors, and each step looks at some of them.
    for _ in 0..400 {
        transactions.prune_now();
    }
    let after = transactions.stats();
    for _ in 0..50 {
        transactions.prune_now();
    }
    assert_eq!(transactions.stats().pruned_pages, after.pruned_pages);
    assert!(after.undo_pages < kept, "{kept} pages, then {after:?}");
    assert_eq!(scan(&second, &tree, &view), before);
    drop(second);
    transactions.purge_all().unwrap();
    assert_eq!(transactions.stats().undo_pages, 0);
}

/// One undo page has rows of two trees, and one of the trees can't be opened.
#[test]
fn what_has_moved_stays_when_the_rest_of_its_page_can_not_be_reached() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::new();
    let (transactions, tree, other) = (&fixture.transactions, &fixture.tree, &fixture.other);
    write(transactions, tree, 0..10, &[1; 600]);
    write(transactions, other, 0..10, &[1; 600]);
    let mut reader = fixture.begin(RepeatableRead);
    let view = reader.view();
    let before = [scan(&reader, tree, &view), scan(&reader, other, &view)];
    let mut txn = fixture.begin(ReadCommitted);
    for tree in [tree, other] {
        for i in 0..10 {
            put(&mut txn, tree, &key(i), &[2; 600], PutMode::Update).unwrap();
        }
    }
    // This fills the page.
    for i in 100..200 {
        put(&mut txn, tree, &key(i), &[2; 600], PutMode::Upsert).unwrap();
        put(&mut txn, tree, &key(i), &[3; 600], PutMode::Upsert).unwrap();
    }
    txn.commit().unwrap();
    for unopened in [OTHER, TREE] {
        *fixture.trees.unopened.lock() = Some(unopened);
        transactions.prune_own_now();
        transactions.release_survivors();
        *fixture.trees.unopened.lock() = None;
        for round in 4..6 {
            write(transactions, tree, 0..10, &[round; 600]);
            write(transactions, other, 0..10, &[round; 600]);
        }
        assert_eq!(scan(&reader, tree, &view), before[0]);
        assert_eq!(scan(&reader, other, &view), before[1]);
    }
    transactions.prune_now();
    assert!(transactions.stats().pruned_pages > 0);
    assert_eq!(scan(&reader, tree, &view), before[0]);
    assert_eq!(scan(&reader, other, &view), before[1]);
    drop(reader);
    transactions.purge_all().unwrap();
    assert_eq!(transactions.stats().undo_pages, 0);
}

/// A later call purges what fails in one stream; the failure does not stop the purge of others.
#[test]
fn a_tree_that_can_not_be_opened_is_purged_when_it_can() {
    let fixture = Fixture::new();
    let (transactions, tree, other) = (&fixture.transactions, &fixture.tree, &fixture.other);
    write(transactions, tree, 0..10, &[1; 100]);
    write(transactions, other, 0..10, &[1; 100]);
    // The two overlap, so that each has its own stream.
    let mut txns = [fixture.begin(ReadCommitted), fixture.begin(ReadCommitted)];
    for (txn, tree) in txns.iter_mut().zip([tree, other]) {
        for i in 0..10 {
            delete(txn, tree, &key(i)).unwrap();
        }
    }
    for txn in &mut txns {
        txn.commit().unwrap();
    }
    *fixture.trees.unopened.lock() = Some(TREE);
    assert!(transactions.purge_all().is_err());
    assert_eq!(fixture.records(tree).len(), 10);
    assert_eq!(fixture.records(other).len(), 0);
    *fixture.trees.unopened.lock() = None;
    transactions.purge_all().unwrap();
    assert_eq!(fixture.records(tree).len(), 0);
    assert_eq!(transactions.stats().undo_pages, 0);
}

/// A failure in one stream leaves the step's budget to the others.
#[test]
fn purge_that_fails_takes_no_turn_of_others() {
    let fixture = Fixture::new();
    let (transactions, tree) = (&fixture.transactions, &fixture.tree);
    write(transactions, tree, 0..1, &[1; 100]);
    transactions.purge_all().unwrap();
    let mut txn = fixture.begin(ReadCommitted);
    delete(&mut txn, tree, &key(0)).unwrap();
    txn.commit().unwrap();
    *fixture.trees.unopened.lock() = Some(TREE);
    let horizon = transactions
        .snapshots()
        .horizon(transactions.order())
        .unwrap();
    for stream in transactions.streams().all() {
        let passed = stream.oldest_passed(horizon.csn).is_some();
        let mut budget = 1;
        let purged = transactions.purge_stream(&stream, horizon.csn, &mut budget);
        assert_eq!((purged.is_err(), budget), (passed, 1));
    }
    assert!(transactions.purge_all().is_err());
    *fixture.trees.unopened.lock() = None;
    transactions.purge_all().unwrap();
    assert_eq!(fixture.records(tree).len(), 0);
}

/// Two streams are pruned at once, and a row's chain goes through both. One pruner finds a page missing, and the
/// other empties that page.
#[test]
fn no_page_is_freed_that_pruning_is_on_its_way_to() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::with_pool(2 << 20);
    let (transactions, tree) = (fixture.transactions.clone(), fixture.tree.clone());
    let rows = 200;
    write(&transactions, &tree, 0..rows, &[1; 600]);
    transactions.purge_all().unwrap();
    let mut first = fixture.begin(RepeatableRead);
    let first_view = first.view();
    let first_rows = scan(&first, &tree, &first_view);
    // The holder takes the stream that is pruned first, so that other writes meanwhile go to another stream.
    let mut holder = fixture.begin(ReadCommitted);
    put(&mut holder, &tree, &key(rows), &[1; 600], PutMode::Insert).unwrap();
    write(&transactions, &tree, 0..rows, &[2; 600]);
    holder.rollback().unwrap();
    let mut second = fixture.begin(RepeatableRead);
    let second_view = second.view();
    let second_rows = scan(&second, &tree, &second_view);
    write(&transactions, &tree, 0..rows, &[3; 600]);
    // This evicts all of these pages.
    write(&transactions, &fixture.other, 0..8000, &[0; 600]);

    let waiting = Arc::new(AtomicUsize::new(0));
    let (pruner, seen) = (transactions.clone(), waiting.clone());
    transactions.moments.at(Moment::PageMissing, move || {
        pruner.prune_own_now();
        pruner.prune_own_now();
        seen.store(
            pruner.pruning.reclamation.waiting().len(),
            Ordering::Relaxed,
        );
    });
    transactions.prune_own_now();
    assert!(transactions.moments.passed());
    assert!(waiting.load(Ordering::Relaxed) > 0, "freed at once");
    transactions.prune_now();
    assert_eq!(scan(&first, &tree, &first_view), first_rows);
    assert_eq!(scan(&second, &tree, &second_view), second_rows);
    drop((first, second));
    transactions.purge_all().unwrap();
    assert_eq!(transactions.stats().undo_pages, 0);
}

/// A table is dropped when pruning has chosen a record of it, but is not inside the barrier yet. Pruning must not
/// visit the dropped tree.
#[test]
fn a_tree_that_goes_before_pruning_is_inside_the_barrier_is_left_alone() {
    for deleted in [false, true] {
        let fixture = Fixture::new();
        let (transactions, tree, other) = (&fixture.transactions, &fixture.tree, &fixture.other);
        write(transactions, tree, 0..10, &[1; 600]);
        write(transactions, other, 0..200, &[1; 600]);
        transactions.purge_all().unwrap();
        let mut reader = fixture.begin(RepeatableRead);
        let view = reader.view();
        let before = scan(&reader, other, &view);
        let mut txn = fixture.begin(ReadCommitted);
        for i in 0..10 {
            if deleted {
                delete(&mut txn, tree, &key(i)).unwrap();
            } else {
                put(&mut txn, tree, &key(i), &[2; 600], PutMode::Update).unwrap();
            }
        }
        // This fills the page.
        for i in 0..200 {
            put(&mut txn, other, &key(i), &[2; 600], PutMode::Update).unwrap();
        }
        txn.commit().unwrap();
        let (dropping, trees) = (transactions.clone(), fixture.trees.clone());
        let (goes, store) = (tree.clone(), fixture.store.clone());
        transactions.moments.at(Moment::BeforeVisit, move || {
            let _closed = dropping.barrier().close();
            trees.trees.lock().remove(&TREE);
            goes.destroy().unwrap();
            // No other tree gets the page's number, so a thread that still looks for the page gets an error.
            assert_eq!(store.allocate_page(), goes.root());
        });
        transactions.prune_now();
        assert!(transactions.moments.passed());
        assert_eq!(scan(&reader, other, &view), before);
        drop(reader);
        transactions.purge_all().unwrap();
        assert_eq!(transactions.stats().undo_pages, 0);
    }
}

/// While a checkpoint runs, freeing a page requires its image to be written first.
#[test]
fn undo_pages_that_can_not_be_freed_are_freed_later() {
    let os = SimulatedOs::new(1);
    let dir = tempfile::tempdir().unwrap();
    let data = Arc::new(os.clone());
    let fixture = Fixture::on(dir, data, std::path::Path::new("/db"), 8 << 20);
    let (transactions, tree) = (&fixture.transactions, &fixture.tree);
    // Rows that don't compress, so that images fill the buffer that is written at once.
    let mut random = StdRng::seed_from_u64(1);
    let mut row = [0; 2000];
    let mut txn = fixture.begin(ReadCommitted);
    for i in 0..1500 {
        random.fill_bytes(&mut row);
        put(&mut txn, tree, &key(i % 500), &row, PutMode::Upsert).unwrap();
    }
    txn.commit().unwrap();
    let closed = transactions.barrier().close();
    let epoch = fixture.store.begin_checkpoint();
    fixture.pool.begin_checkpoint(epoch);
    drop(closed);
    os.fail(FaultOn::Write, 0, std::io::ErrorKind::StorageFull);
    assert!(transactions.purge_all().is_err());
    os.heal();
    // All pages remain except those whose images fitted into the buffer.
    assert!(transactions.stats().undo_pages > 50);
    fixture
        .pool
        .write_checkpoint(epoch, &mut |_| Ok(()))
        .unwrap();
    transactions.purge_all().unwrap();
    assert_eq!(transactions.stats().undo_pages, 0);
}

#[test]
fn a_transaction_that_has_ended_holds_no_snapshot() {
    let fixture = Fixture::new();
    fixture.load([(key(1), vec![1])]);
    let mut txn = fixture.begin(RepeatableRead);
    txn.latest_view();
    fixture.load([(key(1), vec![2])]);
    txn.view();
    let live = |fixture: &Fixture| {
        let live = fixture
            .transactions
            .snapshots()
            .live(fixture.transactions.order());
        live.unwrap().all().len()
    };
    assert_eq!(live(&fixture), 2);
    txn.commit().unwrap();
    assert_eq!(live(&fixture), 0);
}

/// The writer of a row's newest versions commits while a reader of the newest state follows older versions.
///
/// No reader may see the versions that the writer itself changed again: neither a value nor a deletion.
#[test]
fn versions_between_others_of_their_writer_are_not_seen_where_it_commits_meanwhile() {
    let fixture = Fixture::new();
    let (transactions, tree) = (&fixture.transactions, &fixture.tree);
    fixture.load([(key(1), vec![0])]);
    let mut last = vec![0];
    // The step at which the writer commits, and the way in which the row is read.
    for (steps, by_scan) in (1..=4).flat_map(|steps| [(steps, false), (steps, true)]) {
        let mut writer = fixture.begin(ReadCommitted);
        put(&mut writer, tree, &key(1), &[1], PutMode::Update).unwrap();
        put(&mut writer, tree, &key(1), &[2], PutMode::Update).unwrap();
        delete(&mut writer, tree, &key(1)).unwrap();
        put(&mut writer, tree, &key(1), &[3], PutMode::Insert).unwrap();
        for _ in 1..steps {
            transactions.moments.at(Moment::VersionPassed, || ());
        }
        transactions
            .moments
            .at(Moment::VersionPassed, move || writer.commit().unwrap());
        let mut reader = fixture.begin(ReadCommitted);
        let view = reader.latest_view();
        let seen = match by_scan {
            true => scan(&reader, tree, &view).remove(&key(1)),
            false => reader.read(tree, &key(1), &view, <[u8]>::to_vec).unwrap(),
        };
        assert!(transactions.moments.passed());
        assert_eq!(seen, Some(last), "step {steps}, by scan: {by_scan}");
        last = vec![3];
    }
}
