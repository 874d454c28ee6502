//! Reading images: one at a time, or several that lie near one another with one call.

use std::io;
use std::sync::Arc;

use super::aligned::Aligned;
use super::place::{Place, UNIT};
use super::{image, with_scratch, Store};
use crate::error::{Error, Result};
use crate::ids::{PageId, PAGE_SIZE};
use crate::knobs;
use crate::os::{File, Os};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

/// How a store reads.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The data file for reads past the page cache; `None`: through it.
    direct: Option<Arc<dyn File>>,
    /// See [`Store::take_unreadable_for_damage`].
    unreadable_is_damage: bool,
    buffers: Mutex<Vec<Aligned>>,
}

/// Images that lie near one another.
#[derive(Debug)]
pub struct ImageRun {
    /// With where they are in what the call reads.
    images: Vec<(PageId, Place)>,
}

impl ImageRun {
    /// The pages, in the order in which they lie.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.images.iter().map(|(page, _)| *page)
    }

    /// The unit behind the images. That need not be where the last one ends: the places are of different moments, and
    /// one that has become free meanwhile may be a part of another's by now.
    fn end(&self) -> u64 {
        let end = |(_, place): &(PageId, Place)| place.offset() + place.units();
        match is_planted(PlantedFault::EndOfLast) {
            true => self.images.last().map_or(0, end),
            false => self.images.iter().map(end).max().unwrap_or(0),
        }
    }
}

/// Whether a read has failed for the device's sake, and not for want of memory.
fn is_of_device(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.kind() != io::ErrorKind::OutOfMemory,
        _ => false,
    }
}

/// What unpacks a page into `PAGE_SIZE` bytes, or gives its error.
pub type Unpack<'a> = dyn FnMut(&mut [u8]) -> Result<()> + 'a;

impl Store {
    /// From now on pages are read past the system's page cache, where that can be: what the pool
    /// holds is not kept a second time. Returns whether it can.
    ///
    /// # Errors
    /// Those of opening the data file.
    pub fn read_directly(&mut self, os: &dyn Os) -> Result<bool> {
        self.reading.direct = os.open_direct(self.file.path(), UNIT)?;
        Ok(self.reading.direct.is_some())
    }

    /// From now on a page that can't be read, not even when that is tried again, counts as damaged.
    pub fn take_unreadable_for_damage(&mut self) {
        self.reading.unreadable_is_damage = true;
    }

    fn reader(&self) -> &dyn File {
        match &self.reading.direct {
            Some(direct) => &**direct,
            None => &*self.file,
        }
    }

    /// Reads a page from its current place into `buf` (`PAGE_SIZE` bytes); the hole reads as zeros.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the image's checksum, page id or generation is not what it must be. I/O errors, see
    /// [`Store::take_unreadable_for_damage`].
    pub fn read_page(&self, page: PageId, buf: &mut [u8]) -> Result<()> {
        if buf.len() != PAGE_SIZE {
            let what = format!("a page buffer of {} bytes, not {PAGE_SIZE}", buf.len());
            return Err(Error::Internal(what));
        }
        with_scratch(|scratch| loop {
            let place = self.table.current(page);
            if place.is_none() {
                return Err(self.corrupt(page, "the place table has no place for it".into()));
            }
            let outcome = if self.batch.read(place, &mut scratch.image) {
                self.decode_at(page, place, &scratch.image, buf)
            } else {
                let bytes = scratch.read.bytes(place.byte_len());
                self.bring(page, place, bytes)
                    .and_then(|()| self.decode_at(page, place, bytes, buf))
            };
            match outcome {
                // Rewritten meanwhile, or moved away from a place that could not be written: what is at the old one
                // now is something else, or can't be read.
                Err(_) if self.table.current(page) != place => continue,
                outcome => return outcome,
            }
        })
    }

    /// Fills `bytes` from a place on.
    fn bring(&self, page: PageId, place: Place, bytes: &mut [u8]) -> Result<()> {
        let mut read = self.reader().read_at(bytes, place.byte_offset());
        if read.is_err() && self.reading.unreadable_is_damage {
            read = self.reader().read_at(bytes, place.byte_offset());
            match read {
                Err(error) if is_of_device(&error) => {
                    let what = format!("it can't be read: {error}");
                    return Err(self.damaged(page, place, what));
                }
                again => read = again,
            }
        }
        let found = read?;
        if found < bytes.len() {
            let what = format!(
                "expected {} bytes, the file ends after {found}",
                bytes.len()
            );
            return Err(self.damaged(page, place, what));
        }
        self.counters.count_read(bytes.len());
        Ok(())
    }

    fn damaged(&self, page: PageId, place: Place, what: String) -> Error {
        Error::Corrupt {
            file: self.file.path().to_owned(),
            offset: place.byte_offset(),
            page: Some(page),
            what,
        }
    }

    fn decode_at(&self, page: PageId, place: Place, image: &[u8], buf: &mut [u8]) -> Result<()> {
        let generation =
            image::decode(page, image, buf).map_err(|what| self.damaged(page, place, what))?;
        if place.is_of_generation(generation) {
            return Ok(());
        }
        let what = format!(
            "the page is stale: expected a generation that ends with {:#x}, found {generation:#x}",
            place.generation_bits()
        );
        Err(self.damaged(page, place, what))
    }

    /// Puts pages together that are best read with one call, at most `most` of them each. Pages
    /// without a place are left out.
    pub fn runs(&self, pages: impl Iterator<Item = PageId>, most: usize) -> Vec<ImageRun> {
        let mut images: Vec<(PageId, Place)> = pages
            .map(|page| (page, self.table.current(page)))
            .filter(|(_, place)| !place.is_none())
            .collect();
        images.sort_unstable_by_key(|(_, place)| place.offset());
        let mut runs: Vec<ImageRun> = Vec::new();
        for (page, place) in images {
            let end = place.offset() + place.units();
            if let Some(last) = runs.last_mut() {
                let begin = last.images.first().map_or(0, |(_, first)| first.offset());
                if last.images.len() < most
                    && place.offset() <= last.end() + knobs::read_gap()
                    && end <= begin + knobs::read_units()
                {
                    last.images.push((page, place));
                    continue;
                }
            }
            runs.push(ImageRun {
                images: vec![(page, place)],
            });
        }
        runs
    }

    /// Reads the pages of a run with one call. `each` gets the pages in turn. A page whose image has moved since the run was
    /// put together is read by itself.
    pub fn read_run(&self, run: &ImageRun, each: &mut dyn FnMut(PageId, &mut Unpack<'_>)) {
        let [(_, first), ..] = run.images[..] else {
            return;
        };
        if let [(page, _)] = run.images[..] {
            return each(page, &mut |buf| self.read_page(page, buf));
        }
        let begin = first.offset();
        let len = (run.end() - begin) as usize * UNIT;
        let mut buffer = self.reading.buffers.lock().pop().unwrap_or_default();
        let bytes = buffer.bytes(len);
        let found = self.reader().read_at(bytes, first.byte_offset());
        let found = found.as_ref().map_or(0, |found| *found);
        self.counters.count_read(found);
        for &(page, place) in &run.images {
            let from = (place.offset() - begin) as usize * UNIT;
            let image = &bytes[from..from + place.byte_len()];
            each(page, &mut |buf| {
                // What waits to be written is not in the file; what could not be read is tried
                // again, and gives its own error.
                let here = from + image.len() <= found && self.table.current(page) == place;
                if here && self.decode_at(page, place, image, buf).is_ok() {
                    return Ok(());
                }
                self.read_page(page, buf)
            });
        }
        let mut kept = self.reading.buffers.lock();
        if kept.len() < knobs::read_buffers_kept() {
            kept.push(buffer);
        }
    }
}
