//! Settling: version headers that no longer tell anybody anything go when a leaf needs room.

use std::sync::Arc;

use crate::buffer::{Change, LeafSettle};
use crate::mvcc::order::CommitOrder;
use crate::mvcc::version::{encode_settled, Header};

/// Strips headers that every snapshot sees through, and drops delete marks that every snapshot
/// sees. Given to the pool, which asks it before it splits a leaf.
pub(crate) struct Settle {
    pub order: Arc<CommitOrder>,
}

impl LeafSettle for Settle {
    fn settle(&self, value: &[u8], out: &mut Vec<u8>) -> Change {
        match for_all(&self.order, value) {
            ForAll::Differs => Change::Keep,
            ForAll::Gone => Change::Remove,
            // Its header is the shortest already.
            ForAll::Row(payload) if payload.len() + 1 == value.len() => Change::Keep,
            ForAll::Row(payload) => {
                encode_settled(payload, out);
                Change::Put
            }
        }
    }
}

/// What of a record's value every snapshot sees, now and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForAll<'a> {
    /// This payload.
    Row(&'a [u8]),
    /// No row.
    Gone,
    /// Not the same for all.
    Differs,
}

/// What every snapshot, now and later, sees of a record's value.
pub(crate) fn for_all<'a>(order: &CommitOrder, value: &'a [u8]) -> ForAll<'a> {
    match Header::decode(value) {
        Ok((header, payload)) => match header.txid() {
            Some(txid) if !order.settled(txid) => ForAll::Differs,
            _ if header.deleted => ForAll::Gone,
            _ => ForAll::Row(payload),
        },
        // Whoever reads the record itself is told.
        Err(_) => ForAll::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{TxId, UndoPtr};
    use crate::lock::participant::Participant;
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
    fn only_what_every_snapshot_sees_is_settled() {
        let order = Arc::new(CommitOrder::new(TxId(5)));
        let settle = Settle {
            order: order.clone(),
        };
        let participant = Participant::new(Default::default());
        let txid = order.begin(&participant);
        let written = record(Origin::Chained(txid, UndoPtr(77)), false);
        let deleted = record(Origin::Chained(txid, UndoPtr(77)), true);
        let mut out = Vec::new();

        assert_eq!(settle.settle(&written, &mut out), Change::Keep);
        order.end(txid, End::Commit);
        assert_eq!(settle.settle(&written, &mut out), Change::Keep);
        assert_eq!(settle.settle(&deleted, &mut out), Change::Keep);
        order.advance_horizon(order.newest());
        assert_eq!(settle.settle(&deleted, &mut out), Change::Remove);
        assert_eq!(settle.settle(&written, &mut out), Change::Put);
        assert_eq!(out, record(Origin::Settled, false));
        let old = record(Origin::Inserted(TxId(4)), false);
        out.clear();
        assert_eq!(settle.settle(&old, &mut out), Change::Put);
        assert_eq!(settle.settle(&out.clone(), &mut Vec::new()), Change::Keep);
    }
}
