//! Images gathered into large sequential writes.
//!
//! A gathered image counts as written: the place table names its place, and [`Batch::read`] finds the image until it is
//! in the file. If a write fails, its images stay in memory, to be tried again. If it fails again, the batch writes
//! each image by itself, and moves an image whose write is refused: a sector may stay bad.

use std::sync::Arc;

use super::place::{units_for, Place, UNIT};
use super::space::{Run, Space};
use super::table::Table;
use crate::error::Result;
use crate::ids::PageId;
use crate::knobs;
use crate::os::File;
use crate::planted::{is_planted, PlantedFault};
use crate::store::space::extents::LONGEST;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Moment, Moments, Mutex};

/// Bytes gathered before they are written: the most for which a run always has enough space, however long the last
/// image is.
fn full() -> usize {
    (knobs::space_run() - LONGEST) as usize * UNIT
}

/// The file and space that images go to, and the place table that names them.
pub struct Target<'a> {
    pub file: &'a dyn File,
    pub space: &'a Space,
    pub table: &'a Table,
}

impl Target<'_> {
    /// Writes to space that was taken for this. If the write fails, the space is not given out again for some time.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.file.write_at(bytes, offset * UNIT as u64);
        written.inspect_err(|_| self.space.refuse(offset, units_for(bytes.len())))
    }
}

/// The buffers of gathered images.
#[derive(Debug, Default)]
pub struct Batch {
    state: Mutex<State>,
    written: Condvar,
    /// Number of buffers, so that readers need no lock while there are none.
    buffers: AtomicUsize,
    pub moments: Moments,
}

#[derive(Debug, Default)]
struct State {
    /// Images go to the last buffer. Those before it are being written, or their write failed.
    buffers: Vec<Buffer>,
    next_id: u64,
}

#[derive(Debug)]
struct Buffer {
    id: u64,
    /// First unit of the images.
    offset: u64,
    bytes: Arc<Vec<u8>>,
    images: Vec<Image>,
    /// The rest of the run, behind the images.
    rest: Run,
    /// No more images are added; the buffer is to be written.
    full: bool,
    writing: bool,
    /// A write of the buffer has failed.
    failed: bool,
    /// Places given back while their images were still gathered here. They are free once this buffer is written: a new
    /// holder's image would be overwritten by that write.
    given_back: Vec<Place>,
}

/// The place that an image is to be written to.
#[derive(Clone, Copy, Debug)]
struct Image {
    page: PageId,
    offset: u64,
    units: u64,
}

impl Buffer {
    /// Drops an image that need not be written any more.
    fn forget(&mut self, image: Image) {
        self.images.retain(|other| other.offset != image.offset);
    }

    fn holds(&self, place: Place) -> bool {
        let end = self.offset + (self.bytes.len() / UNIT) as u64;
        self.offset <= place.offset() && place.offset() < end
    }
}

impl Batch {
    /// Adds a page's image (whole units); returns its first unit. The caller may write a full buffer, also another
    /// thread's.
    ///
    /// # Errors
    /// Those of writes of earlier buffers; the image was not added then.
    pub fn add(&self, target: &Target<'_>, page: PageId, image: &[u8]) -> Result<u64> {
        let &Target { file, space, .. } = target;
        let units = (image.len() / UNIT) as u64;
        self.write_full(target)?;
        loop {
            {
                let state = &mut *self.state.lock();
                match state.buffers.last_mut() {
                    Some(last) if !last.full && last.rest.units >= units => {
                        let offset = last.rest.offset;
                        // No other thread holds the bytes: a buffer's bytes are shared only when it is full.
                        let bytes = Arc::make_mut(&mut last.bytes);
                        bytes.extend_from_slice(image);
                        last.images.push(Image {
                            page,
                            offset,
                            units,
                        });
                        last.full = bytes.len() >= full();
                        last.rest.offset += units;
                        last.rest.units -= units;
                        return Ok(offset);
                    }
                    Some(last) => last.full = true,
                    None => {}
                }
            }
            self.write_full(target)?;
            let Some(run) = space.take_run(file) else {
                // Free space is in short pieces, so images can't be gathered.
                let offset = space.take(units, file)?;
                return target.write(image, offset).map(|()| offset);
            };
            let mut state = self.state.lock();
            if state.buffers.last().is_some_and(|last| !last.full) {
                drop(state);
                space.give(run.offset, run.units);
                continue;
            }
            let id = state.next_id;
            state.next_id += 1;
            state.buffers.push(Buffer {
                id,
                offset: run.offset,
                bytes: Arc::new(Vec::with_capacity(run.units as usize * UNIT)),
                images: Vec::new(),
                rest: run,
                full: false,
                writing: false,
                failed: false,
                given_back: Vec::new(),
            });
            self.buffers.store(state.buffers.len(), Ordering::Release);
        }
    }

    /// Copies the image at `place` into `image`; returns false if the image is not gathered here.
    pub fn read(&self, place: Place, image: &mut Vec<u8>) -> bool {
        if self.buffers.load(Ordering::Acquire) == 0 {
            return false;
        }
        let state = self.state.lock();
        let Some(buffer) = state.buffers.iter().find(|buffer| buffer.holds(place)) else {
            return false;
        };
        let start = (place.offset() - buffer.offset) as usize * UNIT;
        let Some(bytes) = buffer.bytes.get(start..start + place.byte_len()) else {
            return false;
        };
        image.clear();
        image.extend_from_slice(bytes);
        true
    }

    /// Returns whether the image at `place` is gathered here; then the buffer keeps the place, and frees it once it is
    /// written.
    pub fn give_back(&self, place: Place) -> bool {
        if self.buffers.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut state = self.state.lock();
        match state.buffers.iter_mut().find(|buffer| buffer.holds(place)) {
            Some(buffer) => {
                buffer.given_back.push(place);
                true
            }
            None => false,
        }
    }

    /// Writes everything gathered before this call; when it returns, all of that is in the file, whichever thread wrote
    /// it.
    pub fn flush(&self, target: &Target<'_>) -> Result<()> {
        let gathered = {
            let mut state = self.state.lock();
            if let Some(last) = state.buffers.last_mut() {
                last.full = true;
            }
            state.next_id
        };
        let is_ours = |buffer: &Buffer| buffer.id < gathered;
        // Another thread's write may fail; this thread or a third then tries it again.
        loop {
            self.write_full(target)?;
            self.moments.come_to(Moment::FlushWaits);
            let mut state = self.state.lock();
            while (state.buffers.iter()).any(|buffer| is_ours(buffer) && buffer.writing) {
                self.written.wait(&mut state);
            }
            if !state.buffers.iter().any(is_ours) {
                return Ok(());
            }
            drop(state);
            self.moments.come_to(Moment::FlushTriesAgain);
            if is_planted(PlantedFault::FlushLooksOnce) {
                return self.write_full(target);
            }
        }
    }

    fn write_full(&self, target: &Target<'_>) -> Result<()> {
        loop {
            let (id, offset, bytes, failed) = {
                let mut state = self.state.lock();
                let full = |buffer: &&mut Buffer| buffer.full && !buffer.writing;
                let Some(buffer) = state.buffers.iter_mut().find(full) else {
                    return Ok(());
                };
                buffer.writing = true;
                let bytes = Arc::clone(&buffer.bytes);
                (buffer.id, buffer.offset, bytes, buffer.failed)
            };
            let mut outcome = target.file.write_at(&bytes, offset * UNIT as u64);
            if outcome.is_err() && failed && !is_planted(PlantedFault::StuckBuffer) {
                outcome = self.write_apart(target, id, offset, &bytes);
            }
            let mut state = self.state.lock();
            let at = state.buffers.iter().position(|buffer| buffer.id == id);
            let mut done = None;
            if let Some(at) = at {
                state.buffers[at].writing = false;
                state.buffers[at].failed = true;
                if outcome.is_ok() {
                    done = Some(state.buffers.remove(at));
                    self.buffers.store(state.buffers.len(), Ordering::Release);
                }
            }
            self.written.notify_all();
            drop(state);
            if let Some(buffer) = done {
                target.space.give(buffer.rest.offset, buffer.rest.units);
                for place in buffer.given_back {
                    target.space.give(place.offset(), place.units());
                }
            }
            outcome?;
        }
    }

    /// Writes the images of a buffer one by one. The caller has set `writing`.
    fn write_apart(&self, target: &Target<'_>, id: u64, from: u64, bytes: &[u8]) -> Result<()> {
        let images = self.in_buffer(id, |buffer| buffer.images.clone());
        for image in images.unwrap_or_default() {
            let start = (image.offset - from) as usize * UNIT;
            if let Some(bytes) = bytes.get(start..start + image.units as usize * UNIT) {
                self.write_or_move(target, id, image, bytes)?;
            }
        }
        Ok(())
    }

    /// Writes an image to its place, or to another place if that write is refused. The refused place stays out of use
    /// until the next opening: it would be refused again.
    fn write_or_move(
        &self,
        target: &Target<'_>,
        id: u64,
        image: Image,
        bytes: &[u8],
    ) -> Result<()> {
        let Err(refused) = target.file.write_at(bytes, image.offset * UNIT as u64) else {
            return Ok(());
        };
        if self.drop_given_back(id, image) {
            return Ok(());
        }
        let to = target.space.take(image.units, target.file)?;
        if target.write(bytes, to).is_ok() {
            if target.table.relocate(image.page, image.offset, to) {
                self.in_buffer(id, |buffer| buffer.forget(image));
                return Ok(());
            }
            target.space.give(to, image.units);
        }
        // No version of the table names the place any more; or none names it yet, as the thread that added it is about
        // to enter it.
        match self.drop_given_back(id, image) {
            true => Ok(()),
            false => Err(refused),
        }
    }

    /// Returns whether the place of an image that can't be written has been given back; the image is then dropped.
    fn drop_given_back(&self, id: u64, image: Image) -> bool {
        let dropped = self.in_buffer(id, |buffer| {
            let places = buffer.given_back.len();
            (buffer.given_back).retain(|place| place.offset() != image.offset);
            let is_it = buffer.given_back.len() < places;
            if is_it {
                buffer.forget(image);
            }
            is_it
        });
        dropped == Some(true)
    }

    /// The first unit of the newest gathered image.
    #[cfg(test)]
    pub fn last_offset(&self) -> u64 {
        let state = self.state.lock();
        let image = state.buffers.last().and_then(|last| last.images.last());
        image.unwrap().offset
    }

    /// Calls `f` with a buffer, if it is there.
    fn in_buffer<R>(&self, id: u64, f: impl FnOnce(&mut Buffer) -> R) -> Option<R> {
        let mut state = self.state.lock();
        let buffer = state.buffers.iter_mut().find(|buffer| buffer.id == id);
        buffer.map(f)
    }
}
