//! A snapshot that is held while all else goes on, and read now and then: it stays as it was when it was taken.

use peregrine::{Database, Error, Isolation, Result, Transaction};

use super::super::found::Found;
use super::super::model::State;
use super::super::workload::Plan;
use super::Player;
use crate::dice::Dice;

/// One step in so many looks at the snapshot.
const LOOKS: u32 = 8;
/// After one look in so many the next one takes another.
const ANEW: u32 = 3;

/// The snapshot, if there is one. Its dice are its own: workloads that hold none are drawn as ever.
pub(super) struct Held {
    dice: Dice,
    snapshot: Option<(Transaction, State)>,
}

impl Held {
    /// None yet.
    pub fn new(plan: &Plan) -> Held {
        Held {
            dice: Dice::new(plan.seed, plan.number ^ 1 << 43),
            snapshot: None,
        }
    }

    /// Gives it up: it uses tables, which can't be dropped or emptied meanwhile.
    pub fn give_up(&mut self) {
        self.snapshot = None;
    }
}

impl Player<'_> {
    /// Takes a snapshot, or reads all tables by the one that is held.
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
