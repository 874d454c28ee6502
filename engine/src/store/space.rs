//! Giving out the data file's space to many threads, and cutting the file's free tail off.

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

/// How many times longer than wanted extents are at least, among which the lowest is looked for.
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
    /// The fewest units that were free at once, since [`Space::begin_cycle`]: nobody needed these.
    least_free: u64,
    /// Units that are kept free: see [`Space::keep`].
    kept: u64,
    /// One piece that is kept for a checkpoint's record. It is no free extent: runs and groups of chunks, which take the
    /// longest there are, would take it.
    record: Run,
    /// Where a write has failed, the last one behind the others: nobody gets it for some time.
    refused: VecDeque<Run>,
    /// Units of those.
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

    /// Gives back what was refused first.
    fn give_oldest_refused(&mut self) {
        if let Some(refused) = self.refused.pop_front() {
            self.refused_units -= refused.units;
            self.give(refused.offset, refused.units);
        }
    }

    /// Takes the piece for the record, the lowest of those that fit well or badly. False: none has room.
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

    /// Space was taken.
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

    /// Free units beyond those that are kept. Only what has room for images of any length counts as kept; cutting an
    /// extent loses up to one such image more.
    fn spare(&self) -> u64 {
        match self.kept {
            0 => self.extents.free_units(),
            kept if is_planted(PlantedFault::CutByFree) => {
                self.extents.free_units().saturating_sub(kept)
            }
            kept => self.extents.roomy_units().saturating_sub(kept + LONGEST),
        }
    }

    /// Whether so much is free in short pieces that the file should not grow for a long one.
    fn is_loose(&self) -> bool {
        self.extents.free_units() > (self.extents.end() / 4).max(2 * knobs::space_run())
    }
}

impl Space {
    /// The space given by `extents`.
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

    /// Space for one image, next to the one given out before where possible.
    ///
    /// # Errors
    /// [`crate::Error::TooLarge`] where no place could name it.
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

    /// Space for `units`, wherever they fit best.
    ///
    /// # Errors
    /// As those of [`Space::take_next`]; [`crate::Error::NoSpace`] where they fit nowhere, and the disk has no more.
    /// Then the next call finds also what was refused.
    pub fn take(&self, units: u64, file: &dyn File) -> Result<u64> {
        let taken = self.take_unrefused(units, file);
        taken.inspect_err(|_| self.give_refused())
    }

    /// As [`Space::take`], for who has another way where there is no room: what was refused stays so.
    pub fn take_unrefused(&self, units: u64, file: &dyn File) -> Result<u64> {
        {
            let mut state = self.state.lock();
            if let Some(offset) = state.extents.take(units) {
                state.note_taken();
                return Ok(offset);
            }
            // What is reserved for evicted pages, rather than more of the disk for one image.
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

    /// As [`Space::take`], but only below `limit` and without growth.
    pub fn take_below(&self, units: u64, limit: u64) -> Option<u64> {
        self.take_low(units, limit, true)
    }

    /// As [`Space::take_below`], for who can do without: nothing of the room that is kept.
    pub fn take_spare_below(&self, units: u64, limit: u64) -> Option<u64> {
        self.take_low(units, limit, is_planted(PlantedFault::MoveIntoKept))
    }

    fn take_low(&self, units: u64, limit: u64, of_kept: bool) -> Option<u64> {
        let mut state = self.state.lock();
        let before = state.extents.roomy_units();
        // The best fit may lie too high, or be kept; a longer extent need not.
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

    /// A stretch for the caller to fill; `None` when free space is in short pieces only, or the disk has no
    /// more, and images are better put there with [`Space::take`].
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

    /// A run behind the file's end, where the disk gives it: short pieces may do where it does not.
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

    /// What the disk refuses leaves nothing behind: it would be given out as free, again and again.
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

    /// Keeps space that was taken out of use, because a write there has failed: whoever wants as much would get it
    /// again, and fail again. It comes back when much is kept so, for not each failure is the place's fault; when there
    /// is no other room; and with the next opening.
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

    /// Gives back all that was refused.
    pub fn give_refused(&self) {
        let mut state = self.state.lock();
        while !state.refused.is_empty() {
            state.give_oldest_refused();
        }
    }

    /// Space for a checkpoint's record: the piece that is kept for it. `None` where it is shorter.
    pub fn take_for_record(&self, units: u64) -> Option<u64> {
        let mut state = self.state.lock();
        if state.record.units < units {
            return None;
        }
        let Run { offset, units: all } = std::mem::take(&mut state.record);
        state.give(offset + units, all - units);
        Some(offset)
    }

    /// Sees to it that `units` are free within the file, in pieces that take images of any length, one piece of
    /// `record` units besides, and that the disk has given all of the file to it: they can be written then, whatever
    /// else takes the disk's room. Those that are free anyway count.
    ///
    /// # Errors
    /// [`crate::Error::NoSpace`] where the disk has no more room; as much as before is kept then. As those of
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
            // Better than nothing.
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

    /// Whether there is a piece of so many units for a record.
    pub fn has_for_record(&self, units: u64) -> bool {
        self.state.lock().record.units >= units
    }

    /// Makes the file longer by so many units, which the disk gives. The caller has locked `growth`.
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

    /// Makes what the file has behind the last used unit free space: another process, which was killed, has got it from
    /// the disk. Where the disk does not have all of it any more, or no place could name it, it is cut off.
    ///
    /// # Errors
    /// Those of the file.
    pub fn take_over_tail(&self, file: &dyn File) -> Result<()> {
        let _growth = self.growth.lock();
        let (unit, len) = (UNIT as u64, file.len()?);
        let end = self.state.lock().extents.end();
        let units = (len / unit).saturating_sub(end);
        // There may be holes in what was not written in order.
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

    /// Free units in which there is room for images of any length.
    pub fn roomy_units(&self) -> u64 {
        self.state.lock().extents.roomy_units()
    }

    /// Keeps nothing any more, and cuts the file behind the last used unit.
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

    /// Cuts the file behind the last used unit, when that saves enough, but for what is kept.
    pub fn cut_tail(&self, file: &dyn File, unit: u64) -> Result<()> {
        let _growth = self.growth.lock();
        let end = {
            let mut state = self.state.lock();
            state.drop_run();
            // Where it lies in the tail it may have a place further down.
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

    /// Units of the file, and how many of them have been free all the time since
    /// [`Space::begin_cycle`], beyond those that are kept.
    pub fn unneeded(&self) -> (u64, u64) {
        let state = self.state.lock();
        let free = state.extents.free_units().min(state.least_free);
        (state.extents.end(), free.saturating_sub(state.kept))
    }

    /// From now on counts what is not needed.
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

/// Has the disk give the file `units` behind `offset`; and, where it is shorter than that, what was given out
/// before and is still to be written.
fn reserve(file: &dyn File, offset: u64, units: u64) -> Result<()> {
    let unit = UNIT as u64;
    let from = file.len()?.min(offset * unit);
    match (offset + units) * unit - from {
        0 => Ok(()),
        more => file.allocate(from, more),
    }
}

/// Cuts off what a reservation that failed may have left behind the file's end.
fn give_back(file: &dyn File, end: u64) {
    let cut = file.len().and_then(|len| match len > end {
        true => file.set_len(end),
        false => Ok(()),
    });
    if let Err(error) = cut {
        tracing::debug!("{error}");
    }
}
