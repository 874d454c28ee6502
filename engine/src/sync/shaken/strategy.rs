//! Who runs next: by a random walk, or by priorities that change a few times.

/// How threads are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// After so many points in the mean, any thread that can run.
    Walk {
        /// Points between two choices, in the mean.
        every: u64,
    },
    /// The thread with the highest priority, as long as it can run. Priorities are drawn when threads begin; at
    /// `changes` points among the first `within` the running thread gets the lowest (Burckhardt et al., 2010).
    Priorities {
        /// How often a priority changes.
        changes: usize,
        /// Among how many points.
        within: u64,
    },
}

impl Strategy {
    /// A strategy from a seed: both kinds, of all sizes.
    pub fn drawn(seed: u64) -> Strategy {
        let mut dice = Dice(seed ^ 0x5851_f42d_4c95_7f2d);
        match dice.below(3) {
            0 | 1 => Strategy::Walk {
                every: 1 << dice.below(12),
            },
            _ => Strategy::Priorities {
                changes: 1 + dice.below(8) as usize,
                within: 1 << (7 + dice.below(10)),
            },
        }
    }
}

/// Splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
#[derive(Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number of 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 where that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        match bound {
            0 => 0,
            _ => self.roll() % bound,
        }
    }
}

/// What a strategy keeps in mind.
#[derive(Debug)]
pub struct Choices {
    strategy: Strategy,
    dice: Dice,
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
        let mut dice = Dice(seed);
        let mut later = match strategy {
            Strategy::Walk { .. } => Vec::new(),
            Strategy::Priorities { changes, within } => {
                (0..changes).map(|_| 1 + dice.below(within)).collect()
            }
        };
        later.sort_unstable_by(|a, b| b.cmp(a));
        let mut choices = Choices {
            strategy,
            dice,
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
            Strategy::Walk { every } => step + 1 + self.dice.below(2 * every),
            Strategy::Priorities { .. } => self.later.pop().unwrap_or(u64::MAX),
        }
    }

    pub fn thread_begins(&mut self) {
        let priority = u64::MAX / 2 + self.dice.roll() / 2;
        self.priorities.push(priority);
    }

    /// Whether another may be chosen at this point. `woken`: somebody has become able to run since the last choice.
    pub fn is_due(&mut self, step: u64, running: usize, woken: bool) -> bool {
        if step < self.next {
            return woken && matches!(self.strategy, Strategy::Priorities { .. });
        }
        while step >= self.next {
            self.next = self.next_after(step);
        }
        self.lower(running);
        true
    }

    /// The thread lets others go first: it waits for what they do.
    pub fn lower(&mut self, running: usize) {
        self.lowest -= 1;
        self.priorities[running] = self.lowest;
    }

    /// True once in `n` times.
    pub fn one_of(&mut self, n: u64) -> bool {
        self.dice.below(n) == 0
    }

    /// One of those that can run. Not empty.
    pub fn choose(&mut self, able: &[usize]) -> usize {
        match self.strategy {
            Strategy::Walk { .. } => able[self.dice.below(able.len() as u64) as usize],
            Strategy::Priorities { .. } => {
                let highest = able.iter().copied().max_by_key(|&n| self.priorities[n]);
                highest.unwrap_or(able[0])
            }
        }
    }
}
