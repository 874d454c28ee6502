//! Creating and opening a data file.

use std::path::Path;
use std::sync::Arc;

use super::completing::Durable;
use super::header::{self, Header, Record, HEADER, HEADER_UNITS};
use super::page_ids::PageIds;
use super::place::{units_for, Place, UNIT};
use super::reading::Reading;
use super::space::Space;
use super::table::Table;
use super::{Batch, Counters, Store};
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::os::{directory_of, DirLock, File, LockMode, OpenMode, Os, StopFlag};
use crate::planted::{is_planted, PlantedFault};
use crate::store::space::extents::Extents;
use crate::sync::atomic::{AtomicBool, AtomicU64};
use crate::sync::{Mutex, RwLock};

/// Name of the data file in the database directory.
const DATA: &str = "data";
/// The data file while it is being created.
const NEW_DATA: &str = "data.new";

impl Store {
    /// Returns whether `dir` holds a database.
    pub fn exists(os: &dyn Os, dir: &Path) -> Result<bool> {
        os.exists(&dir.join(DATA))
    }

    /// Creates the data file in `dir` and locks `dir`, which is created if missing.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has `dir` open; [`Error::Invalid`] if `dir` holds a database already.
    pub fn create(os: Arc<dyn Os>, dir: &Path) -> Result<Store> {
        os.create_dir(dir)?;
        let lock = os.lock_dir(dir, LockMode::Exclusive)?;
        if Store::exists(&*os, dir)? {
            let what = format!("{} holds a database already", dir.display());
            return Err(Error::Invalid(what));
        }
        let new = dir.join(NEW_DATA);
        if os.exists(&new)? {
            // An earlier creation left it, and did not end.
            os.remove(&new)?;
        }
        let file = os.open(&new, OpenMode::CreateNew)?;
        let record = Record::default();
        let header = Header {
            database_id: os.random(),
            sequence: 0,
            record_offset: HEADER_UNITS,
            record_len: record.encode(0).len() as u64,
        };
        let mut bytes = header.encode();
        bytes.resize(2 * HEADER, 0);
        bytes.extend_from_slice(&record.encode(header.database_id));
        bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
        file.write_at(&bytes, 0)?;
        file.sync_data()?;
        drop(file);
        // The name appears only when the file is whole; opening makes the name durable.
        os.rename(&new, &dir.join(DATA))?;
        Ok(open_locked(&*os, dir, lock, OpenMode::ReadWrite)?.0)
    }

    /// Opens the data file of `dir`, and locks `dir`; also returns the `meta` bytes of the last complete checkpoint
    /// (empty if there is none yet).
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Format`] (a file of another program or a newer version, left untouched),
    /// [`Error::Corrupt`].
    pub fn open(os: Arc<dyn Os>, dir: &Path) -> Result<(Store, Vec<u8>)> {
        let lock = os.lock_dir(dir, LockMode::Exclusive)?;
        open_locked(&*os, dir, lock, OpenMode::ReadWrite)
    }

    /// Like [`Store::open`], but never writes; other processes may read at the same time.
    pub fn open_read_only(os: Arc<dyn Os>, dir: &Path) -> Result<(Store, Vec<u8>)> {
        let lock = os.lock_dir(dir, LockMode::Shared)?;
        open_locked(&*os, dir, lock, OpenMode::ReadOnly)
    }

    /// Like [`Store::open_read_only`], but goes on past damage, and adds it to `damage`. Pages whose part of the place
    /// table can't be read are missing. If the newest checkpoint's record can't be read, the checkpoint before is used.
    ///
    /// # Errors
    /// As those of [`Store::open_read_only`], if no checkpoint can be read.
    pub fn open_damaged(
        os: Arc<dyn Os>,
        dir: &Path,
        damage: &mut Vec<Error>,
    ) -> Result<(Store, Vec<u8>)> {
        let lock = os.lock_dir(dir, LockMode::Shared)?;
        let file = os.open(&dir.join(DATA), OpenMode::ReadOnly)?;
        let headers = read_headers(&*file)?;
        damage.extend(headers.damage);
        let mut last = None;
        for header in headers.valid {
            match read_checkpoint(&*file, &header, Some(damage)) {
                Ok(checkpoint) => {
                    return Ok(store_of(
                        &*os,
                        file,
                        lock,
                        checkpoint,
                        Extents::new(0),
                        OpenMode::ReadOnly,
                    ))
                }
                Err(error) => {
                    damage.push(error.clone());
                    last = Some(error);
                }
            }
        }
        Err(last.unwrap_or_else(|| Error::Internal("a data file without a header".into())))
    }

    /// Frees the space that was taken after the last checkpoint, and lost with it. The file keeps its length until a
    /// checkpoint is complete: the space for that may be in the tail, and other files may take what the disk has
    /// elsewhere. The caller calls this once, after all files proved to be of a format that this version reads.
    ///
    /// # Errors
    /// Those of the file.
    pub fn free_lost(&self) -> Result<()> {
        self.space.take_over_tail(&*self.file)
    }

    /// The errors of damaged headers, though one is valid: the next checkpoints overwrite the damaged one.
    ///
    /// # Errors
    /// Those of reading.
    pub fn damaged_headers(&self) -> Result<Vec<Error>> {
        Ok(read_headers(&*self.file)?.damage)
    }

    /// The error for a page whose image is intact but whose bytes are not valid.
    pub fn corrupt(&self, page: PageId, what: String) -> Error {
        Error::Corrupt {
            file: self.file.path().to_owned(),
            offset: self.table.current(page).byte_offset(),
            page: Some(page),
            what,
        }
    }
}

fn read_headers(file: &dyn File) -> Result<header::Headers> {
    let mut bytes = vec![0; 2 * HEADER];
    let found = file.read_at(&mut bytes, 0)?;
    header::read(file.path(), &bytes[..found])
}

fn open_locked(
    os: &dyn Os,
    dir: &Path,
    lock: Box<dyn DirLock>,
    mode: OpenMode,
) -> Result<(Store, Vec<u8>)> {
    let file = os.open(&dir.join(DATA), mode)?;
    let header = read_headers(&*file)?.newest()?;
    let checkpoint = read_checkpoint(&*file, &header, None)?;
    let (extents, len) = (checkpoint.extents(&*file)?, file.len()?);
    let end = extents.end() * UNIT as u64;
    if len < end {
        return Err(corrupt(
            &*file,
            len,
            format!("the file ends here, its last checkpoint uses {end} bytes"),
        ));
    }
    if mode == OpenMode::ReadWrite {
        make_durable(os, dir, &*file, &checkpoint)?;
    }
    Ok(store_of(os, file, lock, checkpoint, extents, mode))
}

/// Makes the checkpoint that was found durable. A readable header does not prove that it is: a process that was killed,
/// or whose sync failed, may have left it in the kernel's memory alone. The device then still has the checkpoint
/// before, whose pages and log must stay until this is done. All that a header leads to was synced before the header
/// was written.
fn make_durable(os: &dyn Os, dir: &Path, file: &dyn File, found: &Checkpoint) -> Result<()> {
    if found.record.meta.is_empty() && !is_planted(PlantedFault::TrustNewNames) {
        // The names of a database whose creation goes on now may not be durable either.
        os.sync_dir(dir)?;
        os.sync_dir(directory_of(dir))?;
    }
    if is_planted(PlantedFault::TrustHeader) {
        return Ok(());
    }
    // Written again, as a later sync does not write what the kernel dropped in a failed one.
    let header = &found.header;
    file.write_at(&header.encode(), header.sequence % 2 * HEADER as u64)?;
    file.sync_data()
}

fn corrupt(file: &dyn File, offset: u64, what: String) -> Error {
    Error::Corrupt {
        file: file.path().to_owned(),
        offset,
        page: None,
        what,
    }
}

/// A checkpoint as read from the file.
struct Checkpoint {
    header: Header,
    record: Record,
    /// The place table's chunks.
    chunks: Vec<Vec<u64>>,
}

/// Reads the checkpoint that a header leads to. A chunk of the place table that can't be read is an error; with
/// `damage`, it is added there, and the chunk counts as empty.
fn read_checkpoint(
    file: &dyn File,
    header: &Header,
    mut damage: Option<&mut Vec<Error>>,
) -> Result<Checkpoint> {
    let (at, len) = (header.record_offset, header.record_len);
    let file_len = file.len()?;
    if at > file_len / UNIT as u64 || len > file_len - at * UNIT as u64 {
        let what = format!(
            "the checkpoint record, {len} bytes at unit {at}, lies beyond the file's end at {file_len}"
        );
        return Err(corrupt(file, 0, what));
    }
    let record = read_part(file, at * UNIT as u64, len as usize)?;
    let record =
        Record::decode(&record, header).map_err(|what| corrupt(file, at * UNIT as u64, what))?;
    let mut chunks = Vec::with_capacity(record.chunks.len());
    for (index, &place) in record.chunks.iter().enumerate() {
        let chunk = match (read_chunk(file, index, Place(place)), &mut damage) {
            (Err(error), Some(damage)) => {
                damage.push(error);
                Vec::new()
            }
            (chunk, _) => chunk?,
        };
        chunks.push(chunk);
    }
    Ok(Checkpoint {
        header: header.clone(),
        record,
        chunks,
    })
}

fn read_chunk(file: &dyn File, index: usize, place: Place) -> Result<Vec<u64>> {
    if place.is_none() {
        return Ok(Vec::new());
    }
    let bytes = read_part(file, place.byte_offset(), place.byte_len())?;
    let (generation, entries) = header::decode_chunk(&bytes, index)
        .map_err(|what| corrupt(file, place.byte_offset(), what))?;
    if !place.is_of_generation(generation) {
        let what = format!(
            "chunk {index} of the place table is stale: expected a generation that ends with \
             {:#x}, found {generation:#x}",
            place.generation_bits()
        );
        return Err(corrupt(file, place.byte_offset(), what));
    }
    Ok(entries)
}

impl Checkpoint {
    /// The space that the checkpoint leaves free.
    fn extents(&self, file: &dyn File) -> Result<Extents> {
        let mut used = Used::default();
        used.add(0, HEADER_UNITS, "the headers");
        let record_units = units_for(self.header.record_len as usize);
        used.add(
            self.header.record_offset,
            record_units,
            "the checkpoint record",
        );
        let places = |words: &[u64], what, used: &mut Used| {
            for place in words.iter().map(|&word| Place(word)) {
                if !place.is_none() {
                    used.add(place.offset(), place.units(), what);
                }
            }
        };
        places(&self.record.chunks, "a chunk of the place table", &mut used);
        for chunk in &self.chunks {
            places(chunk, "a page", &mut used);
        }
        used.extents()
            .map_err(|(offset, what)| corrupt(file, offset * UNIT as u64, what))
    }
}

fn store_of(
    os: &dyn Os,
    file: Arc<dyn File>,
    lock: Box<dyn DirLock>,
    checkpoint: Checkpoint,
    extents: Extents,
    mode: OpenMode,
) -> (Store, Vec<u8>) {
    let Checkpoint {
        header,
        record,
        chunks,
    } = checkpoint;
    let table = Table::new(&chunks, record.sequence);
    let next = table.ids().max(1);
    let free = (1..table.ids()).filter(|&id| table.current(PageId(id)).is_none());
    let ids = PageIds::new(free.collect(), next);
    let store = Store {
        stop: Arc::new(StopFlag::new()),
        database_id: header.database_id,
        read_only: mode == OpenMode::ReadOnly,
        table,
        ids,
        space: Space::new(extents),
        batch: Batch::default(),
        packing: Mutex::default(),
        reading: Reading::default(),
        writing: RwLock::default(),
        // Images that were written after the checkpoint, and lost with it, may have had any of the next generations.
        generation: AtomicU64::new(record.generation + 1 + os.random() % (1 << 19)),
        durable: Mutex::new(Durable {
            sequence: record.sequence,
            record: (header.record_offset, units_for(header.record_len as usize)),
            chunks: record.chunks,
        }),
        counters: Counters::default(),
        record_units: AtomicU64::new(units_for(header.record_len as usize)),
        refused: AtomicBool::new(false),
        file,
        lock: Mutex::new(Some(lock)),
    };
    (store, record.meta)
}

fn read_part(file: &dyn File, offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let found = file.read_at(&mut bytes, offset)?;
    if found == len {
        return Ok(bytes);
    }
    Err(Error::Corrupt {
        file: file.path().to_owned(),
        offset,
        page: None,
        what: format!("expected {len} bytes, the file ends after {found}"),
    })
}

/// The space that a checkpoint uses.
#[derive(Default)]
struct Used(Vec<(u64, u64, &'static str)>);

impl Used {
    fn add(&mut self, offset: u64, units: u64, what: &'static str) {
        self.0.push((offset, units, what));
    }

    /// The free space between the used parts; `Err` if two parts overlap: the unit, and what is wrong.
    fn extents(mut self) -> Result<Extents, (u64, String)> {
        self.0.sort_unstable();
        let end = self
            .0
            .last()
            .map_or(0, |&(offset, units, _)| offset + units);
        let mut extents = Extents::new(end);
        for pair in self.0.windows(2) {
            let ((a, units, what), (b, _, other)) = (pair[0], pair[1]);
            if a + units > b {
                return Err((b, format!("the place of {other} overlaps that of {what}")));
            }
            if a + units < b {
                extents.give(a + units, b - a - units);
            }
        }
        Ok(extents)
    }
}
