//! Who runs next: by a random walk, or by priorities that change a few times.

use crate::random::{below, next, one_of};

/// How threads are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// After so many points in the mean, any thread that can run.
    Walk {
        /// Points between two choices, in the mean.
        every: u64,
    },
    /// The same, with another mean after each [`PHASE`] choices: dense for a while, and loose for long.
    Phases,
    /// The thread with the highest priority, as long as it can run. Priorities are drawn when threads begin; at
    /// `changes` points among the first `within` the running thread gets the lowest (Burckhardt et al., 2010), and
    /// after them once in [`FAIR`] points: threads that pause and work again may leave another no time.
    Priorities {
        /// How often a priority changes.
        changes: usize,
        /// Among how many points.
        within: u64,
    },
}

/// Choices of one phase.
const PHASE: u32 = 64;

/// Points after which priorities have kept others waiting long enough.
const FAIR: u64 = 1 << 20;

impl Strategy {
    /// A strategy from a seed: all kinds, of all sizes. A walk that chooses at nearly each point takes as long as
    /// hundreds of others: phases have those.
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

/// What a strategy keeps in mind.
#[derive(Debug)]
pub struct Choices {
    strategy: Strategy,
    /// Of the random numbers.
    random: u64,
    /// Of the phase: points between two choices, in the mean, and choices that are left.
    phase: (u64, u32),
    /// The point at which the running thread may be taken the processor.
    next: u64,
    /// Later points of the same kind, the last first.
    later: Vec<u64>,
    priorities: Vec<u64>,
    /// Below all that were given: the next to be lowered gets it.
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

    /// Whether another may be chosen at this point. `woken`: somebody has become able to run since the last choice.
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

    /// The point at which another may be chosen, whoever wakes until then.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether who has woken may go before who runs.
    pub fn looks_at_woken(&self) -> bool {
        matches!(self.strategy, Strategy::Priorities { .. })
    }

    /// The thread lets others go first: it waits for what they do.
    pub fn lower(&mut self, running: usize) {
        self.lowest -= 1;
        self.priorities[running] = self.lowest;
    }

    /// True once in `n` times.
    pub fn one_of(&mut self, n: u64) -> bool {
        one_of(&mut self.random, n)
    }

    /// One of those that can run. Not empty.
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
