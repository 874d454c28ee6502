//! Undo streams: where undo records are appended, and how their pages come back.
//!
//! A stream is a list of pages in the buffer pool, so that undo spills to disk, counts in the
//! memory budget and is part of checkpoints like any other page. One transaction at a time appends
//! to a stream. When it has ended, its end is noted behind those before it, and as the horizon
//! passes one end after the other, the pages before it are freed. A stream whose last end has
//! been passed starts over on the page it has: short transactions need no new pages at all.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

use super::undo::{UndoRecord, MAX_RECORD};
use super::version::UndoPtr;
use crate::error::{Error, Result};
use crate::ids::{Csn, PageId, TxId};
use crate::page::{PageKind, PinnedPage, Pool, BODY_SIZE};

/// An ended transaction whose undo may still be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Finished {
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
    ids: VecDeque<PageId>,
    finished: VecDeque<Ends>,
}

/// Ended transactions one behind the other that purge passes together: all of them end in the
/// same page, and there is nothing to look at in the undo of any. Or just one.
#[derive(Clone, Copy)]
struct Ends {
    last: Finished,
    count: u64,
}

/// One stream.
pub(super) struct Stream {
    pages: Mutex<Pages>,
    /// Here while nobody appends.
    parked: Mutex<Option<Cursor>>,
}

/// All streams.
#[derive(Default)]
pub(super) struct UndoStreams {
    state: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    all: Vec<Arc<Stream>>,
    /// Those nobody appends to; the last one used is used next.
    idle: Vec<Arc<Stream>>,
}

/// A stream in the hands of a transaction.
pub(super) struct StreamWriter {
    stream: Arc<Stream>,
    cursor: Option<Cursor>,
    /// Only within an operation: a transaction that waits or idles keeps no page in memory.
    pinned: Option<Pinned>,
    /// Bytes.
    appended: u64,
}

impl UndoStreams {
    /// Takes an idle stream, or makes one.
    pub fn acquire(&self) -> StreamWriter {
        let mut state = self.state.lock();
        let stream = state.idle.pop().unwrap_or_else(|| {
            let stream = Arc::new(Stream {
                pages: Mutex::default(),
                parked: Mutex::new(None),
            });
            state.all.push(stream.clone());
            stream
        });
        drop(state);
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
            pinned: None,
            appended: 0,
        }
    }

    /// Gives a stream back. Call [`StreamWriter::finish`] before, when anything was appended.
    pub fn release(&self, mut writer: StreamWriter) {
        *writer.stream.parked.lock() = writer.cursor.take();
        self.state.lock().idle.push(writer.stream);
    }

    /// All streams.
    pub fn all(&self) -> Vec<Arc<Stream>> {
        self.state.lock().all.clone()
    }

    /// Gives back the pages of streams that nobody uses and nobody reads.
    pub fn trim(&self, pool: &Pool) -> Result<()> {
        let mut freed = Vec::new();
        {
            let state = self.state.lock();
            for stream in &state.idle {
                let mut pages = stream.pages.lock();
                if pages.finished.is_empty() {
                    *stream.parked.lock() = None;
                    pages.first += pages.ids.len() as u64;
                    freed.extend(pages.ids.drain(..));
                }
            }
        }
        free_all(pool, freed)
    }
}

impl StreamWriter {
    /// Makes sure that a record of up to `len` bytes can be appended without any I/O or error.
    /// Called inside the gate, before a leaf is latched; [`unpin`](Self::unpin) follows.
    pub fn reserve(&mut self, pool: &Arc<Pool>, len: usize) -> Result<()> {
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
        if cursor.used + len > BODY_SIZE {
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
        if cursor.used + record.len(cursor.page) > BODY_SIZE {
            cursor.page = cursor.spare.take().ok_or_else(not_reserved)?;
            cursor.used = 0;
            pinned.page = pinned.spare.take().ok_or_else(not_reserved)?;
        }
        let offset = cursor.used;
        let mut page = pinned.page.exclusive();
        record
            .encode(cursor.page, &mut page.body_mut()?[offset..])
            .ok_or_else(not_reserved)?;
        cursor.used += record.len(cursor.page);
        self.appended += record.len(cursor.page) as u64;
        page.set_used(cursor.used)?;
        let offset = u16::try_from(offset).map_err(|_| not_reserved())?;
        Ok(UndoPtr::new(cursor.page, offset))
    }

    /// Bytes appended so far.
    pub fn appended(&self) -> u64 {
        self.appended
    }

    /// The operation is over: its undo pages may leave memory.
    pub fn unpin(&mut self) {
        self.pinned = None;
    }

    /// Notes the end of the transaction that appended. Inside the gate, with the end itself.
    pub fn finish(&self, txid: TxId, csn: Csn, head: UndoPtr) {
        let mut pages = self.stream.pages.lock();
        let spare = self.cursor.is_some_and(|cursor| cursor.spare.is_some());
        let count = pages.ids.len() as u64 - u64::from(spare);
        let last_page = pages.first + count.saturating_sub(1);
        let last = Finished {
            txid,
            csn,
            head,
            last_page,
        };
        match pages.finished.back_mut() {
            Some(ends)
                if ends.last.last_page == last_page
                    && ends.last.head.is_none()
                    && head.is_none() =>
            {
                ends.last = last;
                ends.count += 1;
            }
            _ => pages.finished.push_back(Ends { last, count: 1 }),
        }
    }
}

#[cold]
fn not_reserved() -> Error {
    Error::Internal("an undo record was appended without room reserved".into())
}

impl Stream {
    fn add_page(&self, pool: &Pool) -> Result<PageId> {
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

    /// Notes how far purge has come with the oldest end.
    pub fn set_oldest_head(&self, head: UndoPtr) {
        if let Some(oldest) = self.pages.lock().finished.front_mut() {
            oldest.last.head = head;
        }
    }

    /// Drops the oldest end and frees the pages before it.
    pub fn drop_oldest(&self, pool: &Pool) -> Result<()> {
        let mut freed = Vec::new();
        {
            let mut pages = self.pages.lock();
            if let Some(ends) = pages.finished.pop_front() {
                while pages.first < ends.last.last_page {
                    let Some(id) = pages.ids.pop_front() else {
                        break;
                    };
                    pages.first += 1;
                    freed.push(id);
                }
            }
        }
        free_all(pool, freed)
    }

    /// Pages, and ends not yet passed. Stable while the gate is closed.
    pub fn contents(&self) -> (Vec<PageId>, Vec<Finished>) {
        let pages = self.pages.lock();
        (
            pages.ids.iter().copied().collect(),
            pages.finished.iter().map(|ends| ends.last).collect(),
        )
    }

    /// Counts of pages, and of ends not yet passed.
    pub fn counts(&self) -> (u64, u64) {
        let pages = self.pages.lock();
        let ends = pages.finished.iter().map(|ends| ends.count).sum();
        (pages.ids.len() as u64, ends)
    }
}

fn free_all(pool: &Pool, pages: Vec<PageId>) -> Result<()> {
    for page in pages {
        pool.free(page)?;
    }
    Ok(())
}
