//! Models of the latch.

use std::sync::Arc;

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use loom::thread;

use super::latch::Latch;
use crate::model;

/// Data that a latch guards: two numbers that are equal while no thread changes them.
#[derive(Default)]
struct Node {
    latch: Latch,
    first: AtomicU64,
    second: AtomicU64,
}

impl Node {
    /// Called by a holder, or by an optimistic reader that validates afterwards.
    fn read(&self) -> (u64, u64) {
        (self.first.load(Relaxed), self.second.load(Relaxed))
    }

    /// Called by the exclusive holder.
    fn raise(&self) {
        let (first, second) = self.read();
        assert_eq!(first, second, "a change was seen half done");
        self.first.store(first + 1, Relaxed);
        self.second.store(second + 1, Relaxed);
    }

    fn change(&self) {
        self.latch.lock_exclusive();
        self.raise();
        self.latch.unlock_exclusive();
    }

    fn look(&self) {
        self.latch.lock_shared();
        let (first, second) = self.read();
        self.latch.unlock_shared();
        assert_eq!(first, second, "a change was seen half done");
    }
}

/// Runs two threads on a node, and returns the node when both have ended.
fn two(one: impl FnOnce(&Node) + 'static, other: impl FnOnce(&Node)) -> Arc<Node> {
    let node = Arc::new(Node::default());
    let shared = node.clone();
    let thread = thread::spawn(move || one(&shared));
    other(&node);
    thread.join().expect("it has not panicked");
    node
}

/// An exclusive holder is alone, and the next holder sees all its changes.
pub fn exclusive() {
    model(3, || {
        let node = two(Node::change, Node::change);
        assert_eq!(node.read(), (2, 2));
    });
}

/// Shared holders see no change half done.
pub fn shared() {
    model(3, || {
        two(Node::change, Node::look);
    });
}

/// An optimistic read whose version is still valid has seen no change half done.
pub fn optimistic() {
    model(3, || {
        two(Node::change, |node| {
            let version = node.latch.optimistic();
            let (first, second) = node.read();
            if node.latch.still(version) {
                assert_eq!(first, second, "a version held over a change");
            }
        });
    });
}

/// When two threads upgrade the latch from the version they have read, each builds on the values it has read.
pub fn upgraded() {
    fn raise_if_unchanged(node: &Node) {
        let version = node.latch.optimistic();
        let (first, _) = node.read();
        if node.latch.try_upgrade(version) {
            assert_eq!(
                node.read(),
                (first, first),
                "it was changed since it was read"
            );
            node.raise();
            node.latch.unlock_exclusive();
        }
    }
    model(3, || {
        let node = two(raise_if_unchanged, raise_if_unchanged);
        assert!(node.read().0 >= 1, "one of them found it as it was");
    });
}

/// A sleeping thread is woken: two threads change the node while one reads it.
pub fn asleep() {
    model(2, || {
        let node = Arc::new(Node::default());
        let works = [Node::change as fn(&Node), Node::look];
        let threads = works.map(|work| {
            let node = node.clone();
            thread::spawn(move || work(&node))
        });
        node.change();
        for thread in threads {
            thread.join().expect("it has not panicked");
        }
        assert_eq!(node.read(), (2, 2));
    });
}
