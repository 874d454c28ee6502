//! More open trees than there are frames.

use crate::node;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::buffer::SharedGuard;
use crate::error::Error;
use crate::node::{NodeFrame, PageKind};

/// Makes a key; the lengths vary, so that trees have one leaf or two levels.
fn key(n: u32) -> Vec<u8> {
    let mut key = n.to_be_bytes().to_vec();
    key.resize(if n % 3 == 0 { 600 } else { 20 }, b'k');
    key
}

#[test]
fn roots_leave_memory_as_other_pages_do() {
    let bench = Bench::new(64);
    // A thread that finds no frame gives up soon: none is in use for long here.
    bench.pool.buffer_pool().set_waits(50);
    let trees: Vec<Tree> = (0..300).map(|id| bench.tree(id + 10)).collect();
    let mut models = vec![Model::new(); trees.len()];
    let mut random = SmallRng::seed_from_u64(5);
    for round in 0..40 {
        for (tree, model) in trees.iter().zip(&mut models) {
            let key = key(random.random_range(0..60));
            assert_eq!(get(tree, &key).as_ref(), model.get(&key));
            assert_eq!(copied(tree, &key).as_ref(), model.get(&key));
            if round % 4 == 3 {
                assert_eq!(remove(tree, &key), model.remove(&key));
            } else {
                let value = vec![round as u8; random.random_range(0..200)];
                assert_eq!(put(tree, &key, &value), model.insert(key, value));
            }
        }
        if round % 10 == 0 {
            bench.checkpoint(b"");
        }
    }
    for (tree, model) in trees.iter().zip(&models) {
        check(tree, model);
        let mut reversed = backward(tree);
        reversed.reverse();
        assert!(forward(tree) == reversed, "tree {}", tree.id());
        tree.destroy().unwrap();
        tree.destroy().unwrap();
    }
    assert_eq!(bench.pool.store().pages().count(), 0);
}

/// Roots are evicted and loaded while several threads read, write, split and merge the same trees, with checkpoints
/// between.
#[test]
fn threads_find_roots_that_come_and_go() {
    const KEYS: u32 = 40;
    let bench = Bench::new(64);
    let trees: Vec<Tree> = (0..120).map(|id| bench.tree(id + 10)).collect();
    let done = AtomicBool::new(false);
    let models: Vec<Vec<Model>> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for tree in &trees {
                    // All records are of one tree, whichever thread wrote them: their first byte is the tree's
                    // number.
                    let mut image = LeafImage::new();
                    tree.copy_leaf(Position::First, &mut image).unwrap();
                    for i in 0..image.count() {
                        assert_eq!(image.value(i)[0], tree.id().0 as u8);
                    }
                }
            }
        });
        let threads: Vec<_> = (0..3u32)
            .map(|me| {
                let trees = &trees;
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(u64::from(me));
                    let mut models = vec![Model::new(); trees.len()];
                    for n in 0..12_000 {
                        let at = random.random_range(0..trees.len());
                        let (tree, model) = (&trees[at], &mut models[at]);
                        let key = key(random.random_range(0..KEYS) * 3 + me);
                        match n % 4 {
                            0 => assert_eq!(copied(tree, &key).as_ref(), model.get(&key)),
                            1 => assert_eq!(remove(tree, &key), model.remove(&key)),
                            _ => {
                                let mut value = vec![tree.id().0 as u8];
                                value.resize(random.random_range(1..900), me as u8);
                                assert_eq!(put(tree, &key, &value), model.insert(key, value));
                            }
                        }
                    }
                    models
                })
            })
            .collect();
        let models = threads.into_iter().map(|t| t.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        models
    });
    for (at, tree) in trees.iter().enumerate() {
        let model = models.iter().flat_map(|of_thread| of_thread[at].clone());
        check(tree, &model.collect());
    }
}

/// A thread that splits has a new page latched, and this page may be in the frame where the root was.
#[test]
fn a_root_whose_frame_is_another_pages_by_now_is_found_without_a_wait_for_that_page() {
    let store = Store::create(Arc::new(SimulatedOs::new(1)), Path::new(DIR)).unwrap();
    let pool = PoolWithThreads::without_thread(64 * PAGE_SIZE, Arc::new(store)).unwrap();
    let tree = Tree::create(&pool, TreeId(1)).unwrap();
    put(&tree, &key(1), b"one");
    let pool = pool.buffer_pool();
    let root: SharedGuard<'_> = tree.latch_root().unwrap();
    let frame = root.frame();
    drop(root);
    while pool.evict_some(64).unwrap() > 0 {}
    let new_page = pool.new_page().unwrap();
    assert_eq!(new_page.frame(), frame);
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let tree = &tree;
        scope.spawn(move || tell.send(get(tree, &key(1))));
        // Much longer than it takes; a thread that waits for the latch gets it when this thread releases it.
        let found = told.recv_timeout(std::time::Duration::from_secs(60));
        pool.discard_new(new_page);
        assert_eq!(found.unwrap().as_deref(), Some(&b"one"[..]));
    });
}

/// Estimates are made of tables that are dropped meanwhile.
///
/// The next new page gets the frame and the number of the root.
#[test]
fn who_goes_through_a_tree_that_has_gone_is_told_so_though_its_root_is_another_page() {
    let bench = Bench::new(64);
    let tree = bench.tree(1);
    for n in 0..200 {
        put(&tree, &key(n), &[1; 200]);
    }
    let mut image = LeafImage::new();
    assert!(tree.copy_leaf(Position::First, &mut image).unwrap());
    tree.destroy().unwrap();
    let (page, mut guard) = bench.pool.create_unparented(PageKind::Leaf).unwrap();
    assert_eq!(page, tree.root);
    let leaf = NodeFrame {
        page_id: page.0,
        tree_id: 2,
        level: 0,
        lower: &[],
        upper: Some(&[0]),
        max_txid: 0,
        upper_child: 0,
    };
    node::write_empty(guard.bytes_mut(), &leaf);
    drop(guard);
    let (tell, told) = std::sync::mpsc::channel();
    // No scope: if this fails, the thread may run forever.
    std::thread::spawn(move || tell.send(tree.copy_next_leaf(&mut image)));
    let found = told.recv_timeout(std::time::Duration::from_secs(60));
    let told_so = matches!(found, Ok(Err(Error::NotFound { .. })));
    assert!(told_so, "{found:?}");
}
