//! The write of a record: the checks under the leaf's latch, the undo record, the new version.

use super::checkpoint_barrier::BarrierGuard;
use super::transaction::LAST_LEAVES;
use super::{TransactionManager, TreeTransaction};
use crate::broken::IsolationFault;
use crate::buffer::RecordEdit;
use crate::error::{Error, Result};
use crate::ids::{PageId, TreeId, TxId, UndoPtr, MAX_KEY, MAX_VALUE};
use crate::lock::table::{Admitted, LockMode};
use crate::mvcc::snapshot::never_given;
use crate::mvcc::status::Status;
use crate::mvcc::version::{Header, Origin, MAX_HEADER, MAX_PAYLOAD};
use crate::sync::atomic::Ordering;
use crate::tree::Tree;
use crate::txn::waiting::row_locks::Conflict;
use crate::undo::record::{Kind, UndoRecord, MAX_FIXED, MAX_RECORD};
use crate::undo::stream::StreamWriter;

/// Whether a put expects a row at its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// No row of that key.
    Insert,
    /// A row of that key.
    Update,
    /// Either.
    Upsert,
}

/// The outcome of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// Done.
    Done {
        /// Whether a live row was replaced (its payload is in `old`, if the caller gave that).
        replaced: bool,
    },
    /// [`PutMode::Insert`]: there is a row with that key (its payload is in `old`). Nothing changed.
    Duplicate,
    /// [`PutMode::Update`]: there is no row of that key. Nothing changed.
    Missing,
    /// Another transaction holds the row: leave the barrier, [`TreeTransaction::wait`], and try again
    /// from the top. Nothing changed.
    Conflict(Conflict),
    /// The row was changed after this transaction's snapshot (never under READ COMMITTED): the
    /// transaction must roll back ([`TreeTransaction::changed_since`]). Nothing changed.
    Changed,
}

/// The outcome of a delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Delete {
    /// Done; the payload is in `old`, if the caller gave that.
    Done,
    /// There is no row of that key.
    Missing,
    /// As [`Put::Conflict`].
    Conflict(Conflict),
    /// As [`Put::Changed`].
    Changed,
}

/// The change that a writer wants to make to a record.
enum WriteIntent<'a> {
    Put { payload: &'a [u8], mode: PutMode },
    Delete,
}

impl TreeTransaction {
    /// Writes a record. Inside the barrier, without waiting. `old` takes the payload found.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for a key or payload beyond [`MAX_KEY`], [`MAX_PAYLOAD`]; I/O errors.
    /// Nothing changed then.
    pub fn try_put(
        &mut self,
        inside: &BarrierGuard<'_>,
        tree: &Tree,
        key: &[u8],
        payload: &[u8],
        mode: PutMode,
        old: Option<&mut Vec<u8>>,
    ) -> Result<Put> {
        if payload.len() > MAX_PAYLOAD {
            return Err(Error::TooLarge(format!(
                "a record of {} bytes; at most {MAX_PAYLOAD}",
                payload.len()
            )));
        }
        self.write(inside, tree, key, &WriteIntent::Put { payload, mode }, old)
    }

    /// Marks a record as deleted. Inside the barrier, without waiting. `old` takes the payload found.
    ///
    /// # Errors
    /// As [`TreeTransaction::try_put`].
    pub fn try_delete(
        &mut self,
        inside: &BarrierGuard<'_>,
        tree: &Tree,
        key: &[u8],
        old: Option<&mut Vec<u8>>,
    ) -> Result<Delete> {
        Ok(
            match self.write(inside, tree, key, &WriteIntent::Delete, old)? {
                Put::Done { .. } => Delete::Done,
                Put::Missing | Put::Duplicate => Delete::Missing,
                Put::Conflict(conflict) => Delete::Conflict(conflict),
                Put::Changed => Delete::Changed,
            },
        )
    }

    fn write(
        &mut self,
        inside: &BarrierGuard<'_>,
        tree: &Tree,
        key: &[u8],
        intent: &WriteIntent<'_>,
        mut old: Option<&mut Vec<u8>>,
    ) -> Result<Put> {
        if key.len() > MAX_KEY {
            let puts = matches!(intent, WriteIntent::Put { mode, .. } if *mode != PutMode::Update);
            if !puts {
                // No record has such a key.
                return Ok(Put::Missing);
            }
            return Err(Error::TooLarge(format!(
                "a key of {} bytes; at most {MAX_KEY}",
                key.len()
            )));
        }
        self.check_whole()?;
        self.check_kept(inside)?;
        let view = self.snapshot_to_respect();
        let txid = self.begin_writing();
        let transactions = self.transactions.clone();
        let (Some(undo), Some(running)) = (&mut self.undo, &self.running) else {
            return Err(Error::Internal("a writer has no undo stream".into()));
        };
        let blocked_by = &mut self.blocked_by;
        // Nothing may fail or wait under the leaf's latch, so the undo page is made ready here.
        undo.reserve(transactions.pool(), MAX_RECORD - MAX_KEY + key.len())?;

        let max_value = match intent {
            WriteIntent::Put { payload, .. } => MAX_HEADER + payload.len(),
            WriteIntent::Delete => MAX_HEADER,
        };
        let previous_undo = self.undo_head;
        let tree_id = tree.id();
        let mut leaf = PageId(0);
        let outcome = tree.modify_in(key, max_value, txid.0, |page, current, out| {
            leaf = page;
            let found = match CurrentRecord::look(&transactions, txid, tree_id, key, current) {
                Ok(found) => found,
                Err(error) => return (RecordEdit::Keep, Err(error)),
            };
            if let Some(conflict) = found.conflict {
                return (RecordEdit::Keep, Ok((Put::Conflict(conflict), None)));
            }
            if let (Some(old), Some(payload)) = (old.as_mut(), found.live) {
                old.clear();
                old.extend_from_slice(payload);
            }
            let refused = match intent {
                WriteIntent::Put {
                    mode: PutMode::Insert,
                    ..
                } if found.live.is_some() => Some(Put::Duplicate),
                WriteIntent::Put {
                    mode: PutMode::Update,
                    ..
                }
                | WriteIntent::Delete
                    if found.live.is_none() =>
                {
                    Some(Put::Missing)
                }
                _ => None,
            };
            // First-committer-wins: a change that the snapshot does not see can't be overwritten,
            // and a row that the snapshot still sees can't be taken for missing.
            if let (Some(view), Some(writer)) = (&view, found.writer) {
                match view.sees(transactions.order(), writer) {
                    Ok(true) => {}
                    Ok(false) if refused == Some(Put::Duplicate) => {}
                    Ok(false) => return (RecordEdit::Keep, Ok((Put::Changed, None))),
                    Err(error) => return (RecordEdit::Keep, Err(error)),
                }
            }
            if let Some(refused) = refused {
                return (RecordEdit::Keep, Ok((refused, None)));
            }
            // The transaction's own record needs no check: others that have come to this key since wait for its
            // writer.
            if found.writer != Some(txid) {
                let exclusive = LockMode::Exclusive;
                let ranges = transactions.ranges();
                let mut holders = ranges.holders(tree_id, key, running, exclusive);
                if holders.is_empty() {
                    let (locks, live) = (transactions.locks(), found.live.is_some());
                    match locks.admits_writer(tree_id, key, running, live) {
                        Admitted::Yes => {}
                        Admitted::BehindRanges(escalated) => holders = escalated,
                        Admitted::BehindHolders => {
                            let conflict = Conflict::with_holders(tree_id, key, exclusive);
                            return (RecordEdit::Keep, Ok((Put::Conflict(conflict), None)));
                        }
                    }
                }
                if !holders.is_empty() {
                    *blocked_by = holders;
                    let conflict = Conflict::with_ranges(tree_id, key, exclusive);
                    return (RecordEdit::Keep, Ok((Put::Conflict(conflict), None)));
                }
            }

            let marks_delete = matches!(intent, WriteIntent::Delete);
            let chained = current.filter(|_| found.needed);
            let record = UndoRecord {
                previous: previous_undo,
                tree: tree_id,
                kind: if chained.is_some() {
                    Kind::Previous
                } else {
                    Kind::Absent
                },
                marks_delete,
                key,
                value: chained.unwrap_or_default(),
            };
            let ptr = match undo.append(&record) {
                Ok(ptr) => ptr,
                Err(error) => return (RecordEdit::Keep, Err(error)),
            };
            let header = Header {
                origin: match chained {
                    Some(_) => Origin::Chained(txid, ptr),
                    None => Origin::Inserted(txid),
                },
                deleted: marks_delete,
            };
            header.encode(out);
            if let WriteIntent::Put { payload, .. } = intent {
                out.extend_from_slice(payload);
            }
            let replaced = found.live.is_some();
            (RecordEdit::Put, Ok((Put::Done { replaced }, Some(ptr))))
        });
        undo.unpin();
        let (put, ptr) = outcome??;
        if let Some(ptr) = ptr {
            self.needs_purge |= matches!(intent, WriteIntent::Delete);
            self.count_leaf(tree_id, leaf);
            self.set_undo_head(ptr);
        }
        Ok(put)
    }

    /// Counts a change of this leaf if the tree's last change went to another, because a rollback will visit it, too.
    #[inline]
    fn count_leaf(&mut self, tree: TreeId, leaf: PageId) {
        let last = &mut self.last_leaves[tree.0 as usize % LAST_LEAVES];
        if *last == leaf {
            return;
        }
        *last = leaf;
        if let Some(running) = &self.running {
            let leaves = &running.monitoring.undo_leaves;
            leaves.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sets the undo head to a new record, and counts the record.
    fn set_undo_head(&mut self, head: UndoPtr) {
        self.undo_head = head;
        self.undo_records += 1;
        if let Some(running) = &self.running {
            running.set_undo_head(head);
            running.set_undo_records(self.undo_records);
            let bytes = self.undo.as_ref().map_or(0, StreamWriter::appended);
            let shown = &running.monitoring.undo_bytes;
            shown.store(bytes, Ordering::Relaxed);
        }
    }

    /// Leaves a note for [`UndoOwner::purged`](super::UndoOwner::purged). Inside the barrier.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond 4,000 bytes; I/O errors.
    pub fn note_on_purge(&mut self, inside: &BarrierGuard<'_>, note: &[u8]) -> Result<()> {
        self.note(inside, Kind::PurgeNote, note)?;
        self.needs_purge = true;
        Ok(())
    }

    /// Leaves a note for [`UndoOwner::rolled_back`](super::UndoOwner::rolled_back).
    ///
    /// Inside the barrier, before the changes that a rollback must revert.
    ///
    /// # Errors
    /// As [`TreeTransaction::note_on_purge`].
    pub fn note_on_rollback(&mut self, inside: &BarrierGuard<'_>, note: &[u8]) -> Result<()> {
        self.note(inside, Kind::RollbackNote, note)
    }

    fn note(&mut self, _inside: &BarrierGuard<'_>, kind: Kind, note: &[u8]) -> Result<()> {
        if note.len() > MAX_VALUE {
            return Err(Error::TooLarge(format!(
                "a note of {} bytes; at most {MAX_VALUE}",
                note.len()
            )));
        }
        self.check_whole()?;
        self.begin_writing();
        let record = UndoRecord {
            previous: self.undo_head,
            tree: TreeId(0),
            kind,
            marks_delete: false,
            key: &[],
            value: note,
        };
        let Some(undo) = &mut self.undo else {
            return Err(Error::Internal("a writer has no undo stream".into()));
        };
        undo.reserve(self.transactions.pool(), MAX_FIXED + note.len())?;
        let ptr = undo.append(&record);
        undo.unpin();
        self.set_undo_head(ptr?);
        Ok(())
    }
}

/// The record that a writer finds at a key.
struct CurrentRecord<'a> {
    /// The writer of the record; `None`: every view sees the record, or there is none.
    writer: Option<TxId>,
    /// The payload of a live record.
    live: Option<&'a [u8]>,
    /// Whether a rollback or a snapshot may need the record.
    needed: bool,
    /// Another transaction is writing it.
    conflict: Option<Conflict>,
}

impl<'a> CurrentRecord<'a> {
    fn look(
        transactions: &TransactionManager,
        own: TxId,
        tree: TreeId,
        key: &[u8],
        current: Option<&'a [u8]>,
    ) -> Result<CurrentRecord<'a>> {
        let Some(value) = current else {
            return Ok(CurrentRecord {
                writer: None,
                live: None,
                needed: false,
                conflict: None,
            });
        };
        let (header, payload) = Header::decode(value)?;
        let mut conflict = None;
        if let Some(writer) = header.txid().filter(|writer| *writer != own) {
            match transactions.order().status(writer) {
                Status::Active | Status::Aborted(_)
                    if transactions.breaks(IsolationFault::OverwriteUncommitted) => {}
                Status::Active => {
                    let mode = LockMode::Exclusive;
                    conflict = Some(Conflict::with_writer(tree, key, writer, mode));
                }
                Status::Committed(_) => {}
                // A rollback restores the record before it ends, so this record can't be here.
                Status::Aborted(_) => {
                    return Err(Error::Internal(format!(
                        "a record of transaction {writer} stands in tree {tree} after its rollback"
                    )))
                }
                Status::Unknown => return Err(never_given(writer)),
            }
        }
        let frozen = header
            .txid()
            .is_none_or(|writer| transactions.order().is_frozen(writer));
        Ok(CurrentRecord {
            writer: header.txid(),
            live: (!header.deleted).then_some(payload),
            needed: !(header.deleted && frozen),
            conflict,
        })
    }
}
