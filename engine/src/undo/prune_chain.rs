//! Pruning the version chain of one record: removes versions that no snapshot sees, also those between versions that
//! snapshots see (interval garbage collection: Lee et al., SIGMOD 2016; Böttcher et al., VLDB 2019).
//!
//! The snapshots that see a version lie between two ends: that of its writer, and that of the transaction that
//! replaced it. If no live snapshot lies between the two ends, no snapshot needs the version, at present or later.
//! The pointer to its undo record is then set to the next older record.
//!
//! The chain changes only under its leaf's exclusive latch, so a thread with that latch sees the whole chain. A visit
//! reads no page from disk; it returns the number of a page that is missing.

use crate::buffer::{PoolWithThreads, RecordEdit};
use crate::error::{Error, Result};
use crate::ids::{Csn, PageId, TxId, UndoPtr};
use crate::knobs;
use crate::mvcc::live_snapshots::LiveSnapshots;
use crate::mvcc::order::CommitOrder;
use crate::mvcc::status::Status;
use crate::mvcc::version::{Header, Origin};
use crate::tree::Tree;
use crate::undo::record::{Kind, UndoRecord};
use crate::undo::stream::StreamWriter;

/// The outcome of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// The chain has no record in the page to be emptied any more.
    Done,
    /// The visit moved a record; the page may have more records of the chain.
    Again,
    /// This undo page is not in memory.
    Missing(PageId),
    /// The chain is too long.
    TooLong,
    /// The record is not the delete mark asked for.
    OtherRecord {
        /// A rollback may bring the mark back.
        covered: bool,
    },
    /// The delete mark asked for is above versions that are still needed.
    Needed,
    /// The record with the delete mark asked for was removed.
    Removed,
}

/// The context that all visits for one page share.
pub(crate) struct Pruner<'a> {
    pub pool: &'a PoolWithThreads,
    pub order: &'a CommitOrder,
    pub live: &'a LiveSnapshots,
    /// The undo page to be emptied: records in it that are still needed move.
    pub page: PageId,
    /// The stream to which records move; room is reserved.
    pub survivors: &'a mut StreamWriter,
    /// The newest CSN until which moved records are needed.
    pub newest: Csn,
    /// The value of a record that moves.
    pub buf: Vec<u8>,
}

/// The place of the pointer to the next version.
#[derive(Clone, Copy)]
enum Pointer {
    Leaf,
    Record(UndoPtr),
}

/// The record value for the leaf.
struct Leaf<'a> {
    header: Header,
    payload: &'a [u8],
    changed: bool,
}

impl Pruner<'_> {
    /// Prunes the chain of a key.
    ///
    /// With `mark`, it also removes the record if that is the delete mark of transaction `mark`, and no snapshot
    /// needs a version before it. Inside the barrier.
    pub fn visit(&mut self, tree: &Tree, key: &[u8], mark: Option<TxId>) -> Result<Visit> {
        tree.rewrite(key, |current, out| {
            let Some(value) = current else {
                return (RecordEdit::Keep, Ok(absent(mark)));
            };
            let (header, payload) = match Header::decode(value) {
                Ok(decoded) => decoded,
                Err(error) => return (RecordEdit::Keep, Err(error)),
            };
            let mut leaf = Leaf {
                header,
                payload,
                changed: false,
            };
            let visit = self.walk(tree, key, &mut leaf);
            let visit = match (visit, mark) {
                (Ok(Visit::Done), Some(mark)) => {
                    let visit = self.judge_mark(&leaf.header, mark);
                    if visit == Visit::Removed {
                        return (RecordEdit::Remove, Ok(visit));
                    }
                    Ok(visit)
                }
                (visit, _) => visit,
            };
            if !leaf.changed {
                return (RecordEdit::Keep, visit);
            }
            leaf.header.encode(out);
            out.extend_from_slice(leaf.payload);
            (RecordEdit::Put, visit)
        })?
    }

    /// Decides about a delete mark of an ended transaction, after the chain was pruned.
    fn judge_mark(&self, header: &Header, mark: TxId) -> Visit {
        match header.txid() {
            Some(txid) if txid == mark && header.deleted => match header.older() {
                Some(_) => Visit::Needed,
                // Snapshots see no row, neither before the mark nor after it.
                None => Visit::Removed,
            },
            Some(txid) => Visit::OtherRecord {
                covered: !matches!(self.order.status(txid), Status::Committed(_)),
            },
            None => Visit::OtherRecord { covered: false },
        }
    }

    fn walk(&mut self, tree: &Tree, key: &[u8], leaf: &mut Leaf<'_>) -> Result<Visit> {
        let mut pointer = Pointer::Leaf;
        let mut from = leaf.header.older();
        let mut owner = leaf.header.txid();
        let mut next = from;
        for _ in 0..knobs::longest_pruned_chain() {
            // No reader goes beyond a version that every snapshot sees, and the undo there may be gone.
            let record = next.filter(|_| owner.is_some_and(|txid| !self.order.is_frozen(txid)));
            let (Some(ptr), Some(by)) = (record, owner) else {
                return self.link(leaf, pointer, from, None, Visit::Done);
            };
            let Some(found) = self.look(ptr)? else {
                return Ok(Visit::Missing(ptr.page()));
            };
            if self.is_needed(by, found.txid) {
                if ptr.page() == self.page {
                    return self.move_on(tree, key, leaf, pointer, from, ptr, by);
                }
                let linked = self.link(leaf, pointer, from, Some(ptr), Visit::Done)?;
                if linked != Visit::Done {
                    return Ok(linked);
                }
                (pointer, from) = (Pointer::Record(ptr), found.older);
            }
            (owner, next) = (found.txid, found.older);
        }
        Ok(Visit::TooLong)
    }

    /// The header of the value in an undo record; `None` if its page is not in memory.
    fn look(&self, ptr: UndoPtr) -> Result<Option<Found>> {
        let Some(page) = self.pool.resident_shared(ptr.page()) else {
            return Ok(None);
        };
        let record = decode(page.body(), ptr)?;
        if record.kind != Kind::Previous {
            return Ok(Some(Found {
                txid: None,
                older: None,
            }));
        }
        let (header, _) = Header::decode(record.value)?;
        Ok(Some(Found {
            txid: header.txid(),
            older: header.older(),
        }))
    }

    /// Returns whether a snapshot or a rollback can need the version that `writer` made and `by` replaced.
    fn is_needed(&self, by: TxId, writer: Option<TxId>) -> bool {
        let Status::Committed(to) = self.order.status(by) else {
            // `by` may be rolled back.
            return true;
        };
        let from = match writer.map(|txid| self.order.status(txid)) {
            None => Csn(0),
            Some(Status::Committed(csn)) => csn,
            Some(_) => return true,
        };
        !self.live.none_between(from, to)
    }

    /// Moves the needed record at `ptr`, and sets `pointer` to its new place.
    #[allow(clippy::too_many_arguments)]
    fn move_on(
        &mut self,
        tree: &Tree,
        key: &[u8],
        leaf: &mut Leaf<'_>,
        pointer: Pointer,
        from: Option<UndoPtr>,
        ptr: UndoPtr,
        by: TxId,
    ) -> Result<Visit> {
        // The page with the pointer must be in memory before anything changes.
        if let Pointer::Record(at) = pointer {
            if self.pool.resident_shared(at.page()).is_none() {
                return Ok(Visit::Missing(at.page()));
            }
        }
        {
            let Some(page) = self.pool.resident_shared(ptr.page()) else {
                return Ok(Visit::Missing(ptr.page()));
            };
            self.buf.clear();
            self.buf.extend_from_slice(decode(page.body(), ptr)?.value);
        }
        let to = self.survivors.append(&UndoRecord {
            previous: UndoPtr::NONE,
            tree: tree.id(),
            kind: Kind::Previous,
            marks_delete: false,
            key,
            value: &self.buf,
        })?;
        if let Status::Committed(csn) = self.order.status(by) {
            self.newest = self.newest.max(csn);
        }
        self.link(leaf, pointer, from, Some(to), Visit::Again)
    }

    /// Sets `pointer` from `from` to `to`, and returns `then`.
    fn link(
        &self,
        leaf: &mut Leaf<'_>,
        pointer: Pointer,
        from: Option<UndoPtr>,
        to: Option<UndoPtr>,
        then: Visit,
    ) -> Result<Visit> {
        if from == to {
            return Ok(then);
        }
        match (pointer, leaf.header.origin) {
            (Pointer::Leaf, Origin::Chained(txid, _)) => {
                leaf.header.origin = match to {
                    Some(to) => Origin::Chained(txid, to),
                    None => Origin::Inserted(txid),
                };
                leaf.changed = true;
            }
            (Pointer::Leaf, _) => {}
            (Pointer::Record(at), _) => {
                let Some(mut page) = self.pool.resident_exclusive(at.page()) else {
                    return Ok(Visit::Missing(at.page()));
                };
                let value = UndoRecord::value_range(at.page(), page.body(), at.offset())
                    .ok_or_else(|| damaged(at))?;
                if !Header::set_older(&mut page.body_mut()?[value], to.unwrap_or_default()) {
                    return Err(damaged(at));
                }
            }
        }
        Ok(then)
    }
}

/// The part of an older version's header that a walk needs.
struct Found {
    txid: Option<TxId>,
    older: Option<UndoPtr>,
}

fn absent(mark: Option<TxId>) -> Visit {
    match mark {
        Some(_) => Visit::OtherRecord { covered: false },
        None => Visit::Done,
    }
}

fn decode(body: &[u8], ptr: UndoPtr) -> Result<UndoRecord<'_>> {
    body.get(ptr.offset()..)
        .and_then(|bytes| UndoRecord::decode(ptr.page(), bytes))
        .ok_or_else(|| damaged(ptr))
}

#[cold]
fn damaged(ptr: UndoPtr) -> Error {
    Error::Internal(format!(
        "no version's undo record at byte {} of page {}",
        ptr.offset(),
        ptr.page()
    ))
}
