//! One redo log for everything: append, group commit, read back.
//!
//! The log is one endless stream of bytes, cut into segment files; an [`Lsn`] is a position in it.
#![forbid(unsafe_code)]

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::os::{Os, StopFlag};
pub use crate::settings::Durability;

/// What a log is created or opened with.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The database's number; a segment of another database is refused.
    pub database_id: u64,
    /// Bytes of a segment file, a multiple of 4096 and at least 16384; only for new segments.
    pub segment_bytes: u64,
    /// Shared with the store: a failed write or sync stops both.
    pub stop: Arc<StopFlag>,
}

/// A record read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Where the record begins.
    pub start: Lsn,
    /// Where it ends: what [`Log::append`] returned.
    pub end: Lsn,
    /// The kind given to [`Log::append`].
    pub kind: u8,
    /// The payload, joined.
    pub payload: Vec<u8>,
}

/// The redo log. All methods may be called from many threads.
#[derive(Debug)]
pub struct Log {}

/// Reads records in order; ends at the valid end of the log.
#[derive(Debug)]
pub struct LogReader {}

impl Log {
    /// Creates the log in `dir` (usually `database/log`), which is created too.
    pub fn create(_os: Arc<dyn Os>, _dir: &Path, _options: LogOptions) -> Result<Log> {
        Err(unfinished())
    }

    /// Opens the log and finds its valid end. `from` is the position that the last complete
    /// checkpoint recorded ([`Log::mark`]).
    pub fn open(_os: Arc<dyn Os>, _dir: &Path, _options: LogOptions, _from: Lsn) -> Result<Log> {
        Err(unfinished())
    }

    /// Appends a record (`kind` below 0xF0); returns the record's end, for [`Log::durable`].
    pub fn append(&self, _kind: u8, _payload: &[&[u8]]) -> Result<Lsn> {
        Err(unfinished())
    }

    /// Appends a mark and returns its *beginning*: a position from which the log can be read,
    /// for a checkpoint to record.
    pub fn mark(&self) -> Result<Lsn> {
        Err(unfinished())
    }

    /// Returns when everything before `upto` is as durable as asked.
    pub fn durable(&self, _upto: Lsn, _durability: Durability) -> Result<()> {
        Err(unfinished())
    }

    /// The end of the last record appended.
    pub fn end(&self) -> Lsn {
        Lsn(0)
    }

    /// Reads from `from`, the beginning of a record, to the end of what was valid at open.
    pub fn read_from(&self, _from: Lsn) -> Result<LogReader> {
        Err(unfinished())
    }

    /// Everything before `keep` is no longer needed; its segments are recycled.
    pub fn release_before(&self, _keep: Lsn) -> Result<()> {
        Err(unfinished())
    }
}

impl Iterator for LogReader {
    type Item = Result<LogRecord>;
    fn next(&mut self) -> Option<Self::Item> {
        None
    }
}

fn unfinished() -> Error {
    Error::Internal("the log is being built".into())
}
