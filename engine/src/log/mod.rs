//! One redo log for everything: append, group commit, read back.
//!
//! The log is one endless stream of bytes, cut into segment files; an [`Lsn`] is a position in it.
//!
//! | file | holds |
//! |---|---|
//! | `record.rs` | a record's frame, and the marks |
//! | `segments.rs`, `segment_header.rs` | the files and their recycling; what each begins with |
//! | `tail.rs` | the one writer's position |
//! | `demand.rs` | how many spare files the pace of the log calls for |
//! | `group_commit.rs` | the buffer, group commit |
//! | `reader.rs` | reading back, the valid end |
//! | `beginnings.rs` | where records may begin, whatever precedes them |
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

/// What a log is created or opened with.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The database's number; a segment of another database is refused.
    pub database_id: u64,
    /// Bytes of a segment file: a multiple of 4096, at least 16384. Fixed when the log is created.
    pub segment_bytes: u64,
    /// Shared with the store: a failed write or sync stops both.
    pub stop: Arc<StopFlag>,
    /// Whether a thread syncs what nobody waits for, and makes segments ahead of time.
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

    /// Segments of a size that suits a log of which checkpoints let `log_bytes` come together: an
    /// sixteenth of it, between 1 MiB and 64 MiB: so much more than is used is taken of the disk.
    pub fn sized_for(self, log_bytes: u64) -> Self {
        let part = (log_bytes / knobs::log_segments())
            .clamp(knobs::least_log_segment(), knobs::most_log_segment());
        LogOptions {
            segment_bytes: part.next_power_of_two(),
            ..self
        }
    }
}

/// What the log has done since it was opened.
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
    /// Creates the log in `dir` (usually `database/log`), which is created too. A log without a
    /// database, left by a creation that did not end, is replaced.
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
    /// [`Error::Corrupt`] when there is no valid record at `from`, or when a record is bad of
    /// which the log knows that it was synced; [`Error::Format`] for another database's log or a
    /// newer version's.
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
            // The very first record may have been lost with the machine; no other can be.
            None if from == Lsn(0) => 0,
            None => return Err(LogReader::new(segments, from.0, None).no_beginning()),
        };
        found.make_durable(&segments)?;
        let segments = Arc::into_inner(segments)
            .ok_or_else(|| Error::Internal("a reader outlived the log's opening".into()))?;
        Log::start(&*os, segments, &options, &found, epoch)
    }

    /// Reads the log of `dir` without changing anything, from `from` to its valid end.
    ///
    /// # Errors
    /// As [`Log::open`], of the segments; what is bad in them is an error of the reader.
    pub fn read_only(
        os: Arc<dyn Os>,
        dir: &Path,
        database_id: u64,
        from: Lsn,
    ) -> Result<LogReader> {
        let segments = Segments::open(os, dir, database_id, from.0, OpenMode::ReadOnly)?;
        let segments = Arc::new(segments);
        let reader = LogReader::new(segments, from.0, None);
        // The very first record may have been lost with the machine; no other can be.
        Ok(match from {
            Lsn(0) => reader,
            _ => reader.must_begin(),
        })
    }

    /// Writes the first record of this opening where the log ends, if there is room for it, and starts the background
    /// thread, if there is to be one. On a full disk that record comes with the first other one, or never: else each
    /// opening would take some of the room behind the last record, and one would be the last.
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
            // From the log's beginning on reads what has no checkpoint.
            let is_first = end == 0 || is_planted(PlantedFault::NeedRoomToOpen);
            (end, if is_first { 0 } else { now })
        } else {
            now = end;
            found.last_mark
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
    /// [`Error::NoSpace`] when there is no room for another segment: nothing was appended, and
    /// work goes on when there is space again. [`Error::TooLarge`] beyond 1 GiB;
    /// [`Error::Stopped`].
    pub fn append(&self, kind: u8, payload: &[&[u8]]) -> Result<Lsn> {
        self.group.append(kind, payload).map(Lsn)
    }

    /// Promises room for a record of `len` bytes: nobody else gets it, so [`Promised::append`] is not refused for want
    /// of space. For whoever could not go back once the log has refused.
    ///
    /// # Errors
    /// As those of [`Log::append`].
    pub fn promise(&self, len: usize) -> Result<Promised> {
        Ok(Promised {
            group: Arc::clone(&self.group),
            bytes: self.group.promise(len)?,
        })
    }

    /// Appends a mark and returns its *beginning*: a position from which the log can be read,
    /// for a checkpoint to record once the mark is durable.
    pub fn mark(&self) -> Result<Lsn> {
        self.group.mark().map(Lsn)
    }

    /// Returns when everything before `upto` is as durable as asked.
    ///
    /// # Errors
    /// [`Error::Stopped`] when a write or sync has failed, now or before: whether what was to be
    /// made durable is on the device, nobody knows.
    pub fn durable(&self, upto: Lsn, durability: Durability) -> Result<()> {
        match durability {
            Durability::SyncAtCommit => self.group.wait_durable(upto.0),
            Durability::WriteAtCommit => self.group.wait_written(upto.0),
            Durability::Later => Ok(()),
        }
    }

    /// Makes everything durable, and then a mark that says so, unless the log ends with one: if
    /// the device loses or spoils what was durable before, the log's opening tells it from a write
    /// that was torn.
    ///
    /// # Errors
    /// As those of [`Log::durable`].
    pub fn confirm(&self) -> Result<()> {
        self.group.confirm()
    }

    /// Ends the use of the files, though values may live on that refer to the log: when this
    /// returns nothing is being written, and nothing will be. Whoever wants what was appended
    /// durable asks for that before.
    pub fn close(&self) {
        self.group.close();
    }

    /// The end of the last record appended.
    pub fn end(&self) -> Lsn {
        Lsn(self.group.ends().0)
    }

    /// Reads from `from`, the beginning of a record, to the end of what has been written.
    pub fn read_from(&self, from: Lsn) -> Result<LogReader> {
        let written = self.group.ends().1;
        let segments = Arc::clone(&self.group.segments);
        Ok(LogReader::new(segments, from.0, Some(written)))
    }

    /// Bytes of the stream that a segment holds: the log becomes shorter and longer by so much.
    pub fn segment_bytes(&self) -> u64 {
        self.group.segments.capacity()
    }

    /// Everything before `keep` is no longer needed; its segments are recycled, or given back to
    /// the file system within seconds when the log's pace does not call for them.
    pub fn release_before(&self, keep: Lsn) -> Result<()> {
        self.group.segments.release_before(keep.0)
    }

    /// Whether a record has found no room on the disk since this was last asked.
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

    /// Counters and positions.
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

/// Room for a record, until it is appended or this is dropped: see [`Log::promise`].
#[derive(Debug)]
pub struct Promised {
    group: Arc<GroupCommit>,
    bytes: u64,
}

impl Promised {
    /// As [`Log::append`], with a record that is no longer than was said.
    ///
    /// # Errors
    /// As those of [`Log::append`], but for want of space.
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

/// What reading the log has found.
#[derive(Debug, Default)]
struct Found {
    /// The valid end.
    end: u64,
    /// The epoch of the last record.
    epoch: Option<u32>,
    /// Where the last record begins and ends, if it is a mark.
    last_mark: (u64, u64),
    /// Up to here the log is durable, as its marks say. What follows can be read, which says nothing: it
    /// may be in the kernel's memory alone.
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

    /// Makes durable what can be read, before anything says that it is, or is acknowledged behind it.
    fn make_durable(&self, segments: &Arc<Segments>) -> Result<()> {
        if is_planted(PlantedFault::TrustUnsyncedLog) {
            return Ok(());
        }
        segments.write_again(self.durable, self.end)?;
        // What the kernel had forgotten to write it could forget to keep, too, before it was read again.
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

/// Syncs what has come together every `knobs::log_sync_interval`, confirms it when nobody appends any more,
/// makes the next segment in time, and gives spares back that the log's pace does not call for.
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
            // A failure has set the stop flag, which everybody checks; there is nobody here to
            // tell.
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
                // Appenders will try again when they get there, and tell whoever wants to append.
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
            // A panic there has been reported by the thread itself.
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
