//! What is committed now, for who does not wait for those who are changing it.

use super::TreeTransaction;
use crate::mvcc::snapshot::{ReadView, SnapshotSlot};

/// A snapshot of a moment, beside the transaction's own. What it sees stays there to be read until it
/// is dropped, or the transaction gives its own snapshot up.
pub struct LastCommitted {
    view: ReadView,
    /// Where the snapshot is registered.
    _slot: SnapshotSlot,
}

impl LastCommitted {
    /// What it sees.
    pub fn view(&self) -> &ReadView {
        &self.view
    }
}

impl TreeTransaction {
    /// What is committed now, and own changes.
    pub fn last_committed(&mut self) -> LastCommitted {
        // That one is older, and keeps the undo; the second keeps versions in between from being pruned.
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
