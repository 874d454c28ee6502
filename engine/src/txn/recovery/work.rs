//! Counting what an opening would have to do ([`recovery_tally`](crate::txn::recovery_tally)).

use crate::ids::{Lsn, TxId};
use crate::sync::atomic::Ordering;
use crate::txn::recovery_tally::{is_large, RecoveryWork};
use crate::txn::TransactionManager;

impl TransactionManager {
    /// What an opening would have to do, were the process killed now.
    pub fn recovery_work(&self) -> RecoveryWork {
        let (running, end) = (self.order().all_running(), self.log().end());
        self.tally().work(&running, end)
    }

    /// A transaction has ended that had parts of its redo in the log, of so many bytes. Inside the barrier.
    pub(crate) fn count_end(&self, txid: TxId, bytes: u64, committed: bool) {
        if is_large(bytes) {
            self.tally().ended(txid, bytes, committed);
            self.counters.large_ends.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many large transactions have ended so far: each may have made an opening longer, or shorter.
    pub fn large_ends(&self) -> u64 {
        self.counters.large_ends.load(Ordering::Relaxed)
    }

    /// An opening begins at a checkpoint, and reads the log from `log_from` on.
    pub fn opens_from(&self, checkpoint: Lsn, log_from: Lsn) {
        self.tally().open(checkpoint, log_from);
    }

    /// The checkpoint that [`TransactionManager::capture`] has begun is complete, or given up.
    pub fn checkpoint_ended(&self, complete: bool) {
        self.tally().end(complete);
    }
}
