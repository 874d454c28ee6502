//! The place of a cursor that stands on no entry, and how it goes on from there.

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
    /// Nothing has been sought yet.
    Nowhere,
    /// Before all that start with the prefix of the last seek, or are greater.
    BeforePrefix,
    /// Behind all that start with the prefix of the last seek.
    BehindPrefix,
    /// Before the entry at `place`, should there be one.
    Before,
    /// Behind it.
    Behind,
    /// In its stead: it is neither next nor previous.
    On,
    /// Behind all.
    End,
}

impl Gap {
    /// From where a step in `direction` leads to the entry at `place`.
    pub(super) fn facing(direction: Direction) -> Gap {
        match direction {
            Direction::Forward => Gap::Before,
            Direction::Backward => Gap::Behind,
        }
    }

    /// Where a seek leads that finds nothing.
    pub(super) fn of_seek(to: Seek) -> Gap {
        match to {
            // The prefix of a seek for the first or the last is empty.
            Seek::Exact | Seek::AtOrAfter | Seek::Before | Seek::First => Gap::BeforePrefix,
            Seek::ExactLast | Seek::After | Seek::AtOrBefore | Seek::Last => Gap::BehindPrefix,
        }
    }
}

impl Cursor {
    /// Steps off the entry that the cursor stands on, but keeps its place: the next step may be
    /// another transaction's.
    pub fn step_off(&mut self) {
        self.committed = None;
        if !matches!(self.at, At::Gap(_)) {
            self.leave(Gap::On);
        }
    }

    /// Steps off the entry that the cursor stands on, to before it: the next step in the direction of the last
    /// one leads there again. For whoever could not use what it found.
    pub fn step_back(&mut self) {
        self.committed = None;
        if !matches!(self.at, At::Gap(_)) {
            self.leave(Gap::facing(self.direction));
        }
    }

    /// Steps off the entry that the cursor stands on, to a place beside it.
    pub(super) fn leave(&mut self, gap: Gap) {
        let mut place = std::mem::take(&mut self.place);
        place.clear();
        place.extend_from_slice(self.key());
        self.place = place;
        self.at = At::Gap(gap);
    }

    /// The walk has gone too far: to an entry that is not wanted (`on`), or to its end. The cursor
    /// stays before that entry, or on the last one in its stead.
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

    /// What the walk stands on could not be read: it is what comes next.
    pub(super) fn leave_unread(&mut self) {
        self.place.clear();
        self.place.extend_from_slice(self.walk.key());
        self.at = At::Gap(Gap::facing(self.direction));
    }

    /// Nothing comes in the cursor's direction, so what it stood on is what comes in the other.
    /// False, for those who say so.
    pub(super) fn at_end(&mut self) -> bool {
        if self.at == At::Gap(Gap::On) {
            self.at = At::Gap(match self.direction {
                Direction::Forward => Gap::Behind,
                Direction::Backward => Gap::Before,
            });
        }
        false
    }

    /// Goes on from the cursor's place by a search.
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

    /// The place as a key of its own.
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
