//! Trees of pages with right checksums that contradict themselves or each other.
//!
//! No such page may get into memory, where it would lead cursors in circles, and break when it is split.

use super::{put, Bench};
use crate::buffer;
use crate::buffer::{Child, ExclusiveGuard};
use crate::error::{Error, Result};
use crate::ids::TreeId;
use crate::tree::descend::Route;
use crate::tree::{LeafImage, Position, Step, Tree, ZoneMap};

/// More leaves than the tree has.
const LONG: usize = 100;

/// Writes a damaged tree of some leaves, reads what is then on disk, forwards and backwards, and returns the leaves
/// seen.
fn walk(damage: impl FnOnce(&Tree)) -> Result<usize> {
    let bench = Bench::new(64);
    let tree = bench.tree(16);
    for n in 0..100u32 {
        put(&tree, &n.to_be_bytes(), &[7; 1000]);
    }
    damage(&tree);
    bench.checkpoint(&[]);
    let (bench, _) = bench.crash(64);
    let tree = Tree::open(&bench.pool, TreeId(16), tree.root())?;
    let mut image = LeafImage::new();
    let mut leaves = 0;
    let mut more = tree.copy_leaf(Position::First, &mut image)?;
    while more {
        leaves += 1;
        assert!(leaves < LONG, "a walk in circles");
        more = tree.copy_next_leaf(&mut image)?;
    }
    more = tree.copy_leaf(Position::Last, &mut image)?;
    while more {
        leaves += 1;
        assert!(leaves < 2 * LONG, "a walk in circles");
        more = tree.copy_previous_leaf(&mut image)?;
    }
    Ok(leaves)
}

fn is_found(walked: Result<usize>, what: &str) {
    match walked {
        Err(Error::Corrupt { what: told, .. }) => assert!(told.contains(what), "{told}"),
        other => panic!("{other:?}"),
    }
}

pub(super) fn with_leaf(tree: &Tree, key: u32, damage: impl FnOnce(&mut ExclusiveGuard<'_>)) {
    let mut leaf: ExclusiveGuard<'_> = tree.latch_leaf(Route::Key(&key.to_be_bytes())).unwrap();
    damage(&mut leaf);
    leaf.mark_dirty();
}

pub(super) fn with_root(tree: &Tree, damage: impl FnOnce(&mut ExclusiveGuard<'_>)) {
    let mut root: ExclusiveGuard<'_> = tree.latch_root().unwrap();
    assert!(root.node().level() == 1 && root.node().count() > 3);
    damage(&mut root);
    root.mark_dirty();
}

#[test]
fn a_sound_tree_is_walked_both_ways() {
    assert!(walk(|_| {}).unwrap() > 10);
}

#[test]
fn keys_out_of_order_are_found() {
    let order = "is not above the key before it";
    is_found(
        walk(|tree| {
            with_leaf(tree, 50, |leaf| {
                leaf.node_mut().insert(0, &[0, 0, 0, 255], b"value")
            })
        }),
        order,
    );
    is_found(
        walk(|tree| {
            with_root(tree, |root| {
                let child = root.node().child(1);
                root.node_mut().insert_separator(0, b"z", child);
            });
        }),
        order,
    );
}

#[test]
fn keys_outside_their_page_are_found() {
    let outside = "lies outside the node's fences";
    let at_the_end = |leaf: &mut ExclusiveGuard<'_>| {
        let at = leaf.node().count();
        leaf.node_mut().insert(at, &[0, 0, 0, 255], b"value");
    };
    is_found(walk(|tree| with_leaf(tree, 50, at_the_end)), outside);
    let in_front = |leaf: &mut ExclusiveGuard<'_>| leaf.node_mut().insert(0, &[0; 4], b"value");
    is_found(walk(|tree| with_leaf(tree, 50, in_front)), outside);
}

#[test]
fn a_child_in_anothers_place_is_found() {
    for at in 0..3 {
        let swap = |root: &mut ExclusiveGuard<'_>| {
            let (one, other) = (root.node().child(at), root.node().child(at + 1));
            root.node_mut().set_child(at, other);
            root.node_mut().set_child(at + 1, one);
        };
        is_found(
            walk(|tree| with_root(tree, swap)),
            "its fences are not the keys",
        );
    }
}

#[test]
fn a_root_that_is_its_own_child_is_found() {
    let bench = Bench::new(64);
    let tree = bench.tree(16);
    for n in 0..100u32 {
        put(&tree, &n.to_be_bytes(), &[7; 1000]);
    }
    let mut sound = 0;
    with_root(&tree, |root| {
        sound = root.node().child(0);
        let own = root.node().page_id();
        root.node_mut().set_child(0, own);
    });
    let read = tree.copy_leaf(Position::First, &mut LeafImage::new());
    assert!(matches!(read, Err(Error::Corrupt { .. })));
    with_root(&tree, |root| root.node_mut().set_child(0, sound));
}

/// A scan does not read the leaf if its zone map or mini-page will do.
#[test]
fn what_is_kept_of_another_trees_leaf_stands_for_none() {
    let bench = Bench::new(64);
    let (tree, other) = (bench.tree(16), bench.tree(17));
    for n in 0..100u32 {
        put(&tree, &n.to_be_bytes(), &[7; 1000]);
        put(&other, &n.to_be_bytes(), &[7; 1000]);
    }
    let mut theirs = Vec::new();
    let mut leaves = other.leaves(Vec::new(), None);
    let keep = |leaf: &crate::tree::Leaf<'_>| {
        let zone_map = ZoneMap {
            max_txid: 0,
            records: 1,
            values: 1,
            sum: 0,
            min: 0,
            max: 0,
        };
        leaf.keep(Some(0), &zone_map);
    };
    while !matches!(leaves.next(|_| false, keep).unwrap(), Step::End) {}
    while bench.pool.buffer_pool().evict_some(64).unwrap() > 0 {}
    with_root(&other, |root| {
        let node = root.node();
        theirs.extend(
            (0..=node.count()).map(|i| match buffer::child(node.child(i)) {
                Child::Page(id) => id,
                Child::Frame(_) => unreachable!("all have gone"),
            }),
        );
    });
    with_root(&tree, |root| root.node_mut().set_child(1, theirs[1]));
    let walk = |tree: &Tree| {
        let mut leaves = tree.leaves(Vec::new(), None);
        let mut known = 0;
        loop {
            match leaves.next(|leaf| leaf.zone_map(Some(0)).is_some(), |_| ())? {
                Step::Known => known += 1,
                Step::Read(()) => {}
                Step::End => return Ok(known),
            }
        }
    };
    let known: Result<usize> = walk(&other);
    assert_eq!(known.unwrap(), theirs.len());
    let read = walk(&tree);
    assert!(matches!(read, Err(Error::Corrupt { .. })), "{read:?}");
}
