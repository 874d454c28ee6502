//! Giving out the data file's space to many threads, and cutting the file's free tail off.

use super::extents::{Extents, LONGEST};
use super::place::{check_end, UNIT};
use crate::error::Result;
use crate::knobs;
use crate::os::File;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

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
    pub fn take(&self, units: u64, file: &dyn File) -> Result<u64> {
        {
            let mut state = self.state.lock();
            if let Some(offset) = state.extents.take(units) {
                state.note_taken();
                return Ok(offset);
            }
            // What is set aside for evicted pages, rather than more of the disk for one image.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::error::Error;
    use crate::os::simulated::SimulatedOs;
    use crate::os::{OpenMode, Os};

    #[test]
    fn space_of_many_threads_is_never_shared() {
        let space = Space::new(Extents::new(8));
        let os = SimulatedOs::new(1);
        os.create_dir(Path::new("/db")).unwrap();
        let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
        let all: Vec<Vec<(u64, u64)>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u64)
                .map(|thread| {
                    let (space, file) = (&space, &*file);
                    scope.spawn(move || {
                        let mut held = Vec::new();
                        for step in 0..3000u64 {
                            let units = 1 + (step * 7 + thread) % 17;
                            match step % 3 {
                                0 => held.push((space.take(units, file).unwrap(), units)),
                                1 => held.push((space.take_next(units, file).unwrap(), units)),
                                _ => {
                                    let at = (step * 31) as usize % held.len();
                                    let (offset, units) = held.swap_remove(at);
                                    space.give(offset, units);
                                    if step % 7 == 0 {
                                        let run = space.take_run(file);
                                        held.extend(run.map(|run| (run.offset, run.units)));
                                    }
                                }
                            }
                        }
                        held
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut all: Vec<_> = all.into_iter().flatten().collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?} overlap");
        }
        let (end, free) = space.units();
        let used: u64 = all.iter().map(|held| held.1).sum();
        assert_eq!(end, 8 + free + used, "nothing is lost");
    }

    /// A checkpoint on a full disk takes the last short pieces, rather than wait for the file to grow.
    #[test]
    fn where_the_disk_has_no_more_short_pieces_do() {
        if crate::knobs::SHAKEN {
            // It counts what production's numbers make of it.
            return;
        }
        let space = Space::new(Extents::new(8));
        let os = SimulatedOs::new(1);
        os.create_dir(Path::new("/db")).unwrap();
        let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
        let run = space.take_run(&*file).unwrap();
        os.set_capacity(Some(os.used()));
        for piece in 0..4 {
            space.give(run.offset + piece * 40, 20);
        }
        assert_eq!(space.take_run(&*file), None);
        let take = || space.take_next(17, &*file).unwrap();
        let mut taken: Vec<u64> = (0..4).map(|_| take()).collect();
        taken.sort_unstable();
        let pieces: Vec<u64> = (0..4).map(|piece| run.offset + piece * 40).collect();
        assert_eq!(taken, pieces);
        assert_eq!(
            space.units().0,
            8 + knobs::space_run(),
            "the file has not grown"
        );
        os.set_capacity(None);
        assert_eq!(take(), 8 + knobs::space_run());
    }

    #[test]
    fn no_space_is_given_that_no_place_could_name() {
        let os = SimulatedOs::new(1);
        os.create_dir(Path::new("/db")).unwrap();
        let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
        let mut extents = Extents::new(1 << 38);
        extents.give((1 << 38) - 5, 5);
        let space = Space::new(extents);
        assert_eq!(space.take(5, &*file).unwrap(), (1 << 38) - 5);
        let refused = space.take(1, &*file);
        assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
        let refused = space.take_next(1, &*file);
        assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
        assert_eq!(space.take_run(&*file), None);
        let refused = space.keep(1, 0, &*file);
        assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
        assert_eq!(file.len().unwrap(), 0);
        space.give((1 << 38) - 5, 5);
        assert_eq!(space.take_next(4, &*file).unwrap(), (1 << 38) - 5);
    }

    #[test]
    fn what_the_disk_refuses_is_no_free_space() {
        let os = SimulatedOs::new(1);
        os.create_dir(Path::new("/db")).unwrap();
        let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
        file.set_len(8 * UNIT as u64).unwrap();
        os.set_capacity(Some(os.used()));
        let mut extents = Extents::new(8);
        extents.give(5, 3);
        let space = Space::new(extents);
        for units in [1000, 5] {
            let refused = space.take(units, &*file);
            assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
            assert_eq!(space.units(), (8, 3));
            assert_eq!(file.len().unwrap(), 8 * UNIT as u64);
        }
        assert_eq!(space.take(3, &*file).unwrap(), 5);
    }

    /// The place that an image leaves is free at the next checkpoint's end only, which needs that room before.
    #[test]
    fn images_that_move_down_leave_the_room_that_is_kept() {
        let os = SimulatedOs::new(1);
        os.create_dir(Path::new("/db")).unwrap();
        let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
        let (long, end) = (20 * LONGEST, 50 * LONGEST);
        let mut extents = Extents::new(end);
        extents.give(8, 10);
        extents.give(8 + LONGEST, long);
        file.set_len(end * UNIT as u64).unwrap();
        let space = Space::new(extents);
        space.keep(long, 0, &*file).unwrap();
        assert_eq!(space.units().0, end, "there was room enough");
        assert_eq!(space.take_spare_below(12, end), None);
        assert_eq!(space.take_spare_below(10, end), Some(8));
        assert_eq!(space.roomy_units(), long);
        // A checkpoint's own parts are what it is kept for.
        assert_eq!(space.take_below(12, end), Some(8 + LONGEST));
        space.give(8 + LONGEST, 12);
        space.keep(long - LONGEST, 0, &*file).unwrap();
        assert_eq!(space.take_spare_below(12, end), Some(8 + LONGEST));
    }

    /// Short pieces are no room for a checkpoint's images, however much they come to.
    #[test]
    fn the_room_that_is_kept_is_not_cut_off_for_free_space_in_short_pieces() {
        let os = SimulatedOs::new(1);
        os.create_dir(Path::new("/db")).unwrap();
        let file = os.open(Path::new("/db/data"), OpenMode::CreateNew).unwrap();
        let tail = 4 * knobs::shortest_tail() + 100 * LONGEST;
        let pieces = tail / (LONGEST - 1) + 1;
        let used = 8 + pieces * LONGEST;
        let mut extents = Extents::new(used + tail);
        // Behind each a unit is in use.
        for piece in 0..pieces {
            extents.give(8 + piece * LONGEST, LONGEST - 1);
        }
        extents.give(used, tail);
        file.set_len((used + tail) * UNIT as u64).unwrap();
        let space = Space::new(extents);
        let kept = 90 * LONGEST;
        space.keep(kept, 0, &*file).unwrap();
        space.cut_tail(&*file, UNIT as u64).unwrap();
        assert!(space.roomy_units() >= kept, "{}", space.roomy_units());
        assert!(space.units().0 < used + tail, "nothing was cut off");
        assert_eq!(file.len().unwrap(), space.units().0 * UNIT as u64);
    }
}
