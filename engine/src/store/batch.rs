//! Images gathered into large sequential writes.
//!
//! A gathered image counts as written: its place is in the table, and [`Batch::read`] finds it
//! until it is in the file. A write that fails keeps its images in memory, to be tried again. Where it fails again, each
//! image is written by itself, and elsewhere where it is refused: a sector may stay bad.

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

/// Bytes gathered before they are written: what a run of space just takes, whatever the length of the last image.
fn full() -> usize {
    (knobs::space_run() - LONGEST) as usize * UNIT
}

/// Where images go, and what names them.
pub struct Target<'a> {
    pub file: &'a dyn File,
    pub space: &'a Space,
    pub table: &'a Table,
}

impl Target<'_> {
    /// Writes to space that was taken for this. Where that fails, nobody else gets the space at once.
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
    /// Images go to the last one; those before are being written, or failed to be.
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
    /// What is left of the run behind them.
    rest: Run,
    /// No more images come; it is to be written.
    full: bool,
    writing: bool,
    /// A write of it has failed.
    failed: bool,
    /// Places given back while their images waited here; free once this buffer is written, for
    /// whoever got them before would be overwritten by it.
    given_back: Vec<Place>,
}

/// Where an image is to be.
#[derive(Clone, Copy, Debug)]
struct Image {
    page: PageId,
    offset: u64,
    units: u64,
}

impl Buffer {
    /// An image need not be written any more.
    fn forget(&mut self, image: Image) {
        self.images.retain(|other| other.offset != image.offset);
    }

    fn holds(&self, place: Place) -> bool {
        let end = self.offset + (self.bytes.len() / UNIT) as u64;
        self.offset <= place.offset() && place.offset() < end
    }
}

impl Batch {
    /// Adds a page's image (whole units); returns its first unit. May write a full buffer.
    ///
    /// # Errors
    /// Those of earlier buffers' writes; then the image was not added.
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
                        // Nobody else holds the bytes: they are shared only when full.
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
                // Free space is in short pieces: there is nothing to gather.
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

    /// Copies the image at `place` into `image`, if it waits here.
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

    /// Whether `place` waits here; then it is kept, and given back when that is safe.
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

    /// Writes everything gathered so far; when this returns it is in the file, whoever has written it.
    pub fn flush(&self, target: &Target<'_>) -> Result<()> {
        let gathered = {
            let mut state = self.state.lock();
            if let Some(last) = state.buffers.last_mut() {
                last.full = true;
            }
            state.next_id
        };
        let is_ours = |buffer: &Buffer| buffer.id < gathered;
        // Another thread's write may fail, and be tried again by this thread or by a third.
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

    /// Writes an image where it is to be, or else elsewhere. Its place is nobody's until the next opening then: what was
    /// refused there once would be refused again.
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
        // Nothing may name it any more; or not yet, where who has added it is about to say where it is.
        match self.drop_given_back(id, image) {
            true => Ok(()),
            false => Err(refused),
        }
    }

    /// Whether an image that can't be written has been given back; then nothing is to be done for it.
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

    /// Where the newest image that waits here is to be.
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
