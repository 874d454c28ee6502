//! The files of quarantined tables, in a folder of their own.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::quarantine::{QuarantinedTable, DAMAGED};
use crate::error::{Error, Result};
use crate::fallible;
use crate::ids::TableId;
use crate::os::{directory_of, OpenMode, Os};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

/// The folder within the database directory; a file is named by its table's number.
const FOLDER: &str = "aside";

/// The folder of quarantined tables.
pub(crate) struct QuarantineFiles {
    os: Arc<dyn Os>,
    dir: PathBuf,
    database_id: u64,
    /// Held while a file is read to be written anew.
    updating: Mutex<()>,
}

impl QuarantineFiles {
    /// Of the database in `dir`.
    pub fn new(os: Arc<dyn Os>, dir: &Path, database_id: u64) -> Self {
        QuarantineFiles {
            os,
            dir: dir.join(FOLDER),
            database_id,
            updating: Mutex::default(),
        }
    }

    fn path(&self, table: TableId) -> PathBuf {
        self.dir.join(table.to_string())
    }

    /// Every table that is quarantined, with its file's content or what is wrong with that.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn load(&self) -> Result<BTreeMap<TableId, Result<QuarantinedTable>>> {
        let mut quarantine = BTreeMap::new();
        if !self.os.exists(&self.dir)? {
            return Ok(quarantine);
        }
        for name in self.os.list(&self.dir)? {
            if let Ok(number) = name.parse() {
                quarantine.insert(TableId(number), self.read(TableId(number)));
            }
        }
        Ok(quarantine)
    }

    /// For a database that is being created: removes the files of one that was here before, and is no more. They would
    /// count as damaged ones of its own tables.
    pub fn clear(&self) -> Result<()> {
        if is_planted(PlantedFault::LeaveOldQuarantines) || !self.os.exists(&self.dir)? {
            return Ok(());
        }
        for name in self.os.list(&self.dir)? {
            if name.parse::<u32>().is_ok() {
                self.os.remove(&self.dir.join(name))?;
            }
        }
        self.os.sync_dir(&self.dir)
    }

    /// As [`QuarantineFiles::load`], for recovery: a file that can't be read now may tell more another time.
    ///
    /// # Errors
    /// Those of the folder, and of every file whose bytes were not read.
    pub fn load_read(&self) -> Result<BTreeMap<TableId, Result<QuarantinedTable>>> {
        let quarantine = self.load()?;
        if is_planted(PlantedFault::TrustUnreadQuarantine) {
            return Ok(quarantine);
        }
        for (&table, quarantined) in &quarantine {
            match quarantined {
                Ok(_) | Err(Error::Corrupt { .. } | Error::Format { .. }) => {}
                Err(error @ Error::OutOfMemory { .. }) => {
                    // It does not say of which file.
                    let source = io::Error::new(io::ErrorKind::OutOfMemory, error.clone());
                    return Err(Error::io("read", self.path(table), source));
                }
                Err(error) => return Err(error.clone()),
            }
        }
        Ok(quarantine)
    }

    /// Makes the names in the folder durable, and its own: a process that was killed may have left them
    /// in the kernel's memory alone, and what the files tell goes from the log with the next checkpoint.
    pub(super) fn make_durable(&self) -> Result<()> {
        if is_planted(PlantedFault::TrustQuarantineNames) || !self.os.exists(&self.dir)? {
            return Ok(());
        }
        self.sync_names()
    }

    fn sync_names(&self) -> Result<()> {
        self.os.sync_dir(directory_of(&self.dir))?;
        self.os.sync_dir(&self.dir)
    }

    pub(super) fn read(&self, table: TableId) -> Result<QuarantinedTable> {
        let path = self.path(table);
        QuarantinedTable::decode(&path, self.database_id, &self.bytes_of(&path)?)
    }

    fn bytes_of(&self, path: &Path) -> Result<Vec<u8>> {
        let file = self.os.open(path, OpenMode::ReadOnly)?;
        let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        fallible::reserve(&mut bytes, len, "a quarantined table")?;
        bytes.resize(len, 0);
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    pub(super) fn write(&self, table: TableId, quarantined: &QuarantinedTable) -> Result<()> {
        self.write_bytes(&self.path(table), &quarantined.encode(self.database_id)?)
    }

    fn write_bytes(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        self.os.create_dir(&self.dir)?;
        let new = self.dir.join("new");
        if self.os.exists(&new)? {
            self.os.remove(&new)?;
        }
        let file = self.os.open(&new, OpenMode::CreateNew)?;
        file.write_at(bytes, 0)?;
        file.sync_data()?;
        // The name appears only when the file is whole.
        self.os.rename(&new, path)?;
        self.sync_names()
    }

    /// Keeps a file that can't be understood under a name of its own, which is returned. It is a copy: without a
    /// file the table would count as sound, until there is another. A copy of an opening that ended early will do.
    pub(super) fn keep_damaged(&self, table: TableId) -> Result<PathBuf> {
        let bytes = self.bytes_of(&self.path(table))?;
        let mut number = 0u64;
        loop {
            let path = self.dir.join(format!("{table}{DAMAGED}{number}"));
            if !self.os.exists(&path)? {
                self.write_bytes(&path, &bytes)?;
                return Ok(path);
            }
            if self.bytes_of(&path).is_ok_and(|kept| kept == bytes) {
                return Ok(path);
            }
            number += 1;
        }
    }

    /// Changes what is kept of a table; `None`: nothing is yet.
    pub fn update(
        &self,
        table: TableId,
        change: impl FnOnce(Option<QuarantinedTable>) -> QuarantinedTable,
    ) -> Result<()> {
        let _updating = self.updating.lock();
        let before = match self.os.exists(&self.path(table))? {
            true => Some(self.read(table)?),
            false => None,
        };
        self.write(table, &change(before))
    }

    pub(super) fn remove(&self, table: TableId) -> Result<()> {
        self.os.remove(&self.path(table))?;
        self.os.sync_dir(&self.dir)
    }
}
