//! Dropping trees with pages that contradict each other: no page of another tree is freed, and no page twice.

use crate::{buffer, node};
use std::collections::HashSet;
use std::time::Duration;

use super::damaged::{with_leaf, with_root};
use super::*;
use crate::buffer::{Child, ExclusiveGuard, SharedGuard};
use crate::ids::PageId;
use crate::tree::descend::Route;

const GOES: TreeId = TreeId(16);
const STAYS: TreeId = TreeId(17);

/// Makes keys so long that few fit into an inner node: the tree then has three levels.
fn long_key(n: u32) -> Vec<u8> {
    let group = n / 50;
    let mut key = group.to_be_bytes().to_vec();
    key.resize(600, group as u8);
    key.extend_from_slice(&n.to_be_bytes());
    key
}

fn short_key(n: u32) -> Vec<u8> {
    n.to_be_bytes().to_vec()
}

/// Two trees of the same rows, one of them damaged on disk; neither is in memory.
struct Damaged {
    bench: Bench,
    goes: Tree,
    stays: Tree,
    rows: u32,
}

impl Damaged {
    fn new(rows: u32, key: fn(u32) -> Vec<u8>, damage: impl FnOnce(&Tree, &Tree)) -> Damaged {
        let bench = Bench::new(2_000);
        let (goes, stays) = (bench.tree(GOES.0), bench.tree(STAYS.0));
        for n in 0..rows {
            put(&goes, &key(n), &[7; 1000]);
            put(&stays, &key(n), &[8; 1000]);
        }
        damage(&goes, &stays);
        bench.checkpoint(&[]);
        let (bench, _) = bench.crash(2_000);
        let open = |id, tree: &Tree| Tree::open(&bench.pool, id, tree.root()).unwrap();
        let (goes, stays) = (open(GOES, &goes), open(STAYS, &stays));
        Damaged {
            bench,
            goes,
            stays,
            rows,
        }
    }

    /// Frees the pages of the damaged tree.
    ///
    /// Checks that the other tree is unchanged, also on disk, and that no page number is given out twice.
    fn end(self) -> Bench {
        let Damaged {
            bench, goes, rows, ..
        } = self;
        // No scope: if this fails, the thread may run forever.
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || tell.send(goes.destroy()));
        let ended = told.recv_timeout(Duration::from_secs(30));
        ended.expect("it waits for itself").unwrap();
        let whole = |stays: &Tree| {
            stays
                .verify(&mut |_, _| Ok(()))
                .map(|counts| counts.records)
        };
        assert_eq!(whole(&self.stays).unwrap(), u64::from(rows));
        bench.checkpoint(&[]);
        let (after, _) = bench.crash(2_000);
        let stays = Tree::open(&after.pool, STAYS, self.stays.root()).unwrap();
        assert_eq!(whole(&stays).unwrap(), u64::from(rows));

        let store = bench.pool.store();
        let used: HashSet<PageId> = store.pages().collect();
        let mut given = HashSet::new();
        for _ in 0..2_000 {
            let page = store.allocate_page();
            assert!(!used.contains(&page) && given.insert(page), "page {page}");
            assert!(page.0 < 10_000, "page {page}");
        }
        bench
    }
}

/// Returns the page of a child of the root, which is in memory.
fn child(tree: &Tree, at: usize) -> u64 {
    let root: SharedGuard<'_> = tree.latch_root().unwrap();
    match buffer::child(root.node().child(at)) {
        Child::Frame(frame) => SharedGuard::lock(&tree.pool, frame).page().0,
        Child::Page(id) => id,
    }
}

fn name(at: usize, id: u64) -> impl FnOnce(&mut ExclusiveGuard<'_>) {
    move |root| root.node_mut().set_child(at, id)
}

#[test]
fn a_root_that_is_its_own_child_is_freed_once() {
    let damaged = Damaged::new(100, short_key, |goes, _| {
        with_root(goes, name(2, goes.root().0));
    });
    let bench = damaged.end();
    // Only the child that no node names is left of it.
    assert_eq!(bench.pool.store().pages().count(), 1 + pages_of_100(&bench));
}

/// Returns how many pages a tree of a hundred short keys has.
fn pages_of_100(bench: &Bench) -> usize {
    let stays = bench.pool.store().pages();
    stays
        .filter(|page| tree_of(bench, *page) == STAYS.0)
        .count()
}

fn tree_of(bench: &Bench, id: PageId) -> u32 {
    let mut bytes = [0; PAGE_SIZE];
    bench.pool.store().read_page(id, &mut bytes).unwrap();
    node::get_u32(&bytes, node::TREE_ID)
}

#[test]
fn a_leaf_that_is_named_twice_is_freed_once() {
    let damaged = Damaged::new(100, short_key, |goes, _| {
        let first = child(goes, 0);
        with_root(goes, name(1, first));
    });
    damaged.end();
}

#[test]
fn a_leaf_in_memory_that_another_node_names_is_freed_once() {
    let damaged = Damaged::new(2_000, long_key, |goes, _| {
        // The first node above the leaves names the last leaf.
        let last: SharedGuard<'_> = goes.latch_leaf(Route::Last).unwrap();
        let id = last.page().0;
        drop(last);
        let first = goes.latch_node(Route::Key(&[]), 1).unwrap();
        let mut first: ExclusiveGuard<'_> = first.unwrap();
        first.node_mut().set_child(0, id);
        first.mark_dirty();
    });
    let last = long_key(1_999);
    assert!(get(&damaged.goes, &last).is_some());
    damaged.end();
}

#[test]
fn a_page_that_there_is_not_is_not_freed() {
    let damaged = Damaged::new(100, short_key, |goes, _| {
        with_root(goes, name(1, 20_000));
    });
    damaged.end();
}

#[test]
fn nothing_below_a_node_of_another_tree_is_freed() {
    let damaged = Damaged::new(2_000, long_key, |goes, stays| {
        let root: SharedGuard<'_> = goes.latch_root().unwrap();
        assert_eq!(root.node().level(), 2);
        drop(root);
        let theirs = child(stays, 0);
        let mut root: ExclusiveGuard<'_> = goes.latch_root().unwrap();
        root.node_mut().set_child(0, theirs);
        root.mark_dirty();
    });
    damaged.end();
}

#[test]
fn a_root_of_another_tree_that_is_in_memory_is_not_freed() {
    let damaged = Damaged::new(100, short_key, |goes, stays| {
        with_root(goes, name(1, stays.root().0));
    });
    damaged.end();
}

/// A tree's leaves are not read to be freed, unless a reader has found a contradiction in the tree.
#[test]
fn a_leaf_of_another_tree_is_not_freed_once_the_tree_is_doubted() {
    let damaged = Damaged::new(100, short_key, |goes, stays| {
        let theirs = child(stays, 1);
        with_root(goes, name(1, theirs));
    });
    let wrong = (0..damaged.rows).filter(|n| {
        let read = damaged.goes.read(&short_key(*n), |_, _| ());
        read.is_err()
    });
    assert!(wrong.count() > 0);
    damaged.end();
}

/// Damage within a leaf does not contradict what its parent says.
#[test]
fn a_leaf_that_makes_no_sense_stays_nobodys_trouble() {
    let damaged = Damaged::new(100, short_key, |goes, _| {
        with_leaf(goes, 50, |leaf| {
            leaf.node_mut().insert(0, &[0, 0, 0, 255], b"value")
        });
    });
    assert!(damaged.goes.read(&short_key(50), |_, _| ()).is_err());
    let bench = damaged.end();
    assert_eq!(bench.pool.store().pages().count(), pages_of_100(&bench));
}
