//! Tables that damage keeps recovery from bringing up to date: they are set aside, so that all others
//! can be used.
//!
//! A page of a table that can't be read is an error of the statements that need it, and nothing else.
//! But when recovery needs it, the table can't have the state of the last commit, and must not be
//! read as if it had. Then nothing of the table is changed any more; what the log says of its rows,
//! and which transactions could perhaps not be taken back in it, goes into a file of its own before
//! the log goes. `dump` reads that file too. Dropping or truncating the table makes it void: the next
//! opening removes it.
//!
//! What a file tells decides whether the table's changes are applied. So an opening fails where a file can't be
//! read. One that can't be understood may be void: its table is set aside anew, with what the log has now, and
//! the file is kept under another name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::kept::{Committed, KeptChange};
use super::undecided::Undecided;
use crate::catalog::{DdlRecord, Definition};
use crate::error::{Error, Result};
use crate::ids::{PageId, TableId, TreeId, TxId};
use crate::log::Log;
use crate::os::{directory_of, OpenMode, Os};
use crate::planted::{is_planted, PlantedFault};
use crate::room;
use crate::sync::Mutex;
use crate::table::registry::Registry;

const MAGIC: [u8; 8] = *b"PGASIDE\0";
const FORMAT: u32 = 4;
/// The format before, whose checksum has nothing of the format's number.
const FORMAT_WITH_LOOSE_NUMBER: u32 = 3;
/// The first, which has nothing of prepared transactions, and does not say of which trees it tells. The second has
/// nothing of prepared transactions either.
const FIRST_FORMAT: u32 = 1;
/// Bytes in front of what is serialised: magic, format, checksum, database.
const HEAD: usize = 24;
/// The folder within the database directory; a file is named by its table's number.
const FOLDER: &str = "aside";
/// Between a table's number and another one, in the name of a file that can't be understood.
const DAMAGED: &str = ".damaged-";

/// A table that is set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Aside {
    file: String,
    offset: u64,
    page: Option<PageId>,
    what: String,
    /// Transactions that did not commit, of which records may still stand in the table's trees.
    pub unfinished: Vec<TxId>,
    /// What was committed since the checkpoint at which recovery began.
    pub changes: Vec<KeptChange>,
    /// The table's clustered tree: a table that was truncated since has another, and nothing of this
    /// is true of it. See [`FIRST_FORMAT`].
    clustered: Option<TreeId>,
    /// What prepared transactions have changed. The last field: see [`FIRST_FORMAT`].
    pub undecided: Vec<Undecided>,
}

impl Aside {
    /// Whether it tells of the table as it is: not of what it was before it was truncated.
    pub fn is_of(&self, definition: &Definition) -> bool {
        if is_planted(PlantedFault::TruncatedStaysAside) {
            return true;
        }
        let now = definition.trees.first().map(|tree| tree.id);
        self.clustered.is_none() || self.clustered == now
    }

    /// The error that whoever wants to use the table gets.
    pub fn error(&self) -> Error {
        Error::Corrupt {
            file: self.file.clone().into(),
            offset: self.offset,
            page: self.page,
            what: format!(
                "{}; the table was set aside when the database was opened: `peregrine dump` reads \
                 what is left of it, and dropping it is possible",
                self.what
            ),
        }
    }

    /// Whether the table is set aside because its file before can't be understood: what that told is missing.
    pub fn lacks_earlier(&self, table: TableId) -> bool {
        let name = Path::new(&self.file).file_name();
        let kept = format!("{table}{DAMAGED}");
        name.is_some_and(|name| name.to_string_lossy().starts_with(&kept))
    }

    /// Of a table that meets with an error.
    pub fn of(error: &Error, unfinished: Vec<TxId>, clustered: Option<TreeId>) -> Aside {
        let aside = Aside {
            unfinished,
            clustered,
            ..Aside::default()
        };
        match error {
            Error::Corrupt {
                file,
                offset,
                page,
                what,
            } => Aside {
                file: file.display().to_string(),
                offset: *offset,
                page: *page,
                what: what.clone(),
                ..aside
            },
            error => Aside {
                what: error.to_string(),
                ..aside
            },
        }
    }

    fn encode(&self, database_id: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; HEAD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..HEAD].copy_from_slice(&database_id.to_le_bytes());
        let mut bytes = postcard::to_extend(self, bytes)
            .map_err(|e| Error::Internal(format!("serialising a table set aside: {e}")))?;
        let checksum = checksum(FORMAT, &bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        Ok(bytes)
    }

    /// Whether any bytes are such a file, once their checksum is made right.
    pub fn decode_any(path: &Path, bytes: &[u8]) -> bool {
        let mut bytes = bytes.to_vec();
        if bytes.len() < HEAD {
            return false;
        }
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[16..HEAD].fill(0);
        let checksum = checksum(FORMAT, &bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        Aside::decode(path, 0, &bytes).is_ok()
    }

    fn decode(path: &Path, database_id: u64, bytes: &[u8]) -> Result<Aside> {
        let corrupt = |what: &str| Error::Corrupt {
            file: path.to_owned(),
            offset: 0,
            page: None,
            what: what.into(),
        };
        let u32_at = |at: usize| {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
            word.map_or(0, |word| u32::from_le_bytes(*word))
        };
        if bytes.len() < HEAD || bytes[..8] != MAGIC {
            return Err(corrupt("expected the changes of a table set aside"));
        }
        let format = u32_at(8);
        if checksum(format, &bytes[16..]) != u32_at(12) {
            return Err(corrupt("the checksum is wrong"));
        }
        let known = (FIRST_FORMAT..=FORMAT).contains(&format);
        if !known || bytes[16..HEAD] != database_id.to_le_bytes() {
            return Err(Error::Format {
                file: path.to_owned(),
                what: format!(
                    "format {format} of another database or version; this version reads formats up \
                     to {FORMAT}"
                ),
            });
        }
        let mut rest = Cow::Borrowed(&bytes[HEAD..]);
        // What a format lacks at its end is absent, or empty: a zero each.
        for _ in format..FORMAT_WITH_LOOSE_NUMBER {
            rest.to_mut().push(0);
        }
        postcard::from_bytes(&rest).map_err(|e| corrupt(&e.to_string()))
    }
}

/// The checksum of a file of this format, from its database on. The number is part of it: else a flipped bit could
/// make it an older one, whose missing fields are empty.
fn checksum(format: u32, bytes: &[u8]) -> u32 {
    let sum = crc32c::crc32c(bytes);
    match format < FORMAT {
        true => sum,
        false => crc32c::crc32c_append(sum, &format.to_le_bytes()),
    }
}

/// The folder of tables set aside.
pub(crate) struct AsideFiles {
    os: Arc<dyn Os>,
    dir: PathBuf,
    database_id: u64,
    /// Held while a file is read to be written anew.
    updating: Mutex<()>,
}

impl AsideFiles {
    /// Of the database in `dir`.
    pub fn new(os: Arc<dyn Os>, dir: &Path, database_id: u64) -> Self {
        AsideFiles {
            os,
            dir: dir.join(FOLDER),
            database_id,
            updating: Mutex::default(),
        }
    }

    fn path(&self, table: TableId) -> PathBuf {
        self.dir.join(table.to_string())
    }

    /// Every table that is set aside, with its file's content or what is wrong with that.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn load(&self) -> Result<BTreeMap<TableId, Result<Aside>>> {
        let mut asides = BTreeMap::new();
        if !self.os.exists(&self.dir)? {
            return Ok(asides);
        }
        for name in self.os.list(&self.dir)? {
            if let Ok(number) = name.parse() {
                asides.insert(TableId(number), self.read(TableId(number)));
            }
        }
        Ok(asides)
    }

    /// For a database that is being created: removes the files of one that was here before, and is no more. They would
    /// count as damaged ones of its own tables.
    pub fn clear(&self) -> Result<()> {
        if is_planted(PlantedFault::LeaveOldAsides) || !self.os.exists(&self.dir)? {
            return Ok(());
        }
        for name in self.os.list(&self.dir)? {
            if name.parse::<u32>().is_ok() {
                self.os.remove(&self.dir.join(name))?;
            }
        }
        self.os.sync_dir(&self.dir)
    }

    /// As [`AsideFiles::load`], for recovery: a file that can't be read now may tell more another time.
    ///
    /// # Errors
    /// Those of the folder, and of every file whose bytes were not read.
    pub fn load_read(&self) -> Result<BTreeMap<TableId, Result<Aside>>> {
        let asides = self.load()?;
        if is_planted(PlantedFault::TrustUnreadAside) {
            return Ok(asides);
        }
        for (&table, aside) in &asides {
            match aside {
                Ok(_) | Err(Error::Corrupt { .. } | Error::Format { .. }) => {}
                Err(error @ Error::OutOfMemory { .. }) => {
                    // It does not say of which file.
                    let source = io::Error::new(io::ErrorKind::OutOfMemory, error.clone());
                    return Err(Error::io("read", self.path(table), source));
                }
                Err(error) => return Err(error.clone()),
            }
        }
        Ok(asides)
    }

    /// Makes the names in the folder durable, and its own: a process that was killed may have left them
    /// in the kernel's memory alone, and what the files tell goes from the log with the next checkpoint.
    fn make_durable(&self) -> Result<()> {
        if is_planted(PlantedFault::TrustAsideNames) || !self.os.exists(&self.dir)? {
            return Ok(());
        }
        self.sync_names()
    }

    fn sync_names(&self) -> Result<()> {
        self.os.sync_dir(directory_of(&self.dir))?;
        self.os.sync_dir(&self.dir)
    }

    fn read(&self, table: TableId) -> Result<Aside> {
        let path = self.path(table);
        Aside::decode(&path, self.database_id, &self.bytes_of(&path)?)
    }

    fn bytes_of(&self, path: &Path) -> Result<Vec<u8>> {
        let file = self.os.open(path, OpenMode::ReadOnly)?;
        let len = usize::try_from(file.len()?).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        room::reserve(&mut bytes, len, "a table set aside")?;
        bytes.resize(len, 0);
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn write(&self, table: TableId, aside: &Aside) -> Result<()> {
        self.write_bytes(&self.path(table), &aside.encode(self.database_id)?)
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
    fn keep_damaged(&self, table: TableId) -> Result<PathBuf> {
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
        change: impl FnOnce(Option<Aside>) -> Aside,
    ) -> Result<()> {
        let _updating = self.updating.lock();
        let before = match self.os.exists(&self.path(table))? {
            true => Some(self.read(table)?),
            false => None,
        };
        self.write(table, &change(before))
    }

    fn remove(&self, table: TableId) -> Result<()> {
        self.os.remove(&self.path(table))?;
        self.os.sync_dir(&self.dir)
    }
}

/// The tables set aside, while recovery runs.
pub(super) struct Asides<'a> {
    files: &'a AsideFiles,
    registry: &'a Registry,
    /// What the checkpoint has running: of what could not be taken back of them, nobody knows.
    running: Vec<TxId>,
    /// Set aside at an earlier opening: their files have everything. Here without changes.
    before: BTreeMap<TableId, Aside>,
    /// Of these, tables that have lost their rows since, or are gone: their files say nothing any more.
    over: BTreeMap<TableId, Aside>,
    /// Tables whose files can't be understood. They are set aside now.
    damaged: BTreeMap<TableId, Error>,
    now: BTreeMap<TableId, Aside>,
    /// Tables whose definition makes no sense.
    lost: BTreeMap<TableId, Error>,
}

impl<'a> Asides<'a> {
    /// With the tables that an earlier opening has set aside, as [`AsideFiles::load_read`] has found them.
    pub fn new(
        files: &'a AsideFiles,
        found: BTreeMap<TableId, Result<Aside>>,
        registry: &'a Registry,
        running: Vec<TxId>,
        lost: BTreeMap<TableId, Error>,
    ) -> Result<Asides<'a>> {
        let mut asides = Asides {
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
        for (table, aside) in found {
            let aside = match aside {
                Ok(aside) => Aside {
                    changes: Vec::new(),
                    undecided: Vec::new(),
                    ..aside
                },
                Err(error) if is_planted(PlantedFault::TrustUnreadAside) => {
                    Aside::of(&error, Vec::new(), None)
                }
                Err(error) => {
                    let is_known = registry.state(table).is_some();
                    if is_known || asides.lost.contains_key(&table) {
                        asides.set_aside(table, &error);
                    }
                    asides.damaged.insert(table, error);
                    continue;
                }
            };
            let definition = registry.definition(table);
            if definition.is_ok_and(|now| !aside.is_of(&now)) {
                asides.over.insert(table, aside);
                continue;
            }
            registry.set_aside(table, aside.error());
            asides.before.insert(table, aside);
        }
        Ok(asides)
    }

    /// Sets tables aside in which rollback has met damage, or of which it can't know all that is to be undone.
    pub fn take_damaged(&mut self) {
        for (table, error) in self.registry.take_damaged() {
            self.set_aside(table, &error);
        }
    }

    /// Sets a table aside.
    pub fn set_aside(&mut self, table: TableId, error: &Error) {
        if self.before.contains_key(&table) || self.now.contains_key(&table) {
            return;
        }
        tracing::error!(%table, %error, "the table is damaged, and set aside");
        let aside = Aside::of(error, self.running.clone(), self.clustered(table));
        self.registry.set_aside(table, aside.error());
        self.now.insert(table, aside);
    }

    /// The number of a table's clustered tree.
    fn clustered(&self, table: TableId) -> Option<TreeId> {
        let definition = self.registry.definition(table).ok()?;
        Some(definition.trees.first()?.id)
    }

    /// Whether a table is set aside, so that none of its changes is applied. One whose definition makes no sense is,
    /// from its first change on.
    pub fn has(&mut self, table: TableId) -> bool {
        if self.before.contains_key(&table) || self.damaged.contains_key(&table) {
            return true;
        }
        if let Some(error) = self.lost.get(&table).cloned() {
            self.set_aside(table, &error);
        }
        self.now.contains_key(&table)
    }

    /// Whether a change of definitions is of a table whose definition makes no sense.
    pub fn is_lost(&self, record: &DdlRecord) -> bool {
        let table = match record {
            DdlRecord::Create(definition)
            | DdlRecord::CreateCounted(definition, _)
            | DdlRecord::Truncate(definition) => definition.id,
            DdlRecord::Drop(id)
            | DdlRecord::Rename(id, _)
            | DdlRecord::Counter(id, _)
            | DdlRecord::Locking(id, _)
            | DdlRecord::Names(id, _) => *id,
        };
        self.lost.contains_key(&table)
    }

    /// A table whose definition makes no sense is gone.
    pub fn forget_lost(&mut self, table: TableId) {
        self.lost.remove(&table);
    }

    /// A table has lost all its rows, or is gone: what was wrong with it does not matter any more.
    pub fn forget(&mut self, table: TableId) {
        self.now.remove(&table);
        if is_planted(PlantedFault::AsideForGood) {
            return;
        }
        if let Some(aside) = self.before.remove(&table) {
            self.over.insert(table, aside);
        }
        if self.damaged.remove(&table).is_some() {
            self.over.insert(table, Aside::default());
        }
    }

    /// The log has made a table, or given it other trees. A file that tells of these trees is of an opening of this
    /// very log, which did not come to its checkpoint. It has all changes, and of prepared transactions those that
    /// the log has no more under their present numbers: so the table stays set aside.
    pub fn made(&mut self, table: TableId) {
        if is_planted(PlantedFault::YoungIsSound) {
            return;
        }
        let clustered = self.clustered(table);
        if let Some(aside) = self.over.remove(&table) {
            let is_of = clustered.is_some() && aside.clustered == clustered;
            let tables = if is_of {
                &mut self.before
            } else {
                &mut self.over
            };
            tables.insert(table, aside);
        }
        if let Some(aside) = self.before.get(&table) {
            self.registry.set_aside(table, aside.error());
        } else if let Some(error) = self.damaged.get(&table).cloned() {
            self.set_aside(table, &error);
        }
    }

    /// Writes what has to outlive the log, and removes the files of tables that need them no more. Returns the tables
    /// whose definition makes no sense.
    pub fn finish(mut self, log: &Log, committed: &Committed) -> Result<BTreeMap<TableId, Error>> {
        let mut changes = committed.changes_of(log, self.now.keys().copied())?;
        for (table, aside) in &mut self.now {
            aside.changes = changes.remove(table).unwrap_or_default();
            if self.damaged.contains_key(table) {
                let kept = self.files.keep_damaged(*table)?;
                aside.file = kept.display().to_string();
                self.registry.set_aside(*table, aside.error());
            }
            self.files.write(*table, aside)?;
        }
        let void = self.before.into_keys().chain(self.over.into_keys());
        for table in void.chain(self.damaged.into_keys()) {
            let kept = self.now.contains_key(&table) || self.lost.contains_key(&table);
            if !kept && !self.registry.is_set_aside(table) {
                // Whether it is void, too, can't be told of one that can't be understood.
                if self.files.read(table).is_err() {
                    self.files.keep_damaged(table)?;
                }
                self.files.remove(table)?;
            }
        }
        Ok(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_file_comes_back_and_every_flip_is_found(
            what in ".*",
            unfinished: Vec<u64>,
            clustered: Option<u32>,
            changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
            undecided: Vec<(u64, bool)>,
            flip: proptest::sample::Index,
        ) {
            let aside = Aside {
                what,
                unfinished: unfinished.into_iter().map(TxId).collect(),
                changes,
                clustered: clustered.map(TreeId),
                undecided: undecided
                    .into_iter()
                    .map(|(number, commits)| Undecided {
                        numbers: vec![TxId(number)],
                        commits,
                        changes: vec![(vec![1], None)],
                    })
                    .collect(),
                ..Aside::default()
            };
            let path = Path::new("aside/7");
            let mut bytes = aside.encode(77).unwrap();
            prop_assert_eq!(&Aside::decode(path, 77, &bytes).unwrap(), &aside);
            prop_assert!(Aside::decode(path, 78, &bytes).is_err());
            // The number of the format above all: each has its own way of reading.
            for bit in (8 * 8..12 * 8).chain([flip.index(bytes.len() * 8)]) {
                bytes[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(Aside::decode(path, 77, &bytes).is_err());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }

            // As the formats before have it.
            let mut aside = Aside { undecided: Vec::new(), ..aside };
            for format in (FIRST_FORMAT..FORMAT).rev() {
                if format == FIRST_FORMAT {
                    aside.clustered = None;
                }
                let mut bytes = aside.encode(77).unwrap();
                bytes.truncate(bytes.len() - (FORMAT_WITH_LOOSE_NUMBER - format) as usize);
                bytes[8..12].copy_from_slice(&format.to_le_bytes());
                let checksum = checksum(format, &bytes[16..]);
                bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
                prop_assert_eq!(&Aside::decode(path, 77, &bytes).unwrap(), &aside);
            }
        }
    }
}
