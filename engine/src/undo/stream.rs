//! Undo streams: where undo records are appended, and how their pages become free.
//!
//! A stream is a list of pages in the buffer pool. So undo spills to disk, counts in the memory budget and is part of
//! checkpoints like other pages. One transaction at a time appends to a stream. When it has ended, the stream records
//! its end behind earlier ends. As the horizon passes the ends, the pages before them are freed. If the horizon has
//! passed all ends of a stream, the next writer begins at the start of the stream's present page. So short
//! transactions need no new pages.

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
    /// Its undo can be freed when the horizon has reached this CSN.
    pub csn: Csn,
    /// The next undo record at which purge must look; none if there is nothing left.
    pub head: UndoPtr,
    /// The stream's page (counted from the stream's beginning) in which its undo ends.
    pub last_page: u64,
}

/// The end of a transaction's last append.
#[derive(Clone, Copy)]
struct Cursor {
    page: PageId,
    used: usize,
    /// The next page, allocated before it is needed.
    spare: Option<PageId>,
}

/// The pages of the cursor, pinned for one append.
struct Pinned {
    page: PinnedPage,
    spare: Option<PinnedPage>,
}

#[derive(Default)]
struct Pages {
    /// The number of the first page in `ids`, counted from the stream's beginning.
    first: u64,
    /// Page numbers; 0 for a page that was emptied and removed.
    ids: VecDeque<PageId>,
    /// The number of zeros in `ids`.
    emptied: u64,
    finished: VecDeque<EndedTransactions>,
    /// Later ends do not join the newest end.
    sealed: bool,
}

impl Pages {
    /// Drops emptied pages at the beginning, and ends all of whose pages are gone.
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

/// Successive ended transactions that purge passes together.
///
/// Either all of them end in the same page and purge has nothing to look at in their undo, or all belong to one
/// transaction.
#[derive(Clone, Copy)]
struct EndedTransactions {
    last: Finished,
    count: u64,
}

/// A page to which no transaction appends any more, and all of whose transactions have ended.
#[derive(Clone, Copy)]
pub(crate) struct FullPage {
    pub number: u64,
    pub id: PageId,
}

/// The state of pruning for one stream, locked by the thread that prunes it.
#[derive(Default)]
pub(crate) struct StreamPruning {
    /// The number of the next page to empty.
    pub next: u64,
    /// The stream to which records move that are still needed.
    pub survivors: Option<StreamWriter>,
    /// The pass over survivors that is under way.
    pub again: Option<Pass>,
    /// Old snapshots at the last look at survivors, and the time of that look.
    pub kept_for: Vec<u64>,
    pub looked: Option<Instant>,
}

/// A pass over survivors. Records that it moves go behind its end, so it does not look at them.
#[derive(Clone, Copy)]
pub(crate) struct Pass {
    /// The number of the next page.
    pub next: u64,
    /// The number of the first page that the pass does not visit.
    pub end: u64,
}

impl StreamPruning {
    /// Returns whether it has a stream of survivors.
    pub fn has_survivors(&self) -> bool {
        self.survivors.is_some()
    }

    /// Takes the stream of survivors if no survivor is left in it.
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
    /// The cursor while no transaction appends.
    parked: Mutex<Option<Cursor>>,
    /// Held by purge and by pruning while they follow and remove undo of ended transactions.
    ///
    /// So neither frees a page or changes an end under the other. Pruning also holds the lock of its survivors'
    /// stream.
    pub pruning: Mutex<StreamPruning>,
    /// The stream takes survivors of another stream, and the thread that prunes that one prunes it, too.
    pub apart: AtomicBool,
}

/// A stream to which a transaction appends.
pub(crate) struct StreamWriter {
    stream: Arc<Stream>,
    cursor: Option<Cursor>,
    /// Whether it has moved on to another page.
    filled_page: bool,
    /// Pinned only during an operation: a transaction that waits or idles keeps no page in memory.
    pinned: Option<Pinned>,
    /// Bytes appended.
    appended: u64,
    /// Bytes appended, without those that `take_back` has given up.
    kept: u64,
    /// The last of the kept bytes, in the present page, to which no version's header has pointed.
    unpointed: u64,
}

impl StreamWriter {
    /// Continues where the stream's last writer ended.
    pub fn new(stream: Arc<Stream>) -> StreamWriter {
        let mut cursor = stream.parked.lock().take();
        if let Some(cursor) = &mut cursor {
            let pages = stream.pages.lock();
            // The horizon has passed all ends, so no reader follows a pointer to this page.
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

    /// Releases the stream for the next writer.
    pub fn keep_detached(mut self) -> Arc<Stream> {
        *self.stream.parked.lock() = self.cursor.take();
        self.stream.apart.store(false, Ordering::Release);
        self.stream
    }

    /// Makes room for a record of up to `len` bytes, so that `append` needs no I/O and can't fail.
    ///
    /// The caller is inside the barrier and has no leaf latched yet; [`unpin`](Self::unpin) follows.
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
        // The first change of a page may have to save its image for a running checkpoint. That can fail here, but
        // must not fail in `append`.
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

    /// Bytes that are kept: the position for `take_back` if the next operation is rolled back.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Gives up the records appended since [`StreamWriter::kept`] returned `kept`, because they were rolled back.
    ///
    /// Later records overwrite those at the end of the present page to which no version's header has pointed. So a
    /// transaction whose operations are refused again and again needs no more pages for them.
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

    /// Unpins the undo pages at the end of the operation, so that they may leave memory.
    pub fn unpin(&mut self) {
        self.pinned = None;
    }

    /// The stream.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Returns whether the writer has filled a page and begun another.
    pub fn has_filled_page(&self) -> bool {
        self.filled_page
    }

    /// The undo head of the newest end if that is an end of `txid` to which more can be added.
    pub fn open_end(&self, txid: TxId) -> UndoPtr {
        let pages = self.stream.pages.lock();
        let newest = pages.finished.back().filter(|_| !pages.sealed);
        newest
            .map(|ends| ends.last)
            .filter(|last| last.txid == txid)
            .map_or(UndoPtr::NONE, |last| last.head)
    }

    /// Seals the ends in the stream, so that later ends do not join them.
    ///
    /// Returns the number of the page to which records are appended; the pages before it do not change any more.
    pub fn seal(&self) -> u64 {
        let mut pages = self.stream.pages.lock();
        pages.sealed = !is_planted(PlantedFault::LosePurgeNotes);
        self.page_number(&pages)
    }

    /// The number of the page with the newest record.
    fn page_number(&self, pages: &Pages) -> u64 {
        let spare = self.cursor.is_some_and(|cursor| cursor.spare.is_some());
        let count = pages.ids.len() as u64 - u64::from(spare);
        pages.first + count.saturating_sub(1)
    }

    /// Records the end of the transaction that appended. Inside the barrier, together with the end itself.
    pub fn finish(&self, txid: TxId, csn: Csn, head: UndoPtr) {
        let mut pages = self.stream.pages.lock();
        let last_page = self.page_number(&pages);
        let sealed = std::mem::take(&mut pages.sealed);
        // Purge passes ends in their order in the stream. Survivors' ends come in any order, so a CSN must not be
        // below the one before.
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

/// Returns whether a page with `used` bytes takes no record of `len` bytes.
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

    /// Gives up the stream's pages if no reader can need them. The caller knows that no transaction appends.
    pub fn trim(&self, freed: &mut Vec<PageId>) {
        let mut pages = self.pages.lock();
        if pages.finished.is_empty() {
            *self.parked.lock() = None;
            pages.first += pages.ids.len() as u64;
            pages.emptied = 0;
            freed.extend(pages.ids.drain(..));
        }
    }

    /// Makes an empty stream take the survivors of another one; returns whether it was empty.
    ///
    /// It is empty without ends and without survivors of its own. The caller knows that no transaction appends.
    pub fn turn_apart(&self) -> bool {
        // A thread that prunes the stream reads `apart` after it has taken this lock, not before.
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

    /// The oldest end, if the horizon has passed it.
    pub fn oldest_passed(&self, horizon: Csn) -> Option<Finished> {
        let pages = self.pages.lock();
        pages
            .finished
            .front()
            .map(|ends| ends.last)
            .filter(|end| end.csn <= horizon)
    }

    /// Drops the oldest end and frees the pages before it if the end is still `end`; returns whether it was.
    ///
    /// A transaction that ends in the same page joins the end, which the horizon has not passed then. Nothing that
    /// `horizon` has not passed may be dropped.
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

    /// The first page from number `next` on that is full and whose transactions have ended by `below`.
    ///
    /// Skips pages that go anyway because the horizon at `passed` has passed them.
    pub fn full_page(&self, next: &mut u64, passed: Csn, below: Csn) -> Option<FullPage> {
        let pages = self.pages.lock();
        *next = (*next).max(pages.first);
        loop {
            // Only if an end is in a later page have all transactions ended that have undo in this page.
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

    /// An ended transaction at which purge must look, and which may have undo in page `number`.
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

    /// Records how far purge has looked at an end, in the stream and in `end`; returns false if the end has changed.
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

    /// Removes an emptied page from the stream; returns false if it is gone already.
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

    /// The number behind that of the last page.
    pub fn end(&self) -> u64 {
        let pages = self.pages.lock();
        pages.first + pages.ids.len() as u64
    }

    /// The pages, and the ends that purge has not passed. They don't change while the barrier is closed.
    pub fn contents(&self) -> (Vec<PageId>, Vec<Finished>) {
        let pages = self.pages.lock();
        (
            pages.ids.iter().copied().filter(|id| id.0 != 0).collect(),
            pages.finished.iter().map(|ends| ends.last).collect(),
        )
    }

    /// The numbers of pages, and of ends that purge has not passed.
    pub fn counts(&self) -> (u64, u64) {
        let pages = self.pages.lock();
        let ends = pages.finished.iter().map(|ends| ends.count).sum();
        (pages.ids.len() as u64 - pages.emptied, ends)
    }
}
