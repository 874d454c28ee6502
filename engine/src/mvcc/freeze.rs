//! Freezing: removes version headers that no snapshot needs, when a leaf needs space.

use std::sync::Arc;

use crate::buffer::{LeafFreeze, RecordEdit};
use crate::mvcc::order::CommitOrder;
use crate::mvcc::version::{encode_frozen, Header};

/// Strips the headers of versions that every snapshot sees, and removes delete marks that every snapshot sees. The
/// buffer pool calls it before it splits a leaf.
pub(crate) struct Freeze {
    pub order: Arc<CommitOrder>,
}

impl LeafFreeze for Freeze {
    fn freeze(&self, value: &[u8], out: &mut Vec<u8>) -> RecordEdit {
        match for_all(&self.order, value) {
            FrozenVersion::NotFrozen => RecordEdit::Keep,
            FrozenVersion::Deleted => RecordEdit::Remove,
            // The record has the shortest header already.
            FrozenVersion::Row(payload) if payload.len() + 1 == value.len() => RecordEdit::Keep,
            FrozenVersion::Row(payload) => {
                encode_frozen(payload, out);
                RecordEdit::Put
            }
        }
    }
}

/// The part of a record's value that every present and later snapshot sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrozenVersion<'a> {
    /// Every snapshot sees this payload.
    Row(&'a [u8]),
    /// No snapshot sees a row.
    Deleted,
    /// Snapshots may see different versions.
    NotFrozen,
}

/// Returns what every present and later snapshot sees of a record's value.
pub(crate) fn for_all<'a>(order: &CommitOrder, value: &'a [u8]) -> FrozenVersion<'a> {
    match Header::decode(value) {
        Ok((header, payload)) => match header.txid() {
            Some(txid) if !order.is_frozen(txid) => FrozenVersion::NotFrozen,
            _ if header.deleted => FrozenVersion::Deleted,
            _ => FrozenVersion::Row(payload),
        },
        // A reader of the record gets this error itself.
        Err(_) => FrozenVersion::NotFrozen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{TxId, UndoPtr};
    use crate::lock::running_transaction::RunningTransaction;
    use crate::mvcc::order::End;
    use crate::mvcc::version::Origin;

    fn record(origin: Origin, deleted: bool) -> Vec<u8> {
        let mut value = Vec::new();
        Header { origin, deleted }.encode(&mut value);
        if !deleted {
            value.extend_from_slice(b"payload");
        }
        value
    }

    #[test]
    fn only_what_every_snapshot_sees_is_frozen() {
        let order = Arc::new(CommitOrder::new(TxId(5)));
        let freeze = Freeze {
            order: order.clone(),
        };
        let running = RunningTransaction::new(Default::default());
        let txid = order.begin(&running);
        let written = record(Origin::Chained(txid, UndoPtr(77)), false);
        let deleted = record(Origin::Chained(txid, UndoPtr(77)), true);
        let mut out = Vec::new();

        assert_eq!(freeze.freeze(&written, &mut out), RecordEdit::Keep);
        order.end(txid, End::Commit);
        assert_eq!(freeze.freeze(&written, &mut out), RecordEdit::Keep);
        assert_eq!(freeze.freeze(&deleted, &mut out), RecordEdit::Keep);
        order.advance_horizon(order.newest());
        assert_eq!(freeze.freeze(&deleted, &mut out), RecordEdit::Remove);
        assert_eq!(freeze.freeze(&written, &mut out), RecordEdit::Put);
        assert_eq!(out, record(Origin::Frozen, false));
        let old = record(Origin::Inserted(TxId(4)), false);
        out.clear();
        assert_eq!(freeze.freeze(&old, &mut out), RecordEdit::Put);
        assert_eq!(
            freeze.freeze(&out.clone(), &mut Vec::new()),
            RecordEdit::Keep
        );
    }
}
