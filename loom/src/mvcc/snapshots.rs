//! Models of the registry of snapshots.

use std::sync::Arc;

use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicBool, AtomicU64};
use loom::thread;

use super::live_snapshots::Horizon;
use super::order::{CommitOrder, End};
use super::snapshot::SnapshotRegistry;
use super::undo_reclamation::UndoReclamation;
use crate::ids::{PageId, TxId};
use crate::lock::running;
use crate::model;

/// No snapshot is older than a horizon that was computed before the snapshot was taken, or while it exists.
pub fn horizon() {
    model(3, || {
        let order = Arc::new(CommitOrder::new(TxId(1)));
        let registry = SnapshotRegistry::new();
        let csn = Arc::new(AtomicU64::new(0));
        let low = Arc::new(AtomicU64::new(0));
        let slot = registry.claim();
        let reader = {
            let (order, csn, low) = (order.clone(), csn.clone(), low.clone());
            thread::spawn(move || {
                let view = slot.take(&order);
                // The horizon is acted on: undo that only older snapshots need is freed.
                assert!(view.csn.0 >= csn.load(Acquire), "behind the horizon");
                assert!(view.low.0 >= low.load(Acquire), "behind the horizon");
            })
        };
        let txid = order.begin(&running());
        order.end(txid, End::Commit);
        if let Some(horizon) = registry.horizon(&order) {
            csn.store(horizon.csn.0, Release);
            low.store(horizon.low.0, Release);
        }
        reader.join().expect("it has not panicked");
    });
}

/// The same for the list of snapshots, and for a second snapshot.
///
/// Take two ends of transactions with no listed or later snapshot between them: every snapshot sees both or neither.
pub fn listed() {
    model(3, || {
        let order = Arc::new(CommitOrder::new(TxId(1)));
        let registry = SnapshotRegistry::new();
        let slot = registry.claim();
        let replaced = Arc::new(AtomicBool::new(false));
        let begin = order.begin(&running());
        let from = order.end(begin, End::Commit);
        let reader = {
            let (order, replaced) = (order.clone(), replaced.clone());
            thread::spawn(move || {
                let view = slot.take_second(&order);
                // The snapshot needs the version that `from` made and `to` has replaced.
                let needs = view.csn == from;
                assert!(
                    !(needs && replaced.load(Acquire)),
                    "a version that is needed has gone"
                );
                slot.clear_second();
            })
        };
        let txid = order.begin(&running());
        let to = order.end(txid, End::Commit);
        if let Some(live) = registry.live(&order) {
            if live.none_between(from, to) {
                replaced.store(true, Release);
            }
        }
        reader.join().expect("it has not panicked");
    });
}

/// An undo page is freed only when no reader is on its way to it.
pub fn walk() {
    model(3, || {
        let registry = SnapshotRegistry::new();
        let grace = Arc::new(UndoReclamation::default());
        let slot = registry.claim();
        let pointer = Arc::new(AtomicU64::new(1));
        let freed = Arc::new(AtomicBool::new(false));
        let walker = {
            let (grace, pointer, freed) = (grace.clone(), pointer.clone(), freed.clone());
            thread::spawn(move || {
                let walking = slot.walk(&grace);
                if pointer.load(Acquire) != 0 {
                    assert!(!freed.load(Relaxed), "a page was freed under a walk");
                }
                drop(walking);
            })
        };
        pointer.store(0, Release);
        grace.retire(PageId(1));
        if !grace.take_free(|| registry.oldest_walk()).is_empty() {
            freed.store(true, Relaxed);
        }
        walker.join().expect("it has not panicked");
    });
}
