//! Transactions whose rollback failed (a full disk, …) after their owner had dropped them.
//!
//! They keep their locks, for what they wrote still stands in the trees. Purge tries them again
//! until they are through; a restart would roll them back as well.

use super::system::System;
use super::transaction::Transaction;
use crate::sync::Mutex;

/// See the module's text.
#[derive(Default)]
pub(super) struct Abandoned {
    transactions: Mutex<Vec<Transaction>>,
}

impl Abandoned {
    pub fn push(&self, transaction: Transaction) {
        self.transactions.lock().push(transaction);
    }

    pub fn len(&self) -> usize {
        self.transactions.lock().len()
    }
}

impl System {
    /// Tries to roll back what was abandoned.
    pub(super) fn retry_abandoned(&self) {
        if self.abandoned.len() == 0 {
            return;
        }
        let waiting = std::mem::take(&mut *self.abandoned.transactions.lock());
        for mut transaction in waiting {
            if transaction.rollback().is_err() {
                self.abandoned.push(transaction);
            }
        }
    }

    /// Lets go of what was abandoned, as it is: the next open rolls it back.
    pub(super) fn forget_abandoned(&self) {
        let waiting = std::mem::take(&mut *self.abandoned.transactions.lock());
        for mut transaction in waiting {
            transaction.disown();
        }
    }
}
