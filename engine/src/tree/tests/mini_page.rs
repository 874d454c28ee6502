//! Mini-pages of leaves: a read of one gives what the leaf says, while threads change leaves, and leaves are loaded
//! and evicted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::tree::ProjectedRecord;

/// The bytes of a value that make up column set 1, and set 2.
const FIRST: std::ops::Range<usize> = 0..8;
const SECOND: std::ops::Range<usize> = 8..20;
const VALUE: usize = 300;

fn key(n: u32) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

/// Makes a value that has its number twice.
fn value(n: u64) -> Vec<u8> {
    let mut value = n.to_le_bytes().to_vec();
    value.extend_from_slice(&[7; 4]);
    value.extend_from_slice(&n.to_le_bytes());
    value.resize(VALUE, 1);
    value
}

fn parts(value: &[u8], columns: u64, out: &mut Vec<u8>) {
    if columns & 1 != 0 {
        out.extend_from_slice(&value[FIRST]);
    }
    if columns & 2 != 0 {
        out.extend_from_slice(&value[SECOND]);
    }
}

/// Returns the number of a key's value, as a reader of one row that asks for these columns gets it.
fn number(tree: &Tree, key: &[u8], columns: u64) -> Option<u64> {
    let hint = tree.find_leaf(key, &LeafLayoutHint::default()).unwrap();
    let of = |kept: &[u8]| u64::from_le_bytes(kept[kept.len() - 8..].try_into().unwrap());
    let kept = hint.away().and_then(|leaf| {
        tree.read_mini_page(leaf, key, columns, |kept, has| {
            assert_eq!(columns & !has, 0);
            of(kept)
        })
    });
    if let Some(found) = kept {
        return found;
    }
    let mut few = Vec::new();
    let found = tree
        .read_in(hint, &mut LeafLayoutHint::default(), key, |value, _| {
            value.map(|value| parts(value, columns, &mut few))
        })
        .unwrap();
    if hint.away().is_some() {
        tree.keep_mini_page(key, columns, |value, columns, out| {
            parts(value, columns, out);
            ProjectedRecord::Kept
        })
        .unwrap();
    }
    found.map(|()| of(&few))
}

#[test]
fn rows_of_a_tree_larger_than_the_pool_are_the_models() {
    if crate::knobs::SHAKEN {
        // The test counts results of the knobs' default values.
        return;
    }
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let mut random = SmallRng::seed_from_u64(3);
    let mut model = BTreeMap::new();
    // Some 600 leaves: mini-pages of all fit into ten frames or so.
    const KEYS: u32 = 30_000;
    for n in (0..KEYS).filter(|n| n % 8 != 0) {
        put(&tree, &key(n), &value(n.into()));
        model.insert(n, u64::from(n));
    }
    for round in 0..60_000u64 {
        let n = random.random_range(0..KEYS);
        match random.random_range(0..200) {
            0 => {
                put(&tree, &key(n), &value(round));
                model.insert(n, round);
            }
            1 => {
                remove(&tree, &key(n));
                model.remove(&n);
            }
            2 if round % 7 == 0 => {
                // A run of keys is removed, and leaves are merged.
                let run: Vec<u32> = model.range(n..).take(150).map(|(n, _)| *n).collect();
                for n in run {
                    remove(&tree, &key(n));
                    model.remove(&n);
                }
            }
            _ => {
                let columns = random.random_range(1..4);
                assert_eq!(
                    number(&tree, &key(n), columns),
                    model.get(&n).copied(),
                    "key {n}, columns {columns}, round {round}"
                );
            }
        }
    }
    let stats = bench.pool.stats();
    assert!(
        stats.mini_page_reads > 20_000,
        "copies should answer most reads: {stats:?}"
    );
    let rows = model
        .iter()
        .map(|(n, number)| (key(*n), value(*number)))
        .collect();
    check(&tree, &rows);
}

/// Each key's number only grows; a reader that knows a number to be written must not find an older one.
#[test]
fn no_reader_goes_back_in_time() {
    if crate::knobs::SHAKEN {
        // The test counts results of the knobs' default values.
        return;
    }
    const KEYS: u32 = 12_000;
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    for n in 0..KEYS {
        put(&tree, &key(n), &value(0));
    }
    let written: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (tree, written, stop) = (&tree, &written, &stop);
        let readers: Vec<_> = (0..3)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    while !stop.load(Ordering::Relaxed) {
                        // Few leaves are written, and these are read more often than others.
                        let n = match random.random_bool(0.5) {
                            true => random.random_range(0..KEYS),
                            false => random.random_range(0..40) * 300,
                        };
                        let least = written[n as usize].load(Ordering::Acquire);
                        let columns = random.random_range(1..3);
                        let found = number(tree, &key(n), columns).unwrap();
                        assert!(found >= least, "key {n}: {found} after {least}");
                    }
                })
            })
            .collect();
        let mut random = SmallRng::seed_from_u64(9);
        for round in 1..20_000u64 {
            let n = random.random_range(0..40) * 300;
            put(tree, &key(n), &value(round));
            written[n as usize].store(round, Ordering::Release);
        }
        stop.store(true, Ordering::Relaxed);
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
    });
    assert!(bench.pool.stats().mini_page_reads > 0);
}

/// Mini-pages take frames of the pool, and the pool evicts them when pages need the frames.
#[test]
fn copies_make_room_for_pages() {
    if crate::knobs::SHAKEN {
        // The test counts results of the knobs' default values.
        return;
    }
    let bench = Bench::new(64);
    let (tree, other) = (bench.tree(1), bench.tree(2));
    for n in 0..20_000 {
        put(&tree, &key(n), &value(n.into()));
    }
    for n in (0..20_000).step_by(7) {
        assert_eq!(number(&tree, &key(n), 1), Some(n.into()));
    }
    for n in 0..20_000 {
        put(&other, &key(n), &value(n.into()));
    }
    for n in 0..20_000 {
        assert_eq!(get(&other, &key(n)), Some(value(n.into())));
    }
    let before = bench.pool.stats().mini_page_reads;
    // Read all keys, each far from the previous one.
    for n in (0..20_000).map(|n| n * 7_919 % 20_000) {
        assert_eq!(number(&tree, &key(n), 1), Some(n.into()));
    }
    assert!(bench.pool.stats().mini_page_reads > before);
}
