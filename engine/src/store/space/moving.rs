//! Moving images from the file's end into free space below, so that the file can shrink.

use crate::error::Result;
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::store::place::Place;
use crate::store::Store;

/// What attempts to make the file shorter have come to, since there was nothing to gain last. All of them are
/// compared, and not each with the one before: checkpoints may swing between two states for ever.
#[derive(Debug)]
pub struct Packing {
    /// Units in use, at least and at most.
    used: (u64, u64),
    /// The least end of the file, in units.
    end: u64,
    /// Attempts since something was gained.
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
    /// An attempt has moved so many images, and the file has so many units now, of which so many are free. What a
    /// checkpoint itself takes and gives back, up to a run of space, is nothing new.
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

    /// Whether further attempts would come to nothing.
    fn is_stuck(&self) -> bool {
        self.in_vain >= knobs::packing_attempts()
    }
}

impl Store {
    /// The unit from which on the file would not be needed, if what is used were packed closely;
    /// `None` when too little is free for that to be worth anything. What was needed since the last
    /// checkpoint, if only for new images of pages whose old ones that one keeps, will be needed
    /// again.
    pub(crate) fn packed_end(&self) -> Option<u64> {
        let (end, free) = self.space.unneeded();
        (free > end / 4 && free > knobs::shortest_tail()).then(|| end - free + free / 4)
    }

    /// Moves some of the images that lie beyond the packed end. They are free to be cut off when
    /// the next checkpoint has taken their new places.
    pub(crate) fn move_down(&self) -> Result<()> {
        let Some(limit) = self.packed_end() else {
            *self.packing.lock() = Packing::default();
            return Ok(());
        };
        let moved = self.move_below(limit);
        // An attempt that fails is in vain like any other: the same page may fail for ever.
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
            // Where it finds no room, a shorter one may.
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

    /// Whether the file is much longer than it need be, and a checkpoint may make it somewhat shorter.
    pub fn is_slack(&self) -> bool {
        let is_stuck = self.packing.lock().is_stuck() && !is_planted(PlantedFault::SlackForGood);
        !is_stuck && self.packed_end().is_some()
    }

    /// Whether a chunk of the place table lies where the file should end.
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
        // Much was freed, or used: that is another matter.
        let much = 2 * knobs::space_run();
        packing.note(0, (9671, 4981 + much));
        assert!(!packing.is_stuck(), "{packing:?}");
        packing.note(0, (20_000 + much, 9_000));
        assert!(!packing.is_stuck(), "{packing:?}");
    }
}
