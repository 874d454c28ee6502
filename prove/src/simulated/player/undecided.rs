//! Prepared transactions until their decision, through their object or by name.

use std::collections::BTreeSet;
use std::sync::Arc;

use peregrine::{Database, Result, Transaction, Xid};

use super::super::model::State;
use super::Player;

/// The maximum number of undecided transactions at a time.
const MOST: usize = 4;

/// A prepared transaction.
///
/// If [`State::prepared`] lacks it, it is decided, though the decision gave an error; then the rows and tables that it
/// used may still be locked.
pub(super) struct Undecided {
    xid: Xid,
    /// The transaction's object; `None` once detached.
    txn: Option<Transaction>,
    /// Like [`super::Session::used`].
    used: BTreeSet<String>,
}

/// Returns the undecided transactions of a state after an opening.
///
/// Only the rows that they have changed are locked then.
pub(super) fn after_opening(state: &State) -> Vec<Undecided> {
    let prepared = state.prepared.iter();
    prepared
        .map(|(xid, changes)| {
            let rows = changes.keys();
            Undecided {
                xid: xid.clone(),
                txn: None,
                used: rows
                    .flat_map(|(table, id)| [table.clone(), format!("{table} {id}")])
                    .collect(),
            }
        })
        .collect()
}

impl Player<'_> {
    /// Decides all prepared transactions.
    ///
    /// # Errors
    /// The engine's errors.
    pub fn decide_all(&mut self, db: &Database) -> Result<()> {
        while !self.undecided.is_empty() {
            self.decide_one(db)?;
        }
        Ok(())
    }

    /// Decides a random number of the prepared transactions.
    pub(super) fn decide_some(&mut self, db: &Database) -> Result<()> {
        let number = self.dice.below(self.undecided.len() as u32 + 1);
        (0..number).try_for_each(|_| self.decide_one(db))
    }

    /// Commits or rolls back one of them.
    pub(super) fn decide_one(&mut self, db: &Database) -> Result<()> {
        let number = self.undecided.len() as u32;
        if number == 0 {
            return Ok(());
        }
        let at = self.dice.below(number) as usize;
        let commits = self.dice.below(2) == 0;
        let mut one = self.undecided.swap_remove(at);
        let before = self.state().clone();
        let Some(changes) = before.prepared.get(&one.xid) else {
            return Ok(());
        };
        let mut after = match commits {
            true => before.after(changes),
            false => before.clone(),
        };
        after.prepared.remove(&one.xid);
        let outcome = self.acknowledge(after.clone(), |_| match (&mut one.txn, commits) {
            (Some(txn), true) => txn.commit(),
            (Some(txn), false) => txn.rollback(),
            (None, true) => db.commit_prepared(&one.xid),
            (None, false) => db.rollback_prepared(&one.xid),
        });
        if outcome.is_err() {
            if !db.prepared().iter().any(|other| other.xid == one.xid) {
                // The transaction is decided here, but may be undecided again after the next opening.
                self.states.push(after);
                self.in_doubt = Some(before);
            }
            self.undecided.push(one);
        }
        outcome
    }

    /// Prepares a session's transaction, if it has changes; keeps its object or detaches it.
    pub(super) fn prepare(&mut self, at: usize) -> Result<()> {
        if self.undecided.len() >= MOST {
            return Ok(());
        }
        let taken = self.sessions[at].take_if(|session| !session.changes.is_empty());
        let Some(mut session) = taken else {
            return Ok(());
        };
        let xid = Xid::new(1, self.new_name().as_bytes(), b"")?;
        let keeps = self.dice.below(2) == 0;
        let mut after = self.state().clone();
        session.raise_counters(&mut after);
        let changes = Arc::new(session.changes.clone());
        after.prepared.insert(xid.clone(), changes);
        let outcome = self.acknowledge(after, |_| session.txn.prepare(&xid));
        if outcome.is_err() {
            session.spoilt = true;
            self.sessions[at] = Some(session);
            return outcome;
        }
        let mut one = Undecided {
            xid,
            txn: Some(session.txn),
            used: session.used,
        };
        if !keeps {
            one.txn = None;
        }
        self.undecided.push(one);
        Ok(())
    }

    /// Returns whether an undecided transaction uses a table or row.
    pub(super) fn is_undecided(&self, used: &str) -> bool {
        self.undecided.iter().any(|one| one.used.contains(used))
    }

    pub(super) fn detach_all(&mut self) {
        self.undecided.iter_mut().for_each(|one| one.txn = None);
    }

    /// Forgets the decided transactions: they hold no locks any more.
    pub(super) fn forget_decided(&mut self) {
        let mut undecided = std::mem::take(&mut self.undecided);
        undecided.retain(|one| self.state().prepared.contains_key(&one.xid));
        self.undecided = undecided;
    }
}
