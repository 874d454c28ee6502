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
    /// Whether `dir` holds a database.
    pub fn exists(os: &dyn Os, dir: &Path) -> Result<bool> {
        os.exists(&dir.join(DATA))
    }

    /// Creates the data file in `dir` (which is created too, when missing) and locks `dir`.
    ///
    /// # Errors
    /// [`Error::InUse`] when another process has `dir` open; [`Error::Invalid`] when it holds a
    /// database already.
    pub fn create(os: Arc<dyn Os>, dir: &Path) -> Result<Store> {
        os.create_dir(dir)?;
        let lock = os.lock_dir(dir, LockMode::Exclusive)?;
        if Store::exists(&*os, dir)? {
            let what = format!("{} holds a database already", dir.display());
            return Err(Error::Invalid(what));
        }
        let new = dir.join(NEW_DATA);
        if os.exists(&new)? {
            // Left by a creation that did not end.
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
        // The name appears only when the file is whole; opening makes it durable.
        os.rename(&new, &dir.join(DATA))?;
        Ok(open_locked(&*os, dir, lock, OpenMode::ReadWrite)?.0)
    }

    /// Opens the data file of `dir`, and locks `dir`. Returns with it the `meta` bytes given to
    /// the last complete checkpoint (empty when there was none yet).
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::Format`] (another program's file, or a newer version's; it is
    /// left untouched), [`Error::Corrupt`].
    pub fn open(os: Arc<dyn Os>, dir: &Path) -> Result<(Store, Vec<u8>)> {
        let lock = os.lock_dir(dir, LockMode::Exclusive)?;
        open_locked(&*os, dir, lock, OpenMode::ReadWrite)
    }

    /// As [`Store::open`], but never writes; others may read at the same time.
    pub fn open_read_only(os: Arc<dyn Os>, dir: &Path) -> Result<(Store, Vec<u8>)> {
        let lock = os.lock_dir(dir, LockMode::Shared)?;
        open_locked(&*os, dir, lock, OpenMode::ReadOnly)
    }

    /// As [`Store::open_read_only`], but goes on as far as that makes sense where something is
    /// damaged, and puts into `damage` what: pages whose part of the place table can't be read are
    /// not there; without the newest checkpoint's record, that of the checkpoint before is used.
    ///
    /// # Errors
    /// As [`Store::open_read_only`], when there is nothing to go on with.
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

    /// Makes the space free that was taken after the last checkpoint, and lost with it. The file stays as long as it
    /// is until a checkpoint is complete: the room for that is perhaps among it, and others may take what the disk has
    /// otherwise. To be called once, when everything that was opened proved to be of a format that this version reads.
    ///
    /// # Errors
    /// Those of the file.
    pub fn free_lost(&self) -> Result<()> {
        self.space.take_over_tail(&*self.file)
    }

    /// What is wrong with either header, though the other will do: the next checkpoint writes it
    /// anew.
    ///
    /// # Errors
    /// Those of reading.
    pub fn damaged_headers(&self) -> Result<Vec<Error>> {
        Ok(read_headers(&*self.file)?.damage)
    }

    /// The error for a page whose bytes can't be, though its image is whole.
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

/// Makes a checkpoint durable that was found. That its header can be read says nothing: a process that
/// was killed, or whose sync failed, may have left it in the kernel's memory alone. Then the device has
/// the checkpoint before, whose pages and log must stay until this is done. What a header leads to was
/// synced before the header was written.
fn make_durable(os: &dyn Os, dir: &Path, file: &dyn File, found: &Checkpoint) -> Result<()> {
    if found.record.meta.is_empty() && !is_planted(PlantedFault::TrustNewNames) {
        // So may the names be of a database whose creation goes on now.
        os.sync_dir(dir)?;
        os.sync_dir(directory_of(dir))?;
    }
    if is_planted(PlantedFault::TrustHeader) {
        return Ok(());
    }
    // Written once more, for a sync does nothing for what a failed one has forgotten.
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

/// A checkpoint as the file has it.
struct Checkpoint {
    header: Header,
    record: Record,
    /// The place table's chunks.
    chunks: Vec<Vec<u64>>,
}

/// Reads what a header leads to. A chunk of the place table that can't be read is an error, or,
/// with `damage`, noted there and taken for empty.
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
    /// The space that it leaves free.
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
        // Images written after the checkpoint and lost with it may have had any of the next.
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

    /// The free space between; or where two parts overlap, and a sentence about it.
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
