//! Trees whose pages are whole, each by itself, and contradict each other.

use super::{put, Bench};
use crate::error::Error;
use crate::page::{Change, ExclusiveGuard};
use crate::tree::{LeafImage, Position, Tree};

/// More leaves than the tree has.
const LONG: usize = 100;

/// A walk over a tree whose root leads, instead of to leaf `at`, to its first leaf once more, or
/// to its last one for a walk back. Gives the leaves seen.
fn walk(at: usize, forward: bool) -> Result<usize, Error> {
    let bench = Bench::new(64);
    let tree = bench.tree(16);
    for n in 0..100u32 {
        put(&tree, &n.to_be_bytes(), &[7; 1000]);
    }
    let mut root = ExclusiveGuard::lock(&tree.core, tree.root_frame);
    assert!(root.node().level() == 1 && root.node().count() > 3);
    let from = if forward { 0 } else { root.node().count() };
    let sound = root.node().child(at);
    let wrong = root.node().child(from);
    root.node_mut().set_child(at, wrong);
    drop(root);
    let mut image = LeafImage::new();
    let mut leaves = 0;
    let first = match forward {
        true => Position::First,
        false => Position::Last,
    };
    let mut walked = tree.copy_leaf(first, &mut image);
    while let Ok(true) = walked {
        leaves += 1;
        assert!(leaves < LONG, "a walk in circles");
        walked = match forward {
            true => tree.copy_next_leaf(&mut image),
            false => tree.copy_previous_leaf(&mut image),
        };
    }
    let mut root = ExclusiveGuard::lock(&tree.core, tree.root_frame);
    root.node_mut().set_child(at, sound);
    walked.map(|_| leaves)
}

#[test]
fn a_walk_over_a_tree_that_leads_back_ends_with_an_error() {
    for at in 1..4 {
        assert!(matches!(walk(at, true), Err(Error::Corrupt { .. })));
        assert!(matches!(walk(at - 1, false), Err(Error::Corrupt { .. })));
    }
    // The first leaf in its own place.
    assert!(walk(0, true).is_ok());
}

fn try_put(tree: &Tree, key: u32, len: usize) -> Result<(), Error> {
    tree.modify(&key.to_be_bytes(), len, 0, |_, new| {
        new.resize(len, 7);
        (Change::Put, ())
    })
}

#[test]
fn a_key_goes_into_no_leaf_that_does_not_hold_it() {
    let bench = Bench::new(64);
    let tree = bench.tree(16);
    for n in 0..100u32 {
        put(&tree, &n.to_be_bytes(), &[7; 1000]);
    }
    let mut root = ExclusiveGuard::lock(&tree.core, tree.root_frame);
    let (first, second) = (root.node().child(0), root.node().child(1));
    root.node_mut().set_child(0, second);
    drop(root);
    let written = try_put(&tree, 0, 10);
    assert!(matches!(written, Err(Error::Corrupt { .. })));
    let mut root = ExclusiveGuard::lock(&tree.core, tree.root_frame);
    root.node_mut().set_child(0, first);
}

#[test]
fn a_leaf_whose_keys_are_out_of_order_is_not_split() {
    let bench = Bench::new(64);
    let tree = bench.tree(16);
    for n in 1000..1010u32 {
        put(&tree, &n.to_be_bytes(), &[7; 100]);
    }
    let mut root = ExclusiveGuard::lock(&tree.core, tree.root_frame);
    root.node_mut().insert(5, b"z", &[8; 100]);
    drop(root);
    let written = (1010..1200u32)
        .map(|n| try_put(&tree, n, 100))
        .find(Result::is_err);
    assert!(matches!(written, Some(Err(Error::Corrupt { .. }))));
}

#[test]
fn a_root_that_is_its_own_child_is_found_out() {
    let bench = Bench::new(64);
    let tree = bench.tree(16);
    for n in 0..100u32 {
        put(&tree, &n.to_be_bytes(), &[7; 1000]);
    }
    let mut root = ExclusiveGuard::lock(&tree.core, tree.root_frame);
    let sound = root.node().child(0);
    let own = root.node().page_id();
    root.node_mut().set_child(0, own);
    drop(root);
    let read = tree.copy_leaf(Position::First, &mut LeafImage::new());
    assert!(matches!(read, Err(Error::Corrupt { .. })));
    let mut root = ExclusiveGuard::lock(&tree.core, tree.root_frame);
    root.node_mut().set_child(0, sound);
}
