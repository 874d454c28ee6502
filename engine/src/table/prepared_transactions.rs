//! Prepared transactions: under which names, whose they are, and what is to be known of each.
//!
//! While its session has it, a prepared transaction is known here by its name alone, so that no other
//! takes the same. Once detached it stands here itself, until it is committed or rolled back by name,
//! or the database closes; the next opening makes it again from the log (`recovery/`). How a transaction
//! comes here is in `prepared`.

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
    /// Its name.
    pub xid: Xid,
    /// Whether no transaction object has it, so that it can be ended by its name.
    pub detached: bool,
}

/// What a prepared transaction uses.
pub(crate) struct PreparedUse {
    pub xid: Xid,
    pub used: SmallVec<[TableUse; 4]>,
    pub changed_in_quarantine: Option<Box<dyn ChangedInQuarantine>>,
}

/// What a prepared transaction has changed in quarantined tables, which is kept elsewhere
/// (`recovery/undecided.rs`).
pub(crate) trait ChangedInQuarantine: Send + Sync {
    /// The log is about to say that the transaction commits.
    fn commits(&mut self) -> Result<()>;

    /// The log is about to say that it rolls back.
    fn rolls_back(&mut self) -> Result<()>;
}

/// A prepared transaction that nobody has. It is known here by how it ends: as a whole it has what all transactions
/// share, and so this list.
pub(crate) trait Detached: Send {
    /// Commits it. Where that fails it is still prepared, and goes back to the list when it is dropped.
    fn commit(&mut self) -> Result<()>;

    /// Rolls it back; otherwise as [`Detached::commit`].
    fn rollback(&mut self) -> Result<()>;

    /// Leaves it as it is, for the next opening.
    fn leave_for_recovery(&mut self);
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct PreparedTransactions {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// `None`: somebody has it.
    by_name: BTreeMap<Xid, Option<Box<dyn Detached>>>,
    /// The database is being closed: what is left belongs to the next opening.
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

    /// Keeps a transaction, or gives it back when the database is closed.
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

    /// Takes a detached transaction, to end it.
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
            transaction.leave_for_recovery();
        }
    }
}
