//! Two-phase commit: how a transaction is prepared, detached to be ended by name, and ended.

use crate::error::{Error, Result};
use crate::ids::{Lsn, TxId};
use crate::planted::{is_planted, PlantedFault};
use crate::session::transaction::Transaction;
use crate::settings::Durability;
use crate::table::prepared_transactions::{ChangedInQuarantine, Detached, PreparedUse};
use crate::table::table_use::TableUse;
use crate::txn::Xid;

impl Transaction {
    /// The first phase of a two-phase commit: writes the transaction's changes to the log under the coordinator's name
    /// for it.
    ///
    /// Its locks stay. After success, only [`Transaction::commit`] and [`Transaction::rollback`] can follow. They may
    /// come after the end of the session ([`Transaction::detach`]) and of the process: then by name, with
    /// [`crate::Database::commit_prepared`] or [`crate::Database::rollback_prepared`].
    ///
    /// A transaction that has changed nothing writes nothing to the log. After a restart, rows that it had locked and
    /// not changed are not locked.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that another prepared transaction has. I/O errors and
    /// [`Error::Stopped`]: roll the transaction back.
    pub fn prepare(&mut self, xid: &Xid) -> Result<()> {
        self.prepare_as(xid, None, Durability::SyncAtCommit)
    }

    /// As [`Transaction::prepare`], but durable only as far as `durability` says.
    ///
    /// For a coordinator whose own decisions are no more durable, so that a sync would be useless.
    ///
    /// # Errors
    /// As [`Transaction::prepare`].
    pub fn prepare_with(&mut self, xid: &Xid, durability: Durability) -> Result<()> {
        self.prepare_as(xid, None, durability)
    }

    pub(crate) fn prepare_as(
        &mut self,
        xid: &Xid,
        replaces: Option<TxId>,
        durability: Durability,
    ) -> Result<()> {
        if self.is_prepared() {
            return Err(Error::Invalid("the transaction is prepared already".into()));
        }
        self.complete_pending()?;
        self.shared.prepared.reserve(xid)?;
        let result = self
            .log_counters()
            .and_then(|()| self.tree_txn.prepare(xid, replaces, durability));
        self.note_prepared(xid, result)
    }

    /// Marks the transaction's changes, past and future, as logged already: see
    /// [`crate::txn::TreeTransaction::stand_as`].
    pub(crate) fn stand_as(&mut self, number: TxId, from: Lsn) {
        self.tree_txn.stand_as(number, from);
    }

    /// As [`Transaction::prepare`], after [`Transaction::stand_as`].
    pub(crate) fn prepare_standing(&mut self, xid: &Xid) -> Result<()> {
        self.complete_pending()?;
        self.shared.prepared.reserve(xid)?;
        let result = self.tree_txn.prepare_standing();
        self.note_prepared(xid, result)
    }

    fn note_prepared(&mut self, xid: &Xid, result: Result<()>) -> Result<()> {
        if !self.tree_txn.is_prepared() {
            self.shared.prepared.forget(xid);
            return result;
        }
        let used = std::mem::take(&mut self.used);
        count(&used, true);
        self.prepared = Some(Box::new(PreparedUse {
            xid: xid.clone(),
            used,
            changed_in_quarantine: None,
        }));
        self.writes += 1;
        result
    }

    /// Whether the transaction is prepared, and neither committed nor rolled back yet.
    pub fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// Gives a prepared transaction up: any session may then commit it or roll it back by name.
    ///
    /// This object is empty afterwards, and needs another [`Transaction::kill_handle`]. Does nothing to a transaction
    /// that is not prepared.
    ///
    /// From then on, a table of one session ([`crate::TableOptions::of_one_session`]) may be dropped, since the session
    /// may end before the transaction. The transaction's changes there are gone with the table, whether it commits or
    /// not.
    pub fn detach(&mut self) {
        let Some(prepared) = &mut self.prepared else {
            return;
        };
        let own = |used: &&mut TableUse| used.state.is_of_one_session();
        if !is_planted(PlantedFault::PreparedKeepsOwnTables) {
            prepared
                .used
                .iter_mut()
                .filter(own)
                .for_each(TableUse::let_go);
        }
        let xid = prepared.xid.clone();
        let shared = self.shared.clone();
        let mut empty = Transaction::of(shared.clone(), self.tree_txn.another());
        empty.committed = self.committed.take();
        self.set_session(0);
        let detached = Box::new(std::mem::replace(self, empty));
        if let Err(mut late) = shared.prepared.keep_detached(xid, detached) {
            late.leave_for_recovery();
        }
    }

    /// The transaction's number; it gets one if it has none.
    pub(crate) fn number(&mut self) -> TxId {
        self.tree_txn.begin_writing()
    }

    /// Stores the changes of the prepared transaction in quarantined tables.
    pub(crate) fn set_changed_in_quarantine(&mut self, changed: Box<dyn ChangedInQuarantine>) {
        if let Some(prepared) = &mut self.prepared {
            prepared.changed_in_quarantine = Some(changed);
        }
    }

    /// Tells the stored changes of quarantined tables how the transaction ends, before the log gets it.
    pub(super) fn decide_in_quarantine(&mut self, commits: bool) -> Result<()> {
        let prepared = self.prepared.as_mut();
        match prepared.and_then(|prepared| prepared.changed_in_quarantine.as_mut()) {
            Some(changed) if commits => changed.commits(),
            Some(changed) => changed.rolls_back(),
            None => Ok(()),
        }
    }

    /// Removes the transaction from the prepared ones, after its end.
    pub(super) fn end_prepared(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            count(&prepared.used, false);
            self.used = prepared.used;
            self.shared.prepared.forget(&prepared.xid);
        }
    }
}

impl Detached for Transaction {
    fn commit(&mut self) -> Result<()> {
        Transaction::commit(self)
    }

    fn rollback(&mut self) -> Result<()> {
        Transaction::rollback(self)
    }

    fn leave_for_recovery(&mut self) {
        self.prepared = None;
        self.tree_txn.leave_for_recovery();
    }
}

fn count(used: &[TableUse], prepared: bool) {
    for used in used.iter().filter(|used| used.is_entered()) {
        used.state.count_prepared(prepared);
    }
}
