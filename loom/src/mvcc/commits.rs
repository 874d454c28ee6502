//! Models of the order of commits.

use std::sync::Arc;

use crate::sync::atomic::AtomicU64;
use crate::sync::atomic::Ordering::Relaxed;
use loom::thread;

use super::live_snapshots::Horizon;
use super::order::{CommitOrder, End};
use super::status::Status;
use crate::ids::TxId;
use crate::lock::running;
use crate::model;

/// The order of commits, and a mark that each of two writers writes before its end.
struct World {
    order: CommitOrder,
    written: [AtomicU64; 2],
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            order: CommitOrder::new(TxId(1)),
            written: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    fn write(&self, end: End) {
        let txid = self.order.begin(&running());
        self.written[txid.0 as usize - 1].store(1, Relaxed);
        self.order.end(txid, end);
    }

    /// Checks that a reader's view has the statuses that it promises, and that the writes it sees exist.
    fn look(&self) {
        let Horizon { csn, low } = self.order.newest();
        for number in 1..=2 {
            let txid = TxId(number);
            let status = self.order.status(txid);
            if txid < low {
                let seen = match status {
                    Status::Committed(end) | Status::Aborted(end) => end <= csn,
                    Status::Active | Status::Unknown => false,
                };
                assert!(
                    seen,
                    "{txid} is below {low}, and {status:?} is not seen at {csn}"
                );
            }
            if matches!(status, Status::Committed(end) if end <= csn) {
                let written = self.written[number as usize - 1].load(Relaxed);
                assert_eq!(written, 1, "a commit was seen before what it has written");
            }
        }
    }
}

/// Two writers end while a third thread reads.
pub fn seen_in_order() {
    model(2, || {
        let world = World::new();
        let writers = [End::Commit, End::Abort].map(|end| {
            let world = world.clone();
            thread::spawn(move || world.write(end))
        });
        world.look();
        for writer in writers {
            writer.join().expect("it has not panicked");
        }
        world.look();
        assert_eq!(world.order.newest().low, TxId(3));
    });
}

/// A snapshot that sees a commit keeps seeing it, and one that does not never will.
pub fn the_same_twice() {
    model(3, || {
        let world = World::new();
        let writer = {
            let world = world.clone();
            thread::spawn(move || world.write(End::Commit))
        };
        let view = world.order.newest();
        let sees = || match world.order.status(TxId(1)) {
            Status::Committed(end) => end <= view.csn,
            _ => false,
        };
        let first = sees();
        assert_eq!(first, sees(), "a view has changed");
        writer.join().expect("it has not panicked");
        assert_eq!(first, sees(), "a view has changed");
    });
}
