//! Reading images: one at a time, or several that lie close together with one call.

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

/// How the store reads.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The data file for reads past the page cache; `None` if reads go through the cache.
    direct: Option<Arc<dyn File>>,
    /// See [`Store::take_unreadable_for_damage`].
    unreadable_is_damage: bool,
    buffers: Mutex<Vec<Aligned>>,
}

/// Images that lie close together, to be read with one call.
#[derive(Debug)]
pub struct ImageRun {
    /// Pages with their places when the run was made.
    images: Vec<(PageId, Place)>,
}

impl ImageRun {
    /// The pages, in the order of their places.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.images.iter().map(|(page, _)| *page)
    }

    /// The unit behind the images. It may lie behind the last image's end: the places are of different moments, and a
    /// place that has become free may be part of a longer one since.
    fn end(&self) -> u64 {
        let end = |(_, place): &(PageId, Place)| place.offset() + place.units();
        match is_planted(PlantedFault::EndOfLast) {
            true => self.images.last().map_or(0, end),
            false => self.images.iter().map(end).max().unwrap_or(0),
        }
    }
}

/// Returns whether the device caused a failed read, not a lack of memory.
fn is_of_device(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.kind() != io::ErrorKind::OutOfMemory,
        _ => false,
    }
}

/// Unpacks a page into `PAGE_SIZE` bytes, or returns its error.
pub type Unpack<'a> = dyn FnMut(&mut [u8]) -> Result<()> + 'a;

impl Store {
    /// From now on pages are read past the system's page cache, so that it does not hold the pool's pages a second
    /// time. Returns false if the file system has no such reads.
    ///
    /// # Errors
    /// Those of opening the data file.
    pub fn read_directly(&mut self, os: &dyn Os) -> Result<bool> {
        self.reading.direct = os.open_direct(self.file.path(), UNIT)?;
        Ok(self.reading.direct.is_some())
    }

    /// From now on a page that can't be read, at the second attempt either, counts as damaged.
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
    /// [`Error::Corrupt`] if the image's checksum, page id or generation is wrong. I/O errors: see
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
                // The page was rewritten meanwhile, or moved away from a place that could not be written. The old place
                // may hold another image, or be unreadable.
                Err(_) if self.table.current(page) != place => continue,
                outcome => return outcome,
            }
        })
    }

    /// Fills `bytes` from `place`.
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

    /// Groups pages that are best read with one call, at most `most` per call. Leaves out pages without a place.
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

    /// Reads the pages of a run with one call, and gives them to `each` in turn. A page whose image has moved since the
    /// run was made is read by itself.
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
                // A gathered image is not in the file yet. A page that could not be read is tried again, and gives its
                // own error.
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
