//! Power loss: when it happens, and what must be found on the disk.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use peregrine::os::simulated::{Loss, SimulatedOs};
use peregrine::{Durability, Xid};

use super::model::ledger::Ledger;
use super::plan::{Ending, Plan, OWNERS};
use peregrine_harness::dice::Dice;

/// A disk after a crash, and what must be found on it.
pub struct Crash {
    /// The disk.
    pub disk: SimulatedOs,
    /// For each session the range of commits: its rows must be those after one of them.
    pub commits: Vec<Range<usize>>,
    /// Transactions that must be found prepared.
    pub prepared: Vec<Xid>,
    /// See [`Power::passing`].
    pub passing: Option<bool>,
}

/// The time of the power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goes {
    /// When the play asks for it, or never.
    Asked,
    /// Before this step of the upkeep.
    AtStep(u32),
    /// Right after this many acknowledged commits, so that nothing later makes them durable.
    AfterCommits(u32),
}

struct State {
    goes: Goes,
    dice: Dice,
    crash: Option<Crash>,
    /// See [`Power::passing`].
    passing: Option<bool>,
    /// The number of changes of `passing`.
    set: u64,
}

/// The power of one disk.
pub struct Power {
    os: SimulatedOs,
    synced: bool,
    ledgers: Arc<Vec<Ledger>>,
    /// Never held across a schedule point: other threads would wait for it without the scheduler's knowledge.
    state: Mutex<State>,
}

impl Power {
    /// Creates the power of a plan: it fails as planned in the first life, and not by itself in a later one.
    #[must_use]
    pub fn new(plan: &Plan, life: u64, os: &SimulatedOs, ledgers: &Arc<Vec<Ledger>>) -> Self {
        let mut dice = Dice::new(plan.seed, OWNERS * 5);
        let goes = match (plan.ending, life, dice.below(2)) {
            (Ending::PowerLost, 0, 0) => Goes::AtStep(dice.below(plan.upkeep + 1)),
            (Ending::PowerLost, 0, _) => {
                let most = 2 * plan.sessions as u32 * plan.transactions;
                Goes::AfterCommits(1 + dice.below(most))
            }
            _ => Goes::Asked,
        };
        Power {
            os: os.clone(),
            synced: plan.durability == Durability::SyncAtCommit,
            ledgers: Arc::clone(ledgers),
            state: Mutex::new(State {
                goes,
                dice,
                crash: None,
                passing: (life == 0).then_some(false),
                set: 0,
            }),
        }
    }

    /// Called before a step of the upkeep.
    pub fn step(&self, step: u32) {
        if self.state.lock().goes == Goes::AtStep(step) {
            self.lose();
        }
    }

    /// Called after a commit was acknowledged.
    pub fn acknowledged(&self) {
        let mut state = self.state.lock();
        if let Goes::AfterCommits(left) = &mut state.goes {
            *left -= 1;
            if *left == 0 {
                state.goes = Goes::Asked;
                drop(state);
                self.lose();
            }
        }
    }

    /// Loses power: copies the disk as it is after the crash.
    ///
    /// Other threads may go on while it does so.
    pub fn lose(&self) {
        let (loss, bits, passing, set) = {
            let state = &mut *self.state.lock();
            let loss = Loss::ALL[state.dice.below(Loss::ALL.len() as u32) as usize];
            (loss, state.dice.bits(), state.passing, state.set)
        };
        let positions = || self.ledgers.iter().map(Ledger::position);
        let before: Vec<_> = positions().collect();
        let standing = || self.ledgers.iter().filter_map(Ledger::standing);
        let mut prepared: Vec<Xid> = standing().collect();
        let durable: Vec<usize> = self.ledgers.iter().map(Ledger::durable).collect();
        let disk = self.os.crash_with(loss, bits);
        let still: Vec<Xid> = standing().collect();
        // If commits are not synced, prepares are not either.
        prepared.retain(|xid| self.synced && still.contains(xid));
        let ranges = before.iter().zip(durable).zip(positions());
        let commits = ranges.map(|((before, durable), after)| {
            let minimum = if self.synced { before.1 } else { durable };
            minimum..after.0
        });
        let commits = commits.collect();
        let mut state = self.state.lock();
        let passing = passing.filter(|_| state.set == set);
        state.crash = Some(Crash {
            disk,
            commits,
            prepared,
            passing,
        });
    }

    /// Takes the crash, if there was one.
    pub fn crash(&self) -> Option<Crash> {
        self.state.lock().crash.take()
    }

    /// Whether the passing table exists; `None` while that changes, or after a change has failed.
    pub fn passing(&self) -> Option<bool> {
        self.state.lock().passing
    }

    /// Sets [`Power::passing`].
    pub fn set_passing(&self, is_there: Option<bool>) {
        let mut state = self.state.lock();
        state.passing = is_there;
        state.set += 1;
    }
}
