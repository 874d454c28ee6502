//! The files of quarantined tables, in their own folder.

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

/// The folder in the database directory; each file is named after its table's number.
const FOLDER: &str = "aside";

/// The folder of quarantined tables.
pub(crate) struct QuarantineFiles {
    os: Arc<dyn Os>,
    dir: PathBuf,
    database_id: u64,
    /// Held while a file is read and replaced.
    updating: Mutex<()>,
}

impl QuarantineFiles {
    /// The folder of the database in `dir`.
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

    /// All tables with a quarantine file, and the file's content or error.
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

    /// Removes files that an earlier database left in the folder, when a database is created. Otherwise they would
    /// count as damaged files of the new one's tables.
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

    /// Like [`QuarantineFiles::load`], for recovery, which must not go on if a file can't be read: it may be readable
    /// later.
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
                    // The error does not name the file.
                    let source = io::Error::new(io::ErrorKind::OutOfMemory, error.clone());
                    return Err(Error::io("read", self.path(table), source));
                }
                Err(error) => return Err(error.clone()),
            }
        }
        Ok(quarantine)
    }

    /// Makes the folder and the names in it durable. A process that was killed may have left them in the kernel's
    /// memory only. The next checkpoint releases the log that holds the files' content.
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

    /// Copies a file that can't be decoded to another name, and returns that name. The file stays until another
    /// replaces it: a table without a file would count as sound. A copy from an opening that ended early is used again.
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

    /// Changes the file of a table; `change` gets `None` if there is none yet.
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
