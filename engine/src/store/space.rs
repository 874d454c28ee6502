//! Gives out the data file's space to many threads, and cuts the file's free tail off.

use std::collections::VecDeque;

use super::place::{check_end, UNIT};
use crate::error::Result;
use crate::knobs;
use crate::os::File;
use crate::planted::{is_planted, PlantedFault};
use crate::store::space::extents::{Extents, LONGEST};
use crate::sync::Mutex;

pub(super) mod extents;
pub(super) mod keeping;
pub(super) mod moving;
#[cfg(test)]
mod tests;

/// Multiples of the wanted length: for each of them, the shortest free extent that is at least so long is a candidate.
const WELL_OR_BADLY: [u64; 6] = [1, 2, 4, 16, 64, 512];

/// A stretch of space that its holder gives out from the front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// First unit not given out.
    pub offset: u64,
    /// Units left.
    pub units: u64,
}

/// The free space of the data file.
///
/// Two locks, in this order: `growth`, held while the file's end moves (also over the system call
/// that cuts the file), and `state`, held for memory operations only.
#[derive(Debug)]
pub struct Space {
    growth: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    extents: Extents,
    /// Where evicted pages go one after the other.
    run: Run,
    /// The fewest units that were free at once since [`Space::begin_cycle`]: so many were not needed.
    least_free: u64,
    /// Units that are kept free: see [`Space::keep`].
    kept: u64,
    /// One piece that is kept for a checkpoint's record. It is no free extent: runs and groups of chunks take the
    /// longest extents, and would take it.
    record: Run,
    /// Space where a write has failed, the oldest first; it is not given out for some time.
    refused: VecDeque<Run>,
    /// Units in `refused`.
    refused_units: u64,
}

impl State {
    fn give(&mut self, offset: u64, units: u64) {
        if units > 0 {
            self.extents.give(offset, units);
        }
    }

    fn drop_run(&mut self) {
        let run = std::mem::take(&mut self.run);
        self.give(run.offset, run.units);
    }

    fn drop_record(&mut self) {
        let record = std::mem::take(&mut self.record);
        self.give(record.offset, record.units);
    }

    /// Gives the oldest refused space back.
    fn give_oldest_refused(&mut self) {
        if let Some(refused) = self.refused.pop_front() {
            self.refused_units -= refused.units;
            self.give(refused.offset, refused.units);
        }
    }

    /// Takes the piece for the record, the lowest of the candidates. Returns false if no extent is long enough.
    fn take_record(&mut self, units: u64) -> bool {
        self.drop_record();
        for times in WELL_OR_BADLY {
            let Some((offset, _)) = self.extents.take_between(units * times, units) else {
                break;
            };
            if self.record.units == 0 || offset < self.record.offset {
                self.drop_record();
                self.record = Run { offset, units };
            } else {
                self.give(offset, units);
            }
        }
        self.record.units > 0
    }

    /// Notes that space was taken.
    fn note_taken(&mut self) {
        self.least_free = self.least_free.min(self.extents.free_units());
    }

    /// A run from free space, long ones first.
    fn reuse_run(&mut self) -> Option<Run> {
        let (offset, units) = self
            .extents
            .take_between(knobs::space_run() / 2, knobs::space_run())
            .or_else(|| {
                self.extents
                    .take_between(knobs::shortest_run(), knobs::space_run())
            })?;
        self.note_taken();
        Some(Run { offset, units })
    }

    /// Free units beyond the kept ones. Only extents that take images of any length count as kept; cutting an extent
    /// loses up to one such image more.
    fn spare(&self) -> u64 {
        match self.kept {
            0 => self.extents.free_units(),
            kept if is_planted(PlantedFault::CutByFree) => {
                self.extents.free_units().saturating_sub(kept)
            }
            kept => self.extents.roomy_units().saturating_sub(kept + LONGEST),
        }
    }

    /// Returns whether so much is free in short pieces that the file should not grow for a long one.
    fn is_loose(&self) -> bool {
        self.extents.free_units() > (self.extents.end() / 4).max(2 * knobs::space_run())
    }
}

impl Space {
    /// The space described by `extents`.
    pub fn new(extents: Extents) -> Self {
        Space {
            growth: Mutex::new(()),
            state: Mutex::new(State {
                least_free: extents.free_units(),
                extents,
                run: Run::default(),
                kept: 0,
                record: Run::default(),
                refused: VecDeque::new(),
                refused_units: 0,
            }),
        }
    }

    /// Takes space for one image, next to the last one if possible.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] if a place could not name the space.
    pub fn take_next(&self, units: u64, file: &dyn File) -> Result<u64> {
        loop {
            let mut state = self.state.lock();
            if state.run.units < units {
                state.drop_run();
                match state.reuse_run() {
                    Some(run) => state.run = run,
                    None if state.is_loose() => {
                        if let Some(offset) = state.extents.take(units) {
                            state.note_taken();
                            return Ok(offset);
                        }
                    }
                    None => {}
                }
            }
            if state.run.units >= units {
                let offset = state.run.offset;
                state.run.offset += units;
                state.run.units -= units;
                return Ok(offset);
            }
            drop(state);
            let Some(grown) = self.grow_by_run(file) else {
                return self.take(units, file);
            };
            let mut state = self.state.lock();
            state.drop_run();
            state.run = grown;
        }
    }

    /// Takes space for `units` units from the shortest free extent that is long enough.
    ///
    /// # Errors
    /// As those of [`Space::take_next`]; [`crate::Error::NoSpace`] if no extent is long enough, and the disk has no
    /// more space. Refused space becomes free then, so the next call may find it.
    pub fn take(&self, units: u64, file: &dyn File) -> Result<u64> {
        let taken = self.take_unrefused(units, file);
        taken.inspect_err(|_| self.give_refused())
    }

    /// Like [`Space::take`], for callers that have an alternative if there is no space: refused space stays refused.
    pub fn take_unrefused(&self, units: u64, file: &dyn File) -> Result<u64> {
        {
            let mut state = self.state.lock();
            if let Some(offset) = state.extents.take(units) {
                state.note_taken();
                return Ok(offset);
            }
            // Uses the space reserved for evicted pages before more of the disk.
            if state.run.units >= units {
                state.drop_run();
                if let Some(offset) = state.extents.take(units) {
                    state.note_taken();
                    return Ok(offset);
                }
            }
        }
        self.grow(units, file)
    }

    /// Like [`Space::take`], but only below `limit`, and the file does not grow.
    pub fn take_below(&self, units: u64, limit: u64) -> Option<u64> {
        self.take_low(units, limit, true)
    }

    /// Like [`Space::take_below`], for callers that can do without: takes nothing of the kept space.
    pub fn take_spare_below(&self, units: u64, limit: u64) -> Option<u64> {
        self.take_low(units, limit, is_planted(PlantedFault::MoveIntoKept))
    }

    fn take_low(&self, units: u64, limit: u64, of_kept: bool) -> Option<u64> {
        let mut state = self.state.lock();
        let before = state.extents.roomy_units();
        // The shortest extent may lie too high, or be kept; then longer ones are tried.
        for times in WELL_OR_BADLY {
            let (offset, taken) = state.extents.take_between(units * times, units)?;
            let roomy = state.extents.roomy_units();
            let is_spare = roomy >= state.kept.min(before);
            if offset + units <= limit && (of_kept || is_spare) {
                state.note_taken();
                return Some(offset);
            }
            state.give(offset, taken);
        }
        None
    }

    /// Takes a run for the caller to fill. Returns `None` if only short pieces are free, or the disk has no more space;
    /// [`Space::take`] is better for each image then.
    pub fn take_run(&self, file: &dyn File) -> Option<Run> {
        {
            let mut state = self.state.lock();
            if let Some(run) = state.reuse_run() {
                return Some(run);
            }
            if state.is_loose() {
                return None;
            }
        }
        self.grow_by_run(file)
    }

    /// Appends a run to the file. Returns `None` if the disk has no more space: shorter pieces may do.
    fn grow_by_run(&self, file: &dyn File) -> Option<Run> {
        let _growth = self.growth.lock();
        let offset = self
            .append(knobs::space_run(), file)
            .inspect_err(|error| tracing::debug!("the data file can't grow: {error}"))
            .ok()?;
        self.state.lock().note_taken();
        let units = knobs::space_run();
        Some(Run { offset, units })
    }

    /// Takes `units` at the file's end, which grows. If the disk refuses, the end goes back: the space would be given
    /// out as free, again and again.
    fn grow(&self, units: u64, file: &dyn File) -> Result<u64> {
        let _growth = self.growth.lock();
        let (offset, end) = {
            let mut state = self.state.lock();
            let end = state.extents.end();
            check_end(end + units)?;
            (state.extents.extend(units), end)
        };
        let reserved = match is_planted(PlantedFault::UnreservedGrowth) {
            true => Ok(()),
            false => reserve(file, offset, units),
        };
        if let Err(error) = reserved {
            let mut state = self.state.lock();
            state.extents.retract(end);
            if offset < end {
                state.extents.give(offset, end - offset);
            }
            drop(state);
            give_back(file, end * UNIT as u64);
            return Err(error);
        }
        self.state.lock().note_taken();
        Ok(offset)
    }

    /// Gives space back.
    pub fn give(&self, offset: u64, units: u64) {
        self.state.lock().give(offset, units);
    }

    /// Keeps taken space out of use because a write there has failed: the next caller that wants as much would get it,
    /// and fail too. It becomes free again when much is refused, as not each failure is the place's fault. It also does
    /// when there is no other space, and at the next opening.
    pub fn refuse(&self, offset: u64, units: u64) {
        if is_planted(PlantedFault::GiveRefused) {
            return self.give(offset, units);
        }
        let mut state = self.state.lock();
        state.refused.push_back(Run { offset, units });
        state.refused_units += units;
        while state.refused_units > knobs::most_refused() && state.refused.len() > 1 {
            state.give_oldest_refused();
        }
    }

    /// Gives all refused space back.
    pub fn give_refused(&self) {
        let mut state = self.state.lock();
        while !state.refused.is_empty() {
            state.give_oldest_refused();
        }
    }

    /// Takes the piece that is kept for a checkpoint's record; `None` if it is shorter than `units`.
    pub fn take_for_record(&self, units: u64) -> Option<u64> {
        let mut state = self.state.lock();
        if state.record.units < units {
            return None;
        }
        let Run { offset, units: all } = std::mem::take(&mut state.record);
        state.give(offset + units, all - units);
        Some(offset)
    }

    /// Keeps `units` free within the file, in pieces that take images of any length, and one piece of `record` units
    /// besides. The disk has given all of this to the file, so that it can be written, whatever else fills the disk.
    /// Units that are free already count.
    ///
    /// # Errors
    /// [`crate::Error::NoSpace`] if the disk has no more space; all that was free before stays free. As those of
    /// [`Space::take_next`].
    pub fn keep(&self, units: u64, record: u64, file: &dyn File) -> Result<()> {
        let _growth = self.growth.lock();
        let kept = self.keep_record(record, file);
        let missing = {
            let mut state = self.state.lock();
            state.kept = units;
            units.saturating_sub(state.extents.roomy_units())
        };
        let missing = missing.next_multiple_of(knobs::space_run());
        let offset = self.append(missing, file)?;
        self.state.lock().give(offset, missing);
        kept
    }

    /// Keeps a piece for a record. The caller has locked `growth`.
    fn keep_record(&self, units: u64, file: &dyn File) -> Result<()> {
        {
            let mut state = self.state.lock();
            let before = state.record.units;
            let is_enough = before >= units || is_planted(PlantedFault::KeepPieces);
            if is_enough || state.take_record(units) {
                return Ok(());
            }
            // A shorter piece is better than none.
            if before > 0 {
                state.take_record(before);
            }
        }
        let offset = self.append(units, file)?;
        let mut state = self.state.lock();
        state.drop_record();
        state.record = Run { offset, units };
        Ok(())
    }

    /// Returns whether the piece kept for a record has so many units.
    pub fn has_for_record(&self, units: u64) -> bool {
        self.state.lock().record.units >= units
    }

    /// Makes the file longer by `units` units, which the disk must give. The caller has locked `growth`.
    fn append(&self, units: u64, file: &dyn File) -> Result<u64> {
        let offset = {
            let mut state = self.state.lock();
            check_end(state.extents.end() + units)?;
            state.extents.append(units)
        };
        if let Err(error) = reserve(file, offset, units) {
            self.state.lock().extents.retract(offset);
            give_back(file, offset * UNIT as u64);
            return Err(error);
        }
        Ok(offset)
    }

    /// Frees the part of the file behind the last used unit, which a killed process got from the disk. Cuts that part
    /// off if the disk can't back all of it, or if a place could not name it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn take_over_tail(&self, file: &dyn File) -> Result<()> {
        let _growth = self.growth.lock();
        let (unit, len) = (UNIT as u64, file.len()?);
        let end = self.state.lock().extents.end();
        let units = (len / unit).saturating_sub(end);
        // The part may have holes, as writes are out of order.
        let is_usable = || {
            check_end(end + units)?;
            file.allocate(end * unit, units * unit)
        };
        let gives_up = is_planted(PlantedFault::GiveTailUp);
        if units > 0 && !gives_up {
            match is_usable() {
                Ok(()) => {
                    let mut state = self.state.lock();
                    let offset = state.extents.append(units);
                    state.give(offset, units);
                    return Ok(());
                }
                Err(error) => tracing::debug!("the data file's tail is cut off: {error}"),
            }
        }
        match len > end * unit {
            true => file.set_len(end * unit),
            false => Ok(()),
        }
    }

    /// Free units that images of the greatest length can use.
    pub fn roomy_units(&self) -> u64 {
        self.state.lock().extents.roomy_units()
    }

    /// Keeps no space any more, and cuts the file behind the last used unit.
    ///
    /// # Errors
    /// Those of the file.
    pub fn keep_none(&self, file: &dyn File) -> Result<()> {
        let _growth = self.growth.lock();
        let end = {
            let mut state = self.state.lock();
            state.drop_run();
            state.drop_record();
            while !state.refused.is_empty() {
                state.give_oldest_refused();
            }
            state.kept = 0;
            let all = state.extents.free_units();
            state.extents.cut_tail(1, all);
            state.extents.end()
        };
        match file.len()? > end * UNIT as u64 {
            true => file.set_len(end * UNIT as u64),
            false => Ok(()),
        }
    }

    /// Cuts the free tail off the file if that saves enough; kept space stays.
    pub fn cut_tail(&self, file: &dyn File, unit: u64) -> Result<()> {
        let _growth = self.growth.lock();
        let end = {
            let mut state = self.state.lock();
            state.drop_run();
            // The record's piece may lie in the tail, and fit further down.
            let record = state.record.units;
            if record > 0 {
                state.take_record(record);
            }
            let least = knobs::shortest_tail().max(state.extents.end() / 64);
            let most = state.spare();
            state.extents.cut_tail(least, most)
        };
        match end {
            Some(end) if file.len()? > end * unit => file.set_len(end * unit),
            _ => Ok(()),
        }
    }

    /// Units of the file, and how many of them have been free ever since [`Space::begin_cycle`], without kept ones.
    pub fn unneeded(&self) -> (u64, u64) {
        let state = self.state.lock();
        let free = state.extents.free_units().min(state.least_free);
        (state.extents.end(), free.saturating_sub(state.kept))
    }

    /// Begins to count anew how many units are not needed.
    pub fn begin_cycle(&self) {
        let mut state = self.state.lock();
        state.least_free = state.extents.free_units();
    }

    /// Units of the file, and how many of them are free.
    pub fn units(&self) -> (u64, u64) {
        let state = self.state.lock();
        let free = state.extents.free_units() + state.run.units + state.record.units;
        (state.extents.end(), free)
    }
}

/// Has the disk allocate `units` at `offset`. If the file ends before `offset`, also all between: that space was given
/// out, and is still to be written.
fn reserve(file: &dyn File, offset: u64, units: u64) -> Result<()> {
    let unit = UNIT as u64;
    let from = file.len()?.min(offset * unit);
    match (offset + units) * unit - from {
        0 => Ok(()),
        more => file.allocate(from, more),
    }
}

/// Cuts off what a failed reservation may have left behind `end`.
fn give_back(file: &dyn File, end: u64) {
    let cut = file.len().and_then(|len| match len > end {
        true => file.set_len(end),
        false => Ok(()),
    });
    if let Err(error) = cut {
        tracing::debug!("{error}");
    }
}
