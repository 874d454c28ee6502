//! Transactions whose rollback failed (a full disk, …) after their owner had dropped them.
//!
//! They keep their locks, for what they wrote still stands in the trees. Purge tries them again
//! until they are through; a restart would roll them back as well. Once the database is closed nobody tries
//! any more.

use super::system::System;
use super::transaction::Transaction;
use crate::knobs;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

/// See the module's text.
#[derive(Default)]
pub(super) struct Abandoned {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    transactions: Vec<Transaction>,
    /// The database is closed. A transaction that stood here then would keep the system in memory that has it.
    closed: bool,
}

impl Abandoned {
    pub fn push(&self, mut transaction: Transaction) {
        let mut state = self.state.lock();
        if !state.closed || is_planted(PlantedFault::KeepAbandoned) {
            state.transactions.push(transaction);
            return;
        }
        drop(state);
        transaction.disown();
    }

    pub fn len(&self) -> usize {
        self.state.lock().transactions.len()
    }

    fn take(&self) -> Vec<Transaction> {
        std::mem::take(&mut self.state.lock().transactions)
    }
}

impl System {
    /// Tries to roll back what was abandoned, a part of each transaction; whether there is more that can be undone now.
    pub(super) fn retry_abandoned(&self) -> bool {
        if self.abandoned.len() == 0 {
            return false;
        }
        let most = match is_planted(PlantedFault::RetryAtOnce) {
            false => knobs::purge_step(),
            true => usize::MAX,
        };
        let mut more = false;
        for mut transaction in self.abandoned.take() {
            let undone = transaction.rollback_some(most);
            more |= matches!(undone, Ok(false));
            if !matches!(undone, Ok(true)) {
                self.abandoned.push(transaction);
            }
        }
        more
    }

    /// Lets go of what was abandoned, and of what will be, as it is: the next open rolls it back.
    pub(super) fn forget_abandoned(&self) {
        self.abandoned.state.lock().closed = true;
        for mut transaction in self.abandoned.take() {
            transaction.disown();
        }
    }
}
