//! What prepared transactions have changed in quarantined tables.
//!
//! It can't be made again in the table, so it stands in the table's file, until the transaction is
//! decided about: committed, it is kept as any committed change there, and rolled back, it is nothing.
//! The decision stands in the log, which may go, so a commit is noted in the file *before* it is in the
//! log. The next opening finds the transaction still prepared, whatever the file says; or else the
//! file says how it has ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::quarantine_files::QuarantineFiles;
use crate::error::Result;
use crate::ids::{TableId, TxId};
use crate::planted::{is_planted, PlantedFault};
use crate::table::prepared_transactions::ChangedInQuarantine;

/// A prepared transaction of which files of tables have changes.
pub(super) struct InFiles {
    pub files: Arc<QuarantineFiles>,
    pub tables: BTreeSet<TableId>,
    pub number: TxId,
    /// What the files say, perhaps only some of them.
    pub commits: bool,
}

impl InFiles {
    fn note(&self, commits: bool) -> Result<()> {
        for &table in &self.tables {
            self.files.update(table, |quarantined| {
                let mut quarantined = quarantined.unwrap_or_default();
                for undecided in &mut quarantined.undecided {
                    if undecided.numbers.contains(&self.number) {
                        undecided.commits = commits;
                    }
                }
                quarantined
            })?;
        }
        Ok(())
    }
}

impl ChangedInQuarantine for InFiles {
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
