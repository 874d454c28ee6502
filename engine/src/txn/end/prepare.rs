//! Two-phase commit: a transaction is prepared, and waits for its coordinator's decision.
//!
//! Preparing appends the transaction's changes and its name to the log, and makes them durable. From then on the
//! transaction outlives its session and the process. An opening that finds its record without a decision repeats its
//! changes, as those of a running transaction. It does not lock again the rows that the transaction had only locked.
//! The transaction does not need these locks, because it does nothing more.
//!
//! While the transaction is prepared, the log is kept from the first of its changes on.
//!
//! Preparing also reserves log space for the record of the decision. The coordinator may tell others that the
//! transaction commits as soon as it is prepared everywhere. A full disk must not prevent the commit then.
//!
//! Its commit is a commit record like any other. Its rollback has a record, too, *before* anything is undone: as soon
//! as a row is restored, others can change it. The next opening must not repeat the transaction's changes over
//! theirs.

use crate::error::{Error, Result};
use crate::ids::{Lsn, TxId};
use crate::log::Promised;
use crate::planted::{is_planted, PlantedFault};
use crate::settings::Durability;
use crate::sync::atomic::Ordering;
use crate::txn::checkpoint_barrier::BarrierGuard;
use crate::txn::redo::encode_owner;
use crate::txn::state::State;
use crate::txn::xid::{PreparedRecord, Xid, KIND_PREPARED, KIND_ROLLED_BACK};
use crate::txn::TreeTransaction;

impl TreeTransaction {
    /// Prepares to commit under a name.
    ///
    /// Afterwards the transaction can only be committed or rolled back, and its changes survive a crash until then.
    /// Returns when it is as durable as commits are, but at most as durable as `durability`. Not inside the barrier.
    ///
    /// A transaction that has changed nothing leaves no record, unless it `replaces` one of an earlier opening, whose
    /// record is then void.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is prepared already. After an I/O error, roll it back.
    pub fn prepare(
        &mut self,
        xid: &Xid,
        replaces: Option<TxId>,
        durability: Durability,
    ) -> Result<()> {
        if self.is_prepared() {
            return Err(Error::Invalid("the transaction is prepared already".into()));
        }
        self.check_whole()?;
        if replaces.is_some() {
            self.begin_writing();
        }
        let mut logged = None;
        if !self.redo.is_empty() || self.redo_parts != 0 || replaces.is_some() {
            let transactions = self.transactions.clone();
            // A checkpoint either knows where the changes begin in the log, or comes before them.
            let inside = transactions.barrier().enter();
            let room = self.promise_decision()?;
            self.append_part(&inside)?;
            // From here on the log is kept for it. A checkpoint before the answer to the coordinator knows that, too.
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

    /// Makes it take the place of a prepared transaction that an opening repeats, and that the log has under another
    /// number.
    ///
    /// The log has all of that transaction's changes, and may have no space for more. So none of them are appended
    /// again, the log is kept from `from` on, where they begin, and the end is logged under `number`.
    pub fn stand_as(&mut self, number: TxId, from: Lsn) {
        self.begin_writing();
        let running = self.running();
        running.note_redo(from);
        running.promise_redo();
        self.logged_as = Some(number);
    }

    /// Like [`TreeTransaction::prepare`], if the log already has its record: see [`TreeTransaction::stand_as`].
    ///
    /// # Errors
    /// [`Error::Invalid`]: a rollback to a savepoint has failed.
    pub fn prepare_standing(&mut self) -> Result<()> {
        self.check_whole()?;
        self.redo.clear();
        // The log may have no space for this, either; then the transaction's end is refused until there is some.
        self.decision = self.promise_decision().unwrap_or(None);
        self.become_prepared(true);
        Ok(())
    }

    /// Reserves log space for the record of this transaction's end.
    fn promise_decision(&mut self) -> Result<Option<Promised>> {
        if is_planted(PlantedFault::UnpromisedDecision) {
            return Ok(None);
        }
        let number = self.logged_as.unwrap_or_else(|| self.begin_writing());
        let record = encode_owner(number);
        Ok(Some(self.transactions.log().promise(record.len())?))
    }

    /// Appends the record of this transaction's end; a prepared transaction has reserved space for it.
    pub(super) fn append_end(&mut self, kind: u8, payload: &[&[u8]]) -> Result<Lsn> {
        match self.decision.take() {
            Some(room) => room.append(kind, payload),
            None => self.transactions.log().append(kind, payload),
        }
    }

    fn become_prepared(&mut self, logged: bool) {
        self.state = State::Prepared { logged };
        if let Some(running) = &self.running {
            running.monitoring.prepared.store(true, Ordering::Relaxed);
        }
        // A prepared transaction reads nothing more, so it needs no old versions.
        self.drop_view();
    }

    /// Returns whether it is prepared, and is neither committed nor being rolled back.
    pub fn is_prepared(&self) -> bool {
        matches!(self.state, State::Prepared { .. })
    }

    /// Logs the end of a prepared transaction before any of its changes are undone; a further try finds it logged.
    ///
    /// Returns the log position behind the record, if there is one.
    pub(super) fn log_rollback(&mut self, _inside: &BarrierGuard<'_>) -> Result<Option<Lsn>> {
        let logged = match self.state {
            State::Prepared { logged } => logged,
            State::RollingBack { logged } => return Ok(logged),
            State::Active | State::HalfUndone(_) | State::MustRollBack(_) => return Ok(None),
        };
        let mut at = None;
        if logged {
            let record = encode_owner(self.logged_as.unwrap_or(self.txid));
            at = Some(self.append_end(KIND_ROLLED_BACK, &[&record])?);
        }
        self.state = State::RollingBack { logged: at };
        Ok(at)
    }
}
