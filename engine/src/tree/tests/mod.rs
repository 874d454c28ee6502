//! Trees compared with a `BTreeMap`: alone, in threads, across checkpoints.
//!
//! The pools are so small that pages are loaded and evicted all the time.

mod checkpoints;
mod damaged;
mod damaged_ends;
mod leaves;
mod mini_page;
mod model;
mod roots;
mod threads;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::{LeafImage, Position, RecordEdit, Tree};
use crate::buffer::PoolWithThreads;
use crate::ids::{TreeId, PAGE_SIZE};
use crate::node::{LeafLayoutHint, Prefix, ValueCopy};
use crate::os::simulated::SimulatedOs;
use crate::store::Store;

pub(super) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const DIR: &str = "/db";

/// A pool over an in-memory disk.
pub(super) struct Bench {
    pub os: SimulatedOs,
    pub pool: Arc<PoolWithThreads>,
}

impl Bench {
    pub fn new(frames: usize) -> Bench {
        let os = SimulatedOs::new(1);
        let store = Store::create(Arc::new(os.clone()), Path::new(DIR)).unwrap();
        Bench {
            pool: PoolWithThreads::new(frames * PAGE_SIZE, Arc::new(store)).unwrap(),
            os,
        }
    }

    pub fn tree(&self, id: u32) -> Tree {
        Tree::create(&self.pool, TreeId(id)).unwrap()
    }

    /// Makes a whole checkpoint while nothing else runs.
    pub fn checkpoint(&self, meta: &[u8]) {
        let store = self.pool.store();
        let epoch = store.begin_checkpoint();
        self.pool.begin_checkpoint(epoch);
        self.pool.write_checkpoint(epoch, &mut |_| Ok(())).unwrap();
        store.complete_checkpoint(epoch, meta).unwrap();
    }

    /// Returns what is on disk after a loss of power.
    pub fn crash(&self, frames: usize) -> (Bench, Vec<u8>) {
        let os = self.os.crash(7);
        let (store, meta) = Store::open(Arc::new(os.clone()), Path::new(DIR)).unwrap();
        let pool = PoolWithThreads::new(frames * PAGE_SIZE, Arc::new(store)).unwrap();
        (Bench { os, pool }, meta)
    }
}

pub(super) fn put(tree: &Tree, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    tree.modify(key, value.len(), 0, |old, new| {
        new.extend_from_slice(value);
        (RecordEdit::Put, old.map(<[u8]>::to_vec))
    })
    .unwrap()
}

pub(super) fn remove(tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    tree.modify(key, 0, 0, |old, _| {
        (RecordEdit::Remove, old.map(<[u8]>::to_vec))
    })
    .unwrap()
}

pub(super) fn get(tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    tree.read(key, |value, _| value.map(<[u8]>::to_vec))
        .unwrap()
}

/// Like [`get`], but without a latch where possible.
pub(super) fn copied(tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    copied_to(&mut Vec::new(), tree, key)
}

/// Like [`copied`], but copies at most N bytes.
pub(super) fn front<const N: usize>(tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    copied_to(&mut Prefix::<N>::default(), tree, key)
}

fn copied_to(out: &mut impl ValueCopy, tree: &Tree, key: &[u8]) -> Option<Vec<u8>> {
    let found = tree.copy_value(key, out, &mut LeafLayoutHint::default());
    found.unwrap().map(|(at, _)| out.bytes(at).to_vec())
}

/// Returns all records, first to last, by leaf images.
pub(super) fn forward(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut image = LeafImage::new();
    let mut all = Vec::new();
    let mut key = Vec::new();
    let mut more = tree.copy_leaf(Position::First, &mut image).unwrap();
    while more {
        for i in 0..image.count() {
            image.key(i, &mut key);
            all.push((key.clone(), image.value(i).to_vec()));
        }
        more = tree.copy_next_leaf(&mut image).unwrap();
    }
    all
}

/// Returns all records, last to first, by leaf images.
pub(super) fn backward(tree: &Tree) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut image = LeafImage::new();
    let mut all = Vec::new();
    let mut key = Vec::new();
    let mut more = tree.copy_leaf(Position::Last, &mut image).unwrap();
    while more {
        for i in (0..image.count()).rev() {
            image.key(i, &mut key);
            all.push((key.clone(), image.value(i).to_vec()));
        }
        more = tree.copy_previous_leaf(&mut image).unwrap();
    }
    all
}

/// Checks that the tree's structure is whole and that it holds exactly the model.
pub(super) fn check(tree: &Tree, model: &Model) {
    let mut seen = Vec::new();
    let counts = tree
        .verify(&mut |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            Ok(())
        })
        .unwrap();
    assert_eq!(counts.records, model.len() as u64);
    let want: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(seen == want, "the records differ from the model's");
    let stats = tree.stats().unwrap();
    assert_eq!(stats.leaf_pages, counts.leaf_pages);
    assert_eq!(stats.inner_pages, counts.inner_pages);
}
