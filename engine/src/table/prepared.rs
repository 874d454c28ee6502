//! Prepared transactions: under which names, whose they are, and how they end.
//!
//! While its session has it, a prepared transaction is known here by its name alone, so that no other
//! takes the same. Once detached it stands here itself, until it is committed or rolled back by name,
//! or the database closes; the next opening makes it again from the log (`recovery/`).

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::transaction::Transaction;
use super::used::Used;
use crate::error::{Error, Result};
use crate::ids::{Lsn, TxId};
use crate::planted::{is_planted, PlantedFault};
use crate::settings::Durability;
use crate::sync::Mutex;
use crate::txn::Xid;

/// A prepared transaction, as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// Its name.
    pub xid: Xid,
    /// Whether no transaction object has it, so that it can be ended by its name.
    pub detached: bool,
}

/// What a prepared transaction uses.
pub(super) struct PreparedUse {
    xid: Xid,
    used: SmallVec<[Used; 4]>,
    changed_aside: Option<Box<dyn ChangedAside>>,
}

/// What a prepared transaction has changed in tables that are set aside, which is kept elsewhere
/// (`recovery/undecided.rs`).
pub(crate) trait ChangedAside: Send + Sync {
    /// The log is about to say that the transaction commits.
    fn commits(&mut self) -> Result<()>;

    /// The log is about to say that it rolls back.
    fn rolls_back(&mut self) -> Result<()>;
}

impl PreparedUse {
    /// The tables.
    pub fn used(&self) -> &[Used] {
        &self.used
    }
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct PreparedTransactions {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// `None`: somebody has it.
    by_name: BTreeMap<Xid, Option<Box<Transaction>>>,
    /// The database is being closed: what is left belongs to the next opening.
    closed: bool,
}

impl PreparedTransactions {
    fn reserve(&self, xid: &Xid) -> Result<()> {
        let mut entries = self.entries.lock();
        if entries.by_name.contains_key(xid) {
            return Err(Error::Invalid(format!(
                "a transaction is prepared under the name {xid} already"
            )));
        }
        entries.by_name.insert(xid.clone(), None);
        Ok(())
    }

    fn forget(&self, xid: &Xid) {
        self.entries.lock().by_name.remove(xid);
    }

    /// Keeps a transaction, or gives it back when the database is closed.
    fn park(&self, transaction: Box<Transaction>) -> Result<(), Box<Transaction>> {
        let mut entries = self.entries.lock();
        match &transaction.prepared {
            Some(prepared) if !entries.closed => {
                let xid = prepared.xid.clone();
                entries.by_name.insert(xid, Some(transaction));
                Ok(())
            }
            _ => Err(transaction),
        }
    }

    /// Takes a detached transaction, to end it.
    pub fn take(&self, xid: &Xid) -> Result<Box<Transaction>> {
        let taken = self
            .entries
            .lock()
            .by_name
            .get_mut(xid)
            .and_then(Option::take);
        taken.ok_or_else(|| Error::NotFound {
            what: "detached prepared transaction",
            name: xid.to_string(),
        })
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Prepared> {
        let entries = self.entries.lock();
        let listed = entries.by_name.iter().map(|(xid, transaction)| Prepared {
            xid: xid.clone(),
            detached: transaction.is_some(),
        });
        listed.collect()
    }

    /// Lets go of all, as they are: the next opening makes them again.
    pub fn close(&self) {
        let left = {
            let mut entries = self.entries.lock();
            entries.closed = true;
            std::mem::take(&mut entries.by_name)
        };
        for mut transaction in left.into_values().flatten() {
            transaction.disown();
        }
    }
}

impl Transaction {
    /// The first phase of a two-phase commit: what the transaction has changed is put into the log,
    /// under the coordinator's name for it, and its locks stay. When this returns only
    /// [`Transaction::commit`] and [`Transaction::rollback`] can follow, and they can be put off
    /// beyond the end of the session ([`Transaction::detach`]) and of the process: then by name, with
    /// [`crate::Database::commit_prepared`] or [`crate::Database::rollback_prepared`].
    ///
    /// A transaction that has changed nothing leaves no trace of this in the log. Rows that were
    /// locked and not changed are not locked any more after a restart.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that another prepared transaction has. I/O errors and
    /// [`Error::Stopped`]: roll the transaction back.
    pub fn prepare(&mut self, xid: &Xid) -> Result<()> {
        self.prepare_as(xid, None, Durability::SyncAtCommit)
    }

    /// As [`Transaction::prepare`], but durable no further than `durability` says: for a coordinator
    /// whose own decisions are no more durable, so that a sync would be for nothing.
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
        self.make_whole()?;
        self.shared.prepared.reserve(xid)?;
        let result = self
            .log_counters()
            .and_then(|()| self.inner.prepare(xid, replaces, durability));
        self.note_prepared(xid, result)
    }

    /// What it changes from now on, and has changed, stands in the log already: see
    /// [`crate::txn::Transaction::stand_as`].
    pub(crate) fn stand_as(&mut self, number: TxId, from: Lsn) {
        self.inner.stand_as(number, from);
    }

    /// As [`Transaction::prepare`], behind [`Transaction::stand_as`].
    pub(crate) fn prepare_standing(&mut self, xid: &Xid) -> Result<()> {
        self.make_whole()?;
        self.shared.prepared.reserve(xid)?;
        let result = self.inner.prepare_standing();
        self.note_prepared(xid, result)
    }

    fn note_prepared(&mut self, xid: &Xid, result: Result<()>) -> Result<()> {
        if !self.inner.is_prepared() {
            self.shared.prepared.forget(xid);
            return result;
        }
        let used = std::mem::take(&mut self.used);
        count(&used, true);
        self.prepared = Some(Box::new(PreparedUse {
            xid: xid.clone(),
            used,
            changed_aside: None,
        }));
        self.writes += 1;
        result
    }

    /// Whether it is prepared, and neither committed nor rolled back yet.
    pub fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    /// Gives a prepared transaction up, to be committed or rolled back by name by anybody; the object
    /// is empty afterwards, and another [`Transaction::kill_handle`] is to be used. Does nothing to
    /// one that is not prepared.
    ///
    /// A table of one session ([`crate::TableOptions::of_one_session`]) may be dropped from then on, as the session may
    /// end before the transaction: what that did there is gone with the table, however it ends.
    pub fn detach(&mut self) {
        let Some(prepared) = &mut self.prepared else {
            return;
        };
        let own = |used: &&mut Used| used.state.is_of_one_session();
        if !is_planted(PlantedFault::PreparedKeepsOwnTables) {
            prepared.used.iter_mut().filter(own).for_each(Used::let_go);
        }
        let shared = self.shared.clone();
        let mut empty = Transaction::of(shared.clone(), self.inner.another());
        empty.committed = self.committed.take();
        self.set_session(0);
        let detached = Box::new(std::mem::replace(self, empty));
        if let Err(mut late) = shared.prepared.park(detached) {
            late.disown();
        }
    }

    /// Leaves a prepared transaction as it is, for the next opening.
    fn disown(&mut self) {
        self.prepared = None;
        self.inner.disown();
    }

    /// The transaction's number; it gets one if it has none.
    pub(crate) fn number(&mut self) -> TxId {
        self.inner.begin_writing()
    }

    /// Some of what the prepared transaction has changed is kept elsewhere.
    pub(crate) fn set_changed_aside(&mut self, changed: Box<dyn ChangedAside>) {
        if let Some(prepared) = &mut self.prepared {
            prepared.changed_aside = Some(changed);
        }
    }

    /// What it has changed in tables that are set aside learns how it ends, before the log does.
    pub(super) fn decide_aside(&mut self, commits: bool) -> Result<()> {
        let prepared = self.prepared.as_mut();
        match prepared.and_then(|prepared| prepared.changed_aside.as_mut()) {
            Some(changed) if commits => changed.commits(),
            Some(changed) => changed.rolls_back(),
            None => Ok(()),
        }
    }

    /// The transaction has ended, as far as its being prepared goes.
    pub(super) fn end_prepared(&mut self) {
        if let Some(prepared) = self.prepared.take() {
            count(&prepared.used, false);
            self.used = prepared.used;
            self.shared.prepared.forget(&prepared.xid);
        }
    }
}

fn count(used: &[Used], prepared: bool) {
    for used in used.iter().filter(|used| used.is_entered()) {
        used.state.count_prepared(prepared);
    }
}
