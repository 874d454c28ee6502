//! Reads of the version of a record that a view sees.

use super::{TransactionManager, TreeTransaction};
use crate::buffer::PoolWithThreads;
use crate::error::{Error, Result};
use crate::ids::{Csn, TxId, UndoPtr};
use crate::mvcc::freeze::{for_all, FrozenVersion};
use crate::mvcc::order::CommitOrder;
use crate::mvcc::snapshot::{ReadView, SnapshotSlot};
use crate::mvcc::status::Status;
use crate::mvcc::version::{live_payload, Header};
use crate::node::{LeafLayoutHint, ValueCopy};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Moment;
use crate::tree::{LeafHint, Tree};
use crate::undo::record as undo;
use crate::undo::record::{ChainWalk, Kind};

/// The outcome of a look at the newest version.
enum Newest<R> {
    Seen(Option<R>),
    /// The view does not see it; this leads to the version before.
    Older(Unseen),
}

impl TreeTransaction {
    /// Returns what every present and later snapshot sees of a record's value, until a transaction writes it again.
    pub fn for_all<'a>(&self, value: &'a [u8]) -> FrozenVersion<'a> {
        for_all(self.transactions().order(), value)
    }

    /// Reads the version of a record that `view` sees.
    ///
    /// `f` gets its payload under the leaf's latch, so it must be short. No barrier is needed.
    ///
    /// # Errors
    /// I/O errors; [`Error::Internal`] for damaged records.
    pub fn read<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.read_at(tree, None, key, view, f)
    }

    /// Like [`TreeTransaction::read`], with a shorter path for a page whose records are all older than the view.
    ///
    /// # Errors
    /// As [`TreeTransaction::read`].
    #[inline]
    pub fn read_in_place<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let Some(record) = tree.record(key)? else {
            return Ok(None);
        };
        if record.max_txid() < view.low.0 {
            return Ok(live_payload(record.value())?.map(f));
        }
        drop(record);
        self.read_judged(tree, key, view, f)
    }

    /// Copies the payload of the version of a record that `view` sees into `out`, or the part of its prefix that
    /// `out` takes.
    ///
    /// It needs no latch unless the leaf changes meanwhile.
    ///
    /// # Errors
    /// As [`TreeTransaction::read`].
    #[inline(always)]
    pub(crate) fn copy_payload<'o>(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        shape: &mut LeafLayoutHint,
        out: &'o mut impl ValueCopy,
    ) -> Result<Option<&'o [u8]>> {
        let Some((value, max_txid)) = tree.copy_value(key, out, shape)? else {
            return Ok(None);
        };
        if max_txid < view.low.0 {
            return live_payload(out.bytes(value));
        }
        self.copy_visible_version(tree, key, view, out)
    }

    /// Calls [`TreeTransaction::copy_payload`], which is long when inlined; for all but the shortest path of a row
    /// read.
    ///
    /// # Errors
    /// As [`TreeTransaction::read`].
    #[inline(never)]
    pub(crate) fn copy_payload_outlined<'o>(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        shape: &mut LeafLayoutHint,
        out: &'o mut impl ValueCopy,
    ) -> Result<Option<&'o [u8]>> {
        self.copy_payload(tree, key, view, shape, out)
    }

    #[cold]
    #[inline(never)]
    fn copy_visible_version<'o>(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        out: &'o mut impl ValueCopy,
    ) -> Result<Option<&'o [u8]>> {
        let found = self.read_at(tree, None, key, view, |payload| out.keep(payload))?;
        Ok(found.map(|kept| out.bytes(0..kept)))
    }

    /// Not inlined, to keep [`TreeTransaction::read_in_place`] short.
    #[cold]
    #[inline(never)]
    fn read_judged<R>(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.read_at(tree, None, key, view, f)
    }

    /// Like [`TreeTransaction::read`], with the result of an earlier [`Tree::find_leaf`] for the same key.
    ///
    /// # Errors
    /// As [`TreeTransaction::read`].
    pub(crate) fn read_in<R>(
        &self,
        tree: &Tree,
        hint: LeafHint,
        shape: &mut LeafLayoutHint,
        key: &[u8],
        view: &ReadView,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.read_at(tree, Some((hint, shape)), key, view, f)
    }

    #[inline]
    fn read_at<R>(
        &self,
        tree: &Tree,
        hint: Option<(LeafHint, &mut LeafLayoutHint)>,
        key: &[u8],
        view: &ReadView,
        f: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let transactions = self.transactions();
        let mut f = Some(f);
        let look = |value: Option<&[u8]>, max_txid: u64| -> Result<Newest<R>> {
            let Some(value) = value else {
                return Ok(Newest::Seen(None));
            };
            let (header, payload) = Header::decode(value)?;
            if max_txid < view.low.0 || sees(transactions.order(), view, &header)? {
                let f = f.take().filter(|_| !header.deleted);
                return Ok(Newest::Seen(f.map(|f| f(payload))));
            }
            Ok(match header.older() {
                Some(older) => Newest::Older(Unseen {
                    older,
                    writer: header.txid(),
                }),
                None => Newest::Seen(None),
            })
        };
        let newest = match hint {
            Some((hint, shape)) => tree.read_in(hint, shape, key, look),
            None => tree.read(key, look),
        }??;
        match (newest, f) {
            (Newest::Seen(result), _) => Ok(result),
            (Newest::Older(_), Some(f)) => {
                let mut buf = Vec::new();
                Ok(self
                    .versions()
                    .read_older(tree, key, view, &mut buf)?
                    .map(f))
            }
            (Newest::Older(_), None) => Ok(None),
        }
    }

    /// Returns the resolver that finds versions of records for this transaction's views.
    #[inline]
    pub fn versions(&self) -> VersionResolver<'_> {
        VersionResolver {
            transactions: &self.transactions,
            slot: &self.slot,
        }
    }

    /// Returns a reader for another thread, which can follow versions at the same time as this one.
    pub fn reader(&self) -> SnapshotReader<'_> {
        SnapshotReader {
            transactions: &self.transactions,
            slot: self.transactions.snapshots().claim(),
        }
    }
}

/// Reads versions in another thread for a transaction.
///
/// It borrows the transaction, which keeps its snapshot meanwhile. The slot is only for walks along undo.
pub struct SnapshotReader<'t> {
    transactions: &'t TransactionManager,
    slot: SnapshotSlot,
}

impl SnapshotReader<'_> {
    /// Returns the resolver that finds versions of records for the transaction's views.
    pub fn versions(&self) -> VersionResolver<'_> {
        VersionResolver {
            transactions: self.transactions,
            slot: &self.slot,
        }
    }
}

/// Finds the visible versions of records, for one thread at a time.
#[derive(Clone, Copy)]
pub struct VersionResolver<'t> {
    transactions: &'t TransactionManager,
    /// The slot that registers walks along undo.
    slot: &'t SnapshotSlot,
}

impl VersionResolver<'_> {
    /// Reads a record again from its newest version on, with its walk registered, so that no undo page on the way is
    /// freed.
    fn read_older<'a>(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        buf: &'a mut Vec<u8>,
    ) -> Result<Option<&'a [u8]>> {
        let transactions = self.transactions;
        let _walking = self.slot.walk(&transactions.pruning.reclamation);
        let newest = tree.read(key, |value, _| -> Result<Newest<usize>> {
            let Some(value) = value else {
                return Ok(Newest::Seen(None));
            };
            let (header, payload) = Header::decode(value)?;
            if sees(transactions.order(), view, &header)? {
                if header.deleted {
                    return Ok(Newest::Seen(None));
                }
                buf.clear();
                buf.extend_from_slice(payload);
                return Ok(Newest::Seen(Some(0)));
            }
            Ok(match header.older() {
                Some(older) => Newest::Older(Unseen {
                    older,
                    writer: header.txid(),
                }),
                None => Newest::Seen(None),
            })
        })??;
        match newest {
            Newest::Seen(seen) => Ok(seen.map(|start| &buf[start..])),
            Newest::Older(unseen) => older_version(transactions, view, unseen, buf),
        }
    }

    /// Returns whether a record of a leaf image is a delete mark whose writer has committed since `copied` was noted.
    ///
    /// Until it committed, the writer may have inserted the row again, under this key or another. So a view of the
    /// newest state must not take the mark as final.
    ///
    /// # Errors
    /// [`Error::Internal`] for damaged records.
    #[cold]
    pub fn deleted_since(&self, value: &[u8], copied: Copied) -> Result<bool> {
        let (header, _) = Header::decode(value)?;
        let Some(writer) = header.txid().filter(|_| header.deleted) else {
            return Ok(false);
        };
        let status = self.transactions.order().status(writer);
        let since = matches!(status, Status::Committed(csn) if csn > copied.newest);
        Ok(since && !is_planted(PlantedFault::PassOldMarks))
    }

    /// Returns what must be noted before a leaf is copied, for [`VersionResolver::visible`].
    #[inline]
    pub fn before_copy(&self) -> Copied {
        Copied {
            newest: self.transactions.order().newest().csn,
            retired: self.transactions.pruning.reclamation.retired(),
        }
    }

    /// Returns the payload that `view` sees of a record in a leaf image; `None`: no row.
    ///
    /// The image must have been copied after the view was taken, and the view must still be the transaction's.
    /// `copied` was noted before the copy. `key` gives the record's key in `tree`; with it the record is read again
    /// if undo has been pruned since. `buf` takes an older version if one is needed.
    ///
    /// # Errors
    /// As [`TreeTransaction::read`].
    #[inline]
    pub fn visible<'a>(
        &self,
        view: &ReadView,
        value: &'a [u8],
        buf: &'a mut Vec<u8>,
        copied: Copied,
        tree: &Tree,
        key: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Option<&'a [u8]>> {
        let (header, payload) = Header::decode(value)?;
        let transactions = self.transactions;
        if sees(transactions.order(), view, &header)? {
            return Ok((!header.deleted).then_some(payload));
        }
        let Some(ptr) = header.older() else {
            return Ok(None);
        };
        {
            let _walking = self.slot.walk(&transactions.pruning.reclamation);
            if self.transactions.pruning.reclamation.retired() == copied.retired {
                let writer = header.txid();
                let unseen = Unseen { older: ptr, writer };
                return older_version(transactions, view, unseen, buf);
            }
        }
        let mut at = Vec::new();
        key(&mut at);
        self.read_older(tree, &at, view, buf)
    }
}

/// The state before a leaf was copied; it tells whether undo was pruned since, and what has committed since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Copied {
    newest: Csn,
    retired: u64,
}

#[inline]
fn sees(order: &CommitOrder, view: &ReadView, header: &Header) -> Result<bool> {
    match header.txid() {
        None => Ok(true),
        Some(txid) => view.sees(order, txid),
    }
}

/// A version that a view does not see.
#[derive(Clone, Copy)]
struct Unseen {
    /// The place of the version before it.
    older: UndoPtr,
    writer: Option<TxId>,
}

/// Follows undo pointers from a version that `view` does not see to the one that it sees.
///
/// A view of the newest state checks at each version anew whether the writer has committed. A writer that commits
/// during the walk had not committed when its last version was checked. No reader may see its earlier versions.
fn older_version<'a>(
    transactions: &TransactionManager,
    view: &ReadView,
    unseen: Unseen,
    buf: &'a mut Vec<u8>,
) -> Result<Option<&'a [u8]>> {
    let Unseen {
        older: mut ptr,
        mut writer,
    } = unseen;
    let mut walk = ChainWalk::from(ptr);
    loop {
        transactions.moments.come_to(Moment::VersionPassed);
        if !copy_previous(transactions.pool(), ptr, buf)? {
            return Ok(None);
        }
        let (header, payload) = Header::decode(buf)?;
        let by_same = header.txid().is_some() && header.txid() == writer;
        let passed_over = by_same && !is_planted(PlantedFault::SeenOnTheWay);
        if !passed_over && sees(transactions.order(), view, &header)? {
            if header.deleted {
                return Ok(None);
            }
            let start = buf.len() - payload.len();
            return Ok(Some(&buf[start..]));
        }
        match header.older() {
            Some(older) => ptr = older,
            None => return Ok(None),
        }
        walk.go_on(ptr)?;
        writer = header.txid();
    }
}

/// Copies the record value in an undo record; returns false if there was no value before.
fn copy_previous(pool: &PoolWithThreads, ptr: UndoPtr, buf: &mut Vec<u8>) -> Result<bool> {
    undo::read(pool, ptr, |record| {
        buf.clear();
        match record.kind {
            Kind::Absent => Ok(false),
            Kind::Previous => {
                buf.extend_from_slice(record.value);
                Ok(true)
            }
            Kind::PurgeNote | Kind::RollbackNote => Err(Error::Internal(
                "a version's undo pointer leads to a note".into(),
            )),
        }
    })?
}
