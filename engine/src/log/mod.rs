//! The one redo log: append, group commit, read back.
//!
//! The log is one endless stream of bytes, cut into segment files; an [`Lsn`] is a position in it.
//!
//! | file | holds |
//! |---|---|
//! | `record.rs` | a record's header, and the marks |
//! | `segments.rs`, `segment_header.rs` | the files and their recycling; the header of each |
//! | `tail.rs` | the one writer's position |
//! | `demand.rs` | how many spare files the log's pace needs |
//! | `group_commit.rs` | the buffer, group commit |
//! | `reader.rs` | reading back, and finding the valid end |
//! | `beginnings.rs` | offsets at which records may begin, whatever precedes them |
#![forbid(unsafe_code)]

mod beginnings;
mod demand;
pub(crate) mod fuzz_entry;
mod group_commit;
mod reader;
mod record;
mod segment_header;
mod segments;
mod tail;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use self::demand::Demand;
use self::group_commit::GroupCommit;
pub use self::reader::{LogReader, LogRecord};
use self::segments::Segments;
use self::tail::Tail;
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::knobs;
use crate::os::{OpenMode, Os, StopFlag};
use crate::planted::{is_planted, PlantedFault};
pub use crate::settings::Durability;
use crate::sync::atomic::Ordering;
use crate::sync::thread::JoinHandle;
use crate::sync::{Condvar, Mutex};

/// The log's folder within the database directory.
pub const LOG_DIR: &str = "log";

/// Options with which a log is created or opened.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The database's number; a segment of another database is refused.
    pub database_id: u64,
    /// Bytes of a segment file: a multiple of 4096, at least 16384. Fixed when the log is created.
    pub segment_bytes: u64,
    /// Shared with the store: a failed write or sync stops both.
    pub stop: Arc<StopFlag>,
    /// Whether a thread syncs records that no caller waits for, and makes segments ahead of time.
    pub background: bool,
}

impl LogOptions {
    /// Segments of 64 MiB.
    pub fn new(database_id: u64, stop: Arc<StopFlag>) -> Self {
        LogOptions {
            database_id,
            segment_bytes: 64 << 20,
            stop,
            background: true,
        }
    }

    /// Sets the size of segments for a log that reaches `log_bytes` between checkpoints: a sixteenth of it, between 1
    /// MiB and 64 MiB. The log takes about that much more of the disk than it uses.
    pub fn sized_for(self, log_bytes: u64) -> Self {
        let part = (log_bytes / knobs::log_segments())
            .clamp(knobs::least_log_segment(), knobs::most_log_segment());
        LogOptions {
            segment_bytes: part.next_power_of_two(),
            ..self
        }
    }
}

/// Counters of the log since it was opened, and its positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// End of the last record appended.
    pub end: Lsn,
    /// Everything before it is durable.
    pub durable: Lsn,
    /// Writes.
    pub writes: u64,
    /// Bytes of records written.
    pub written_bytes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Segment files in use, without spares.
    pub segments: u64,
    /// Bytes of all segment files, spares included.
    pub file_bytes: u64,
}

/// The redo log. All methods may be called from many threads.
#[derive(Debug)]
pub struct Log {
    group: Arc<GroupCommit>,
    background: Arc<Background>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Background {
    closing: Mutex<bool>,
    wake: Condvar,
}

impl Log {
    /// Creates the log in `dir` (usually `database/log`), which is created too. Replaces a log without a database,
    /// which an unfinished creation left.
    pub fn create(os: Arc<dyn Os>, dir: &Path, options: LogOptions) -> Result<Log> {
        let segments = Segments::create(
            Arc::clone(&os),
            dir,
            options.database_id,
            options.segment_bytes,
        )?;
        Log::start(&*os, segments, &options, &Found::default(), 0)
    }

    /// Opens the log and finds its valid end. `from` is the position that the last complete
    /// checkpoint recorded ([`Log::mark`]), or `Lsn(0)` when there is none yet.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when there is no valid record at `from`, or when a bad record lies where a mark says that the
    /// log was durable. [`Error::Format`] for a log of another database or of a newer version.
    pub fn open(os: Arc<dyn Os>, dir: &Path, options: LogOptions, from: Lsn) -> Result<Log> {
        let segments = Segments::open(
            Arc::clone(&os),
            dir,
            options.database_id,
            from.0,
            OpenMode::ReadWrite,
        )?;
        let segments = Arc::new(segments);
        let found = Found::read(&segments, from.0)?;
        let epoch = match found.epoch {
            Some(epoch) => epoch,
            // A crash may have lost the very first record; it can lose no other.
            None if from == Lsn(0) => 0,
            None => return Err(LogReader::new(segments, from.0, None).no_beginning()),
        };
        found.make_durable(&segments)?;
        let segments = Arc::into_inner(segments)
            .ok_or_else(|| Error::Internal("a reader outlived the log's opening".into()))?;
        Log::start(&*os, segments, &options, &found, epoch)
    }

    /// Opens the log of `dir` for reading only, from `from` to its valid end.
    ///
    /// # Errors
    /// As those of [`Log::open`] for the segments; the reader returns the errors of bad records.
    pub fn read_only(
        os: Arc<dyn Os>,
        dir: &Path,
        database_id: u64,
        from: Lsn,
    ) -> Result<LogReader> {
        let segments = Segments::open(os, dir, database_id, from.0, OpenMode::ReadOnly)?;
        let segments = Arc::new(segments);
        let reader = LogReader::new(segments, from.0, None);
        // A crash may have lost the very first record; it can lose no other.
        Ok(match from {
            Lsn(0) => reader,
            _ => reader.must_begin(),
        })
    }

    /// Writes the first record of this opening at the log's end, and starts the background thread if one is asked for.
    /// On a full disk, that record comes with the first other one, or never. Otherwise each opening would take some of
    /// the space behind the last record, until one finds none.
    fn start(
        os: &dyn Os,
        segments: Segments,
        options: &LogOptions,
        found: &Found,
        before: u32,
    ) -> Result<Log> {
        let end = found.end;
        let epoch = loop {
            let epoch = os.random() as u32;
            if epoch != before && epoch != 0 {
                break epoch;
            }
        };
        let opened = record::opened(epoch, end, end, before);
        let mut tail = Tail::at(&segments, end)?;
        let mut now = end + opened.len() as u64;
        let has_room = match segments.prepare(now) {
            Err(error @ Error::NoSpace { .. })
                if end > 0 && !is_planted(PlantedFault::NeedRoomToOpen) =>
            {
                tracing::warn!("the log can be read, and has no room for more: {error}");
                false
            }
            prepared => prepared.map(|_| true)?,
        };
        let last_mark = if has_room {
            tail.write(&segments, &opened, true)?;
            let synced = match is_planted(PlantedFault::OpenedSaysAll) {
                true => found.durable,
                false => end,
            };
            segments.sync(synced, now)?;
            // `Log::open` takes position 0 for "no checkpoint yet", so `Log::mark` must not return it.
            let is_first = end == 0 || is_planted(PlantedFault::NeedRoomToOpen);
            (end, if is_first { 0 } else { now })
        } else {
            now = end;
            match found.last_mark {
                (0, _) => (0, 0),
                mark => mark,
            }
        };
        segments.let_go_behind(now + group_commit::room_behind())?;
        let group = Arc::new(GroupCommit::new(
            Arc::new(segments),
            Arc::clone(&options.stop),
            epoch,
            tail,
            (now, last_mark),
            (!has_room).then_some(before),
        ));
        let background = Arc::new(Background::default());
        let start = || {
            let thread = crate::sync::thread::Builder::new().name("peregrine-log".into());
            let (group, background) = (Arc::clone(&group), Arc::clone(&background));
            thread.spawn(move || keep_durable(&group, &background))
        };
        let thread = options.background.then(start).transpose();
        let thread = thread
            .map_err(|source| Error::io("start a thread for", group.segments.dir(), source))?;
        Ok(Log {
            group,
            background,
            thread,
        })
    }

    /// Appends a record (`kind` below 0xF0); returns the record's end, for [`Log::durable`].
    ///
    /// # Errors
    /// [`Error::NoSpace`] when the disk has no space for another segment: nothing was appended, and appending works
    /// again when there is space. [`Error::TooLarge`] beyond 2 GiB; [`Error::Stopped`].
    pub fn append(&self, kind: u8, payload: &[&[u8]]) -> Result<Lsn> {
        self.group.append(kind, payload).map(Lsn)
    }

    /// Promises space for a record of `len` bytes. No other record gets that space, so [`Promised::append`] is not
    /// refused for lack of space. For callers that could not go back once the log has refused.
    ///
    /// # Errors
    /// As those of [`Log::append`].
    pub fn promise(&self, len: usize) -> Result<Promised> {
        Ok(Promised {
            group: Arc::clone(&self.group),
            bytes: self.group.promise(len)?,
        })
    }

    /// Appends a mark and returns its *beginning*, unless the log ends with a mark. A checkpoint can record that
    /// position, and recovery can read from it, once the mark is durable.
    pub fn mark(&self) -> Result<Lsn> {
        self.group.mark().map(Lsn)
    }

    /// Waits until everything before `upto` is as durable as asked.
    ///
    /// # Errors
    /// [`Error::Stopped`] when a write or sync has failed, now or before: then it is unknown whether the bytes before
    /// `upto` are on the device.
    pub fn durable(&self, upto: Lsn, durability: Durability) -> Result<()> {
        match durability {
            Durability::SyncAtCommit => self.group.wait_durable(upto.0),
            Durability::WriteAtCommit => self.group.wait_written(upto.0),
            Durability::Later => Ok(()),
        }
    }

    /// Makes everything durable, and then a mark that says so, unless the log ends with one. If the device later loses
    /// or spoils durable bytes, the next opening can tell that from a torn write.
    /// # Errors
    /// As those of [`Log::durable`].
    pub fn confirm(&self) -> Result<()> {
        self.group.confirm()
    }

    /// Ends the use of the files, though other values may still refer to the log: when this returns, nothing is being
    /// written, and nothing will be. A caller that needs appended records durable asks for that before.
    pub fn close(&self) {
        self.group.close();
    }

    /// The end of the last record appended.
    pub fn end(&self) -> Lsn {
        Lsn(self.group.ends().0)
    }

    /// Reads from `from`, the beginning of a record, to the end of the written bytes.
    pub fn read_from(&self, from: Lsn) -> Result<LogReader> {
        let written = self.group.ends().1;
        let segments = Arc::clone(&self.group.segments);
        Ok(LogReader::new(segments, from.0, Some(written)))
    }

    /// Bytes of the log that a segment holds: the log grows and shrinks by so much.
    pub fn segment_bytes(&self) -> u64 {
        self.group.segments.capacity()
    }

    /// Releases everything before `keep`. Its segments are recycled, or removed within seconds if the log's pace does
    /// not need them.
    pub fn release_before(&self, keep: Lsn) -> Result<()> {
        self.group.segments.release_before(keep.0)
    }

    /// Returns whether a record has found no space on the disk since the last call.
    pub fn take_refused(&self) -> bool {
        self.group.take_refused()
    }

    /// Gives all spare segments back to the file system.
    ///
    /// # Errors
    /// Those of removing files.
    pub fn give_spares_back(&self) -> Result<()> {
        self.group.segments.trim_spares(0, usize::MAX)
    }

    /// Returns counters and positions.
    pub fn stats(&self) -> LogStats {
        let (end, _, durable) = self.group.ends();
        LogStats {
            end: Lsn(end),
            durable: Lsn(durable),
            writes: self.group.writes.load(Ordering::Relaxed),
            written_bytes: self.group.written_bytes.load(Ordering::Relaxed),
            syncs: self.group.syncs.load(Ordering::Relaxed),
            segments: self.group.segments.count() as u64,
            file_bytes: self.group.segments.file_bytes(),
        }
    }
}

/// Space for a record, until the record is appended or this is dropped: see [`Log::promise`].
#[derive(Debug)]
pub struct Promised {
    group: Arc<GroupCommit>,
    bytes: u64,
}

impl Promised {
    /// Like [`Log::append`], for a record of at most the promised length.
    ///
    /// # Errors
    /// As those of [`Log::append`], except for lack of space.
    pub fn append(mut self, kind: u8, payload: &[&[u8]]) -> Result<Lsn> {
        let end = self.group.append_promised(kind, payload, &mut self.bytes);
        end.map(Lsn)
    }
}

impl Drop for Promised {
    fn drop(&mut self) {
        self.group.take_promise_back(self.bytes);
    }
}

/// The result of reading the log.
#[derive(Debug, Default)]
struct Found {
    /// The valid end.
    end: u64,
    /// The epoch of the last record.
    epoch: Option<u32>,
    /// Where the last record begins and ends, if it is a mark.
    last_mark: (u64, u64),
    /// The log is durable up to here, as its marks say. The bytes behind can be read, but may be in the kernel's memory
    /// only.
    durable: u64,
}

impl Found {
    fn read(segments: &Arc<Segments>, from: u64) -> Result<Found> {
        let mut reader = LogReader::new(Arc::clone(segments), from, None);
        let mut found = Found {
            durable: from,
            ..Found::default()
        };
        while let Some(record) = reader.next_any() {
            let record = record?;
            let says = record.says_durable();
            found.last_mark = says.map_or((0, 0), |_| (record.start.0, record.end.0));
            found.durable = found.durable.max(says.unwrap_or(0));
        }
        found.end = reader.position().0;
        found.epoch = reader.epoch();
        Ok(found)
    }

    /// Makes all readable bytes durable, before a mark says that they are, or a commit behind them is acknowledged.
    fn make_durable(&self, segments: &Arc<Segments>) -> Result<()> {
        if is_planted(PlantedFault::TrustUnsyncedLog) {
            return Ok(());
        }
        segments.write_again(self.durable, self.end)?;
        // The kernel may have dropped the bytes between their reading and their second writing, so they are checked.
        let written = LogReader::new(Arc::clone(segments), self.durable, Some(self.end));
        for record in written {
            record?;
        }
        if is_planted(PlantedFault::OpenedSaysAll) {
            return Ok(());
        }
        segments.sync(self.durable, self.end)
    }
}

/// Every `knobs::log_sync_interval`, syncs what was appended; confirms it when no more is appended; makes the next
/// segment in time; and removes spares that the log's pace does not need.
fn keep_durable(group: &GroupCommit, background: &Background) {
    let mut demand = Demand::new(Lsn(group.ends().0), crate::sync::now());
    let mut before = 0;
    let mut closing = background.closing.lock();
    while !*closing {
        background
            .wake
            .wait_for(&mut closing, knobs::log_sync_interval());
        crate::sync::MutexGuard::unlocked(&mut closing, || {
            let end = group.ends().0;
            // A failure has set the stop flag, which all callers check; this thread has no caller to return it to.
            let outcome = match end == before {
                true => group.confirm(),
                false => group.wait_durable(end),
            };
            before = end;
            if let Err(error) = outcome {
                tracing::debug!("background sync: {error}");
                return;
            }
            if let Err(error) = group.prepare_next() {
                // Appenders that need the segment try again, and return the error to their callers.
                tracing::warn!("the next log segment could not be made: {error}");
            }
            let keep = demand.spares(Lsn(end), crate::sync::now(), group.segments.capacity());
            if let Err(error) = group.segments.trim_spares(keep, knobs::spares_given_back()) {
                tracing::warn!("a spare log segment could not be removed: {error}");
            }
        });
    }
}

impl Drop for Log {
    /// Writes and syncs what was appended.
    fn drop(&mut self) {
        *self.background.closing.lock() = true;
        self.background.wake.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread has reported its panic itself.
            let _ = thread.join();
        }
        let (end, _, durable) = self.group.ends();
        if durable < end {
            if let Err(error) = self.group.wait_durable(end) {
                tracing::error!("the log's end could not be made durable: {error}");
            }
        }
    }
}
