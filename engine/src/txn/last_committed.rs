//! The last committed state, for readers that do not wait for writers.

use super::TreeTransaction;
use crate::mvcc::snapshot::{ReadView, SnapshotSlot};

/// A snapshot of one moment, beside the transaction's own.
///
/// Its versions stay readable until it is dropped, or until the transaction gives its own snapshot up.
pub struct LastCommitted {
    view: ReadView,
    /// The slot in which the snapshot is registered.
    _slot: SnapshotSlot,
}

impl LastCommitted {
    /// The view of the snapshot.
    pub fn view(&self) -> &ReadView {
        &self.view
    }
}

impl TreeTransaction {
    /// Takes a snapshot of the last committed state and the transaction's own changes.
    pub fn last_committed(&mut self) -> LastCommitted {
        // The transaction's own snapshot is older, and keeps the undo. The second one keeps versions between the two
        // from being pruned.
        self.latest_view();
        let transactions = self.transactions();
        let slot = transactions.snapshots().claim();
        let newest = slot.take_second(transactions.order());
        let view = ReadView {
            csn: newest.csn,
            low: newest.low,
            own: self.txid,
        };
        LastCommitted { view, _slot: slot }
    }
}
