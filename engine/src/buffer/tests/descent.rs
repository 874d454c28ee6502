//! Descents need a frame for each node from the root to the leaf, all at once.

use super::reuse::{key, tree_on};
use std::sync::atomic::Ordering;

use crate::buffer::{PoolWithThreads, MIN_FRAMES};
use crate::error::{Error, Result};
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::tree::{LeafImage, Position, Tree};

/// Nodes from the root to a leaf.
const WAY: usize = 3;

/// Takes all but `but` frames for new pages, which are not written yet; each page has `pins` pins.
fn take_frames(pool: &PoolWithThreads, but: usize, pins: u32) {
    let pool = pool.buffer_pool();
    while pool.free_count() > but {
        let page = pool.new_page().unwrap();
        pool.register(&page, pins);
    }
}

/// Reads a record, alone or as the first of a scan.
type Get = fn(&Tree) -> Result<bool>;

const WAYS: [Get; 3] = [get, scan, scan_back];

fn get(tree: &Tree) -> Result<bool> {
    tree.read(&key(7), |value, _| value.is_some())
}

/// Reads as the first of a scan, so that the tree reads leaves ahead.
fn scan(tree: &Tree) -> Result<bool> {
    let mut image = LeafImage::new();
    image.set_end(Some(&key(1_500)));
    tree.copy_leaf(Position::AtOrAfter(&key(7)), &mut image)
}

fn scan_back(tree: &Tree) -> Result<bool> {
    let mut image = LeafImage::new();
    Ok(tree.copy_leaf(Position::Before(&key(1_000)), &mut image)?
        && tree.copy_previous_leaf(&mut image)?)
}

#[test]
fn a_descent_with_too_few_frames_beside_pages_that_can_not_be_written_is_an_error() {
    for (frames, get) in (0..=WAY).flat_map(|frames| WAYS.map(|get| (frames, get))) {
        let os = SimulatedOs::new(1);
        let (pool, tree) = tree_on(os.clone());
        take_frames(&pool, frames, 0);
        os.fail(FaultOn::Write, 0, std::io::ErrorKind::StorageFull);
        match get(&tree) {
            Ok(found) => assert!(found && frames == WAY, "{frames} frames"),
            Err(error) => {
                assert!(frames < WAY, "{frames} frames: {error}");
                assert!(!matches!(error, Error::TooLarge(_)), "{error}");
            }
        }
        os.heal();
        assert!(get(&tree).unwrap());
    }
}

#[test]
fn a_descent_with_too_few_frames_beside_pinned_pages_is_an_error() {
    for (frames, get) in (0..=2 * WAY + 1).flat_map(|frames| WAYS.map(|get| (frames, get))) {
        for hand in (0..MIN_FRAMES).step_by(5) {
            let os = SimulatedOs::new(1);
            let (pool, tree) = tree_on(os.clone());
            pool.buffer_pool().set_waits(1);
            take_frames(&pool, frames, 1);
            // Other nodes of the tree are in their frames, and were used last.
            for other in [1_999, 1_000, 500].into_iter().filter(|_| frames >= WAY) {
                assert!(tree.read(&key(other), |value, _| value.is_some()).unwrap());
            }
            pool.buffer_pool().hand.store(hand, Ordering::Relaxed);
            // A descent that reads so often for one record would never end.
            os.fail(FaultOn::Read, 400, std::io::ErrorKind::Other);
            match get(&tree) {
                Ok(found) => assert!(found && frames >= WAY, "{frames} frames"),
                Err(error) => {
                    assert!(frames < WAY, "{frames} frames: {error}");
                    assert!(matches!(error, Error::TooLarge(_)), "{error}");
                }
            }
        }
    }
}

/// Their nodes evict one another.
#[test]
fn two_descents_with_frames_for_one_come_to_an_end() {
    for frames in WAY..2 * WAY {
        let os = SimulatedOs::new(1);
        let (pool, tree) = tree_on(os.clone());
        pool.buffer_pool().set_waits(50);
        take_frames(&pool, frames, 1);
        os.fail(FaultOn::Read, 100_000, std::io::ErrorKind::Other);
        let ends = |n: u32| match tree.read(&key(n), |value, _| value.is_some()) {
            Ok(found) => assert!(found),
            Err(error) => assert!(matches!(error, Error::TooLarge(_)), "{error}"),
        };
        std::thread::scope(|scope| {
            for n in [3, 1_990] {
                scope.spawn(move || (0..200).for_each(|_| ends(n)));
            }
        });
    }
}
