//! Faults and pauses at points of a schedule, by chance, as the seed says; and yields of threads outside schedules.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::random::{below, one_of};
use crate::sync::{Fault, Pause};

/// The longest pause is two to the power of this, in microseconds of counted time.
const LONGEST: usize = 16;

/// The chances of a schedule. Only the thread that has the turn uses them.
#[derive(Debug)]
pub(super) struct Chances {
    /// Each fault happens once in so many points on average; never if 0.
    faults: [AtomicU64; 3],
    /// The same for pauses, by place.
    pauses: [AtomicU64; 3],
    random: AtomicU64,
    /// Faults that have happened so far.
    struck: AtomicU64,
}

impl Chances {
    /// The chances from a schedule's seed: nothing happens until it is asked for.
    pub fn new(seed: u64) -> Self {
        Chances {
            faults: Default::default(),
            pauses: Default::default(),
            // Different from the numbers that choose threads.
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

    /// Makes a fault happen once in so many points on average; never if 0.
    pub fn let_fail(&self, fault: Fault, once_in: u64) {
        self.faults[fault as usize].store(once_in, Ordering::Relaxed);
    }

    /// The same for pauses.
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

    /// The length of a pause, if there is one here. Each power of two is equally frequent.
    pub fn pause(&self, at: Pause) -> Option<Duration> {
        if !self.comes(&self.pauses[at as usize]) {
            return None;
        }
        let length = self.drawn(|random| below(random, LONGEST + 1));
        Some(Duration::from_micros(1 << length))
    }
}

thread_local! {
    /// For threads outside schedules: points until this thread yields next.
    static UNTIL: Cell<u32> = const { Cell::new(0) };
}

/// Outside schedules: yields once in some hundreds of points, and rarely sleeps for a moment. `since`: any time that
/// passes.
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
