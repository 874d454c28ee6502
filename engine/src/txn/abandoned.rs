//! Transactions whose rollback failed (a full disk, …) after their owner had dropped them.
//!
//! They keep their locks, for what they wrote still stands in the trees. Purge tries them again
//! until they are through; a restart would roll them back as well. Once the database is closed nobody tries
//! any more.

use crate::error::Result;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

/// A transaction that was dropped before its rollback was through.
pub(super) trait Unfinished: Send {
    /// Undoes up to `most` records; whether it is through.
    fn rollback_some(&mut self, most: usize) -> Result<bool>;

    /// Lets go of it as it is.
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
    /// The database is closed. A transaction that stood here then would keep the transaction manager in memory that has it.
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

    /// Nothing is kept from now on.
    pub fn close(&self) {
        self.state.lock().closed = true;
    }
}
