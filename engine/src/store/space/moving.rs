//! Moves images from the file's end into free space below, so that the file can shrink.

use crate::error::Result;
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::store::place::Place;
use crate::store::Store;

/// The outcome of all attempts to shorten the file since there was last nothing to gain. A new attempt is compared with
/// all of them, not only with the one before: checkpoints may alternate between two states forever.
#[derive(Debug)]
pub struct Packing {
    /// The fewest and the most units in use.
    used: (u64, u64),
    /// The lowest end of the file, in units.
    end: u64,
    /// Attempts since the last gain.
    in_vain: u32,
}

impl Default for Packing {
    fn default() -> Self {
        Packing {
            used: (u64::MAX, 0),
            end: u64::MAX,
            in_vain: 0,
        }
    }
}

impl Packing {
    /// Notes an attempt that has moved `moved` images, and left a file of `end` units, `free` of them free. A
    /// difference of up to one run of space is no gain: a checkpoint itself takes and gives back so much.
    fn note(&mut self, moved: u64, (end, free): (u64, u64)) {
        let (used, run) = (end - free, knobs::space_run());
        let is_new = used.saturating_add(run) < self.used.0 || used > self.used.1 + run;
        self.in_vain = match moved > 0 || end < self.end || is_new {
            true => 0,
            false => self.in_vain + 1,
        };
        if is_planted(PlantedFault::CompareWithLast) {
            *self = Packing {
                in_vain: self.in_vain,
                ..Packing::default()
            };
        }
        self.used = (self.used.0.min(used), self.used.1.max(used));
        self.end = self.end.min(end);
    }

    /// Returns whether further attempts would gain nothing.
    fn is_stuck(&self) -> bool {
        self.in_vain >= knobs::packing_attempts()
    }
}

impl Store {
    /// The unit behind which the file would not be needed if its images were packed closely; `None` if too little is
    /// free to be worth it. Space that was needed since the last checkpoint does not count as free, as it will be
    /// needed again: for new images of pages whose old images that checkpoint keeps, for example.
    pub(crate) fn packed_end(&self) -> Option<u64> {
        let (end, free) = self.space.unneeded();
        (free > end / 4 && free > knobs::shortest_tail()).then(|| end - free + free / 4)
    }

    /// Moves some of the images that lie beyond the packed end. Their old places can be cut off once the next
    /// checkpoint has recorded the new ones.
    pub(crate) fn move_down(&self) -> Result<()> {
        let Some(limit) = self.packed_end() else {
            *self.packing.lock() = Packing::default();
            return Ok(());
        };
        let moved = self.move_below(limit);
        // A failed attempt gains nothing like any other: the same page may fail forever.
        if moved.is_ok() || !is_planted(PlantedFault::UncountedAttempts) {
            let moved = moved.as_ref().copied().unwrap_or(0);
            self.packing.lock().note(moved, self.space.units());
        }
        moved.map(drop)
    }

    /// Moves images below `limit`; returns how many.
    fn move_below(&self, limit: u64) -> Result<u64> {
        let (end, _) = self.space.units();
        let mut moved = 0;
        let mut left = (end / knobs::moved_part()).clamp(knobs::least_moved(), knobs::most_moved());
        let mut image = Vec::new();
        for page in self.pages() {
            let from = self.table.current(page);
            if from.offset() < limit || from.is_none() {
                continue;
            }
            if from.units() > left {
                break;
            }
            left -= from.units();
            if self.batch.read(from, &mut image) {
                continue;
            }
            image.resize(from.byte_len(), 0);
            let _writing = self.writing.read();
            self.file.read_exact_at(&mut image, from.byte_offset())?;
            // A shorter image may still find space.
            let Some(offset) = self.space.take_spare_below(from.units(), limit) else {
                continue;
            };
            let to = from.moved_to(offset);
            self.target().write(&image, offset)?;
            self.release(&self.table.move_current(page, from, to));
            moved += 1;
        }
        Ok(moved)
    }

    /// Returns whether the file is much longer than needed, and a checkpoint may shorten it.
    pub fn is_slack(&self) -> bool {
        let is_stuck = self.packing.lock().is_stuck() && !is_planted(PlantedFault::SlackForGood);
        !is_stuck && self.packed_end().is_some()
    }

    /// Returns whether a chunk of the place table lies beyond the packed end.
    pub(crate) fn is_to_move(chunk: Place, packed_end: Option<u64>) -> bool {
        !chunk.is_none() && packed_end.is_some_and(|end| chunk.offset() >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_that_swing_between_two_states_come_to_nothing() {
        let mut packing = Packing::default();
        let states = [(9671, 4981), (9799, 5109)];
        for units in states.into_iter().cycle().take(100) {
            packing.note(0, units);
        }
        assert!(packing.is_stuck(), "{packing:?}");
        // A large change of the used space resets the count.
        let much = 2 * knobs::space_run();
        packing.note(0, (9671, 4981 + much));
        assert!(!packing.is_stuck(), "{packing:?}");
        packing.note(0, (20_000 + much, 9_000));
        assert!(!packing.is_stuck(), "{packing:?}");
    }
}
