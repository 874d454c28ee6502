//! One thread, any keys.

use proptest::prelude::*;

use super::*;
use crate::error::Error;
use crate::ids::{MAX_KEY, MAX_VALUE};

fn key() -> impl Strategy<Value = Vec<u8>> {
    let number = (0u32..3000).prop_map(|n| n.to_be_bytes().to_vec());
    let word = prop::collection::vec(prop_oneof![Just(0u8), Just(1u8), Just(255u8)], 0..7);
    // Long keys that differ at the very end, or in one place within.
    let long = (any::<bool>(), 0usize..3, 0u16..400).prop_map(|(at_end, size, n)| {
        let mut key = vec![b'k'; [40, 900, MAX_KEY][size]];
        let at = if at_end { key.len() - 2 } else { 20 };
        key[at..at + 2].copy_from_slice(&n.to_be_bytes());
        key
    });
    prop_oneof![6 => number, 2 => word, 3 => long]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let len = prop_oneof![6 => 0usize..200, 2 => 0usize..1500, 1 => 0usize..=MAX_VALUE];
    (len, any::<u8>()).prop_map(|(len, byte)| vec![byte; len])
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    /// Sequential numbers, as an auto-increment gives them.
    Append(u16),
    Remove(Vec<u8>),
    /// Removes a run of existing records.
    RemoveRun(prop::sample::Index, usize),
    Get(Vec<u8>),
    Seek(Vec<u8>),
    Estimate(Vec<u8>, Vec<u8>),
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (key(), value()).prop_map(|(k, v)| Op::Put(k, v)),
        1 => (0u16..300).prop_map(Op::Append),
        6 => key().prop_map(Op::Remove),
        2 => (any::<prop::sample::Index>(), 0usize..200).prop_map(|(at, n)| Op::RemoveRun(at, n)),
        4 => key().prop_map(Op::Get),
        4 => key().prop_map(Op::Seek),
        2 => (key(), key()).prop_map(|(a, b)| Op::Estimate(a, b)),
        1 => Just(Op::Reopen),
    ]
}

/// Checks that the few records around a position are the model's, and also those that follow on either side.
fn check_near(tree: &Tree, model: &Model, at: Position<'_>, want: Option<&Vec<u8>>) {
    use std::ops::Bound::{Excluded, Included};
    let mut image = LeafImage::new();
    assert_eq!(tree.copy_near(at, &mut image).unwrap(), want.is_some());
    let Some(want) = want else { return };
    assert!(image.lower_bound(want).1, "{at:?}");
    let mut key = Vec::new();
    let mut check = |image: &LeafImage| {
        let lower = image.lower_fence().to_vec();
        let upper = image.upper_fence().map(<[u8]>::to_vec);
        let bounds = (
            Included(lower),
            upper.clone().map_or(std::ops::Bound::Unbounded, Excluded),
        );
        assert_eq!(model.range(bounds).count(), image.count());
        for i in 0..image.count() {
            image.key(i, &mut key);
            assert_eq!(image.value(i), model[&key]);
            assert_eq!(image.lower_bound(&key), (i, true));
        }
        upper
    };
    let upper = check(&image);
    let mut next = image.clone();
    let behind = upper.and_then(|upper| model.range(upper..).next());
    assert_eq!(tree.copy_next_leaf(&mut next).unwrap(), behind.is_some());
    if let Some((behind, _)) = behind {
        assert!(next.lower_bound(behind).1);
        check(&next);
    }
    let lower = image.lower_fence().to_vec();
    let before = model.range(..lower).next_back();
    assert_eq!(
        tree.copy_previous_leaf(&mut image).unwrap(),
        before.is_some()
    );
    if let Some((before, _)) = before {
        assert!(image.lower_bound(before).1);
        check(&image);
    }
}

/// Checks that each position gives the leaf with the record that the model names.
fn check_seeks(tree: &Tree, model: &Model, key: &[u8]) {
    let mut image = LeafImage::new();
    let mut holds = |at: Position<'_>, want: Option<&Vec<u8>>| {
        check_near(tree, model, at, want);
        let found = tree.copy_leaf(at, &mut image).unwrap();
        assert_eq!(found, want.is_some(), "{at:?}");
        if let Some(want) = want {
            let (i, equal) = image.lower_bound(want);
            assert!(equal, "{at:?} wants {want:02x?}");
            assert_eq!(image.value(i), &model[want][..]);
            // It is the nearest record of the image on that side.
            let place = match at {
                Position::First => i == 0,
                Position::Last => i + 1 == image.count(),
                Position::AtOrAfter(key) => i == image.lower_bound(key).0,
                Position::After(key) => {
                    let (at, equal) = image.lower_bound(key);
                    i == at + usize::from(equal)
                }
                Position::AtOrBefore(key) => {
                    let (at, equal) = image.lower_bound(key);
                    i + 1 == at + usize::from(equal)
                }
                Position::Before(key) => i + 1 == image.lower_bound(key).0,
            };
            assert!(place, "{at:?}");
        }
    };
    let key_vec = key.to_vec();
    let above = |from: std::ops::Bound<&Vec<u8>>| {
        model
            .range::<Vec<u8>, _>((from, std::ops::Bound::Unbounded))
            .next()
            .map(|(k, _)| k)
    };
    use std::ops::Bound::{Excluded, Included};
    holds(Position::First, model.keys().next());
    holds(Position::Last, model.keys().next_back());
    holds(Position::AtOrAfter(key), above(Included(&key_vec)));
    holds(Position::After(key), above(Excluded(&key_vec)));
    let at_or_before = model.range(..=key_vec.clone()).next_back();
    holds(Position::AtOrBefore(key), at_or_before.map(|(k, _)| k));
    let before = model.range(..key_vec.clone()).next_back();
    holds(Position::Before(key), before.map(|(k, _)| k));
}

fn run(ops: Vec<Op>) {
    let mut bench = Bench::new(64);
    let mut tree = bench.tree(5);
    let mut model = Model::new();
    let mut next = 100_000u64;
    for op in ops {
        match op {
            Op::Put(key, value) => {
                assert_eq!(put(&tree, &key, &value), model.insert(key, value));
            }
            Op::Append(count) => {
                for _ in 0..count {
                    let key = next.to_be_bytes().to_vec();
                    let value = vec![next as u8; 120];
                    assert_eq!(put(&tree, &key, &value), model.insert(key, value));
                    next += 1;
                }
            }
            Op::Remove(key) => assert_eq!(remove(&tree, &key), model.remove(&key)),
            Op::RemoveRun(at, n) => {
                if model.is_empty() {
                    continue;
                }
                let at = at.index(model.len());
                let keys: Vec<_> = model.keys().skip(at).take(n).cloned().collect();
                for key in keys {
                    assert_eq!(remove(&tree, &key), model.remove(&key));
                }
            }
            Op::Get(key) => {
                assert_eq!(get(&tree, &key).as_ref(), model.get(&key));
                assert_eq!(copied(&tree, &key).as_ref(), model.get(&key));
                let first = |n: usize| {
                    model
                        .get(&key)
                        .map(|value| value[..n.min(value.len())].to_vec())
                };
                assert_eq!(front::<64>(&tree, &key), first(64));
                assert_eq!(front::<256>(&tree, &key), first(256));
            }
            Op::Seek(key) => check_seeks(&tree, &model, &key),
            Op::Estimate(a, b) => {
                let (low, high) = if a < b { (a, b) } else { (b, a) };
                let exact = model.range(low.clone()..high.clone()).count() as u64;
                let guess = tree.estimate_range(Some(&low), Some(&high)).unwrap();
                // With fewer samples, or other splits, the number is an estimate.
                let is_small = !crate::knobs::SHAKEN && tree.stats().unwrap().leaf_pages <= 7;
                if is_small && tree.stats().unwrap().height == 2 {
                    assert_eq!(guess, exact);
                }
            }
            Op::Reopen => {
                bench.checkpoint(b"");
                let root = tree.root();
                drop(tree);
                bench = bench.crash(64).0;
                tree = Tree::open(&bench.pool, TreeId(5), root).unwrap();
            }
        }
    }
    check(&tree, &model);
    let want: Vec<_> = model.into_iter().collect();
    assert!(forward(&tree) == want);
    assert!(backward(&tree).into_iter().rev().collect::<Vec<_>>() == want);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn tree_keeps_what_a_map_keeps(ops in prop::collection::vec(op(), 1..1500)) {
        run(ops);
    }
}

#[test]
fn growing_and_shrinking_give_all_pages_back() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let mut model = Model::new();
    for i in 0..20_000u64 {
        let key = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .to_be_bytes()
            .to_vec();
        let value = vec![i as u8; 100];
        put(&tree, &key, &value);
        model.insert(key, value);
    }
    check(&tree, &model);
    assert!(tree.stats().unwrap().height >= 2);
    let records = tree.estimate_records().unwrap();
    assert!((10_000..40_000).contains(&records), "{records}");
    let keys: Vec<_> = model.keys().cloned().collect();
    for key in keys {
        assert!(remove(&tree, &key).is_some());
    }
    check(&tree, &Model::new());
    // Merges need neighbours in memory; with a pool this small not all are.
    let stats = tree.stats().unwrap();
    assert!(stats.leaf_pages < 100, "{stats:?}");
    tree.destroy().unwrap();
    bench.checkpoint(b"");
    assert_eq!(bench.pool.store().pages().count(), 0);
    assert_eq!(bench.pool.stats().dirty, 0);
}

#[test]
fn destroying_a_tree_frees_pages_that_are_not_in_memory() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let other = bench.tree(2);
    put(&other, b"stays", b"here");
    for i in 0..3_000u32 {
        put(&tree, &i.to_be_bytes(), &[1; 1000]);
    }
    assert!(tree.stats().unwrap().leaf_pages > 150);
    bench.checkpoint(b"");
    let reads = bench.pool.stats().reads;
    tree.destroy().unwrap();
    // The tree has read no leaf to free it.
    assert!(bench.pool.stats().reads - reads < 10);
    bench.checkpoint(b"");
    assert_eq!(bench.pool.store().pages().count(), 1);
    let (after, _) = bench.crash(64);
    let other = Tree::open(&after.pool, TreeId(2), other.root()).unwrap();
    assert_eq!(get(&other, b"stays").as_deref(), Some(&b"here"[..]));
}

#[test]
fn appends_fill_pages() {
    let bench = Bench::new(256);
    let tree = bench.tree(1);
    for i in 0..10_000u64 {
        put(&tree, &i.to_be_bytes(), &[1; 200]);
    }
    let counts = tree.verify(&mut |_, _| Ok(())).unwrap();
    let fill = counts.bytes as f64 / (counts.leaf_pages as f64 * PAGE_SIZE as f64);
    assert!(fill > 0.9, "leaves are filled to {fill} only");
}

#[test]
fn refuses_what_no_leaf_holds() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let change = |key: &[u8], max| tree.modify(key, max, 0, |_, _| (RecordEdit::Put, ()));
    assert!(matches!(
        change(&vec![1; MAX_KEY + 1], 1),
        Err(Error::TooLarge(_))
    ));
    assert!(matches!(
        change(b"k", MAX_VALUE + 1),
        Err(Error::TooLarge(_))
    ));
    assert!(matches!(
        Tree::open(&bench.pool, TreeId(9), tree.root()),
        Err(Error::Corrupt { .. })
    ));
}

#[test]
fn keeping_changes_nothing_and_transactions_are_noted() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    put(&tree, b"a", b"1");
    let txid = |tree: &Tree| tree.read(b"a", |_, txid| txid).unwrap();
    tree.modify(b"a", 10, 7, |_, new| {
        new.push(1);
        (RecordEdit::Keep, ())
    })
    .unwrap();
    assert_eq!(
        (get(&tree, b"a").as_deref(), txid(&tree)),
        (Some(&b"1"[..]), 0)
    );
    tree.modify(b"b", 10, 7, |_, _| (RecordEdit::Put, ()))
        .unwrap();
    assert_eq!(txid(&tree), 7);
    tree.modify(b"b", 10, 5, |_, _| (RecordEdit::Remove, ()))
        .unwrap();
    assert_eq!(txid(&tree), 7);
}

/// Freezing shortens values that begin with 1 by half, and removes those that begin with 2.
struct Halve;

impl crate::tree::LeafFreeze for Halve {
    fn freeze(&self, value: &[u8], out: &mut Vec<u8>) -> RecordEdit {
        match value.first() {
            Some(1) => {
                out.push(0);
                out.extend_from_slice(&value[1..value.len() / 2]);
                RecordEdit::Put
            }
            Some(2) => RecordEdit::Remove,
            _ => RecordEdit::Keep,
        }
    }
}

#[test]
fn full_leaves_are_frozen_before_they_are_split() {
    let bench = Bench::new(64);
    bench.pool.set_freeze(std::sync::Arc::new(Halve));
    let tree = bench.tree(1);
    // The records fill one leaf if the first kind loses half of each value and the second kind is removed.
    for i in 0..140u32 {
        put(&tree, &i.to_be_bytes(), &[1; 200]);
        put(&tree, &(i + 1000).to_be_bytes(), &[2; 100]);
    }
    let mut kept = 0;
    tree.verify(&mut |key, value| {
        let n = u32::from_be_bytes(key.try_into().unwrap());
        if n < 140 {
            kept += 1;
            assert!(value == [1; 200] || (value[0] == 0 && value[1..] == [1; 99]));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(kept, 140);
    let stats = tree.stats().unwrap();
    assert!(stats.leaf_pages <= 2, "{stats:?}");
    // Freezing can free nothing more: the next leaf splits.
    for i in 0..140u32 {
        put(&tree, &i.to_be_bytes(), &[0; 300]);
    }
    assert!(tree.stats().unwrap().leaf_pages >= 3);
}

#[test]
fn estimates_are_near_where_keys_are_spread_evenly() {
    let bench = Bench::new(512);
    let tree = bench.tree(1);
    for i in 0..30_000u32 {
        let n = i.wrapping_mul(0x9E37_79B1);
        put(&tree, &n.to_be_bytes(), &[1; 60]);
    }
    let per_leaf = 30_000 / tree.stats().unwrap().leaf_pages;
    // Fewer samples promise less.
    let share = match crate::knobs::density_samples() {
        0..5 => 1,
        _ => 3,
    };
    for (from, to) in [(0, 1), (3, 9), (10, 200), (0, 128), (100, 256), (1, 255)] {
        let (low, high) = ((from << 24) as u32, (to as u64 * (1 << 24) - 1) as u32);
        let exact = 30_000 * (to as u64 - from as u64) / 256;
        let guess = tree
            .estimate_range(Some(&low.to_be_bytes()), Some(&high.to_be_bytes()))
            .unwrap();
        let slack = exact / share + 2 * per_leaf;
        assert!(guess.abs_diff(exact) <= slack, "{guess} for {exact}");
    }
    let all = tree.estimate_records().unwrap();
    assert!(all.abs_diff(30_000) <= 30_000 / share, "{all}");
}
