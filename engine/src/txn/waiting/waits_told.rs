//! Tells the program which of its sessions waits for which.

use std::sync::Arc;

use crate::lock::row_name::Row;
use crate::lock::running_transaction::RunningTransaction;
use crate::planted::{is_planted, PlantedFault};
use crate::sessions::ToldWaits;
use crate::sync::atomic::Ordering;
use crate::txn::transaction_manager::TransactionManager;

impl TransactionManager {
    /// The number from [`crate::Transaction::set_session`], or 0.
    pub(super) fn session_of(&self, who: &RunningTransaction) -> u64 {
        let owner = self.snapshots().owner(who.wait_slot.snapshot_slot());
        owner.map_or(0, |owner| owner.session.load(Ordering::Relaxed))
    }

    /// Tells the program of the waits that exist since `me` has its place in the queue of `row`.
    ///
    /// `with_holder`: the request of `me` made a holder for which earlier waiters wait, too.
    pub(super) fn tell_waits(&self, row: Row, me: &Arc<RunningTransaction>, with_holder: bool) {
        let Some(sessions) = self.sessions.get() else {
            return;
        };
        if is_planted(PlantedFault::UntoldWaits) {
            return;
        }
        let tell = |waiter: &RunningTransaction, holder: &RunningTransaction| {
            let (waits, holds) = (self.session_of(waiter), self.session_of(holder));
            if waits != 0 && holds != 0 && waits != holds && sessions.waits_for(waits, holds) {
                holder.gives_way();
            }
        };
        match sessions.told_waits(self.session_of(me)) {
            ToldWaits::InQueue => self.locks().waits_in_queue(row, me, tell),
            _ if with_holder => {
                self.locks().waits_in_queue(row, me, tell);
            }
            ToldWaits::ForHolders => self.locks().waits(row, me, tell),
            ToldWaits::None => {}
        }
    }
}
