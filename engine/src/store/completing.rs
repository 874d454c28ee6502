//! The end of a checkpoint: its table becomes durable, or the checkpoint is given up.

use super::header::{encode_chunk, Header, Record, HEADER};
use super::place::{units_for, Place, UNIT};
use super::Store;
use crate::error::{Error, Result};
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;

/// The parts of the checkpoint that the newer header on disk leads to.
#[derive(Debug)]
pub struct Durable {
    /// Number of the last complete checkpoint.
    pub sequence: u64,
    /// First unit and length in units of its record.
    pub record: (u64, u64),
    /// Places of the place table's chunks.
    pub chunks: Vec<u64>,
}

/// A chunk of the place table to be written: index, generation, bytes.
type Chunk = (usize, u64, Vec<u8>);

/// The parts of a checkpoint besides pages, while they are being written.
#[derive(Default)]
struct Parts {
    /// Places of all chunks.
    chunks: Vec<u64>,
    /// Space taken for new chunks and the record: offset, units.
    taken: Vec<(u64, u64)>,
    /// Chunks to be written together.
    group: Vec<Chunk>,
    group_units: u64,
}

impl Store {
    /// Makes the pending table of the running checkpoint `epoch` durable together with `meta`, then frees
    /// superseded places.
    ///
    /// # Errors
    /// When a write fails (disk full, …), the checkpoint is given up, the last one stays valid, and work goes on. A
    /// failed sync, or a failed write of the header, is [`Error::Stopped`], for good. [`Error::Internal`] if `epoch` is
    /// not the running checkpoint: `meta` does not belong to the pending table then.
    pub fn complete_checkpoint(&self, epoch: u64, meta: &[u8]) -> Result<()> {
        self.writable()?;
        let mut durable = self.durable.lock();
        if is_planted(PlantedFault::CheckpointsAtOnce) {
            let _ = self.table.begin();
        } else if self.table.running() != Some(epoch) {
            return Err(Error::Internal(format!(
                "checkpoint {epoch} can't be completed: it is not the running one"
            )));
        }
        let mut parts = Parts {
            chunks: durable.chunks.clone(),
            ..Parts::default()
        };
        let record = match self.write_parts(&mut parts, durable.sequence + 1, meta) {
            Ok(record) => record,
            Err(error) => {
                for (offset, units) in parts.taken {
                    self.space.give(offset, units);
                }
                drop(durable);
                self.abandon_checkpoint(epoch);
                return Err(error);
            }
        };
        let sequence = durable.sequence + 1;
        let header = Header {
            database_id: self.database_id,
            sequence,
            record_offset: record.0,
            record_len: record.1,
        };
        // After a failed write or sync of the header, the new header may be on disk or not. So the store stops: it must
        // not free or overwrite anything that either header needs.
        self.file
            .write_at(&header.encode(), sequence % 2 * HEADER as u64)
            .map_err(|error| self.stop.stop(error.to_string()))?;
        self.sync()?;

        let new = Durable {
            sequence,
            record: (record.0, units_for(record.1 as usize)),
            chunks: parts.chunks,
        };
        self.record_units.store(new.record.1, Ordering::Relaxed);
        let old = std::mem::replace(&mut *durable, new);
        for (index, &place) in old.chunks.iter().enumerate() {
            if place != 0 && durable.chunks.get(index) != Some(&place) {
                self.space.give(Place(place).offset(), Place(place).units());
            }
        }
        self.space.give(old.record.0, old.record.1);
        self.table.finish(true, |place| self.release_one(place));
        self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
        let cut = self.space.cut_tail(&*self.file, UNIT as u64);
        if let Err(error) = cut.and(self.move_down()) {
            // The checkpoint is complete; only the file is longer than it has to be.
            tracing::warn!("{error}");
        }
        self.space.begin_cycle();
        Ok(())
    }

    /// Gives checkpoint `epoch` up (disk full, …) if it is the running one, and frees its places that nothing else
    /// uses.
    pub fn abandon_checkpoint(&self, epoch: u64) {
        if self.table.running() != Some(epoch) {
            return;
        }
        // Waits for images that are being written for this checkpoint. `finish` frees them; a later image is freed with
        // them, or finds no running checkpoint.
        drop(self.writing.write());
        self.table.finish(false, |place| self.release_one(place));
    }

    /// Makes everything written so far durable. Called between a checkpoint's writes, so that its last sync does not
    /// have to bring everything to the device at once, and delay other syncs.
    ///
    /// # Errors
    /// [`Error::Stopped`], for good.
    pub fn sync(&self) -> Result<()> {
        self.stop.check()?;
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        self.file
            .sync_data()
            .map_err(|error| self.stop.stop(error.to_string()))
    }

    /// Writes and syncs all that the new header will lead to; returns the record's first unit and its length in bytes.
    fn write_parts(&self, parts: &mut Parts, sequence: u64, meta: &[u8]) -> Result<(u64, u64)> {
        if is_planted(PlantedFault::LateImages) {
            self.batch.flush(&self.target())?;
        }
        {
            // An image whose write begins after this does not go into this checkpoint. Such images may come: two
            // threads may find the same page to be saved and hold its latch shared, and one of them is slow.
            let _none_is_being_written = self.writing.write();
            self.table.stop_taking();
        }
        // The pending version leads to no image that is gathered later, so one flush suffices.
        if !is_planted(PlantedFault::LateImages) {
            self.batch.flush(&self.target())?;
        }
        let (packed_end, before) = (self.packed_end(), parts.chunks.clone());
        let moves =
            |index| Store::is_to_move(Place(before.get(index).copied().unwrap_or(0)), packed_end);
        self.table.seal(moves, |index, entries| {
            self.add_chunk(parts, index, entries)
        })?;
        self.write_group(parts)?;
        // Otherwise each opening would allocate memory for the highest page id that ever existed.
        while parts.chunks.last() == Some(&0) && !is_planted(PlantedFault::KeepEmptyChunks) {
            parts.chunks.pop();
        }
        let record = Record {
            sequence,
            generation: self.generation.load(Ordering::Relaxed),
            chunks: parts.chunks.clone(),
            meta: meta.to_vec(),
        }
        .encode(self.database_id);
        let units = units_for(record.len());
        // `keep_room` keeps so much for the next record, in case there is too little space now.
        self.record_units.fetch_max(units, Ordering::Relaxed);
        let offset = match self.take_for_part(units) {
            Err(error @ Error::NoSpace { .. }) => {
                let kept = self.space.take_for_record(units);
                kept.ok_or(error)
                    .inspect_err(|_| self.space.give_refused())?
            }
            taken => taken?,
        };
        let mut bytes = record;
        let len = bytes.len() as u64;
        bytes.resize(units as usize * UNIT, 0);
        self.target().write(&bytes, offset)?;
        parts.taken.push((offset, units));
        if !is_planted(PlantedFault::HeaderFirst) {
            self.sync()?;
        }
        Ok((offset, len))
    }

    /// Takes space for chunks and the record, below the packed end if possible: the file may be cut there soon.
    fn take_for_part(&self, units: u64) -> Result<u64> {
        self.packed_end()
            .and_then(|limit| self.space.take_below(units, limit))
            .map_or_else(|| self.space.take_unrefused(units, &*self.file), Ok)
    }

    fn add_chunk(&self, parts: &mut Parts, index: usize, entries: &[u64]) -> Result<()> {
        if parts.chunks.len() <= index {
            parts.chunks.resize(index + 1, 0);
        }
        if entries.iter().all(|&entry| entry == 0) {
            parts.chunks[index] = 0;
            return Ok(());
        }
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = encode_chunk(index, generation, entries);
        parts.group_units += (bytes.len() / UNIT) as u64;
        parts.group.push((index, generation, bytes));
        if parts.group_units >= knobs::table_chunk_group() {
            self.write_group(parts)?;
        }
        Ok(())
    }

    /// Writes the gathered chunks side by side. Writes each by itself if there is no space for all, or if their write
    /// fails: the kept space is in pieces, and one of them may be bad.
    fn write_group(&self, parts: &mut Parts) -> Result<()> {
        if parts.group.is_empty() {
            return Ok(());
        }
        let group = std::mem::take(&mut parts.group);
        let units = std::mem::take(&mut parts.group_units);
        let first = self.take_for_part(units);
        let is_tried_once = match first.is_ok() {
            true => is_planted(PlantedFault::WrittenGroupOnce),
            false => is_planted(PlantedFault::ChunksTogether),
        };
        let written = first.and_then(|first| self.write_chunks(parts, first, units, &group));
        if written.is_ok() || is_tried_once {
            return written;
        }
        group.chunks(1).try_for_each(|one| {
            let units = (one[0].2.len() / UNIT) as u64;
            let first = self.take_for_part(units);
            let first = first.inspect_err(|_| self.space.give_refused())?;
            self.write_chunks(parts, first, units, one)
        })
    }

    /// Writes chunks side by side into the space that was taken for them.
    fn write_chunks(
        &self,
        parts: &mut Parts,
        first: u64,
        units: u64,
        chunks: &[Chunk],
    ) -> Result<()> {
        let mut offset = first;
        let mut all = Vec::new();
        for (index, generation, bytes) in chunks {
            let units = (bytes.len() / UNIT) as u64;
            parts.chunks[*index] = Place::new(offset, units, *generation).0;
            offset += units;
            all.extend_from_slice(bytes);
        }
        self.target().write(&all, first)?;
        parts.taken.push((first, units));
        Ok(())
    }
}
