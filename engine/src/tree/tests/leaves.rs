//! Leaf scans: they find what is in the leaves, whether they read a leaf or know it by its zone map.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::tree::{Step, ZoneMap};

/// The result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    records: usize,
    /// The sum of the values' first bytes.
    sum: i128,
    known: usize,
    read: usize,
}

/// Scans a range with the zone maps that there are, and keeps others.
fn pass(tree: &Tree, from: &[u8], to: Option<&[u8]>) -> Found {
    let mut found = Found::default();
    let mut leaves = tree.leaves(from.to_vec(), to.map(<[u8]>::to_vec));
    loop {
        let step = leaves
            .next(
                |leaf| {
                    let Some(zone_map) = leaf.zone_map(Some(5)) else {
                        return false;
                    };
                    found.records += zone_map.records as usize;
                    found.sum += zone_map.sum;
                    true
                },
                |leaf| {
                    let sum = leaf
                        .range
                        .clone()
                        .map(|i| i128::from(leaf.value(i)[0]))
                        .sum();
                    if leaf.whole {
                        let zone_map = ZoneMap {
                            max_txid: leaf.max_txid(),
                            records: leaf.range.len() as u32,
                            values: 0,
                            sum,
                            min: 0,
                            max: 0,
                        };
                        leaf.keep(Some(5), &zone_map);
                    }
                    (leaf.range.len(), sum)
                },
            )
            .unwrap();
        match step {
            Step::Known => found.known += 1,
            Step::Read((records, sum)) => {
                found.read += 1;
                found.records += records;
                found.sum += sum;
            }
            Step::End => return found,
        }
    }
}

fn in_model(model: &Model, from: &[u8], to: Option<&[u8]>) -> (usize, i128) {
    let within = model
        .iter()
        .filter(|(key, _)| &key[..] >= from && to.is_none_or(|to| &key[..] < to));
    within.fold((0, 0), |(n, sum), (_, value)| {
        (n + 1, sum + i128::from(value[0]))
    })
}

fn key(n: u32) -> Vec<u8> {
    [b"key ", &n.to_be_bytes()[..]].concat()
}

#[test]
fn a_leaf_is_read_again_only_when_it_has_changed() {
    let bench = Bench::new(400);
    let tree = bench.tree(1);
    let mut model = Model::new();
    for n in 0..3_000 {
        let value = vec![n as u8; 300];
        put(&tree, &key(n), &value);
        model.insert(key(n), value);
    }
    let (records, sum) = in_model(&model, b"", None);
    let first = pass(&tree, b"", None);
    assert_eq!((first.records, first.sum), (records, sum));
    assert!(first.known == 0 && first.read > 50, "{first:?}");
    let leaves = first.read;
    let second = pass(&tree, b"", None);
    assert_eq!((second.records, second.sum), (records, sum));
    assert_eq!((second.known, second.read), (leaves, 0));

    // One leaf changes. The first range is without it; the second has its ends within leaves.
    put(&tree, &key(1_500), &[7; 300]);
    model.insert(key(1_500), vec![7; 300]);
    let below = pass(&tree, b"", Some(&key(700)));
    assert!(below.read <= 1 && below.known > 5, "{below:?}");
    assert_eq!(
        (below.records, below.sum),
        in_model(&model, b"", Some(&key(700)))
    );
    let third = pass(&tree, b"", None);
    assert_eq!(
        (third.records, third.sum),
        in_model(&model, b"", None),
        "the change is seen"
    );
    assert_eq!((third.known, third.read), (leaves - 1, 1));

    // Writing pages changes nothing in them.
    bench.checkpoint(b"");
    assert_eq!(pass(&tree, b"", None).read, 0);
}

#[test]
fn ranges_of_changing_trees() {
    for (seed, frames, levels) in [(1, 64, 40_000), (2, 300, 300), (3, 64, 3_000)] {
        let bench = Bench::new(frames);
        let tree = bench.tree(1);
        let mut model = Model::new();
        let mut random = SmallRng::seed_from_u64(seed);
        let check = |model: &Model, random: &mut SmallRng| {
            let from = key(random.random_range(0..levels));
            let to = key(random.random_range(0..levels));
            // Bounds that are keys, prefixes of keys, and neither.
            let from = &from[..random.random_range(0..=from.len())];
            let to = Some(&to[..random.random_range(4..=to.len())]);
            let to = to.filter(|_| random.random_ratio(3, 4));
            let found = pass(&tree, from, to);
            assert_eq!(
                (found.records, found.sum),
                in_model(model, from, to),
                "seed {seed}, {from:?} to {to:?}"
            );
        };
        check(&model, &mut random);
        for step in 0..6_000 {
            let key = key(random.random_range(0..levels));
            // The tree grows, and then shrinks.
            if random.random_ratio(if step < 4_000 { 4 } else { 1 }, 5) {
                let value = vec![random.random(); random.random_range(1..400)];
                put(&tree, &key, &value);
                model.insert(key, value);
            } else {
                remove(&tree, &key);
                model.remove(&key);
            }
            if step % 40 == 0 {
                check(&model, &mut random);
            }
        }
    }
}

/// Wherever a scan stops, what it has read and the rest that it names are the range, each record once.
#[test]
fn what_is_left_is_what_was_not_read() {
    let bench = Bench::new(400);
    let tree = bench.tree(1);
    for leaves_worth in [0, 1, 40, 900] {
        for n in 0..leaves_worth {
            put(&tree, &key(n), &[1; 300]);
        }
        let (middle, beyond) = (key(leaves_worth / 2), key(leaves_worth));
        for (from, to) in [
            (vec![], None),
            (middle.clone(), None),
            (vec![], Some(middle.clone())),
            (vec![], Some(beyond.clone())),
            (beyond, None),
        ] {
            let all = pass(&tree, &from, to.as_deref());
            // One step more than there are leaves: the scan has then said that it ended.
            for stop in 0..=all.read + all.known + 1 {
                let mut leaves = tree.leaves(from.clone(), to.clone());
                let mut records = 0;
                let mut ended = false;
                for _ in 0..stop {
                    match leaves.next(|_| false, |leaf| leaf.range.len()).unwrap() {
                        Step::Read(found) => records += found,
                        Step::End => ended = true,
                        Step::Known => unreachable!("nothing was called known"),
                    }
                }
                let rest = leaves.rest();
                assert!(!ended || rest.is_none(), "ended, and has a rest");
                let rest = rest.map_or(0, |rest| pass(&tree, &rest, to.as_deref()).records);
                assert_eq!(records + rest, all.records, "after {stop} leaves");
            }
        }
    }
}

#[test]
fn cuts_are_within_the_range_and_leave_parts_of_like_size() {
    let bench = Bench::new(800);
    let tree = bench.tree(1);
    assert!(tree.cuts(b"", None, 8).unwrap().is_empty(), "one leaf");
    for n in 0..20_000 {
        put(&tree, &key(n), &[1; 400]);
    }
    let (from, to) = (key(3_000), key(15_000));
    for parts in [1, 2, 5, 64, 100_000] {
        for to in [None, Some(&to[..])] {
            let cuts = tree.cuts(&from, to, parts).unwrap();
            assert!(cuts.len() < parts);
            assert!(cuts.is_sorted() && cuts.iter().all(|cut| *cut > from));
            assert!(to.is_none_or(|to| cuts.iter().all(|cut| &cut[..] < to)));
            let mut ends: Vec<Option<&[u8]>> = cuts.iter().map(|cut| Some(&cut[..])).collect();
            ends.push(to);
            let mut begin = &from[..];
            let mut most = 0;
            let mut all = 0;
            for end in &ends {
                let records = pass(&tree, begin, *end).records;
                most = most.max(records);
                all += records;
                begin = end.unwrap_or(begin);
            }
            assert_eq!(all, if to.is_some() { 12_000 } else { 17_000 });
            if parts == 5 {
                assert!((3..5).contains(&cuts.len()), "{}", cuts.len());
                assert!(most < all / 2, "{most} of {all} in a part");
            }
        }
    }
}

/// Every scan finds keys that stay exactly once, while other keys, and the leaves with them, come and go around them.
#[test]
fn what_stays_is_found_once_beside_writers() {
    for frames in [64, 400] {
        let bench = Bench::new(frames);
        let tree = bench.tree(1);
        const STAY: u32 = 1_000;
        for n in 0..STAY {
            put(&tree, &key(8 * n), &[1; 100]);
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..2 {
                let (tree, stop) = (&tree, &stop);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    while !stop.load(Ordering::Relaxed) {
                        let n = random.random_range(0..8 * STAY);
                        if n % 8 == 0 {
                            put(tree, &key(n), &vec![1; random.random_range(1..300)]);
                        } else if random.random_ratio(1, 2) {
                            put(tree, &key(n), &vec![0; random.random_range(1..600)]);
                        } else {
                            remove(tree, &key(n));
                        }
                    }
                });
            }
            for _ in 0..300 {
                assert_eq!(pass(&tree, b"", None).sum, i128::from(STAY));
                let part = pass(&tree, &key(8 * 100), Some(&key(8 * 900)));
                assert_eq!(part.sum, 800);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

/// Makes a key of the second of two groups; the first group has no keys.
///
/// Half of the separators are long, so that nodes have few children.
fn long_key(n: u32) -> Vec<u8> {
    let mut key = vec![b'b'];
    key.extend((n / 2).to_be_bytes());
    key.resize(1500, b'x');
    key.push((n % 2) as u8);
    key
}

/// Makes a pool without threads: only a thread that needs a page reads it.
fn threadless_bench() -> Bench {
    let os = SimulatedOs::new(1);
    let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
    let pool = PoolWithThreads::without_thread(64 * PAGE_SIZE, Arc::new(store)).unwrap();
    Bench { os, pool }
}

#[test]
fn a_cursor_behind_its_end_reads_nothing_ahead() {
    const KEYS: u32 = 300;
    let bench = threadless_bench();
    let tree = bench.tree(1);
    for n in 0..KEYS {
        assert_eq!(put(&tree, &long_key(n), &[1; 3000]), None);
    }
    let height = u64::from(tree.stats().unwrap().height);
    assert!(height >= 3);
    let mut image = LeafImage::new();
    // All nodes but the first of each level are behind this end.
    image.set_end(Some(&b"a"[..]));
    let before = bench.pool.stats().reads;
    for n in 0..KEYS {
        let (key, reads) = (long_key(n), bench.pool.stats().reads);
        let found = tree.copy_leaf(Position::AtOrAfter(&key), &mut image);
        assert!(found.unwrap() && image.lower_bound(&key).1, "key {n}");
        assert!(bench.pool.stats().reads - reads <= height, "key {n}");
    }
    assert!(bench.pool.stats().reads > before, "no leaf was away");
}

/// A cursor that checks between leaves whether it is to end gets each leaf, also where no merge was possible.
#[test]
fn leaves_without_records_are_come_to_one_by_one() {
    const KEYS: u32 = 60;
    let bench = threadless_bench();
    let tree = bench.tree(1);
    for n in 0..KEYS {
        assert_eq!(put(&tree, &n.to_be_bytes(), &[1; 3000]), None);
    }
    for n in 0..KEYS {
        // No leaf has its neighbours in memory, so it can't be merged.
        while bench.pool.buffer_pool().evict_some(64).unwrap() > 0 {}
        assert!(remove(&tree, &n.to_be_bytes()).is_some());
    }
    let leaves = tree.stats().unwrap().leaf_pages;
    assert!(leaves > 4, "{leaves} leaves");
    let mut image = LeafImage::new();
    assert!(!tree.copy_leaf(Position::First, &mut image).unwrap());
    let mut image = LeafImage::one_by_one();
    for forward in [true, false] {
        let from = if forward {
            Position::First
        } else {
            Position::Last
        };
        let mut more = tree.copy_leaf(from, &mut image).unwrap();
        let mut passed = 1;
        while more {
            assert_eq!(image.count(), 0);
            passed += 1;
            more = match forward {
                true => tree.copy_next_leaf(&mut image).unwrap(),
                false => tree.copy_previous_leaf(&mut image).unwrap(),
            };
        }
        assert_eq!(passed, leaves);
    }
}
