//! Decides which tables recovery quarantines, and which quarantine files are void.

use std::collections::BTreeMap;

use super::kept::Committed;
use super::quarantine::QuarantinedTable;
use super::quarantine_files::QuarantineFiles;
use crate::catalog::DdlRecord;
use crate::error::{Error, Result};
use crate::ids::{TableId, TreeId, TxId};
use crate::log::Log;
use crate::planted::{is_planted, PlantedFault};
use crate::table::registry::Registry;

/// The quarantined tables, while recovery runs.
pub(super) struct Quarantine<'a> {
    files: &'a QuarantineFiles,
    registry: &'a Registry,
    /// Transactions running at the checkpoint: it is unknown what rollback could not undo of them.
    running: Vec<TxId>,
    /// Tables quarantined at an earlier opening: their files have everything, and these entries have no changes.
    before: BTreeMap<TableId, QuarantinedTable>,
    /// Those of them that have lost their rows since, or are dropped: their files are void.
    over: BTreeMap<TableId, QuarantinedTable>,
    /// Tables whose files can't be decoded. They are quarantined anew.
    damaged: BTreeMap<TableId, Error>,
    now: BTreeMap<TableId, QuarantinedTable>,
    /// Tables with an invalid definition.
    lost: BTreeMap<TableId, Error>,
}

impl<'a> Quarantine<'a> {
    /// Begins with the tables that an earlier opening has quarantined, as [`QuarantineFiles::load_read`] found them.
    pub fn new(
        files: &'a QuarantineFiles,
        found: BTreeMap<TableId, Result<QuarantinedTable>>,
        registry: &'a Registry,
        running: Vec<TxId>,
        lost: BTreeMap<TableId, Error>,
    ) -> Result<Quarantine<'a>> {
        let mut quarantine = Quarantine {
            files,
            registry,
            running,
            before: BTreeMap::new(),
            over: BTreeMap::new(),
            damaged: BTreeMap::new(),
            lost,
            now: BTreeMap::new(),
        };
        files.make_durable()?;
        for (table, quarantined) in found {
            let quarantined = match quarantined {
                Ok(mut quarantined) => {
                    quarantined.changes = Vec::new();
                    quarantined.undecided = Vec::new();
                    quarantined
                }
                Err(error) if is_planted(PlantedFault::TrustUnreadQuarantine) => {
                    QuarantinedTable::of(&error, Vec::new(), None)
                }
                Err(error) => {
                    let is_known = registry.state(table).is_some();
                    if is_known || quarantine.lost.contains_key(&table) {
                        quarantine.quarantine(table, &error);
                    }
                    quarantine.damaged.insert(table, error);
                    continue;
                }
            };
            let definition = registry.definition(table);
            if definition.is_ok_and(|now| !quarantined.is_of(&now)) {
                quarantine.over.insert(table, quarantined);
                continue;
            }
            registry.refuse(table, quarantined.error());
            quarantine.before.insert(table, quarantined);
        }
        Ok(quarantine)
    }

    /// Quarantines tables in which rollback has met damage, or for which it can't know all changes to undo.
    pub fn take_damaged(&mut self) {
        for (table, error) in self.registry.take_damaged() {
            self.quarantine(table, &error);
        }
    }

    /// Quarantines a table.
    pub fn quarantine(&mut self, table: TableId, error: &Error) {
        if self.before.contains_key(&table) || self.now.contains_key(&table) {
            return;
        }
        let name = self.registry.name_told(table);
        tracing::error!(table = name, %error, "the table is damaged, and quarantined");
        let quarantined = QuarantinedTable::of(error, self.running.clone(), self.clustered(table));
        self.registry.refuse(table, quarantined.error());
        self.now.insert(table, quarantined);
    }

    /// The number of a table's clustered tree.
    fn clustered(&self, table: TableId) -> Option<TreeId> {
        let definition = self.registry.definition(table).ok()?;
        Some(definition.trees.first()?.id)
    }

    /// Returns whether a table is quarantined, so that none of its changes is applied. A table with an invalid
    /// definition is quarantined from its first change on.
    pub fn has(&mut self, table: TableId) -> bool {
        if self.before.contains_key(&table) || self.damaged.contains_key(&table) {
            return true;
        }
        if let Some(error) = self.lost.get(&table).cloned() {
            self.quarantine(table, &error);
        }
        self.now.contains_key(&table)
    }

    /// Returns whether a change of definitions is of a table with an invalid definition.
    pub fn is_lost(&self, record: &DdlRecord) -> bool {
        let table = match record {
            DdlRecord::Create(definition)
            | DdlRecord::CreateCounted(definition, _)
            | DdlRecord::Truncate(definition) => definition.id,
            DdlRecord::Drop(id)
            | DdlRecord::Rename(id, _)
            | DdlRecord::Counter(id, _)
            | DdlRecord::Locking(id, _)
            | DdlRecord::Names(id, _)
            | DdlRecord::User(id, _) => *id,
        };
        self.lost.contains_key(&table)
    }

    /// Forgets a table with an invalid definition, as it is dropped.
    pub fn forget_lost(&mut self, table: TableId) {
        self.lost.remove(&table);
    }

    /// Forgets the damage of a table that has lost all its rows, or is dropped.
    pub fn forget(&mut self, table: TableId) {
        self.now.remove(&table);
        if is_planted(PlantedFault::QuarantinedForGood) {
            return;
        }
        if let Some(quarantined) = self.before.remove(&table) {
            self.over.insert(table, quarantined);
        }
        if self.damaged.remove(&table).is_some() {
            self.over.insert(table, QuarantinedTable::default());
        }
    }

    /// Notes that the log has created a table, or given it other trees. If a file applies to these trees, an opening of
    /// this very log wrote it, and did not reach its checkpoint. The file has all changes, including those of prepared
    /// transactions that the log does not have under their present numbers. So the table stays quarantined.
    pub fn made(&mut self, table: TableId) {
        if is_planted(PlantedFault::YoungIsSound) {
            return;
        }
        let clustered = self.clustered(table);
        if let Some(quarantined) = self.over.remove(&table) {
            let is_of = clustered.is_some() && quarantined.clustered == clustered;
            let tables = if is_of {
                &mut self.before
            } else {
                &mut self.over
            };
            tables.insert(table, quarantined);
        }
        if let Some(quarantined) = self.before.get(&table) {
            self.registry.refuse(table, quarantined.error());
        } else if let Some(error) = self.damaged.get(&table).cloned() {
            self.quarantine(table, &error);
        }
    }

    /// Writes the files that must outlive the log, and removes the void ones. Returns the tables with an invalid
    /// definition.
    pub fn finish(mut self, log: &Log, committed: &Committed) -> Result<BTreeMap<TableId, Error>> {
        let mut changes = committed.changes_of(log, self.now.keys().copied())?;
        for (table, quarantined) in &mut self.now {
            quarantined.changes = changes.remove(table).unwrap_or_default();
            if self.damaged.contains_key(table) {
                let kept = self.files.keep_damaged(*table)?;
                quarantined.file = kept.display().to_string();
                self.registry.refuse(*table, quarantined.error());
            }
            self.files.write(*table, quarantined)?;
        }
        let void = self.before.into_keys().chain(self.over.into_keys());
        for table in void.chain(self.damaged.into_keys()) {
            let kept = self.now.contains_key(&table) || self.lost.contains_key(&table);
            if !kept && !self.registry.is_refused(table) {
                // A file that can't be decoded may be void or not, so a copy is kept.
                if self.files.read(table).is_err() {
                    self.files.keep_damaged(table)?;
                }
                self.files.remove(table)?;
            }
        }
        Ok(self.lost)
    }
}
