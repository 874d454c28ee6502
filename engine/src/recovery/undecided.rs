//! What prepared transactions have changed in tables that are set aside.
//!
//! It can't be made again in the table, so it stands in the table's file, until the transaction is
//! decided about: committed, it is kept as any committed change there, and rolled back, it is nothing.
//! The decision stands in the log, which may go, so a commit is noted in the file *before* it is in the
//! log. The next opening finds the transaction still prepared, whatever the file says; or else the
//! file says how it has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::aside::Aside;
use super::aside_files::AsideFiles;
use super::kept::KeptChange;
use crate::error::Result;
use crate::ids::{TableId, TxId};
use crate::planted::{is_planted, PlantedFault};
use crate::table::prepared_transactions::ChangedAside;
use crate::txn::PreparedRecord;

/// What one prepared transaction has changed in one such table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undecided {
    /// The transaction's number, and that of its copy: the log has the one or the other.
    pub numbers: Vec<TxId>,
    /// If it is not prepared any more, it has committed.
    pub commits: bool,
    /// The changes, oldest first.
    pub changes: Vec<KeptChange>,
}

impl Undecided {
    /// Whether it is of this transaction, or of the one of which this is a copy.
    pub fn is_of(&self, record: &PreparedRecord) -> bool {
        self.numbers.contains(&record.txid)
            || (record.replaces != TxId(0) && self.numbers.contains(&record.replaces))
    }
}

impl Aside {
    /// Takes what has been decided about: what was committed is now.
    pub fn take_decided(&mut self, is_prepared: &dyn Fn(&Undecided) -> bool) {
        for undecided in std::mem::take(&mut self.undecided) {
            if is_prepared(&undecided) {
                self.undecided.push(undecided);
            } else if undecided.commits {
                self.changes.extend(undecided.changes);
            }
        }
    }
}

/// A prepared transaction of which files of tables have changes.
pub(super) struct InFiles {
    pub files: Arc<AsideFiles>,
    pub tables: BTreeSet<TableId>,
    pub number: TxId,
    /// What the files say, perhaps only some of them.
    pub commits: bool,
}

impl InFiles {
    fn note(&self, commits: bool) -> Result<()> {
        for &table in &self.tables {
            self.files.update(table, |aside| {
                let mut aside = aside.unwrap_or_default();
                for undecided in &mut aside.undecided {
                    if undecided.numbers.contains(&self.number) {
                        undecided.commits = commits;
                    }
                }
                aside
            })?;
        }
        Ok(())
    }
}

impl ChangedAside for InFiles {
    fn commits(&mut self) -> Result<()> {
        if is_planted(PlantedFault::UnnotedDecision) {
            return Ok(());
        }
        self.commits = true;
        self.note(true)
    }

    fn rolls_back(&mut self) -> Result<()> {
        if self.commits {
            self.note(false)?;
            self.commits = false;
        }
        Ok(())
    }
}
