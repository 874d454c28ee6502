//! Frames that get another page between a read without a latch and the latch.
//!
//! They are free frames, and frames of mini-pages, with bytes that may look like those of a node. Also pages that a
//! wrong pointer loads a second time.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use crate::buffer::frames::NO_FRAME;
use crate::buffer::guard::{ExclusiveGuard, SharedGuard};
use crate::buffer::{BufferPool, PoolWithThreads, MIN_FRAMES};
use crate::error::Error;
use crate::ids::{FrameId, PageId, TreeId, PAGE_SIZE};
use crate::knobs;
use crate::leaf_cache::mini_pages::LeafSeen;
use crate::node::header::*;
use crate::node::LeafLayoutHint;
use crate::os::simulated::SimulatedOs;
use crate::store::Store;
use crate::tree::{LeafNotResident, RecordEdit, Tree};

/// Rows of a test: some hundred leaves below several inner nodes.
const ROWS: u32 = 2_000;

fn tree() -> (Arc<PoolWithThreads>, Tree) {
    tree_on(SimulatedOs::new(1))
}

/// Makes a tree of three levels, none of it in memory, in a pool that evicts pages only when the test asks.
pub(super) fn tree_on(os: SimulatedOs) -> (Arc<PoolWithThreads>, Tree) {
    let store = Store::create(Arc::new(os), Path::new("/db")).unwrap();
    let pool = PoolWithThreads::without_thread(MIN_FRAMES * PAGE_SIZE, Arc::new(store)).unwrap();
    let tree = Tree::create(&pool, TreeId(1)).unwrap();
    for n in 0..ROWS {
        put(&tree, n, 1);
    }
    evict_all(pool.buffer_pool());
    (pool, tree)
}

/// Makes a key: neighbours share a long prefix, others little, so that separators are long and inner nodes many.
pub(super) fn key(n: u32) -> Vec<u8> {
    let group = n / 50;
    let mut key = group.to_be_bytes().to_vec();
    key.resize(600, group as u8);
    key.extend_from_slice(&n.to_be_bytes());
    key
}

fn put(tree: &Tree, n: u32, byte: u8) {
    let fill = |_: Option<&[u8]>, new: &mut Vec<u8>| {
        new.resize(300, byte);
        (RecordEdit::Put, ())
    };
    tree.modify(&key(n), 300, 1, fill).unwrap();
}

fn get(tree: &Tree, n: u32) -> Option<u8> {
    let first = |value: Option<&[u8]>, _| value.map(|value| value[0]);
    tree.read(&key(n), first).unwrap()
}

/// Returns a key's leaf, which is not in memory; the nodes above it are in memory afterwards.
fn away(tree: &Tree, n: u32) -> LeafNotResident {
    let hint = tree.find_leaf(&key(n), &LeafLayoutHint::default()).unwrap();
    hint.away().unwrap()
}

fn evict_all(pool: &BufferPool) {
    while pool.evict_some(MIN_FRAMES).unwrap() > 0 {}
}

fn evict(pool: &BufferPool, frame: FrameId) {
    let page = pool.frames.state(frame).holds().unwrap();
    assert!(pool.evict(frame, page).unwrap());
}

/// Returns the frames of pages of a kind that have a parent in memory.
fn children(pool: &BufferPool, kind: PageKind) -> Vec<FrameId> {
    let is_one = |frame: &FrameId| {
        pool.frames.state(*frame).parent.load(Ordering::Relaxed) != NO_FRAME
            && SharedGuard::lock(pool, *frame).bytes()[KIND] == kind as u8
    };
    (0..pool.frames.count() as FrameId).filter(is_one).collect()
}

/// Fills a new frame with mini-pages.
///
/// The first one begins so that the frame looks like an inner node with more children than a page can have.
fn copies_like_a_node(pool: &BufferPool) -> FrameId {
    let mut copy = vec![0x7f; knobs::longest_mini_page()];
    copy[..2].copy_from_slice(&[PageKind::Inner as u8, 0]);
    let (filling, _) = pool.place_copy(1, &copy).unwrap();
    // The headers of the frame and of three mini-pages take the rest.
    for len in [
        knobs::longest_mini_page(),
        PAGE_SIZE - 2 * knobs::longest_mini_page() - 40,
    ] {
        let (same, _) = pool.place_copy(1, &vec![0x7f; len]).unwrap();
        assert_eq!(same.frame, filling.frame);
    }
    let guard = SharedGuard::lock(pool, filling.frame);
    assert_eq!(guard.bytes()[KIND], PageKind::Inner as u8);
    filling.frame
}

#[test]
fn a_victim_whose_frame_has_become_one_of_copies_is_left_alone() {
    let (pool, _tree) = tree();
    let pool = pool.buffer_pool();
    let frame = copies_like_a_node(pool);
    assert!(!pool.evict(frame, 7).unwrap());
    assert!(pool.evict_copies(frame));
    assert!(!pool.evict(frame, 7).unwrap(), "a free frame");
}

#[test]
fn a_victim_whose_parents_frame_has_become_one_of_copies_stays() {
    let (pool, tree) = tree();
    let pool = pool.buffer_pool();
    assert_eq!(get(&tree, 0), Some(1));
    let leaves = children(pool, PageKind::Leaf);
    let leaf = pool.frames.state(leaves[0]);
    let page = leaf.holds().unwrap();
    let parent = leaf.parent.load(Ordering::Relaxed);
    leaf.parent
        .store(copies_like_a_node(pool), Ordering::Relaxed);
    assert!(!pool.evict(leaves[0], page).unwrap());
    leaf.parent.store(parent, Ordering::Relaxed);
    evict(pool, leaves[0]);
    assert_eq!(get(&tree, 0), Some(1));
}

#[test]
fn a_leaf_that_is_in_memory_and_changed_is_not_brought_again_by_what_its_parents_old_frame_says() {
    let (pool, tree) = tree();
    let pool = pool.buffer_pool();
    let leaf = away(&tree, 0);
    let parent = children(pool, PageKind::Inner);
    // Other nodes are evicted after the parent, so their frames are reused before its own.
    for n in [ROWS / 3, ROWS / 2, ROWS - 1] {
        away(&tree, n);
    }
    let others = children(pool, PageKind::Inner);
    assert!(parent.len() == 1 && others.len() > 3);
    evict(pool, parent[0]);
    let others = others.into_iter().filter(|other| *other != parent[0]);
    others.for_each(|other| evict(pool, other));
    put(&tree, 0, 2);
    assert_eq!(pool.frames.state(parent[0]).holds(), None);
    tree.bring(&[leaf]);
    let page = leaf.page().0;
    assert_eq!(pool.table.lock(page).get(&page), None, "brought again");
    evict_all(pool);
    assert_eq!(get(&tree, 0), Some(2));
}

#[test]
fn nothing_is_brought_by_a_frame_of_copies_that_was_the_parents() {
    let (pool, tree) = tree();
    let pool = pool.buffer_pool();
    let leaf = away(&tree, 0);
    let parent = children(pool, PageKind::Inner);
    evict(pool, parent[0]);
    assert_eq!(copies_like_a_node(pool), parent[0]);
    tree.bring(&[leaf]);
    let page = leaf.page().0;
    assert_eq!(pool.table.lock(page).get(&page), None);
    assert_eq!(get(&tree, 0), Some(1));
}

/// A thread must not wait in order to keep a mini-page.
#[test]
fn no_frame_is_waited_for_to_keep_a_copy() {
    let store = Store::create(Arc::new(SimulatedOs::new(1)), Path::new("/db")).unwrap();
    let pool = PoolWithThreads::without_thread(MIN_FRAMES * PAGE_SIZE, Arc::new(store)).unwrap();
    let pool = pool.buffer_pool();
    pool.set_waits(3);
    let take = |_| pool.take_frame().unwrap();
    let held: Vec<_> = (0..MIN_FRAMES).map(take).collect();
    let before = pool.hand.load(Ordering::Relaxed);
    assert!(pool.place_copy(1, &[0; 100]).is_none());
    let looks = pool.hand.load(Ordering::Relaxed) - before;
    assert!(looks <= 2 * MIN_FRAMES, "{looks} looks for a frame");
    held.into_iter().for_each(|guard| pool.release_frame(guard));
    assert!(pool.place_copy(1, &[0; 100]).is_some());
}

#[test]
fn a_copy_whose_frame_has_gone_before_it_is_known_is_not_kept() {
    let (pool, tree) = tree();
    let pool = pool.buffer_pool();
    assert_eq!(get(&tree, 0), Some(1));
    let frame = children(pool, PageKind::Leaf)[0];
    let guard = SharedGuard::lock(pool, frame);
    let (page, version) = (guard.page().0, guard.version());
    drop(guard);
    let leaf = LeafSeen { frame, version };
    let place = pool.place_copy(page, &[0; 100]).unwrap();
    pool.enter_copy(page, leaf, 1, 100, place);
    assert!(pool.has_mini_page(page, 1, 1));
    assert!(pool.evict_copies(place.0.frame));
    assert!(!pool.has_mini_page(page, 1, 1));
    pool.enter_copy(page, leaf, 1, 100, place);
    assert!(!pool.has_mini_page(page, 1, 1));
}

/// Returns the frame and the page of the only leaf in memory, which has row 0.
fn only_leaf(pool: &BufferPool, tree: &Tree) -> (FrameId, u64) {
    assert_eq!(get(tree, 0), Some(1));
    let leaves = children(pool, PageKind::Leaf);
    assert_eq!(leaves.len(), 1);
    (leaves[0], pool.frames.state(leaves[0]).holds().unwrap())
}

/// Checks that no eviction loses a change of a leaf of which the pool has a second copy, as old as its image.
fn keeps_its_change(pool: &BufferPool, tree: &Tree, (frame, page): (FrameId, u64)) {
    put(tree, 0, 2);
    pool.evict(frame, page).unwrap();
    assert_eq!(get(tree, 0), Some(2));
    evict_all(pool);
    assert_eq!(get(tree, 0), Some(2));
}

#[test]
fn a_leaf_that_a_wrong_undo_pointer_has_brought_again_keeps_its_changes() {
    let (pool, tree) = tree();
    let leaf = only_leaf(pool.buffer_pool(), &tree);
    drop(pool.fetch_shared(PageId(leaf.1)));
    keeps_its_change(pool.buffer_pool(), &tree, leaf);
}

#[test]
fn a_leaf_that_a_wrong_child_id_has_brought_again_keeps_its_changes() {
    let (pool, tree) = tree();
    let pool = pool.buffer_pool();
    let leaf = only_leaf(pool, &tree);
    let parent = pool.frames.state(leaf.0).parent.load(Ordering::Relaxed);
    let name_last = |word: u64| {
        let mut parent = ExclusiveGuard::lock(pool, parent);
        let last = parent.node().count();
        let before = parent.node().child(last);
        parent.node_mut().set_child(last, word);
        (before, parent.node().key(last - 1).to_vec())
    };
    let (sound, key) = name_last(leaf.1);
    let read = tree.read(&key, |_, _| ());
    assert!(matches!(read, Err(Error::Corrupt { .. })), "{read:?}");
    name_last(sound);
    keeps_its_change(pool, &tree, leaf);
}

#[test]
fn a_trees_page_is_not_changed_where_a_wrong_undo_pointer_leads() {
    let (pool, tree) = tree();
    let page = PageId(only_leaf(pool.buffer_pool(), &tree).1);
    let found = pool.fetch_exclusive(page).map(drop);
    assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");
    let found = pool.fetch_shared(page).map(drop);
    assert!(matches!(found, Err(Error::Corrupt { .. })), "{found:?}");
    assert!(pool.resident_exclusive(page).is_none());
    assert!(pool.resident_shared(page).is_none());
}

/// A damaged parent of another tree may name the leaf.
#[test]
fn a_copy_is_one_trees() {
    let (pool, tree) = tree();
    let pool = pool.buffer_pool();
    let (frame, page) = only_leaf(pool, &tree);
    let version = SharedGuard::lock(pool, frame).version();
    let leaf = LeafSeen { frame, version };
    pool.keep_mini_page(page, leaf, 1, &[0; 100]);
    assert!(pool.has_mini_page(page, 1, 1));
    assert!(!pool.has_mini_page(page, 2, 1));
    assert_eq!(pool.mini_page_columns(page, 2), None);
}

#[test]
fn who_brings_a_child_of_a_node_that_is_being_written_sleeps_meanwhile() {
    let (pool, tree) = tree();
    let pool = pool.buffer_pool();
    away(&tree, 0);
    let parents = children(pool, PageKind::Inner);
    assert_eq!(parents.len(), 1);
    let latch = &pool.frames.state(parents[0]).latch;
    let written = SharedGuard::lock(pool, parents[0]);
    let slept = std::thread::scope(|scope| {
        let reading = scope.spawn(|| get(&tree, 0));
        let slept = (0..5_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            latch.is_slept_for()
        });
        drop(written);
        assert_eq!(reading.join().unwrap(), Some(1));
        slept
    });
    assert!(slept);
}
