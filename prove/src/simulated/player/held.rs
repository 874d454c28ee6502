//! A snapshot that is held during the other work and read several times: its contents must not change.

use peregrine::{Database, Error, Isolation, Result, Transaction};

use super::super::found::Found;
use super::super::model::State;
use super::super::workload::Plan;
use super::Player;
use peregrine_harness::dice::Dice;

/// One step in this many looks at the snapshot.
const LOOKS: u32 = 8;
/// After one look in this many, the next look takes a new snapshot.
const ANEW: u32 = 3;

/// The held snapshot, if there is one.
///
/// It has dice of its own, so that workloads without one draw the same.
pub(super) struct Held {
    dice: Dice,
    snapshot: Option<(Transaction, State)>,
}

impl Held {
    /// Begins without a snapshot.
    pub fn new(plan: &Plan) -> Held {
        Held {
            dice: Dice::new(plan.seed, plan.number ^ 1 << 43),
            snapshot: None,
        }
    }

    /// Drops the snapshot, because tables that it uses can't be dropped or truncated.
    pub fn give_up(&mut self) {
        self.snapshot = None;
    }
}

impl Player<'_> {
    /// Takes a snapshot, or reads all tables by the held one.
    pub(super) fn look_at_held(&mut self, db: &Database) -> Result<()> {
        if !self.plan.holds_snapshots || self.held.dice.below(LOOKS) > 0 {
            return Ok(());
        }
        let Some((txn, state)) = &mut self.held.snapshot else {
            let mut txn = db.begin(Isolation::RepeatableRead);
            txn.take_snapshot();
            let state = State {
                tables: self.state().tables.clone(),
                ..State::default()
            };
            self.held.snapshot = Some((txn, state));
            return Ok(());
        };
        let found = Found::seen(db, txn, state)?;
        if let Some(difference) = found.against(state) {
            return Err(Error::Internal(format!(
                "a snapshot has changed: {}",
                difference.first
            )));
        }
        if self.held.dice.below(ANEW) == 0 {
            self.held.give_up();
        }
        Ok(())
    }
}
