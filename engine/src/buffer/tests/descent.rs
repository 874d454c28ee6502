//! A descent needs a frame for each node from the root to the leaf, all at once.

use super::reuse::{key, tree_on};
use std::sync::atomic::Ordering;

use crate::buffer::{PoolWithThreads, MIN_FRAMES};
use crate::error::{Error, Result};
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::tree::Tree;

/// Nodes from the root to a leaf.
const WAY: usize = 3;

/// Takes all frames but some for new pages, which are not written yet; each has so many pins.
fn take_frames(pool: &PoolWithThreads, but: usize, pins: u32) {
    let pool = pool.buffer_pool();
    while pool.free_count() > but {
        let page = pool.new_page().unwrap();
        pool.register(&page, pins);
    }
}

fn get(tree: &Tree) -> Result<bool> {
    tree.read(&key(7), |value, _| value.is_some())
}

#[test]
fn a_descent_with_too_few_frames_beside_pages_that_can_not_be_written_is_an_error() {
    for frames in 0..=WAY {
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
    for frames in 0..=2 * WAY + 1 {
        for hand in (0..MIN_FRAMES).step_by(5) {
            let os = SimulatedOs::new(1);
            let (pool, tree) = tree_on(os.clone());
            pool.buffer_pool().set_waits(1);
            take_frames(&pool, frames, 1);
            // Other nodes of the tree are in their place, and were used last.
            for other in [1_999, 1_000, 500].into_iter().filter(|_| frames >= WAY) {
                assert!(tree.read(&key(other), |value, _| value.is_some()).unwrap());
            }
            pool.buffer_pool().hand.store(hand, Ordering::Relaxed);
            // Who reads so much for one record comes to no end.
            os.fail(FaultOn::Read, 200, std::io::ErrorKind::Other);
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
