//! The choice of the next thread: by a random walk, or by priorities that change a few times.

use crate::random::{below, next, one_of};

/// How threads are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// After so many points on average, any thread that can run.
    Walk {
        /// Points between two choices, on average.
        every: u64,
    },
    /// Like `Walk`, with another average after each [`PHASE`] choices: frequent choices for a while, rare ones for
    /// long.
    Phases,
    /// The thread with the highest priority, as long as it can run. Priorities are drawn when threads begin. At
    /// `changes` points among the first `within`, the running thread gets the lowest (Burckhardt et al., 2010). After
    /// them it does so once in [`FAIR`] points: threads that pause and work again could leave another no time.
    Priorities {
        /// Number of changes of a priority.
        changes: usize,
        /// The changes are among so many first points.
        within: u64,
    },
}

/// Choices of one phase.
const PHASE: u32 = 64;

/// After so many points, the running thread has kept the others waiting long enough.
const FAIR: u64 = 1 << 20;

impl Strategy {
    /// Draws a strategy from a seed, of any kind and size. A walk that chooses at nearly each point would take as long
    /// as hundreds of others, so only phases choose so often.
    pub fn drawn(seed: u64) -> Strategy {
        let mut state = seed ^ 0x5851_f42d_4c95_7f2d;
        let mut below = |bound: usize| below(&mut state, bound) as u64;
        match below(4) {
            0 => Strategy::Walk {
                every: 16 << below(8),
            },
            1 | 2 => Strategy::Phases,
            _ => Strategy::Priorities {
                changes: 1 + below(8) as usize,
                within: 1 << (7 + below(10)),
            },
        }
    }
}

/// The state of a strategy.
#[derive(Debug)]
pub struct Choices {
    strategy: Strategy,
    /// State of the random numbers.
    random: u64,
    /// The phase: average points between two choices, and choices left.
    phase: (u64, u32),
    /// The point at which the running thread may lose the processor.
    next: u64,
    /// Later points of this kind, the last first.
    later: Vec<u64>,
    priorities: Vec<u64>,
    /// Below all priorities given so far: the next thread to be lowered gets one less.
    lowest: u64,
}

impl Choices {
    pub fn new(strategy: Strategy, seed: u64) -> Self {
        let mut random = seed;
        let mut later = match strategy {
            Strategy::Walk { .. } | Strategy::Phases => Vec::new(),
            Strategy::Priorities { changes, within } => (0..changes)
                .map(|_| 1 + next(&mut random) % within)
                .collect(),
        };
        later.sort_unstable_by(|a, b| b.cmp(a));
        let mut choices = Choices {
            strategy,
            random,
            phase: (1, 0),
            next: 0,
            later,
            priorities: Vec::new(),
            lowest: u64::MAX / 2,
        };
        choices.next = choices.next_after(0);
        choices
    }

    fn next_after(&mut self, step: u64) -> u64 {
        match self.strategy {
            Strategy::Walk { every } => step + 1 + next(&mut self.random) % (2 * every),
            Strategy::Phases => {
                if self.phase.1 == 0 {
                    self.phase = (1 << below(&mut self.random, 12), PHASE);
                }
                self.phase.1 -= 1;
                step + 1 + next(&mut self.random) % (2 * self.phase.0)
            }
            Strategy::Priorities { .. } => self.later.pop().unwrap_or(step + FAIR),
        }
    }

    pub fn thread_begins(&mut self) {
        let priority = u64::MAX / 2 + next(&mut self.random) / 2;
        self.priorities.push(priority);
    }

    /// Returns whether another thread may be chosen at this point. `woken`: a thread has become able to run since the
    /// last choice.
    pub fn is_due(&mut self, step: u64, running: usize, woken: bool) -> bool {
        if step < self.next {
            return woken && self.looks_at_woken();
        }
        while step >= self.next {
            self.next = self.next_after(step);
        }
        self.lower(running);
        true
    }

    /// The point at which another thread may be chosen, if none wakes before.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether a woken thread may go before the running one.
    pub fn looks_at_woken(&self) -> bool {
        matches!(self.strategy, Strategy::Priorities { .. })
    }

    /// Gives the running thread the lowest priority: it waits for the others.
    pub fn lower(&mut self, running: usize) {
        self.lowest -= 1;
        self.priorities[running] = self.lowest;
    }

    /// True in one of `n` calls, by chance.
    pub fn one_of(&mut self, n: u64) -> bool {
        one_of(&mut self.random, n)
    }

    /// Chooses one of the threads that can run; `able` is not empty.
    pub fn choose(&mut self, able: &[usize]) -> usize {
        match self.strategy {
            Strategy::Walk { .. } | Strategy::Phases => able[below(&mut self.random, able.len())],
            Strategy::Priorities { .. } => {
                let highest = able.iter().copied().max_by_key(|&n| self.priorities[n]);
                highest.unwrap_or(able[0])
            }
        }
    }
}
