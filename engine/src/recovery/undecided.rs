//! Changes of quarantined tables by prepared transactions.
//!
//! Such a change can't be applied to the table again, so the table's file keeps it until the transaction is decided. A
//! commit makes it one of the file's committed changes; a rollback drops it. The log has the decision, but may be
//! released, so a commit is noted in the file *before* it is in the log. If the next opening finds the transaction
//! still prepared, the file's note does not count; otherwise the note is the decision.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::quarantine_files::QuarantineFiles;
use crate::error::Result;
use crate::ids::{TableId, TxId};
use crate::planted::{is_planted, PlantedFault};
use crate::table::prepared_transactions::ChangedInQuarantine;

/// A prepared transaction with changes in the files of quarantined tables.
pub(super) struct InFiles {
    pub files: Arc<QuarantineFiles>,
    pub tables: BTreeSet<TableId>,
    pub number: TxId,
    /// Whether the files, perhaps only some of them, say that it commits.
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
