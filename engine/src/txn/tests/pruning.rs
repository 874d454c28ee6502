//! Pruning under old snapshots: every snapshot sees the same as before, and versions that no snapshot sees are
//! removed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::fixture::{delete, get, put, scan, Fixture};
use crate::mvcc::ReadView;
use crate::settings::Isolation::{ReadCommitted, RepeatableRead};
use crate::txn::{PutMode, TreeTransaction};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(i: u32) -> Vec<u8> {
    // Long keys, so that there are several leaves.
    let mut key = i.to_be_bytes().to_vec();
    key.extend([7; 60]);
    key
}

/// One step of a history. There are few rows, so that chains are long.
#[derive(Clone, Debug)]
enum Step {
    /// A transaction that changes rows (row, size; size 0 deletes) and commits or rolls back.
    Change(Vec<(u32, usize)>, bool),
    /// Like `Change`, but left open; the transaction open before commits or rolls back.
    Open(Vec<(u32, usize)>, bool),
    TakeSnapshot,
    DropSnapshot(usize),
    Purge,
    Prune,
}

fn changes() -> impl Strategy<Value = Vec<(u32, usize)>> {
    let size = prop_oneof![1 => Just(0usize), 3 => 1usize..900];
    proptest::collection::vec((0u32..40, size), 1..40)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (changes(), any::<bool>()).prop_map(|(c, commit)| Step::Change(c, commit)),
        2 => (changes(), any::<bool>()).prop_map(|(c, commit)| Step::Open(c, commit)),
        3 => Just(Step::TakeSnapshot),
        2 => any::<usize>().prop_map(Step::DropSnapshot),
        1 => Just(Step::Purge),
        4 => Just(Step::Prune),
    ]
}

/// An open transaction, and the rows that it has changed; `None`: deleted.
struct Open {
    txn: TreeTransaction,
    changed: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

struct World {
    fixture: Fixture,
    /// The committed rows.
    rows: Rows,
    snapshots: Vec<(TreeTransaction, ReadView, Rows)>,
    open: Option<Open>,
    count: usize,
}

impl World {
    /// Changes rows that the open transaction has not changed.
    fn change(&mut self, changes: &[(u32, usize)]) -> Open {
        let mut txn = self.fixture.begin(ReadCommitted);
        let tree = &self.fixture.tree;
        let mut changed: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
        for (row, size) in changes {
            let key = key(*row);
            if self
                .open
                .as_ref()
                .is_some_and(|open| open.changed.contains_key(&key))
            {
                continue;
            }
            self.count += 1;
            let stands = match changed.get(&key) {
                Some(row) => row.is_some(),
                None => self.rows.contains_key(&key),
            };
            if *size > 0 {
                let mut payload = vec![self.count as u8; *size];
                payload[0] = (self.count >> 8) as u8;
                put(&mut txn, tree, &key, &payload, PutMode::Upsert).unwrap();
                changed.insert(key, Some(payload));
            } else if stands {
                delete(&mut txn, tree, &key).unwrap();
                changed.insert(key, None);
            }
        }
        Open { txn, changed }
    }

    fn end(&mut self, mut open: Open, commit: bool) {
        if !commit {
            return open.txn.rollback().unwrap();
        }
        open.txn.commit().unwrap();
        for (key, row) in open.changed {
            match row {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }

    fn end_open(&mut self, commit: bool) {
        if let Some(open) = self.open.take() {
            self.end(open, commit);
        }
    }

    fn check(&self) {
        for (txn, view, rows) in &self.snapshots {
            assert_eq!(&scan(txn, &self.fixture.tree, view), rows);
        }
        let mut txn = self.fixture.begin(RepeatableRead);
        let view = txn.view();
        assert_eq!(scan(&txn, &self.fixture.tree, &view), self.rows);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn every_snapshot_goes_on_seeing_what_it_saw(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut world = World {
            fixture: Fixture::new(),
            rows: Rows::new(),
            snapshots: Vec::new(),
            open: None,
            count: 0,
        };
        for step in steps {
            match step {
                Step::Change(changes, commit) => {
                    let open = world.change(&changes);
                    world.end(open, commit);
                }
                Step::Open(changes, commit) => {
                    world.end_open(commit);
                    world.open = Some(world.change(&changes));
                }
                Step::TakeSnapshot if world.snapshots.len() < 5 => {
                    let mut txn = world.fixture.begin(RepeatableRead);
                    let view = txn.view();
                    let rows = world.rows.clone();
                    world.snapshots.push((txn, view, rows));
                }
                Step::TakeSnapshot => {}
                Step::DropSnapshot(which) if !world.snapshots.is_empty() => {
                    let count = world.snapshots.len();
                    world.snapshots.swap_remove(which % count);
                }
                Step::DropSnapshot(_) => {}
                Step::Purge => world.fixture.purge(),
                Step::Prune => world.fixture.transactions.prune_now(),
            }
            world.check();
        }
        world.end_open(false);
        world.snapshots.clear();
        world.fixture.purge();
        world.fixture.transactions.purge_all().unwrap();
        prop_assert_eq!(world.fixture.transactions.stats().undo_pages, 0);
        let records = world.fixture.records(&world.fixture.tree);
        prop_assert_eq!(records.len(), world.rows.len(), "delete marks stay");
    }
}

#[test]
fn an_old_snapshot_costs_what_it_sees_however_much_is_written() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::new();
    let rows = 500u32;
    fixture.load((0..rows).map(|i| (key(i), vec![1; 100])));
    let mut reader = fixture.begin(RepeatableRead);
    let view = reader.view();
    let before = scan(&reader, &fixture.tree, &view);
    let mut most = 0;
    for round in 0..60u8 {
        for i in 0..rows {
            let mut txn = fixture.begin(ReadCommitted);
            put(
                &mut txn,
                &fixture.tree,
                &key(i),
                &[round; 100],
                PutMode::Update,
            )
            .unwrap();
            // This row is inserted and deleted between two snapshots.
            put(
                &mut txn,
                &fixture.tree,
                &key(rows + i),
                &[round],
                PutMode::Insert,
            )
            .unwrap();
            txn.commit().unwrap();
            delete(&mut txn, &fixture.tree, &key(rows + i)).unwrap();
            txn.commit().unwrap();
        }
        fixture.transactions.prune_now();
        most = most.max(fixture.transactions.stats().undo_pages);
    }
    // Nine pages have what the reader sees; without pruning there would be 1,200.
    assert!(most < 40, "{most} undo pages");
    let records = fixture.records(&fixture.tree).len();
    assert!(
        records < rows as usize + 250,
        "{records} records for {rows} rows"
    );
    assert_eq!(scan(&reader, &fixture.tree, &view), before);
    drop(reader);
    fixture.purge();
    assert_eq!(fixture.records(&fixture.tree).len(), rows as usize);
}

/// A leaf copied before pruning has pointers to undo that is gone.
#[test]
fn a_cursor_goes_on_from_a_leaf_copied_before_pruning() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::new();
    fixture.load((0..20).map(|i| (key(i), vec![1; 100])));
    let mut reader = fixture.begin(RepeatableRead);
    let view = reader.view();
    let change = |round: u8| {
        for i in 0..20 {
            let mut txn = fixture.begin(ReadCommitted);
            put(
                &mut txn,
                &fixture.tree,
                &key(i),
                &[round; 600],
                PutMode::Update,
            )
            .unwrap();
            txn.commit().unwrap();
        }
    };
    change(2);
    let mut image = crate::tree::LeafImage::new();
    let copied = reader.versions().before_copy();
    let first = crate::tree::Position::First;
    assert!(fixture.tree.copy_leaf(first, &mut image).unwrap());
    for round in 3..20 {
        change(round);
        fixture.transactions.prune_now();
    }
    assert!(fixture.transactions.stats().pruned_pages > 5);
    let mut buf = Vec::new();
    for i in 0..image.count() {
        let key = |key: &mut Vec<u8>| image.key(i, key);
        let value = image.value(i);
        let seen = reader
            .versions()
            .visible(&view, value, &mut buf, copied, &fixture.tree, key);
        assert_eq!(seen.unwrap(), Some(&[1; 100][..]));
    }
}

/// The reader's own snapshot is older than the version, and no other snapshot sees the version.
#[test]
fn what_was_committed_last_is_kept_for_who_looks_at_it() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::new();
    fixture.load((0..20).map(|i| (key(i), vec![1; 100])));
    let change = |round: u8| {
        for i in 0..20 {
            let mut txn = fixture.begin(ReadCommitted);
            let new = [round; 600];
            put(&mut txn, &fixture.tree, &key(i), &new, PutMode::Update).unwrap();
            txn.commit().unwrap();
        }
    };
    let mut reader = fixture.begin(ReadCommitted);
    reader.latest_view();
    change(2);
    change(3);
    let committed = reader.last_committed();
    for round in 4..20 {
        change(round);
        fixture.transactions.prune_now();
    }
    assert!(fixture.transactions.stats().pruned_pages > 5);
    let seen = scan(&reader, &fixture.tree, committed.view());
    assert_eq!(seen.len(), 20);
    assert!(seen.values().all(|row| row == &[3; 600]));
    // The list does not have this snapshot, and dropping it gives it up.
    assert_eq!(fixture.transactions.snapshots().registered().len(), 1);
    drop(committed);
    fixture.transactions.prune_now();
    let live = fixture
        .transactions
        .snapshots()
        .live(fixture.transactions.order());
    assert_eq!(live.unwrap().all().len(), 1);
}

/// Old snapshots come and go; each later one uses the streams of the one before.
#[test]
fn streams_of_survivors_are_taken_again() {
    if crate::knobs::SHAKEN {
        // The figures below hold for the knobs' defaults only.
        return;
    }
    let fixture = Fixture::new();
    let transactions = &fixture.transactions;
    fixture.load((0..200).map(|i| (key(i), vec![0; 600])));
    let mut streams = Vec::new();
    for round in 1..10u8 {
        let mut reader = fixture.begin(RepeatableRead);
        let view = reader.view();
        let before = scan(&reader, &fixture.tree, &view);
        for again in 0..2 {
            fixture.load((0..200).map(|i| (key(i), vec![round + again; 600])));
        }
        transactions.prune_now();
        assert!(transactions.stats().pruned_pages > 0);
        assert_eq!(scan(&reader, &fixture.tree, &view), before);
        drop(reader);
        transactions.purge_all().unwrap();
        assert_eq!(transactions.stats().undo_pages, 0);
        streams.push(transactions.streams().all().len());
    }
    assert!(streams.iter().all(|n| *n <= 2), "{streams:?} streams");
}

/// Readers, writers that commit and roll back, and pruning run at the same time.
#[test]
fn readers_see_sums_whole_while_undo_is_pruned() {
    let fixture = Fixture::with_pool(2 << 20);
    let rows = 60u32;
    let value = |n: u64| [&n.to_le_bytes()[..], &[3; 300]].concat();
    fixture.load((0..rows).map(|i| (key(i), value(1000))));
    let stop = AtomicBool::new(false);
    let of = |row: &[u8]| u64::from_le_bytes(row[..8].try_into().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..3u32 {
            let (fixture, stop) = (&fixture, &stop);
            scope.spawn(move || {
                let mut state = thread + 1;
                let mut random = move || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state >> 8
                };
                while !stop.load(Ordering::Relaxed) {
                    let mut txn = fixture.begin(ReadCommitted);
                    // In one order, so that there are no deadlocks.
                    let from = random() % (rows - 1);
                    let to = from + 1 + random() % (rows - 1 - from);
                    for (row, less) in [(from, true), (to, false)] {
                        let kept = super::fixture::get_locked(&mut txn, &fixture.tree, &key(row));
                        let old = of(&kept.unwrap().unwrap());
                        let new = if less {
                            old.wrapping_sub(5)
                        } else {
                            old.wrapping_add(5)
                        };
                        put(
                            &mut txn,
                            &fixture.tree,
                            &key(row),
                            &value(new),
                            PutMode::Update,
                        )
                        .unwrap();
                    }
                    if random() % 4 == 0 {
                        txn.rollback().unwrap();
                    } else {
                        txn.commit().unwrap();
                    }
                }
            });
        }
        {
            let (fixture, stop) = (&fixture, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    fixture.transactions.prune_now();
                    fixture.purge();
                }
            });
        }
        let mut old = fixture.begin(RepeatableRead);
        old.view();
        for round in 0..150 {
            let mut reader = fixture.begin(RepeatableRead);
            for txn in [&mut reader, &mut old] {
                let view = txn.view();
                let seen = scan(txn, &fixture.tree, &view);
                let sum = seen
                    .values()
                    .fold(0u64, |sum, row| sum.wrapping_add(of(row)));
                assert_eq!((seen.len(), sum), (rows as usize, 1000 * u64::from(rows)));
                let one = get(txn, &fixture.tree, &key(round % rows)).unwrap();
                assert_eq!(seen[&key(round % rows)], one);
            }
            if round % 40 == 39 {
                old = fixture.begin(RepeatableRead);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
