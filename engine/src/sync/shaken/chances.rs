//! What fails at points of a schedule, and who stays away there for a while: by chance, as the seed says. And who goes
//! first outside schedules.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::random::{below, one_of};
use crate::sync::{Fault, Pause};

/// The longest pause takes this power of two, in microseconds of the counted time.
const LONGEST: usize = 16;

/// The chances of a schedule, for who has the turn: nobody else looks at them.
#[derive(Debug)]
pub(super) struct Chances {
    /// Each fault comes once in so many points, in the mean; with 0 at none.
    faults: [AtomicU64; 3],
    /// The same of pauses at places.
    pauses: [AtomicU64; 3],
    random: AtomicU64,
    /// Points at which something has failed.
    struck: AtomicU64,
}

impl Chances {
    /// Of the seed of a schedule: nothing happens until it is asked for.
    pub fn new(seed: u64) -> Self {
        Chances {
            faults: Default::default(),
            pauses: Default::default(),
            // Not the numbers by which threads are chosen.
            random: AtomicU64::new(!seed),
            struck: AtomicU64::new(0),
        }
    }

    pub fn struck(&self) -> u64 {
        self.struck.load(Ordering::Relaxed)
    }

    fn drawn<T>(&self, draw: impl FnOnce(&mut u64) -> T) -> T {
        let mut random = self.random.load(Ordering::Relaxed);
        let drawn = draw(&mut random);
        self.random.store(random, Ordering::Relaxed);
        drawn
    }

    /// From now on a fault comes once in so many points, in the mean; with 0 at none.
    pub fn let_fail(&self, fault: Fault, once_in: u64) {
        self.faults[fault as usize].store(once_in, Ordering::Relaxed);
    }

    /// The same of pauses.
    pub fn let_pause(&self, at: Pause, once_in: u64) {
        self.pauses[at as usize].store(once_in, Ordering::Relaxed);
    }

    fn comes(&self, once_in: &AtomicU64) -> bool {
        match once_in.load(Ordering::Relaxed) {
            0 => false,
            n => self.drawn(|random| one_of(random, n)),
        }
    }

    pub fn strikes(&self, fault: Fault) -> bool {
        let strikes = self.comes(&self.faults[fault as usize]);
        if strikes {
            self.struck.fetch_add(1, Ordering::Relaxed);
        }
        strikes
    }

    /// How long the thread stays away. Short ones are as frequent as long ones.
    pub fn pause(&self, at: Pause) -> Option<Duration> {
        if !self.comes(&self.pauses[at as usize]) {
            return None;
        }
        let length = self.drawn(|random| below(random, LONGEST + 1));
        Some(Duration::from_micros(1 << length))
    }
}

thread_local! {
    /// Of threads outside schedules: points until the next at which they let others go first.
    static UNTIL: Cell<u32> = const { Cell::new(0) };
}

/// Outside schedules: once in some hundreds of points others go first, and rarely the thread stays away for a moment.
/// `since`: any time that passes.
pub(super) fn now_and_then(since: impl FnOnce() -> Duration) {
    let left = UNTIL.try_with(|until| {
        let left = until.get();
        until.set(left.wrapping_sub(1));
        left
    });
    if left == Ok(0) {
        let mut state = since().as_nanos() as u64;
        if one_of(&mut state, 256) {
            std::thread::sleep(Duration::from_micros(below(&mut state, 1_000) as u64));
        } else {
            std::thread::yield_now();
        }
        let _ = UNTIL.try_with(|until| until.set(below(&mut state, 1_000) as u32));
    }
}
