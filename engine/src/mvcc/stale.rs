//! Snapshots that are too old on purpose: leaves out the rule of [`IsolationFault::StaleSnapshot`].
//!
//! [`IsolationFault::StaleSnapshot`]: crate::IsolationFault::StaleSnapshot

use crate::mvcc::live_snapshots::Horizon;
use crate::mvcc::order::CommitOrder;
use crate::mvcc::snapshot::SnapshotSlot;

/// The number of snapshots for which one stale snapshot is used.
const STALE_FOR: u64 = 8;

/// A snapshot that is used again and again. Its slot keeps the versions that it sees from being purged.
pub(crate) struct Stale {
    slot: SnapshotSlot,
    taken: Horizon,
    used: u64,
}

impl Stale {
    pub fn new(slot: SnapshotSlot, order: &CommitOrder) -> Stale {
        let taken = slot.take(order);
        Stale {
            slot,
            taken,
            used: 0,
        }
    }

    /// Registers the old snapshot in `slot`, too.
    pub fn give(&mut self, slot: &SnapshotSlot, order: &CommitOrder) -> Horizon {
        if self.used >= STALE_FOR {
            self.taken = self.slot.take(order);
            self.used = 0;
        }
        self.used += 1;
        slot.take_as(&self.taken);
        self.taken
    }
}
