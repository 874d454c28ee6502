//! A checkpoint holds exactly the state at its barrier, whatever happens while it is written.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::ids::PageId;
use crate::node::PageKind;

/// Threads change trees and undo-like pages inside a barrier, and checkpoints run beside them.
///
/// After each checkpoint the power fails, and the test compares what it finds with the models as they were at the
/// barrier.
fn run(seed: u64, frames: usize) {
    let bench = Bench::new(frames);
    let trees: Vec<Tree> = (0..3).map(|i| bench.tree(i)).collect();
    let models: Vec<Mutex<Model>> = (0..3).map(|_| Mutex::default()).collect();
    let bodies: Mutex<BTreeMap<PageId, u8>> = Mutex::default();
    let barrier = RwLock::new(());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Each thread has its own tree: its model changes with it.
        for me in 0..3 {
            let (tree, model) = (&trees[me], &models[me]);
            let (barrier, stop) = (&barrier, &stop);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed * 10 + me as u64);
                while !stop.load(Ordering::Relaxed) {
                    let n = random.random_range(0..2_000u32);
                    let key = n.to_be_bytes();
                    let value = vec![random.random::<u8>(); random.random_range(0..400)];
                    let _inside = barrier.read();
                    let mut model = model.lock();
                    if random.random_ratio(2, 3) {
                        put(tree, &key, &value);
                        model.insert(key.to_vec(), value);
                    } else {
                        remove(tree, &key);
                        model.remove(&key[..]);
                    }
                }
            });
        }
        let (pool, barrier, stop, bodies) = (&bench.pool, &barrier, &stop, &bodies);
        scope.spawn(move || {
            let mut random = SmallRng::seed_from_u64(seed);
            while !stop.load(Ordering::Relaxed) {
                let _inside = barrier.read();
                let mut bodies = bodies.lock();
                let byte = random.random::<u8>();
                let some = bodies.keys().nth(random.random_range(0..20)).copied();
                match some {
                    None => {
                        let (id, mut guard) = pool.create_unparented(PageKind::Undo).unwrap();
                        guard.body_mut().unwrap()[100] = byte;
                        guard.set_used(200).unwrap();
                        bodies.insert(id, byte);
                    }
                    Some(id) if byte % 4 == 0 => {
                        assert_eq!(pool.fetch_shared(id).unwrap().body()[100], bodies[&id]);
                        pool.free(id).unwrap();
                        bodies.remove(&id);
                    }
                    Some(id) => {
                        let mut guard = pool.fetch_exclusive(id).unwrap();
                        guard.body_mut().unwrap()[100] = byte;
                        bodies.insert(id, byte);
                    }
                }
            }
        });
        for round in 0..6u8 {
            std::thread::sleep(std::time::Duration::from_millis(30));
            let store = pool.store();
            let (epoch, want, undo) = {
                let _closed = barrier.write();
                let epoch = store.begin_checkpoint();
                pool.begin_checkpoint(epoch);
                let want: Vec<Model> = models.iter().map(|m| m.lock().clone()).collect();
                (epoch, want, bodies.lock().clone())
            };
            pool.write_checkpoint(epoch, &mut |_| Ok(())).unwrap();
            if round % 3 == 1 {
                // Abandoned: the next checkpoint must not suffer from it.
                store.abandon_checkpoint(epoch);
                continue;
            }
            store.complete_checkpoint(epoch, &[round]).unwrap();
            let (after, meta) = bench.crash(64);
            assert_eq!(meta, [round]);
            for (i, model) in want.iter().enumerate() {
                let id = TreeId(i as u32);
                let tree = Tree::open(&after.pool, id, trees[i].root()).unwrap();
                check(&tree, model);
            }
            for (id, byte) in undo {
                let guard = after.pool.fetch_shared(id).unwrap();
                assert_eq!(guard.body()[100], byte);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn checkpoints_hold_the_barriers_state_with_a_tiny_pool() {
    run(1, 64);
}

#[test]
fn checkpoints_hold_the_barriers_state_with_room() {
    run(2, 1024);
}

/// A full disk makes the engine abandon checkpoints: the room that is kept is for the next one.
#[test]
fn nothing_is_saved_for_a_checkpoint_that_was_given_up() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    let fill = |byte: u8| {
        for n in 0..50u32 {
            put(&tree, &n.to_be_bytes(), &[byte; 1000]);
        }
    };
    fill(1);
    let store = bench.pool.store();
    let epoch = store.begin_checkpoint();
    bench.pool.begin_checkpoint(epoch);
    store.abandon_checkpoint(epoch);
    let before = store.stats().writes;
    fill(2);
    assert_eq!(store.stats().writes, before);
    assert_eq!(tree.stats().unwrap().height, 2);
    // The next checkpoint saves what it needs.
    let epoch = store.begin_checkpoint();
    bench.pool.begin_checkpoint(epoch);
    fill(3);
    assert!(store.stats().writes > before);
    let write = bench.pool.write_checkpoint(epoch, &mut |_| Ok(()));
    write.unwrap();
    store.complete_checkpoint(epoch, b"").unwrap();
    let (after, _) = bench.crash(64);
    let tree = Tree::open(&after.pool, TreeId(1), tree.root()).unwrap();
    for n in 0..50u32 {
        assert_eq!(get(&tree, &n.to_be_bytes()).unwrap(), [2; 1000]);
    }
}
