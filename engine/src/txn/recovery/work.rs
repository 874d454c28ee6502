//! Counts the work of an opening ([`recovery_tally`](crate::txn::recovery_tally)).

use crate::ids::{Lsn, TxId};
use crate::sync::atomic::Ordering;
use crate::txn::recovery_tally::{is_large, RecoveryWork};
use crate::txn::TransactionManager;

impl TransactionManager {
    /// The work that an opening would have to do if the process were killed at this moment.
    pub fn recovery_work(&self) -> RecoveryWork {
        let (running, end) = (self.order().all_running(), self.log().end());
        self.tally().work(&running, end)
    }

    /// Counts the end of a transaction with `bytes` bytes of redo in the log before its end. Inside the barrier.
    pub(crate) fn count_end(&self, txid: TxId, bytes: u64, committed: bool) {
        if is_large(bytes) {
            self.tally().ended(txid, bytes, committed);
            self.counters.large_ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of large transactions that have ended; each may have made an opening longer or shorter.
    pub fn large_ends(&self) -> u64 {
        self.counters.large_ends.load(Ordering::Relaxed)
    }

    /// Records that an opening begins at a checkpoint, and reads the log from `log_from` on.
    pub fn opens_from(&self, checkpoint: Lsn, log_from: Lsn) {
        self.tally().open(checkpoint, log_from);
    }

    /// Ends the checkpoint that [`TransactionManager::capture`] has begun: it is complete, or was given up.
    pub fn checkpoint_ended(&self, complete: bool) {
        self.tally().end(complete);
    }
}
