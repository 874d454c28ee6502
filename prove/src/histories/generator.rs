//! Generates transactions from a seed.

use std::sync::atomic::{AtomicU32, Ordering};

use super::history::{Group, Key, Keys, Predicate, FIRST_LIST, FIRST_PLACE, GROUPS};
use peregrine_harness::dice::Dice;
use peregrine_harness::level::Level;

/// The number of elements after which a new list replaces a list.
const LONG: u32 = 24;

/// An operation to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Reads a register; `true` locks it.
    Read(Key, bool),
    /// Overwrites a register; `true` omits the separate step that locks the row.
    Write(Key, bool),
    /// Reads a list.
    ReadList(Key),
    /// Appends to a list.
    Append(Key),
    /// Puts a place's row into a group, or removes it.
    Place(Key, Option<Group>),
    /// Reads the rows of a predicate.
    Scan(Predicate),
}

/// The lists in use, which all threads of a window share.
#[derive(Debug)]
pub struct Lists {
    keys: Keys,
    appended: Vec<AtomicU32>,
}

impl Lists {
    /// Creates the lists of a window.
    #[must_use]
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            appended: (0..keys.lists).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Returns the list in use at `slot`, and counts an append.
    fn current(&self, slot: u32, append: bool) -> Option<Key> {
        let counter = self.appended.get(slot as usize)?;
        let count = counter.fetch_add(u32::from(append), Ordering::Relaxed);
        let list = count / LONG * self.keys.lists + slot;
        (list < self.keys.all_lists).then_some(FIRST_LIST + list)
    }
}

/// Generates a thread's transactions.
#[derive(Debug)]
pub struct Author<'a> {
    dice: Dice,
    level: Level,
    keys: Keys,
    lists: &'a Lists,
}

impl<'a> Author<'a> {
    /// Creates the author for a thread of a window.
    #[must_use]
    pub fn new(
        seed: u64,
        window: u32,
        thread: u32,
        level: Level,
        keys: Keys,
        lists: &'a Lists,
    ) -> Self {
        Self {
            dice: Dice::new(seed, (u64::from(window) << 32) | u64::from(thread)),
            level,
            keys,
            lists,
        }
    }

    /// Returns the operations of the next transaction, one to five.
    pub fn transaction(&mut self) -> Vec<Wish> {
        let count = 1 + self.dice.below(5);
        (0..count).map(|_| self.wish()).collect()
    }

    /// Returns whether the thread yields now.
    ///
    /// With few processors, transactions of microseconds would hardly overlap otherwise.
    pub fn pauses(&mut self) -> bool {
        self.dice.below(4) == 0
    }

    /// Returns whether the transaction is rolled back deliberately.
    pub fn gives_up(&mut self) -> bool {
        self.dice.below(25) == 0
    }

    fn wish(&mut self) -> Wish {
        match self.dice.below(20) {
            0..=5 => Wish::Read(self.register(), self.dice.below(6) == 0),
            6..=9 => {
                // Up to READ COMMITTED, a write after a read without a lock may overwrite another write unseen.
                let blind = self.level > Level::ReadCommitted && self.dice.below(2) == 0;
                Wish::Write(self.register(), blind)
            }
            10..=11 => self.list(false),
            12..=13 => self.list(true),
            14..=16 => {
                let place = FIRST_PLACE + self.dice.below(self.keys.places);
                let turn = self.dice.below(u32::from(GROUPS) + 1);
                let group = Group::try_from(turn).unwrap_or(0);
                Wish::Place(place, (group < GROUPS).then_some(group))
            }
            17 => Wish::Scan(Predicate::Present),
            _ => {
                let group = Group::try_from(self.dice.below(u32::from(GROUPS))).unwrap_or(0);
                Wish::Scan(Predicate::In(group))
            }
        }
    }

    /// Draws a register; half of the draws are among a quarter of the registers only.
    fn register(&mut self) -> Key {
        let all = self.keys.registers;
        let hot = if self.dice.below(2) == 0 {
            all.div_ceil(4)
        } else {
            all
        };
        self.dice.below(hot)
    }

    fn list(&mut self, append: bool) -> Wish {
        let slot = self.dice.below(self.keys.lists);
        match self.lists.current(slot, append) {
            Some(key) if append => Wish::Append(key),
            Some(key) => Wish::ReadList(key),
            None => Wish::Write(self.register(), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys = Keys {
        registers: 8,
        places: 8,
        lists: 2,
        all_lists: 6,
    };

    #[test]
    fn transactions_follow_from_the_seed_and_keep_to_their_keys() {
        let (one, two) = (Lists::new(KEYS), Lists::new(KEYS));
        let mut first = Author::new(7, 1, 2, Level::ReadCommitted, KEYS, &one);
        let mut second = Author::new(7, 1, 2, Level::ReadCommitted, KEYS, &two);
        for _ in 0..2_000 {
            let wishes = first.transaction();
            assert_eq!(wishes, second.transaction());
            assert!((1..=5).contains(&wishes.len()));
            for wish in wishes {
                match wish {
                    Wish::Read(key, _) => assert!(key < 8),
                    Wish::Write(key, blind) => assert!(key < 8 && !blind),
                    Wish::ReadList(key) | Wish::Append(key) => {
                        assert!((FIRST_LIST..FIRST_LIST + 6).contains(&key));
                    }
                    Wish::Place(key, _) => assert!((FIRST_PLACE..FIRST_PLACE + 8).contains(&key)),
                    Wish::Scan(_) => {}
                }
            }
        }
    }
}
