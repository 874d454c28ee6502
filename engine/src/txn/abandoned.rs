//! Transactions whose rollback failed (a full disk, …) after their owner had dropped them.
//!
//! They keep their locks, because their changes are still in the trees. Purge tries to roll them back until that is
//! complete; a restart would roll them back, too. Once the database is closed, no thread tries again.

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

/// A transaction that was dropped before its rollback was complete.
pub(super) trait Unfinished: Send {
    /// Undoes up to `most` records; returns whether the rollback is complete.
    fn rollback_some(&mut self, most: usize) -> Result<bool>;

    /// Leaves its changes to the next opening, which rolls them back.
    fn leave_for_recovery(&mut self);
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Abandoned {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    transactions: Vec<Box<dyn Unfinished>>,
    /// The database is closed. A transaction in this list would keep the transaction manager in memory, which owns
    /// the list.
    closed: bool,
}

impl Abandoned {
    pub fn push(&self, mut transaction: Box<dyn Unfinished>) {
        let mut state = self.state.lock();
        if !state.closed || is_planted(PlantedFault::KeepAbandoned) {
            state.transactions.push(transaction);
            return;
        }
        drop(state);
        transaction.leave_for_recovery();
    }

    pub fn len(&self) -> usize {
        self.state.lock().transactions.len()
    }

    pub fn take(&self) -> Vec<Box<dyn Unfinished>> {
        std::mem::take(&mut self.state.lock().transactions)
    }

    /// Makes `push` leave further transactions to the next opening.
    pub fn close(&self) {
        self.state.lock().closed = true;
    }
}
