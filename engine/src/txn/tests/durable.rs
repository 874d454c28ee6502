//! Commits in the log, and restarts from a checkpoint.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::fixture::{delete, get_locked, log_options, put, Fixture, OTHER, TREE};
use crate::buffer::PoolWithThreads;
use crate::error::Error;
use crate::ids::{Lsn, TxId};
use crate::log::Log;
use crate::mvcc::encode_frozen;
use crate::os::{Os, RealOs};
use crate::settings::Isolation::ReadCommitted;
use crate::store::Store;
use crate::tree::{RecordEdit as TreeChange, Tree};
use crate::txn::{Captured, Change, ChangeReader, PutMode, KIND_CHANGES, KIND_COMMIT};

fn key(i: u32) -> Vec<u8> {
    i.to_be_bytes().to_vec()
}

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn rows(fixture: &Fixture) -> Rows {
    let records = fixture.records(&fixture.tree);
    let live = records.into_iter().filter(|(_, header, _)| !header.deleted);
    live.map(|(key, _, row)| (key, row)).collect()
}

/// Takes a checkpoint as `checkpoint/` does; returns what it captured and its log position.
fn checkpoint(fixture: &Fixture, while_writing: impl FnOnce()) -> (Captured, Lsn) {
    let closed = fixture.transactions.barrier().close();
    let epoch = fixture.store.begin_checkpoint();
    fixture.pool.begin_checkpoint(epoch);
    let at = fixture.log.mark().unwrap();
    let captured = fixture.transactions.capture(&closed);
    drop(closed);
    while_writing();
    fixture
        .pool
        .write_checkpoint(epoch, &mut |_| Ok(()))
        .unwrap();
    fixture.store.complete_checkpoint(epoch, b"").unwrap();
    (captured, at)
}

/// Ends without closing anything, opens again, rolls back and replays.
fn restart(fixture: Fixture, captured: &Captured, at: Lsn) -> Fixture {
    let from = captured.redo_from(at);
    let fixture = open_again(fixture, from);
    fixture.transactions.roll_back_losers(captured).unwrap();
    replay(&fixture, from, at);
    fixture
}

/// Ends without closing anything, and opens again.
fn open_again(fixture: Fixture, from: Lsn) -> Fixture {
    let (root, other_root) = (fixture.tree.root(), fixture.other.root());
    fixture
        .log
        .durable(fixture.log.end(), crate::Durability::SyncAtCommit)
        .unwrap();
    let Fixture {
        dir,
        store,
        log,
        transactions,
        trees,
        tree,
        other,
        pool,
    } = fixture;
    transactions.shutdown();
    trees.trees.lock().clear();
    drop((tree, other, trees, transactions, pool, log, store));

    let os: Arc<dyn Os> = RealOs::new();
    let (store, _) = Store::open(os.clone(), &dir.path().join("db")).unwrap();
    let store = Arc::new(store);
    let options = log_options(&store);
    let log = Log::open(os, &dir.path().join("db/log"), options, from).unwrap();
    let pool = PoolWithThreads::new(8 << 20, store.clone()).unwrap();
    let tree = Arc::new(Tree::open(&pool, TREE, root).unwrap());
    let other = Arc::new(Tree::open(&pool, OTHER, other_root).unwrap());
    Fixture::assemble(dir, store, Arc::new(log), pool, tree, other)
}

/// The data of a note can't be read at the next opening; the note's transaction had not ended.
#[test]
fn a_note_that_can_not_be_followed_at_an_opening_is_told_of_and_all_else_is_rolled_back() {
    let fixture = Fixture::new();
    let mut txn = fixture.begin(ReadCommitted);
    put(&mut txn, &fixture.tree, &key(1), b"1", PutMode::Insert).unwrap();
    {
        let inside = fixture.transactions.barrier().enter();
        txn.note_on_rollback(&inside, b"note").unwrap();
    }
    put(&mut txn, &fixture.tree, &key(2), b"2", PutMode::Insert).unwrap();
    let (captured, at) = checkpoint(&fixture, || ());
    txn.leave_for_recovery();
    drop(txn);
    let fixture = open_again(fixture, captured.redo_from(at));
    let damaged = &fixture.trees.notes_are_damaged;
    damaged.store(true, Ordering::Relaxed);
    fixture.transactions.roll_back_losers(&captured).unwrap();
    assert_eq!(*fixture.trees.lost_notes.lock(), [b"note"]);
    assert!(rows(&fixture).is_empty());
}

fn replay(fixture: &Fixture, from: Lsn, checkpoint: Lsn) {
    let mut committed = Vec::new();
    let mut highest = TxId(0);
    for record in fixture.log.read_from(from).unwrap() {
        let record = record.unwrap();
        if record.kind == KIND_COMMIT || record.kind == KIND_CHANGES {
            let (txid, _) = ChangeReader::new(&record.payload).unwrap();
            highest = highest.max(txid);
            if record.kind == KIND_COMMIT && record.start >= checkpoint {
                committed.push(txid);
            }
        }
    }
    for record in fixture.log.read_from(from).unwrap() {
        let record = record.unwrap();
        if record.kind != KIND_COMMIT && record.kind != KIND_CHANGES {
            continue;
        }
        let (txid, changes) = ChangeReader::new(&record.payload).unwrap();
        if !committed.contains(&txid) {
            continue;
        }
        for change in changes {
            let change = change.unwrap();
            fixture
                .tree
                .modify(change.key, 4000, 0, |_, out| match change.change {
                    Change::Put(payload) => {
                        encode_frozen(payload, out);
                        (TreeChange::Put, ())
                    }
                    Change::Delete => (TreeChange::Remove, ()),
                })
                .unwrap();
        }
    }
    fixture.transactions.raise_txid(highest);
}

#[test]
fn a_restart_finds_exactly_the_committed() {
    let fixture = Fixture::new();
    fixture.load((0..500).map(|i| (key(i), vec![0; 100])));
    let mut deleted = fixture.begin(ReadCommitted);
    for i in 0..50 {
        delete(&mut deleted, &fixture.tree, &key(i)).unwrap();
    }
    deleted.commit().unwrap();
    // Of those running at the checkpoint, one commits later, one rolls back later, and one never ends.
    let mut commits = fixture.begin(ReadCommitted);
    let mut aborts = fixture.begin(ReadCommitted);
    let mut loses = fixture.begin(ReadCommitted);
    for i in 50..100 {
        put(
            &mut commits,
            &fixture.tree,
            &key(i),
            &[1; 300],
            PutMode::Update,
        )
        .unwrap();
        put(
            &mut aborts,
            &fixture.tree,
            &key(i + 50),
            &[2; 300],
            PutMode::Update,
        )
        .unwrap();
        put(
            &mut loses,
            &fixture.tree,
            &key(i + 100),
            &[3; 300],
            PutMode::Update,
        )
        .unwrap();
        delete(&mut loses, &fixture.tree, &key(i + 100)).unwrap();
        put(
            &mut loses,
            &fixture.tree,
            &key(i + 1000),
            &[3; 300],
            PutMode::Insert,
        )
        .unwrap();
        // This goes over a delete mark that is not purged yet.
        put(
            &mut loses,
            &fixture.tree,
            &key(i - 50),
            &[3; 30],
            PutMode::Insert,
        )
        .unwrap();
    }
    let later = 200..250;
    let (captured, at) = checkpoint(&fixture, || {
        for i in later.clone() {
            put(
                &mut commits,
                &fixture.tree,
                &key(i),
                &[4; 10],
                PutMode::Update,
            )
            .unwrap();
            put(
                &mut loses,
                &fixture.tree,
                &key(i + 50),
                &[5; 10],
                PutMode::Update,
            )
            .unwrap();
        }
    });
    commits.commit().unwrap();
    aborts.rollback().unwrap();
    let mut after = fixture.begin(ReadCommitted);
    put(
        &mut after,
        &fixture.tree,
        &key(100),
        b"after",
        PutMode::Update,
    )
    .unwrap();
    delete(&mut after, &fixture.tree, &key(101)).unwrap();
    after.commit().unwrap();

    let mut expected: Rows = (50..500).map(|i| (key(i), vec![0; 100])).collect();
    for i in 50..100 {
        expected.insert(key(i), vec![1; 300]);
    }
    for i in later {
        expected.insert(key(i), vec![4; 10]);
    }
    expected.insert(key(100), b"after".to_vec());
    expected.remove(&key(101));
    let highest = after_highest(&fixture);
    // Its rollback is not in the log, and no checkpoint follows.
    drop((deleted, commits, aborts, loses, after));

    let fixture = restart(fixture, &captured, at);
    assert_eq!(rows(&fixture), expected);
    let records = fixture.records(&fixture.tree);
    assert!(records.iter().all(|(_, header, _)| !header.deleted));
    assert_eq!(fixture.transactions.stats().undo_pages, 0);

    // Further transactions get new numbers.
    let mut txn = fixture.begin(ReadCommitted);
    for i in 0..600 {
        put(&mut txn, &fixture.tree, &key(i), b"new", PutMode::Upsert).unwrap();
    }
    assert!(txn.id().unwrap() > highest);
    txn.rollback().unwrap();
    assert_eq!(rows(&fixture), expected);
}

fn after_highest(fixture: &Fixture) -> TxId {
    TxId(fixture.transactions.order().next_txid().0 - 1)
}

/// A transaction of many megabytes logs its redo in parts, and rolls some back after the parts are in the log. A
/// checkpoint comes in its middle.
#[test]
fn redo_in_parts_is_compensated_and_replayed_from_before_the_checkpoint() {
    let fixture = Fixture::new();
    fixture.load((0..100).map(|i| (key(i), b"old".to_vec())));
    let mut big = fixture.begin(ReadCommitted);
    for i in 0..400 {
        put(
            &mut big,
            &fixture.tree,
            &key(i),
            &[6; 1500],
            PutMode::Upsert,
        )
        .unwrap();
    }
    let savepoint = big.savepoint();
    for i in 50..500 {
        if i % 2 == 0 {
            put(
                &mut big,
                &fixture.tree,
                &key(i),
                &[7; 1500],
                PutMode::Upsert,
            )
            .unwrap();
        } else {
            let _ = delete(&mut big, &fixture.tree, &key(i));
        }
    }
    big.rollback_to(&savepoint).unwrap();
    let (captured, at) = checkpoint(&fixture, || {});
    assert!(captured.redo_from(at) < at);
    put(&mut big, &fixture.tree, &key(3), b"last", PutMode::Update).unwrap();
    big.commit().unwrap();
    let mut expected: Rows = (0..400).map(|i| (key(i), vec![6; 1500])).collect();
    expected.insert(key(3), b"last".to_vec());
    assert_eq!(rows(&fixture), expected);
    drop(big);

    let fixture = restart(fixture, &captured, at);
    assert_eq!(rows(&fixture), expected);
}

/// Checkpoints are taken while threads move money: after a restart from the last one, each account is exactly as it
/// was.
#[test]
fn a_restart_after_checkpoints_under_load_finds_the_whole_bank() {
    let fixture = Fixture::new();
    fixture.transactions.start_purge().unwrap();
    let accounts = 40u32;
    let amount = |row: &[u8]| u64::from_le_bytes(row[..8].try_into().unwrap());
    fixture.load((0..accounts).map(|i| (key(i), 100u64.to_le_bytes().to_vec())));
    let mut last = None;
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..3)
            .map(|seed| {
                let fixture = &fixture;
                scope.spawn(move || move_money(fixture, seed, accounts))
            })
            .collect();
        while last.is_none() || movers.iter().any(|mover| !mover.is_finished()) {
            last = Some(checkpoint(&fixture, || {}));
        }
    });
    let before = rows(&fixture);
    assert_eq!(before.values().map(|row| amount(row)).sum::<u64>(), 4000);
    let (captured, at) = last.unwrap();
    let fixture = restart(fixture, &captured, at);
    assert_eq!(rows(&fixture), before);
    let records = fixture.records(&fixture.tree);
    assert!(records.iter().all(|(_, header, _)| !header.deleted));
}

fn move_money(fixture: &Fixture, seed: u64, accounts: u32) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut txn = fixture.begin(ReadCommitted);
    for round in 0..600 {
        let (from, to) = (
            random.random_range(0..accounts),
            random.random_range(0..accounts),
        );
        let outcome = (|| {
            let savepoint = txn.savepoint();
            for (account, sign) in [(from, -1i64), (to, 1)] {
                let row = get_locked(&mut txn, &fixture.tree, &key(account))?;
                let row = row.unwrap_or_else(|| vec![0; 8]);
                let amount = i64::from_le_bytes(row[..8].try_into().unwrap()) + sign;
                if amount < 0 {
                    return txn.rollback_to(&savepoint);
                }
                let mut row = amount.to_le_bytes().to_vec();
                row.resize(8 + random.random_range(0..400), 1);
                match amount {
                    0 => delete(&mut txn, &fixture.tree, &key(account))?,
                    _ => drop(put(
                        &mut txn,
                        &fixture.tree,
                        &key(account),
                        &row,
                        PutMode::Upsert,
                    )?),
                }
            }
            Ok(())
        })();
        match outcome {
            Ok(()) if round % 7 == 0 => txn.rollback().unwrap(),
            Ok(()) => txn.commit().unwrap(),
            Err(Error::Deadlock) => txn.rollback().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_transaction_that_took_everything_back_logs_nothing() {
    let fixture = Fixture::new();
    let before = fixture.log.end();
    let mut txn = fixture.begin(ReadCommitted);
    let savepoint = txn.savepoint();
    put(&mut txn, &fixture.tree, &key(1), b"x", PutMode::Insert).unwrap();
    txn.rollback_to(&savepoint).unwrap();
    txn.commit().unwrap();
    let mut reader = fixture.begin(ReadCommitted);
    reader.view();
    reader.commit().unwrap();
    assert_eq!(fixture.log.end(), before);
    assert_eq!(fixture.records(&fixture.tree), []);
}
