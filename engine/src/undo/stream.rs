//! Undo streams: where undo records are appended, and how their pages come back.
//!
//! A stream is a list of pages in the buffer pool, so that undo spills to disk, counts in the
//! memory budget and is part of checkpoints like any other page. One transaction at a time appends
//! to a stream. When it has ended, its end is noted behind those before it, and as the horizon
//! passes one end after the other, the pages before it are freed. A stream whose last end has
//! been passed starts over on the page it has: short transactions need no new pages at all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::buffer::{PinnedPage, PoolWithThreads};
use crate::error::{Error, Result};
use crate::ids::{Csn, PageId, TxId, UndoPtr};
use crate::knobs;
use crate::mvcc::undo_reclamation::UndoReclamation;
use crate::node::{PageKind, BODY_SIZE};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::Mutex;
use crate::undo::record::{Kind, UndoRecord, MAX_RECORD};

/// An ended transaction whose undo may still be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Finished {
    pub txid: TxId,
    /// Its undo can go when the horizon has reached this.
    pub csn: Csn,
    /// The next undo record that purge has to look at; none: nothing (more) to look at.
    pub head: UndoPtr,
    /// The stream's page (counted from the stream's beginning) in which its undo ends.
    pub last_page: u64,
}

/// The end that a transaction's last append has reached.
#[derive(Clone, Copy)]
struct Cursor {
    page: PageId,
    used: usize,
    /// The next page, made before it is needed.
    spare: Option<PageId>,
}

/// The pages of the cursor, kept in memory for one append.
struct Pinned {
    page: PinnedPage,
    spare: Option<PinnedPage>,
}

#[derive(Default)]
struct Pages {
    /// Number of the first page in `ids`, counted from the stream's beginning.
    first: u64,
    /// Page 0 stands for one that was emptied and is gone.
    ids: VecDeque<PageId>,
    /// How many of them are gone.
    emptied: u64,
    finished: VecDeque<EndedTransactions>,
    /// The newest end takes nothing more: what is appended now ends apart from it.
    sealed: bool,
}

impl Pages {
    /// Forgets pages at the beginning that were emptied, and ends that have no page but those.
    fn drop_emptied(&mut self) {
        while self.ids.front().is_some_and(|id| id.0 == 0) {
            self.ids.pop_front();
            self.first += 1;
            self.emptied -= 1;
        }
        while let [Some(front), Some(_)] = [self.finished.front(), self.finished.get(1)] {
            if front.last.last_page >= self.first || !front.last.head.is_none() {
                break;
            }
            let count = front.count;
            self.finished.pop_front();
            if let Some(next) = self.finished.front_mut() {
                next.count += count;
            }
        }
    }
}

/// Ended transactions one behind the other that purge passes together: all of them end in the
/// same page, and there is nothing to look at in the undo of any. Or just one.
#[derive(Clone, Copy)]
struct EndedTransactions {
    last: Finished,
    count: u64,
}

/// A page that nobody appends to any more, and all of whose transactions have ended.
#[derive(Clone, Copy)]
pub(crate) struct FullPage {
    pub number: u64,
    pub id: PageId,
}

/// What pruning keeps for a stream. Locked by who prunes it.
#[derive(Default)]
pub(crate) struct StreamPruning {
    /// Number of the next page to empty.
    pub next: u64,
    /// Where what is still needed goes.
    pub survivors: Option<StreamWriter>,
    /// Survivors to look through again, when there is a reason.
    pub again: Option<Pass>,
    /// Old snapshots for which survivors were kept when they were last looked through, and when.
    pub kept_for: Vec<u64>,
    pub looked: Option<Instant>,
}

/// A pass over survivors. What it moves stands behind them, and is not looked at in it.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    /// Number of the next page.
    pub next: u64,
    /// Number of the first page that is not looked at.
    pub end: u64,
}

impl StreamPruning {
    /// Whether it has a stream of survivors.
    pub fn has_survivors(&self) -> bool {
        self.survivors.is_some()
    }

    /// Gives the stream of survivors back, when none is left.
    pub fn take_empty(&mut self) -> Option<StreamWriter> {
        let empty = self
            .survivors
            .take_if(|writer| writer.stream().counts().1 == 0)?;
        self.again = None;
        Some(empty)
    }
}

/// One stream.
pub(crate) struct Stream {
    pages: Mutex<Pages>,
    /// Here while nobody appends.
    parked: Mutex<Option<Cursor>>,
    /// Held by who follows the undo of ended transactions to take it away, be it purge or pruning, so
    /// that no page goes, and no end changes, under the other. Pruning has that of its survivors, too.
    pub pruning: Mutex<StreamPruning>,
    /// Whether it takes the survivors of another stream, which prunes it too.
    pub apart: AtomicBool,
}

/// A stream in the hands of a transaction.
pub(crate) struct StreamWriter {
    stream: Arc<Stream>,
    cursor: Option<Cursor>,
    /// Whether it has gone on to another page.
    filled_page: bool,
    /// Only within an operation: a transaction that waits or idles keeps no page in memory.
    pinned: Option<Pinned>,
    /// Bytes.
    appended: u64,
    /// Those of them that were not taken back.
    kept: u64,
    /// The last of these, in the present page, to which no version's header has ever pointed.
    unpointed: u64,
}

impl StreamWriter {
    /// Goes on where the last writer of the stream ended.
    pub fn new(stream: Arc<Stream>) -> StreamWriter {
        let mut cursor = stream.parked.lock().take();
        if let Some(cursor) = &mut cursor {
            let pages = stream.pages.lock();
            // Everything passed by the horizon: nobody follows a pointer to here any more.
            if pages.finished.is_empty() {
                cursor.used = 0;
            }
        }
        StreamWriter {
            stream,
            cursor,
            filled_page: false,
            pinned: None,
            appended: 0,
            kept: 0,
            unpointed: 0,
        }
    }

    /// Lets go of the stream, for the next writer.
    pub fn keep_detached(mut self) -> Arc<Stream> {
        *self.stream.parked.lock() = self.cursor.take();
        self.stream.apart.store(false, Ordering::Release);
        self.stream
    }

    /// Makes sure that a record of up to `len` bytes can be appended without any I/O or error.
    /// Called inside the barrier, before a leaf is latched; [`unpin`](Self::unpin) follows.
    pub fn reserve(&mut self, pool: &Arc<PoolWithThreads>, len: usize) -> Result<()> {
        if len > MAX_RECORD {
            return Err(Error::TooLarge(format!(
                "an undo record of {len} bytes; at most {MAX_RECORD}"
            )));
        }
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            None => self.cursor.insert(Cursor {
                page: self.stream.add_page(pool)?,
                used: 0,
                spare: None,
            }),
        };
        let page = pool.pin(cursor.page)?;
        // The first change of a page may have to save its image for a running checkpoint; that
        // can fail here, and not any more in `append`.
        page.exclusive().body_mut()?;
        let mut spare = None;
        if is_full(cursor.used, len) {
            let id = match cursor.spare {
                Some(id) => id,
                None => *cursor.spare.insert(self.stream.add_page(pool)?),
            };
            let page = spare.insert(pool.pin(id)?);
            page.exclusive().body_mut()?;
        }
        self.pinned = Some(Pinned { page, spare });
        Ok(())
    }

    /// Appends a record for which room was reserved.
    pub fn append(&mut self, record: &UndoRecord<'_>) -> Result<UndoPtr> {
        let (Some(cursor), Some(pinned)) = (&mut self.cursor, &mut self.pinned) else {
            return Err(not_reserved());
        };
        if is_full(cursor.used, record.len(cursor.page)) {
            cursor.page = cursor.spare.take().ok_or_else(not_reserved)?;
            cursor.used = 0;
            self.filled_page = true;
            self.unpointed = 0;
            pinned.page = pinned.spare.take().ok_or_else(not_reserved)?;
        }
        let offset = cursor.used;
        let mut page = pinned.page.exclusive();
        record
            .encode(cursor.page, &mut page.body_mut()?[offset..])
            .ok_or_else(not_reserved)?;
        let len = record.len(cursor.page);
        cursor.used += len;
        self.appended += len as u64;
        self.kept += len as u64;
        self.unpointed = match record.kind {
            Kind::Previous => 0,
            Kind::Absent | Kind::PurgeNote | Kind::RollbackNote => self.unpointed + len as u64,
        };
        page.set_used(cursor.used)?;
        let offset = u16::try_from(offset).map_err(|_| not_reserved())?;
        Ok(UndoPtr::new(cursor.page, offset))
    }

    /// Bytes appended so far.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// Bytes that stand there: where the next operation begins, should it be taken back.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// All was taken back that was done since so many bytes stood there. Of its records those that stand at the end
    /// of the present page, and that nobody can be on the way to, leave their room to others: who is refused
    /// again and again in one transaction needs no more pages for it.
    pub fn take_back(&mut self, kept: u64) {
        let bytes = self.kept.saturating_sub(kept).min(self.unpointed);
        if is_planted(PlantedFault::KeepTakenBack) {
            return;
        }
        if let Some(cursor) = &mut self.cursor {
            cursor.used = cursor.used.saturating_sub(bytes as usize);
            self.kept -= bytes;
            self.unpointed -= bytes;
        }
    }

    /// The operation is over: its undo pages may leave memory.
    pub fn unpin(&mut self) {
        self.pinned = None;
    }

    /// The stream.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Whether a page has been filled, and another begun.
    pub fn has_filled_page(&self) -> bool {
        self.filled_page
    }

    /// The head of the newest end, if it is one of `txid`: to go on with it.
    pub fn open_end(&self, txid: TxId) -> UndoPtr {
        let pages = self.stream.pages.lock();
        let newest = pages.finished.back().filter(|_| !pages.sealed);
        newest
            .map(|ends| ends.last)
            .filter(|last| last.txid == txid)
            .map_or(UndoPtr::NONE, |last| last.head)
    }

    /// Nothing joins the ends that stand here. Returns the number of the page that is appended to:
    /// those before it stay as they are.
    pub fn seal(&self) -> u64 {
        let mut pages = self.stream.pages.lock();
        pages.sealed = !is_planted(PlantedFault::LosePurgeNotes);
        self.page_number(&pages)
    }

    /// The number of the page in which the newest record stands.
    fn page_number(&self, pages: &Pages) -> u64 {
        let spare = self.cursor.is_some_and(|cursor| cursor.spare.is_some());
        let count = pages.ids.len() as u64 - u64::from(spare);
        pages.first + count.saturating_sub(1)
    }

    /// Notes the end of the transaction that appended. Inside the barrier, with the end itself.
    pub fn finish(&self, txid: TxId, csn: Csn, head: UndoPtr) {
        let mut pages = self.stream.pages.lock();
        let last_page = self.page_number(&pages);
        let sealed = std::mem::take(&mut pages.sealed);
        // Purge passes ends one behind the other. Those of survivors come in any order.
        let csn = match pages.finished.back() {
            Some(ends) => csn.max(ends.last.csn),
            None => csn,
        };
        let last = Finished {
            txid,
            csn,
            head,
            last_page,
        };
        match pages.finished.back_mut().filter(|_| !sealed) {
            Some(ends)
                if (ends.last.last_page == last_page
                    && ends.last.head.is_none()
                    && head.is_none())
                    || (ends.last.txid == txid && !ends.last.head.is_none()) =>
            {
                ends.last = last;
                ends.count += 1;
            }
            _ => pages
                .finished
                .push_back(EndedTransactions { last, count: 1 }),
        }
    }
}

/// Whether a page of which so many bytes are used takes no record of this length.
fn is_full(used: usize, len: usize) -> bool {
    used + len > BODY_SIZE || used >= knobs::undo_page_full()
}

#[cold]
fn not_reserved() -> Error {
    Error::Internal("an undo record was appended without room reserved".into())
}

impl Stream {
    pub fn new(apart: bool) -> Stream {
        Stream {
            pages: Mutex::default(),
            parked: Mutex::new(None),
            pruning: Mutex::default(),
            apart: AtomicBool::new(apart),
        }
    }

    /// Gives its pages, where nobody reads them. Nobody appends to it.
    pub fn trim(&self, freed: &mut Vec<PageId>) {
        let mut pages = self.pages.lock();
        if pages.finished.is_empty() {
            *self.parked.lock() = None;
            pages.first += pages.ids.len() as u64;
            pages.emptied = 0;
            freed.extend(pages.ids.drain(..));
        }
    }

    /// Where nothing stands in it, neither ends nor survivors, it is to take those of another from now on.
    /// Whether it is. Of a stream that nobody appends to.
    pub fn turn_apart(&self) -> bool {
        // Who prunes it looks whether it is apart once he has it: not before.
        let Some(pruning) = self.pruning.try_lock() else {
            return false;
        };
        let empty = !pruning.has_survivors() && self.pages.lock().finished.is_empty();
        if empty {
            self.apart.store(true, Ordering::Release);
        }
        empty
    }

    fn add_page(&self, pool: &PoolWithThreads) -> Result<PageId> {
        let id = pool.create_unparented(PageKind::Undo)?.0;
        self.pages.lock().ids.push_back(id);
        Ok(id)
    }

    /// The oldest end, when the horizon has passed it.
    pub fn oldest_passed(&self, horizon: Csn) -> Option<Finished> {
        let pages = self.pages.lock();
        pages
            .finished
            .front()
            .map(|ends| ends.last)
            .filter(|end| end.csn <= horizon)
    }

    /// Drops the oldest end, and frees the pages before it, if it is still `end`: whoever ends in the
    /// same page joins it, and is not passed yet. Whether it was. Nothing that `horizon` has not passed may go.
    pub fn drop_oldest(
        &self,
        pool: &PoolWithThreads,
        reclamation: &UndoReclamation,
        end: &Finished,
        horizon: Csn,
    ) -> Result<bool> {
        let mut freed = Vec::new();
        {
            let mut pages = self.pages.lock();
            let is_it = |oldest: &EndedTransactions| {
                oldest.last == *end
                    || is_planted(PlantedFault::PurgeJoinedEnd)
                    || is_planted(PlantedFault::PurgeReplacedEnd)
            };
            let Some(ends) = pages.finished.front().copied().filter(is_it) else {
                return Ok(false);
            };
            debug_assert!(
                ends.last.csn <= horizon,
                "undo that a snapshot may ask for is dropped"
            );
            pages.finished.pop_front();
            while pages.first < ends.last.last_page {
                let Some(id) = pages.ids.pop_front() else {
                    break;
                };
                pages.first += 1;
                if id.0 == 0 {
                    pages.emptied -= 1;
                } else {
                    freed.push(id);
                }
            }
            pages.drop_emptied();
        }
        reclamation.free_all(pool, freed)?;
        Ok(true)
    }

    /// The first page from number `next` on that is full, whose transactions have ended by
    /// `below`, and that does not go with the horizon at `passed`.
    pub fn full_page(&self, next: &mut u64, passed: Csn, below: Csn) -> Option<FullPage> {
        let pages = self.pages.lock();
        *next = (*next).max(pages.first);
        loop {
            // Only behind the page of an end are all ended whose undo stands in the one before.
            let end = pages
                .finished
                .partition_point(|ends| ends.last.last_page <= *next);
            let end = pages.finished.get(end)?.last;
            if end.csn > below {
                return None;
            }
            let id = *pages.ids.get((*next - pages.first) as usize)?;
            if end.csn > passed && id.0 != 0 {
                return Some(FullPage { number: *next, id });
            }
            *next += 1;
        }
    }

    /// An ended transaction with undo in page `number` which purge has to look at.
    pub fn end_to_look_at(&self, number: u64) -> Option<Finished> {
        let pages = self.pages.lock();
        let first = pages
            .finished
            .partition_point(|ends| ends.last.last_page < number);
        let mut behind = false;
        pages
            .finished
            .iter()
            .skip(first)
            .take_while(|ends| !std::mem::replace(&mut behind, ends.last.last_page > number))
            .map(|ends| ends.last)
            .find(|end| !end.head.is_none())
    }

    /// Notes how far an end has been looked at, there and in `end`; false if it is no longer as in `end`.
    pub fn set_head(&self, end: &mut Finished, head: UndoPtr) -> bool {
        let mut pages = self.pages.lock();
        let first = pages
            .finished
            .partition_point(|ends| ends.last.last_page < end.last_page);
        let mut same = pages.finished.iter_mut().skip(first);
        let is_it = |ends: &&mut EndedTransactions| match is_planted(PlantedFault::LosePurgeNotes) {
            true => ends.last.txid == end.txid,
            false => ends.last == *end,
        };
        let Some(ends) = same.find(is_it) else {
            return false;
        };
        ends.last.head = head;
        end.head = head;
        true
    }

    /// Takes an emptied page out; false if it has gone already.
    pub fn remove_page(&self, page: &FullPage) -> bool {
        let mut pages = self.pages.lock();
        let Some(at) = page.number.checked_sub(pages.first) else {
            return false;
        };
        match pages.ids.get_mut(at as usize) {
            Some(id) if *id == page.id => *id = PageId(0),
            _ => return false,
        }
        pages.emptied += 1;
        pages.drop_emptied();
        true
    }

    /// One past the number of the last page.
    pub fn end(&self) -> u64 {
        let pages = self.pages.lock();
        pages.first + pages.ids.len() as u64
    }

    /// Pages, and ends not yet passed. Stable while the barrier is closed.
    pub fn contents(&self) -> (Vec<PageId>, Vec<Finished>) {
        let pages = self.pages.lock();
        (
            pages.ids.iter().copied().filter(|id| id.0 != 0).collect(),
            pages.finished.iter().map(|ends| ends.last).collect(),
        )
    }

    /// Counts of pages, and of ends not yet passed.
    pub fn counts(&self) -> (u64, u64) {
        let pages = self.pages.lock();
        let ends = pages.finished.iter().map(|ends| ends.count).sum();
        (pages.ids.len() as u64 - pages.emptied, ends)
    }
}
