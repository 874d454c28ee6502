//! Models of the latch.

use std::sync::Arc;

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use loom::thread;

use super::latch::Latch;
use crate::model;

/// What a latch guards: two numbers that are alike whenever nobody changes them.
#[derive(Default)]
struct Node {
    latch: Latch,
    first: AtomicU64,
    second: AtomicU64,
}

impl Node {
    /// By a holder, or by a reader who asks afterwards.
    fn read(&self) -> (u64, u64) {
        (self.first.load(Relaxed), self.second.load(Relaxed))
    }

    /// By who has the latch exclusively.
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

/// Plays what two threads do with a node, and returns it once they have ended.
fn two(one: impl FnOnce(&Node) + 'static, other: impl FnOnce(&Node)) -> Arc<Node> {
    let node = Arc::new(Node::default());
    let shared = node.clone();
    let thread = thread::spawn(move || one(&shared));
    other(&node);
    thread.join().expect("it has not panicked");
    node
}

/// Who has the latch exclusively is alone, and the next one sees all that it has changed.
pub fn exclusive() {
    model(3, || {
        let node = two(Node::change, Node::change);
        assert_eq!(node.read(), (2, 2));
    });
}

/// Shared holders see changes whole.
pub fn shared() {
    model(3, || {
        two(Node::change, Node::look);
    });
}

/// What was read by a version that still holds was whole.
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

/// Of two that take the latch by the version that they have read by, each builds on what it has read.
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

/// Who sleeps is woken: two that change beside one that looks.
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
