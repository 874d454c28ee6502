//! Many threads, one tree.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Barrier;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;

/// Each thread has its own keys, interleaved with those of the others.
#[test]
fn own_keys_are_each_threads_model() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let models: Vec<Model> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6u32)
            .map(|me| {
                let tree = &tree;
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(u64::from(me));
                    let mut model = Model::new();
                    for _ in 0..4_000 {
                        let n = random.random_range(0..3_000u32) * 6 + me;
                        let mut key = n.to_be_bytes().to_vec();
                        if n % 5 == 0 {
                            key.resize(300, b'.');
                        }
                        match random.random_range(0..10) {
                            0..6 => {
                                let len = random.random_range(0..300);
                                let value = vec![me as u8; len];
                                assert_eq!(put(tree, &key, &value), model.insert(key, value));
                            }
                            6..8 => assert_eq!(remove(tree, &key), model.remove(&key)),
                            8 => assert_eq!(get(tree, &key).as_ref(), model.get(&key)),
                            _ => assert_eq!(copied(tree, &key).as_ref(), model.get(&key)),
                        }
                    }
                    model
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    check(&tree, &models.into_iter().flatten().collect());
}

/// Each value repeats one byte that gives its length: so the test finds a copy that is half of one value, half of
/// another.
///
/// Inserts beside the record move it and split its leaf.
#[test]
fn unlatched_copies_are_of_one_moment() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let key = |n: u32| n.to_be_bytes().to_vec();
    let value = |n: usize| vec![n as u8; 100 + n];
    put(&tree, &key(500), &value(1));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut seen = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        let got = copied(&tree, &key(500)).unwrap();
                        assert_eq!(got, value(usize::from(got[0])));
                        assert_eq!(copied(&tree, &key(1_000)), None);
                        seen += 1;
                    }
                    seen
                })
            })
            .collect();
        let mut random = SmallRng::seed_from_u64(7);
        for n in 0..20_000 {
            put(&tree, &key(500), &value(n % 200 + 1));
            let beside = key(random.random_range(0..500));
            match n % 3 {
                0 => drop(remove(&tree, &beside)),
                _ => drop(put(&tree, &beside, &value(n % 150))),
            }
        }
        stop.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().unwrap() > 0);
        }
    });
}

/// Makes a key; the keys of each group of four share a long prefix.
///
/// Separators then stay long, nodes have few children, and trees get high.
fn deep_key(n: u32) -> Vec<u8> {
    let mut key = (n / 4).to_be_bytes().to_vec();
    key.resize(900, b'x');
    key.extend((n % 4).to_be_bytes());
    key
}

/// High trees grow and shrink again and again under several threads: splits, merges and changes of the root's level
/// meet.
#[test]
fn high_trees_grow_and_shrink() {
    const KEYS: u32 = 600;
    let bench = Bench::new(192);
    let tree = bench.tree(1);
    let highest = AtomicU64::new(0);
    // Separators are long only between keys of two threads: so all threads first have their keys in the tree.
    let all_grown = Barrier::new(4);
    let models: Vec<Model> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4u32)
            .map(|me| {
                let (tree, highest, all_grown) = (&tree, &highest, &all_grown);
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(u64::from(me));
                    let mut model = Model::new();
                    for wave in 0..4 {
                        for _ in 0..KEYS {
                            let key = deep_key(random.random_range(0..KEYS) * 4 + me);
                            let value = vec![me as u8; random.random_range(0..500)];
                            assert_eq!(put(tree, &key, &value), model.insert(key, value));
                        }
                        if wave == 0 {
                            all_grown.wait();
                        }
                        let height = tree.stats().unwrap().height;
                        highest.fetch_max(u64::from(height), Ordering::Relaxed);
                        let keep = if wave == 3 { KEYS / 8 } else { 0 };
                        while model.len() > keep as usize {
                            let at = random.random_range(0..model.len());
                            let key = model.keys().nth(at).unwrap().clone();
                            assert_eq!(remove(tree, &key), model.remove(&key));
                        }
                    }
                    model
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(crate::knobs::SHAKEN || highest.into_inner() >= 3);
    check(&tree, &models.into_iter().flatten().collect());
}

/// All threads add to the same counters: no addition may be lost.
#[test]
fn shared_counters_lose_nothing() {
    const KEYS: u32 = 400;
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let sums: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for me in 0..6u64 {
            let (tree, sums) = (&tree, &sums);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(me);
                for _ in 0..4_000 {
                    let n = random.random_range(0..KEYS);
                    let add = random.random_range(1..100u64);
                    // Values of changing length, so that leaves split and merge.
                    let pad = random.random_range(0..900usize);
                    let runs = AtomicU64::new(0);
                    tree.modify(&n.to_be_bytes(), 8 + pad, me, |old, new| {
                        runs.fetch_add(1, Ordering::Relaxed);
                        let sum =
                            old.map_or(0, |old| u64::from_le_bytes(old[..8].try_into().unwrap()));
                        new.extend_from_slice(&(sum + add).to_le_bytes());
                        new.resize(8 + pad, 7);
                        (RecordEdit::Put, ())
                    })
                    .unwrap();
                    assert_eq!(runs.into_inner(), 1);
                    sums[n as usize].fetch_add(add, Ordering::Relaxed);
                }
            });
        }
    });
    tree.verify(&mut |key, value| {
        let n = u32::from_be_bytes(key.try_into().unwrap());
        let sum = u64::from_le_bytes(value[..8].try_into().unwrap());
        assert_eq!(sum, sums[n as usize].load(Ordering::Relaxed), "key {n}");
        Ok(())
    })
    .unwrap();
}

/// Scans in both directions see every key that stays, in order, whatever happens around it.
#[test]
fn scans_never_miss_a_key_that_stays() {
    let bench = Bench::new(96);
    let tree = bench.tree(1);
    const STABLE: u32 = 1_500;
    for i in 0..STABLE {
        put(&tree, &(i * 16).to_be_bytes(), &[3; 100]);
    }
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for me in 0..3u64 {
            let (tree, stop) = (&tree, &stop);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(me);
                while !stop.load(Ordering::Relaxed) {
                    let from = random.random_range(0..STABLE) * 16;
                    let len = random.random_range(1..1000);
                    for i in 0..60 {
                        if i % 16 != 0 {
                            put(tree, &(from + i).to_be_bytes(), &vec![4; len]);
                        }
                    }
                    for i in 0..60 {
                        if i % 16 != 0 {
                            remove(tree, &(from + i).to_be_bytes());
                        }
                    }
                }
            });
        }
        for forwards in [true, false, true] {
            let (tree, stop, done) = (&tree, &stop, &done);
            scope.spawn(move || {
                for _ in 0..15 {
                    scan(tree, forwards, STABLE);
                }
                if done.fetch_add(1, Ordering::Relaxed) == 2 {
                    stop.store(true, Ordering::Relaxed);
                }
            });
        }
    });
    tree.verify(&mut |_, _| Ok(())).unwrap();
}

/// Walks a cursor from fence to fence.
fn scan(tree: &Tree, forwards: bool, stable: u32) {
    let mut image = LeafImage::new();
    let start = if forwards {
        Position::First
    } else {
        Position::Last
    };
    let mut more = tree.copy_leaf(start, &mut image).unwrap();
    let mut fence: Option<Vec<u8>> = None;
    let mut last: Option<Vec<u8>> = None;
    let mut seen = 0;
    let mut key = Vec::new();
    while more {
        // The cursor saw the records on this side of the fence with the previous leaf.
        let (from, to) = match &fence {
            Some(fence) if forwards => (image.lower_bound(fence).0, image.count()),
            Some(fence) => (0, image.lower_bound(fence).0),
            None => (0, image.count()),
        };
        for i in from..to {
            let i = if forwards { i } else { to - 1 - (i - from) };
            image.key(i, &mut key);
            if let Some(last) = &last {
                assert!(if forwards { *last < key } else { *last > key });
            }
            last = Some(key.clone());
            let n = u32::from_be_bytes(key[..].try_into().unwrap());
            if n % 16 == 0 {
                seen += 1;
                assert_eq!(image.value(i), [3; 100]);
            }
        }
        fence = if forwards {
            image.upper_fence().map(<[u8]>::to_vec)
        } else {
            Some(image.lower_fence().to_vec())
        };
        more = if forwards {
            tree.copy_next_leaf(&mut image).unwrap()
        } else {
            tree.copy_previous_leaf(&mut image).unwrap()
        };
    }
    assert_eq!(seen, stable);
}
