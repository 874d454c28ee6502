//! Two-phase commit: a transaction that is prepared, and waits for its coordinator's decision.
//!
//! Preparing puts the transaction's changes and its name into the log, and makes them durable. From
//! then on the transaction outlives its session and the process: an opening that finds its record
//! without a decision makes its changes again, as those of a running transaction. Rows that it has
//! only locked are not locked again then; it needs them no more, as it does nothing more.
//!
//! The log is kept from the first of its changes on while it stands.
//!
//! Room for the record of the decision is promised with the preparation. The coordinator may tell others that the
//! transaction commits as soon as it is prepared everywhere: a full disk must not be in the way then.
//!
//! Its commit is a commit record like any other. Its rollback has a record too, *before* anything
//! is undone: as soon as a row is restored others can change it, and the next opening must not make
//! the transaction's changes over theirs.

use crate::error::{Error, Result};
use crate::ids::{Lsn, TxId};
use crate::log::Promised;
use crate::planted::{is_planted, PlantedFault};
use crate::settings::Durability;
use crate::sync::atomic::Ordering;
use crate::txn::checkpoint_barrier::BarrierGuard;
use crate::txn::redo::encode_owner;
use crate::txn::state::Phase;
use crate::txn::xid::{PreparedRecord, Xid, KIND_PREPARED, KIND_ROLLED_BACK};
use crate::txn::TreeTransaction;

impl TreeTransaction {
    /// Prepares to commit under a name: afterwards the transaction can only be committed or rolled
    /// back, and what it changed survives a crash until one of the two is. Returns when it is as
    /// durable as commits are, but at most as durable as asked. A transaction that has changed nothing leaves no record, unless it
    /// `replaces` another one, of an earlier opening: that one's record is void then. Not inside the
    /// barrier.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it is prepared already. I/O errors: roll it back.
    pub fn prepare(
        &mut self,
        xid: &Xid,
        replaces: Option<TxId>,
        durability: Durability,
    ) -> Result<()> {
        if self.phase != Phase::Running {
            return Err(Error::Invalid("the transaction is prepared already".into()));
        }
        self.check_whole()?;
        if replaces.is_some() {
            self.begin_writing();
        }
        let mut logged = None;
        if !self.redo.is_empty() || self.redo_parts != 0 || replaces.is_some() {
            let transactions = self.transactions.clone();
            // A checkpoint knows where the changes begin in the log, or comes before them.
            let inside = transactions.barrier().enter();
            let room = self.promise_decision()?;
            self.append_part(&inside)?;
            // From here on the log keeps it: a checkpoint that comes before the answer knows that, too.
            self.running().promise_redo();
            let record = PreparedRecord {
                txid: self.txid,
                replaces: replaces.unwrap_or(TxId(0)),
                xid: xid.clone(),
            };
            logged = Some(
                transactions
                    .log()
                    .append(KIND_PREPARED, &[&record.encode()])?,
            );
            self.decision = room;
        }
        self.become_prepared(logged.is_some());
        match logged {
            Some(lsn) => {
                let durability = durability.at_most(self.transactions.durability());
                self.transactions.log().durable(lsn, durability)
            }
            None => Ok(()),
        }
    }

    /// The log has all of this transaction already, prepared, under another number, and has room for no more: an
    /// opening makes it again. None of its changes go there once more, the log is kept from `from` on, where they all
    /// are, and it ends there under that number.
    pub fn stand_as(&mut self, number: TxId, from: Lsn) {
        self.begin_writing();
        let running = self.running();
        running.note_redo(from);
        running.promise_redo();
        self.logged_as = Some(number);
    }

    /// As [`TreeTransaction::prepare`], where the log has its record: see [`TreeTransaction::stand_as`].
    ///
    /// # Errors
    /// [`Error::Invalid`]: a way back has failed.
    pub fn prepare_standing(&mut self) -> Result<()> {
        self.check_whole()?;
        self.redo.clear();
        // The log may have no room for this either; then its end is refused until there is some.
        self.decision = self.promise_decision().unwrap_or(None);
        self.become_prepared(true);
        Ok(())
    }

    /// Room for the record of this transaction's end.
    fn promise_decision(&mut self) -> Result<Option<Promised>> {
        if is_planted(PlantedFault::UnpromisedDecision) {
            return Ok(None);
        }
        let number = self.logged_as.unwrap_or_else(|| self.begin_writing());
        let record = encode_owner(number);
        Ok(Some(self.transactions.log().promise(record.len())?))
    }

    /// The log gets the record of this transaction's end, for which there is room where it was prepared.
    pub(super) fn append_end(&mut self, kind: u8, payload: &[&[u8]]) -> Result<Lsn> {
        match self.decision.take() {
            Some(room) => room.append(kind, payload),
            None => self.transactions.log().append(kind, payload),
        }
    }

    fn become_prepared(&mut self, logged: bool) {
        self.phase = Phase::Prepared { logged };
        if let Some(running) = &self.running {
            running.monitoring.prepared.store(true, Ordering::Relaxed);
        }
        // It reads nothing more, so it keeps no old versions for itself.
        self.drop_view();
    }

    /// Whether it is prepared, and neither committed nor being rolled back.
    pub fn is_prepared(&self) -> bool {
        matches!(self.phase, Phase::Prepared { .. })
    }

    /// Before anything of a prepared transaction is undone: its end is in the log. Returns the
    /// record's end, if there is one.
    pub(super) fn log_rollback(&mut self, _inside: &BarrierGuard<'_>) -> Result<Option<Lsn>> {
        let Phase::Prepared { logged } = self.phase else {
            return Ok(None);
        };
        let mut at = None;
        if logged {
            let record = encode_owner(self.logged_as.unwrap_or(self.txid));
            at = Some(self.append_end(KIND_ROLLED_BACK, &[&record])?);
        }
        self.phase = Phase::RollingBack;
        Ok(at)
    }
}
