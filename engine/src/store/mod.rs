//! Pages and their places in the one data file; copy-on-write checkpoints.
//!
//! The store never overwrites a page in place. An image goes to free space, and the place table, which maps page ids to
//! places, changes. The table as of the last complete checkpoint is on disk; the current one is in memory only. So the
//! last checkpoint stays valid, whatever is lost in a crash.
//!
//! | file | holds |
//! |---|---|
//! | [`place`](self) `place.rs` | the word that says where an image is |
//! | `image.rs` | a page's bytes on disk |
//! | `header.rs` | headers, checkpoint record, table chunks on disk |
//! | `table.rs` | page id → place, in three versions |
//! | `space.rs`, `space/extents.rs` | free space |
//! | `reading.rs`, `aligned.rs` | reading images, several at a time; the memory for that |
//! | `batch.rs` | gathering images into large writes |
//! | `page_ids.rs` | free page ids |
//! | `opening.rs` | creating and opening |
//! | `completing.rs` | the end of a checkpoint |
//! | `parts.rs` | the place of each part of the file, for checks |
//! | `space/moving.rs` | moving images down, so that the file shrinks |
//! | `space/keeping.rs` | space for the next checkpoint, whatever else fills the disk |
#![forbid(unsafe_code)]

mod aligned;
mod batch;
mod completing;
pub(crate) mod fuzz_entry;
mod header;
mod image;
mod opening;
mod page_ids;
mod parts;
mod place;
mod reading;
mod space;
mod table;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

pub use self::header::FORMAT;
pub use self::parts::{Part, PartKind};
pub use self::reading::{ImageRun, Unpack};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock};

use self::batch::{Batch, Target};
use self::completing::Durable;
use self::image::Scratch;
use self::page_ids::PageIds;
use self::place::{Place, UNIT};
use self::reading::Reading;
use self::space::moving::Packing;
use self::space::Space;
use self::table::{Freed, Table};
use crate::error::{Error, Result};
use crate::ids::{PageId, PAGE_SIZE};
use crate::os::{DirLock, File, StopFlag};

/// The data file and its place table. All methods may be called from many threads.
#[derive(Debug)]
pub struct Store {
    file: Arc<dyn File>,
    stop: Arc<StopFlag>,
    database_id: u64,
    read_only: bool,
    table: Table,
    ids: PageIds,
    space: Space,
    batch: Batch,
    packing: Mutex<Packing>,
    reading: Reading,
    /// A thread that writes a page, and puts its place into the table, holds this shared: the end of a checkpoint waits
    /// for the writes that began before. A thread that changes the file's length for `keep_room` holds it shared, too:
    /// `close` waits for that.
    writing: RwLock<()>,
    generation: AtomicU64,
    durable: Mutex<Durable>,
    counters: Counters,
    /// Units of the last checkpoint's record.
    record_units: AtomicU64,
    /// Whether a thread has found no space on the disk.
    refused: AtomicBool,
    /// The directory's lock, held until the store is closed.
    lock: Mutex<Option<Box<dyn DirLock>>>,
}

#[derive(Debug, Default)]
struct Counters {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    syncs: AtomicU64,
    checkpoints: AtomicU64,
}

impl Counters {
    fn count_read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Counters since the store was opened, and the sizes of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Reads of the file, each of one page or of several that lie close together.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Pages written, evictions and checkpoint images.
    pub writes: u64,
    /// Bytes of their images.
    pub written_bytes: u64,
    /// Syncs of the data file.
    pub syncs: u64,
    /// Complete checkpoints.
    pub checkpoints: u64,
    /// Bytes of the data file.
    pub file_bytes: u64,
    /// Bytes of it that are free.
    pub free_bytes: u64,
}

thread_local! {
    /// A thread's working memory for images: 17 KiB to read, twice that to write.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Gives `f` the thread's working memory, or new memory if the thread is ending and its own is gone.
fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    match SCRATCH.try_with(|_| ()) {
        Ok(()) => SCRATCH.with_borrow_mut(f),
        Err(_) => f(&mut Scratch::default()),
    }
}

impl Store {
    /// Ends the use of the files, though other values may still refer to the store: the store writes nothing more, and
    /// other processes may open the directory.
    pub fn close(&self) {
        // The directory's lock goes only after the last write: writers check the flag before each write.
        let _none_writes = self.writing.write();
        self.stop.close();
        drop(self.lock.lock().take());
    }

    /// The random number given to the database when it was created; the log carries it too.
    pub fn database_id(&self) -> u64 {
        self.database_id
    }

    /// The flag that a failed sync sets; the log shares it.
    pub fn stop_flag(&self) -> &Arc<StopFlag> {
        &self.stop
    }

    /// The data file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Allocates a page id. In memory only: the id becomes durable with the page's place.
    pub fn allocate_page(&self) -> PageId {
        self.ids.take()
    }

    /// Gives a page id and its current place back. The running and the last checkpoint keep their own places of the
    /// page.
    pub fn free_page(&self, page: PageId) {
        self.release(&self.table.clear(page));
        self.ids.give(page);
    }

    /// The ids of all pages that have a place, in order; right after an opening, those of the last checkpoint.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        (1..self.table.ids())
            .map(PageId)
            .filter(|&page| !self.table.current(page).is_none())
    }

    /// Returns whether there is an image of a page.
    pub fn has_place(&self, page: PageId) -> bool {
        !self.table.current(page).is_none()
    }

    /// The number of the newest checkpoint that has begun. See [`Store::write_page_seen`].
    pub fn epoch(&self) -> u64 {
        self.table.epoch()
    }

    /// Returns whether checkpoint `epoch` is running: neither complete nor given up.
    pub fn is_running(&self, epoch: u64) -> bool {
        self.table.running() == Some(epoch)
    }

    /// Writes a page (eviction) to a new place, which becomes its current one.
    ///
    /// When a checkpoint begins during this call, the image becomes that checkpoint's too. The caller must rule out
    /// that a checkpoint begins between its decision that the running one does not need this image, and this call.
    /// Otherwise it uses [`Store::write_page_seen`].
    pub fn write_page(&self, page: PageId, image: &[u8]) -> Result<()> {
        self.write_page_seen(page, image, self.epoch())
    }

    /// Like [`Store::write_page`]. `seen` is [`Store::epoch`] as the caller read it, with the page latched, before it
    /// decided that no running checkpoint needs this image. If a checkpoint has begun since, the image is the page's
    /// state at its barrier, and becomes the checkpoint's too.
    pub fn write_page_seen(&self, page: PageId, image: &[u8], seen: u64) -> Result<()> {
        let _writing = self.writing.read();
        let place = self.encoded(page, image, |bytes, units| {
            let offset = self.space.take_next(units, &*self.file)?;
            self.target().write(bytes, offset).map(|()| offset)
        })?;
        self.release(&self.table.put(page, place, seen));
        Ok(())
    }

    /// Begins a checkpoint, inside the barrier; returns its number. From then on the table has two versions, pending
    /// (as of now) and current. A checkpoint that is still running is given up.
    pub fn begin_checkpoint(&self) -> u64 {
        loop {
            if let Some(epoch) = self.table.begin() {
                return epoch;
            }
            if let Some(running) = self.table.running() {
                self.abandon_checkpoint(running);
            }
        }
    }

    /// Writes a page's image as of the barrier; `still_current` says that it is also the page's newest state.
    ///
    /// Images are gathered into large writes. [`Store::read_page`] finds them at once; they are on the device when
    /// [`Store::complete_checkpoint`] returns. If the checkpoint was given up, an image that is not `still_current` is
    /// dropped.
    pub fn write_checkpoint_page(
        &self,
        page: PageId,
        image: &[u8],
        still_current: bool,
    ) -> Result<()> {
        let _writing = self.writing.read();
        let place = self.encoded(page, image, |bytes, _| {
            self.batch.add(&self.target(), page, bytes)
        })?;
        self.release(&self.table.put_as_of_barrier(page, place, still_current));
        Ok(())
    }

    /// Encodes an image and calls `put` to write it; returns its place.
    fn encoded(
        &self,
        page: PageId,
        image: &[u8],
        put: impl FnOnce(&[u8], u64) -> Result<u64>,
    ) -> Result<Place> {
        self.writable()?;
        if image.len() != PAGE_SIZE || page.0 == 0 || page.0 >= 1 << 48 {
            let what = format!("page {page} of {} bytes can't be written", image.len());
            return Err(Error::Internal(what));
        }
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        with_scratch(|scratch| {
            let units = image::encode(page, generation, image, scratch);
            let offset = put(&scratch.image, units).inspect_err(|error| self.note(error))?;
            self.counters.writes.fetch_add(1, Ordering::Relaxed);
            let bytes = units * UNIT as u64;
            self.counters
                .written_bytes
                .fetch_add(bytes, Ordering::Relaxed);
            Ok(Place::new(offset, units, generation))
        })
    }

    fn note(&self, error: &Error) {
        if matches!(error, Error::NoSpace { .. }) {
            self.note_refused();
        }
    }

    /// The file, space and table for gathered images.
    fn target(&self) -> Target<'_> {
        Target {
            file: &*self.file,
            space: &self.space,
            table: &self.table,
        }
    }

    fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::Invalid("the database was opened read-only".into()));
        }
        self.stop.check()
    }

    fn release(&self, places: &Freed) {
        for &place in places {
            self.release_one(place);
        }
    }

    fn release_one(&self, place: Place) {
        if !self.batch.give_back(place) {
            self.space.give(place.offset(), place.units());
        }
    }

    /// Counters and sizes.
    pub fn stats(&self) -> StoreStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (units, free) = self.space.units();
        StoreStats {
            reads: read(&self.counters.reads),
            read_bytes: read(&self.counters.read_bytes),
            writes: read(&self.counters.writes),
            written_bytes: read(&self.counters.written_bytes),
            syncs: read(&self.counters.syncs),
            checkpoints: read(&self.counters.checkpoints),
            file_bytes: units * UNIT as u64,
            free_bytes: free * UNIT as u64,
        }
    }
}
