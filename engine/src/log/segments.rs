//! The log's files: an endless stream of bytes, cut into segments of one size.
//!
//! Segment `n` holds the stream's bytes `n * capacity ..`, behind a header block. A segment that is not needed any more
//! becomes a spare, and later a segment with another number. Its space is reserved and written, so a sync has only data
//! to write. Byte layout: `docs/format.md`, "Log segment".

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::segment_header::{self, BLOCK, LARGEST_SEGMENT};
use crate::error::{Error, Result};
use crate::os::{directory_of, File, OpenMode, Os};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::{Mutex, MutexGuard};
use crate::{fallible, knobs};

/// Numbers stay below this, and sizes below another limit, so that positions fit in 63 bits.
const MOST_SEGMENTS: u64 = 1 << 30;
/// Prefix of the names of spares; the rest of the name has no meaning.
const SPARE: &str = "spare-";
/// The name of a file that is being made a segment, and is not a spare.
const NEW: &str = "new";

/// The segment files of a log's directory. Each file is in one list, segments or spares, even if it can't be renamed or
/// removed: so it is used or removed later.
#[derive(Debug)]
pub struct Segments {
    os: Arc<dyn Os>,
    dir: PathBuf,
    database_id: u64,
    segment_bytes: u64,
    open: Mutex<Open>,
    /// Held while segments are made, so that two threads don't make the same one, and no thread counts on segments that
    /// are taken back. True once the log is closed: another process may have the directory then.
    making: Mutex<bool>,
}

#[derive(Debug, Default)]
struct Open {
    files: BTreeMap<u64, Arc<dyn File>>,
    /// The segments in `files` that were spares: all their blocks have been written before.
    recycled: BTreeSet<u64>,
    spares: Vec<String>,
    next_spare: u64,
}

fn name_of(number: u64) -> String {
    format!("{number:08}")
}

impl Segments {
    /// Creates `dir`, without segments yet.
    pub fn create(
        os: Arc<dyn Os>,
        dir: &Path,
        database_id: u64,
        segment_bytes: u64,
    ) -> Result<Self> {
        if !segment_header::is_size(segment_bytes) {
            return Err(Error::Invalid(format!(
                "log segments of {segment_bytes} bytes: the size must be a multiple of {BLOCK}, \
                 at least {}, at most {LARGEST_SEGMENT}",
                4 * BLOCK
            )));
        }
        os.create_dir(dir)?;
        let mut open = Open::default();
        for name in os.list(dir)? {
            // An unfinished creation left it: there is no database that needs it.
            if name.parse::<u64>().is_ok() {
                os.remove(&dir.join(&name))?;
            }
            if name.starts_with(SPARE) {
                open.spares.push(name);
            }
        }
        os.sync_dir(dir)?;
        os.sync_dir(directory_of(dir))?;
        let segments = Segments {
            os,
            dir: dir.to_owned(),
            database_id,
            segment_bytes,
            open: Mutex::new(open),
            making: Mutex::default(),
        };
        segments.drop_spares(0)?;
        Ok(segments)
    }

    /// Opens the segments in `dir` that hold `from` and the positions behind it.
    pub fn open(
        os: Arc<dyn Os>,
        dir: &Path,
        database_id: u64,
        from: u64,
        mode: OpenMode,
    ) -> Result<Self> {
        if mode != OpenMode::ReadOnly && !is_planted(PlantedFault::TrustSegmentNames) {
            // The process before may have been killed after it named a segment: a name that can be read is durable only
            // after this sync.
            os.sync_dir(dir)?;
        }
        let mut numbers = Vec::new();
        let mut open = Open::default();
        for name in os.list(dir)? {
            match name.parse::<u64>() {
                Ok(number) if name == name_of(number) && number < MOST_SEGMENTS => {
                    numbers.push(number)
                }
                _ if name.starts_with(SPARE) => open.spares.push(name),
                _ => {}
            }
        }
        numbers.sort_unstable();
        let missing = |number: u64, what: String| Error::Corrupt {
            file: dir.join(name_of(number)),
            offset: 0,
            page: None,
            what,
        };
        let Some(&newest) = numbers.last() else {
            return Err(missing(0, "the log has no segments".into()));
        };
        let file = os.open(&dir.join(name_of(newest)), mode)?;
        let segment_bytes = segment_header::check(&*file, database_id, newest)?;
        let first = from / (segment_bytes - BLOCK);
        for number in first..=newest {
            if numbers.binary_search(&number).is_err() {
                let what = format!("this log segment is missing (needed from position {from})");
                return Err(missing(number, what));
            }
            let file = os.open(&dir.join(name_of(number)), mode)?;
            let size = segment_header::check(&*file, database_id, number)?;
            if size != segment_bytes {
                let what = format!("a segment of {size} bytes among ones of {segment_bytes}");
                return Err(missing(number, what));
            }
            open.files.insert(number, file);
        }
        if open.files.is_empty() {
            let what = format!("the log ends before position {from}, where it is to be read");
            return Err(missing(first, what));
        }
        let segments = Segments {
            os,
            dir: dir.to_owned(),
            database_id,
            segment_bytes,
            open: Mutex::new(open),
            making: Mutex::default(),
        };
        if mode != OpenMode::ReadOnly {
            for &number in numbers.iter().filter(|&&number| number < first) {
                segments.make_spare(number)?;
            }
        }
        Ok(segments)
    }

    /// Bytes of the stream in a segment.
    pub fn capacity(&self) -> u64 {
        self.segment_bytes - BLOCK
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// First position behind the last segment.
    pub fn end(&self) -> u64 {
        let last = self.open.lock().files.keys().next_back().copied();
        last.map_or(0, |last| (last + 1) * self.capacity())
    }

    /// The file of a position, and the offset in it.
    pub fn locate(&self, position: u64) -> (PathBuf, u64) {
        let number = position / self.capacity();
        (
            self.dir.join(name_of(number)),
            BLOCK + position % self.capacity(),
        )
    }

    /// Number of segment files in use.
    pub fn count(&self) -> usize {
        self.open.lock().files.len()
    }

    /// Bytes of all segment files, spares included.
    pub fn file_bytes(&self) -> u64 {
        let open = self.open.lock();
        (open.files.len() + open.spares.len()) as u64 * self.segment_bytes
    }

    fn existing(&self, number: u64) -> Option<Arc<dyn File>> {
        self.open.lock().files.get(&number).cloned()
    }

    /// Locks `making`, for a caller that renames, makes or removes files.
    fn making(&self) -> Result<MutexGuard<'_, bool>> {
        let making = self.making.lock();
        match *making {
            false => Ok(making),
            true => Err(Error::Stopped("the log was closed".into())),
        }
    }

    /// Waits until no thread makes, renames or removes a file; none will after that.
    pub fn close(&self) {
        if !is_planted(PlantedFault::CloseWhileMaking) {
            *self.making.lock() = true;
        }
    }

    /// Returns segment `number`; makes it if it does not exist.
    pub(super) fn segment(&self, number: u64) -> Result<Arc<dyn File>> {
        if let Some(file) = self.existing(number) {
            return Ok(file);
        }
        let _making = self.making()?;
        self.made(number)
    }

    /// Like [`Segments::segment`], for a caller that holds `making`.
    fn made(&self, number: u64) -> Result<Arc<dyn File>> {
        if let Some(file) = self.existing(number) {
            return Ok(file);
        }
        if number >= MOST_SEGMENTS {
            // An opening would ignore it.
            let what =
                format!("the log has come to its end: it has {MOST_SEGMENTS} segments at most");
            return Err(Error::TooLarge(what));
        }
        let spare = self.open.lock().spares.pop();
        let recycled = spare.is_some();
        let path = self.dir.join(name_of(number));
        if let Err(error) = self.make(spare.as_deref(), number, &path) {
            self.give_up(spare);
            return Err(error);
        }
        // From here on the file has the segment's name: if a later step fails, the next try replaces the file.
        if !is_planted(PlantedFault::SkipDirectorySync) {
            self.os.sync_dir(&self.dir)?;
        }
        let file = self.os.open(&path, OpenMode::ReadWrite)?;
        let mut open = self.open.lock();
        open.files.insert(number, Arc::clone(&file));
        if recycled {
            open.recycled.insert(number);
        }
        Ok(file)
    }

    /// Makes a spare or a new file the segment at `path`.
    fn make(&self, spare: Option<&str>, number: u64, path: &Path) -> Result<()> {
        let from = self.dir.join(spare.unwrap_or(NEW));
        let file = match spare {
            Some(_) => self.os.open(&from, OpenMode::ReadWrite)?,
            None => {
                if self.os.exists(&from)? {
                    self.os.remove(&from)?;
                }
                self.os.open(&from, OpenMode::CreateNew)?
            }
        };
        if file.len()? != self.segment_bytes {
            file.set_len(0)?;
            file.allocate(0, self.segment_bytes)?;
        }
        let header = segment_header::encode(self.database_id, number, self.segment_bytes);
        file.write_at(&header, 0)?;
        file.sync_data()?;
        // The name appears only when the header is on the device.
        self.os.rename(&from, path)
    }

    /// Removes a file that could not be made a segment, so that other files can use its space. A spare that can't be
    /// removed either stays a spare; the next try removes a new file.
    fn give_up(&self, spare: Option<String>) {
        let path = self.dir.join(spare.as_deref().unwrap_or(NEW));
        if !self.is_there(&path) || is_planted(PlantedFault::ForgetLogFiles) {
            return;
        }
        if let Err(left) = self.os.remove(&path) {
            tracing::warn!("{left}");
            spare.into_iter().for_each(|name| self.put_back(name));
        }
    }

    /// Puts a spare back that could not be used or removed, if it still exists. It goes behind the other spares, so
    /// that the next try takes another.
    fn put_back(&self, name: String) {
        if self.is_there(&self.dir.join(&name)) {
            self.open.lock().spares.insert(0, name);
        }
    }

    /// Returns whether a file exists, also if that can't be found out.
    fn is_there(&self, path: &Path) -> bool {
        self.os.exists(path).unwrap_or(true)
    }

    /// Makes the segments up to `position`, so that records appended there find their space. Returns the segments' end:
    /// those before it stay. If one can't be made, the ones made before it become spares again, for other uses.
    pub fn prepare(&self, position: u64) -> Result<u64> {
        let _making = self.making()?;
        let wanted = position.saturating_sub(1) / self.capacity();
        let first = match self.open.lock().files.keys().next_back() {
            Some(&last) => last + 1,
            None => wanted,
        };
        for number in first..=wanted {
            if let Err(error) = self.made(number) {
                self.take_back(first, number);
                return Err(error);
            }
        }
        Ok(self.end())
    }

    /// Makes the segments from `first` on spares again, because `failed` could not be made. The last goes first,
    /// durably: a crash can leave no segment without the ones before it.
    fn take_back(&self, first: u64, failed: u64) {
        // If the file already has its segment's name, it needs those before it.
        let named = self.is_there(&self.dir.join(name_of(failed)));
        if named || is_planted(PlantedFault::KeepRefusedSegments) {
            return;
        }
        self.become_spares(first..failed);
    }

    /// Makes segments without records spares, the last one first, each durably. Ends at the first that can't be
    /// renamed.
    fn become_spares(&self, numbers: Range<u64>) {
        for number in numbers.rev() {
            let renamed = self.become_spare(number);
            if let Err(error) = renamed.and_then(|()| self.os.sync_dir(&self.dir)) {
                tracing::warn!("{error}");
                return;
            }
        }
    }

    /// For an opening, once it has written where the log ends. A process that was killed may have made segments for
    /// records that it did not write: those behind the segment of `position` become spares. A file without a segment's
    /// name is removed. A file that can't be renamed or removed stays.
    pub fn let_go_behind(&self, position: u64) -> Result<()> {
        if is_planted(PlantedFault::KeepUnwrittenSegments) {
            return Ok(());
        }
        let _making = self.making()?;
        self.give_up(None);
        let last = self.open.lock().files.keys().next_back().copied();
        let first = position / self.capacity() + 1;
        self.become_spares(first..last.map_or(first, |last| last + 1));
        Ok(())
    }

    pub(super) fn is_recycled(&self, number: u64) -> bool {
        self.open.lock().recycled.contains(&number)
    }

    /// Reads from `position` until `buf` is full or the segments end; returns the bytes read.
    pub fn read(&self, position: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            let at = position + done as u64;
            let Some(file) = self.existing(at / self.capacity()) else {
                break;
            };
            let within = at % self.capacity();
            let most = (buf.len() - done).min((self.capacity() - within) as usize);
            let found = file.read_at(&mut buf[done..done + most], BLOCK + within)?;
            done += found;
            if found < most {
                break;
            }
        }
        Ok(done)
    }

    /// Checks that the file of each segment, from that of `position` on, is as long as its header says.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for the first that is shorter: a segment gets its name only when it is whole.
    pub fn check_lengths(&self, position: u64) -> Result<()> {
        let first = position / self.capacity();
        let files: Vec<_> = self
            .open
            .lock()
            .files
            .range(first..)
            .map(|(_, file)| Arc::clone(file))
            .collect();
        for file in files {
            let len = file.len()?;
            if len < self.segment_bytes {
                return Err(Error::Corrupt {
                    file: file.path().to_owned(),
                    offset: len,
                    page: None,
                    what: format!(
                        "the log segment has {len} bytes, expected {}",
                        self.segment_bytes
                    ),
                });
            }
        }
        Ok(())
    }

    /// Writes `from..to` again, as read. A process that was killed may have left the bytes in the kernel's memory only.
    /// After a failed sync the kernel takes them for written, so that no later sync brings them to the device. The same
    /// bytes go to the same place, so an interruption loses nothing.
    pub fn write_again(&self, from: u64, to: u64) -> Result<()> {
        let capacity = self.capacity();
        let mut bytes = Vec::new();
        let mut at = from;
        while at < to {
            let number = at / capacity;
            let file = self.existing(number).ok_or_else(|| {
                Error::Internal(format!("log segment {number} was read and is not there"))
            })?;
            let start = at % capacity / BLOCK * BLOCK;
            let rest = (to - number * capacity)
                .next_multiple_of(BLOCK)
                .min(capacity);
            let piece = (rest - start).min(knobs::log_write_blocks() as u64 * BLOCK);
            let more = (piece as usize).saturating_sub(bytes.len());
            fallible::reserve(&mut bytes, more, "the log's end")?;
            bytes.resize(piece as usize, 0);
            file.read_exact_at(&mut bytes, BLOCK + start)?;
            file.write_at(&bytes, BLOCK + start)?;
            at = number * capacity + start + piece;
        }
        Ok(())
    }

    /// Syncs the segments that hold `from..to`.
    pub fn sync(&self, from: u64, to: u64) -> Result<()> {
        if is_planted(PlantedFault::SkipLogSync) {
            return Ok(());
        }
        let last = to.saturating_sub(1) / self.capacity();
        for number in from / self.capacity()..=last {
            if let Some(file) = self.existing(number) {
                file.sync_data()?;
            }
        }
        Ok(())
    }

    /// Makes the segments that hold only bytes before `keep` spares. One that can't be renamed stays a segment until
    /// the next call; the others are released all the same.
    pub fn release_before(&self, keep: u64) -> Result<()> {
        let first = keep / self.capacity();
        let old: Vec<u64> = {
            let mut open = self.open.lock();
            let old = open.files.range(..first).map(|(&number, _)| number);
            let old = old.collect();
            if is_planted(PlantedFault::ForgetLogFiles) {
                open.files = open.files.split_off(&first);
            }
            old
        };
        let mut released = Ok(());
        for number in old {
            released = released.and(self.make_spare(number));
        }
        released
    }

    /// Removes at most `most` spares, as long as there are more than `keep`.
    pub fn trim_spares(&self, keep: usize, most: usize) -> Result<()> {
        let there = self.spares();
        self.drop_spares(keep.max(there.saturating_sub(most)))
    }

    /// Number of spare files.
    pub fn spares(&self) -> usize {
        self.open.lock().spares.len()
    }

    fn make_spare(&self, number: u64) -> Result<()> {
        let _making = self.making()?;
        self.become_spare(number)
    }

    /// Like [`Segments::make_spare`], for a caller that holds `making`.
    fn become_spare(&self, number: u64) -> Result<()> {
        let name = loop {
            let name = {
                let mut open = self.open.lock();
                open.next_spare += 1;
                format!("{SPARE}{}", open.next_spare)
            };
            if !self.os.exists(&self.dir.join(&name))? {
                break name;
            }
        };
        let from = self.dir.join(name_of(number));
        self.os.rename(&from, &self.dir.join(&name))?;
        let mut open = self.open.lock();
        open.files.remove(&number);
        open.recycled.remove(&number);
        open.spares.push(name);
        Ok(())
    }

    fn drop_spares(&self, keep: usize) -> Result<()> {
        loop {
            let _making = self.making()?;
            let name = {
                let mut open = self.open.lock();
                if open.spares.len() <= keep {
                    return Ok(());
                }
                open.spares.pop()
            };
            let Some(name) = name else { continue };
            if let Err(error) = self.os.remove(&self.dir.join(&name)) {
                if !is_planted(PlantedFault::ForgetLogFiles) {
                    self.put_back(name);
                }
                return Err(error);
            }
        }
    }
}
