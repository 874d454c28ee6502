//! The place of a cursor that is on no entry, and how the cursor goes on from there.

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::read::cursor::{At, BatchExtent, Cursor, Seek};
use crate::read::record_cursor::Direction;
use crate::session::transaction::Transaction;
use crate::table::key_prefix::successor;
use crate::table::open_table::TableTrees;
use crate::tree::Position;

/// A place between entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// The cursor has not sought yet.
    Nowhere,
    /// Before all entries that start with the prefix of the last seek, or are greater.
    BeforePrefix,
    /// Behind all entries that start with the prefix of the last seek.
    BehindPrefix,
    /// Before the entry at `place`, if there is one.
    Before,
    /// Behind the entry at `place`.
    Behind,
    /// In place of the entry at `place`: that entry is neither next nor previous.
    On,
    /// Behind all entries.
    End,
}

impl Gap {
    /// The gap from which a step in `direction` leads to the entry at `place`.
    pub(super) fn facing(direction: Direction) -> Gap {
        match direction {
            Direction::Forward => Gap::Before,
            Direction::Backward => Gap::Behind,
        }
    }

    /// The gap where a seek leaves the cursor that finds no entry.
    pub(super) fn of_seek(to: Seek) -> Gap {
        match to {
            // The prefix of a seek for the first or the last is empty.
            Seek::Exact | Seek::AtOrAfter | Seek::Before | Seek::First => Gap::BeforePrefix,
            Seek::ExactLast | Seek::After | Seek::AtOrBefore | Seek::Last => Gap::BehindPrefix,
        }
    }
}

impl Cursor {
    /// Steps off the current entry, but keeps its place: another transaction may do the next step.
    pub fn step_off(&mut self) {
        self.committed = None;
        if !matches!(self.at, At::Gap(_)) {
            self.leave(Gap::On);
        }
    }

    /// Steps off the current entry, to before it: the next step in the direction of the last one leads to it again.
    ///
    /// For callers that could not use the entry.
    pub fn step_back(&mut self) {
        self.committed = None;
        if !matches!(self.at, At::Gap(_)) {
            self.leave(Gap::facing(self.direction));
        }
    }

    /// Steps off the current entry, to a gap at its key.
    pub(super) fn leave(&mut self, gap: Gap) {
        let mut place = std::mem::take(&mut self.place);
        place.clear();
        place.extend_from_slice(self.key());
        self.place = place;
        self.at = At::Gap(gap);
    }

    /// Leaves the walk, which has gone too far: to an unwanted entry (`on`), or to its end.
    ///
    /// The cursor stays before the unwanted entry, or in place of the last one.
    pub(super) fn leave_walk(&mut self, on: bool) {
        if matches!(self.at, At::Gap(_)) {
            return;
        }
        let key = if on {
            self.walk.key()
        } else {
            self.walk.last_key()
        };
        self.place.clear();
        self.place.extend_from_slice(key);
        self.at = At::Gap(if on { Gap::Before } else { Gap::On });
    }

    /// Leaves the walk at a record that could not be read: the next step leads to it again.
    pub(super) fn leave_unread(&mut self) {
        self.place.clear();
        self.place.extend_from_slice(self.walk.key());
        self.at = At::Gap(Gap::facing(self.direction));
    }

    /// No entry follows in the cursor's direction, so a step in the other direction leads to the last one again.
    ///
    /// Always returns false, for callers that return that.
    pub(super) fn at_end(&mut self) -> bool {
        if self.at == At::Gap(Gap::On) {
            self.at = At::Gap(match self.direction {
                Direction::Forward => Gap::Behind,
                Direction::Backward => Gap::Before,
            });
        }
        false
    }

    /// Goes on from the cursor's place with a new search.
    pub(super) fn restart(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        direction: Direction,
        extent: BatchExtent,
    ) -> Result<bool> {
        let forgets = is_planted(PlantedFault::ForgetPlace);
        if forgets && matches!(self.at, At::Gap(gap) if gap != Gap::On) {
            return Ok(false);
        }
        self.step_off();
        self.direction = direction;
        self.batch.clear();
        let place = self.take_place();
        let forward = direction == Direction::Forward;
        let position = match self.at {
            At::Gap(Gap::Before) if forward => Some(Position::AtOrAfter(&place)),
            At::Gap(Gap::Behind) if !forward => Some(Position::AtOrBefore(&place)),
            At::Gap(Gap::End) => (!forward).then_some(Position::Last),
            _ if forward => Some(Position::After(&place)),
            _ => Some(Position::Before(&place)),
        };
        let found = match position {
            Some(position) => self.start(txn, trees, position, extent),
            None => Ok(false),
        };
        self.place = place;
        Ok(found? || self.at_end())
    }

    /// Turns the place into a key of its own, and returns it.
    fn take_place(&mut self) -> Vec<u8> {
        let mut place = std::mem::take(&mut self.place);
        match self.at {
            At::Gap(Gap::BeforePrefix) => {
                place.clear();
                place.extend_from_slice(&self.prefix);
                self.at = At::Gap(Gap::Before);
            }
            At::Gap(Gap::BehindPrefix) => match successor(&self.prefix) {
                Some(next) => {
                    place = next;
                    self.at = At::Gap(Gap::Before);
                }
                None => self.at = At::Gap(Gap::End),
            },
            _ => {}
        }
        place
    }
}
