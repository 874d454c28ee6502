//! The names of prepared transactions, and the detached ones among them.
//!
//! While a session holds a prepared transaction, this list has only its name, so that no other transaction takes the
//! same. Once detached, the list holds the transaction itself, until it is committed or rolled back by name, or the
//! database is closed; the next opening restores it from the log (`recovery/`). `session/prepared.rs` puts transactions
//! here.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::table_use::TableUse;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::txn::Xid;

/// A prepared transaction, as listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// The coordinator's name for it.
    pub xid: Xid,
    /// Whether no session holds it, so that it can be ended by its name.
    pub detached: bool,
}

/// The tables that a prepared transaction uses.
pub(crate) struct PreparedUse {
    pub xid: Xid,
    pub used: SmallVec<[TableUse; 4]>,
    pub changed_in_quarantine: Option<Box<dyn ChangedInQuarantine>>,
}

/// The changes of a prepared transaction in quarantined tables, which `recovery/undecided.rs` stores.
pub(crate) trait ChangedInQuarantine: Send + Sync {
    /// Called before the log gets the transaction's commit.
    fn commits(&mut self) -> Result<()>;

    /// Called before the log gets the transaction's rollback.
    fn rolls_back(&mut self) -> Result<()>;
}

/// A prepared transaction that no session holds.
///
/// A trait, since a transaction holds what all transactions share, and that holds this list.
pub(crate) trait Detached: Send {
    /// Commits it.
    ///
    /// If that fails it is still prepared, and goes back to the list when it is dropped.
    fn commit(&mut self) -> Result<()>;

    /// Rolls it back; otherwise like [`Detached::commit`].
    fn rollback(&mut self) -> Result<()>;

    /// Leaves it prepared, for the next opening.
    fn leave_for_recovery(&mut self);
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct PreparedTransactions {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// `None`: a session holds it, or is ending it.
    by_name: BTreeMap<Xid, Option<Box<dyn Detached>>>,
    /// The database is being closed: the remaining ones are left to the next opening.
    closed: bool,
}

impl PreparedTransactions {
    pub(crate) fn reserve(&self, xid: &Xid) -> Result<()> {
        let mut entries = self.entries.lock();
        if entries.by_name.contains_key(xid) {
            return Err(Error::Invalid(format!(
                "a transaction is prepared under the name {xid} already"
            )));
        }
        entries.by_name.insert(xid.clone(), None);
        Ok(())
    }

    pub(crate) fn forget(&self, xid: &Xid) {
        self.entries.lock().by_name.remove(xid);
    }

    /// Stores a transaction; returns it if the database is being closed.
    pub(crate) fn keep_detached(
        &self,
        xid: Xid,
        transaction: Box<dyn Detached>,
    ) -> Result<(), Box<dyn Detached>> {
        let mut entries = self.entries.lock();
        if entries.closed {
            return Err(transaction);
        }
        entries.by_name.insert(xid, Some(transaction));
        Ok(())
    }

    /// Removes a detached transaction from the list, so that the caller can end it.
    pub fn claim(&self, xid: &Xid) -> Result<Box<dyn Detached>> {
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

    /// All prepared transactions, by name.
    pub fn list(&self) -> Vec<Prepared> {
        let entries = self.entries.lock();
        let listed = entries.by_name.iter().map(|(xid, transaction)| Prepared {
            xid: xid.clone(),
            detached: transaction.is_some(),
        });
        listed.collect()
    }

    /// Leaves all detached transactions prepared: the next opening restores them.
    pub fn close(&self) {
        let left = {
            let mut entries = self.entries.lock();
            entries.closed = true;
            std::mem::take(&mut entries.by_name)
        };
        for mut transaction in left.into_values().flatten() {
            transaction.leave_for_recovery();
        }
    }
}
