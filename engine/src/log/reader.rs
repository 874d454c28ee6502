//! Reading the log back, and finding its valid end.

use std::sync::Arc;

use super::beginnings::beginnings;
use super::record::{
    self, Header, FIRST_OWN_KIND, MARK, MARK_PAYLOAD, MAX_PAYLOAD, OPENED, OPENED_PAYLOAD,
    RECORD_HEADER,
};
use super::segments::Segments;
use crate::error::{Error, Result};
use crate::ids::Lsn;
use crate::planted::{is_planted, PlantedFault};
use crate::{fallible, knobs};

/// More bytes than a write of short records takes.
const SHORT_WRITE: u64 = 16 << 20;

/// A record read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Where the record begins.
    pub start: Lsn,
    /// Where the record ends: the value that `Log::append` returned.
    pub end: Lsn,
    /// The kind given to `Log::append`.
    pub kind: u8,
    /// The payload, joined.
    pub payload: Vec<u8>,
}

impl LogRecord {
    /// Up to where the log was durable when this was written, if it is a mark.
    pub(super) fn says_durable(&self) -> Option<u64> {
        match self.kind {
            MARK | OPENED => record::mark_payload(&self.payload).map(|(durable, _)| durable),
            _ => None,
        }
    }
}

/// Reads records in order, until the valid end of the log, or an error.
///
/// A record that was being written when the machine stopped ends the log. A bad record is [`Error::Corrupt`] if a mark
/// says that it was synced.
#[derive(Debug)]
pub struct LogReader {
    segments: Arc<Segments>,
    position: u64,
    /// Where reading stops; records before it must be valid.
    limit: Option<u64>,
    epoch: Option<u32>,
    /// Whether a missing record at the beginning is an error.
    must_begin: bool,
    window: Window,
    finished: bool,
}

/// Bytes of the stream around the position.
#[derive(Debug, Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The `len` bytes from `position`, or fewer where the segments end.
    fn get(&mut self, segments: &Segments, position: u64, len: usize) -> Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        if position < self.start || position + len as u64 > end {
            let wanted = len.max(knobs::log_read());
            let more = wanted.saturating_sub(self.bytes.len());
            fallible::reserve(&mut self.bytes, more, "a log record")?;
            self.bytes.resize(wanted, 0);
            self.start = position;
            let found = segments.read(position, &mut self.bytes)?;
            self.bytes.truncate(found);
        }
        let at = (position - self.start) as usize;
        let to = self.bytes.len().min(at + len);
        Ok(&self.bytes[at.min(to)..to])
    }
}

impl LogReader {
    /// Reads from `from`, the beginning of a record, up to `limit` or to the valid end.
    pub(super) fn new(segments: Arc<Segments>, from: u64, limit: Option<u64>) -> LogReader {
        LogReader {
            segments,
            position: from,
            limit,
            epoch: None,
            must_begin: false,
            window: Window::default(),
            finished: false,
        }
    }

    /// Makes a missing record at the beginning an error.
    pub(super) fn must_begin(self) -> LogReader {
        LogReader {
            must_begin: true,
            ..self
        }
    }

    /// The position of the next record; at the end, the end of the valid log.
    pub fn position(&self) -> Lsn {
        Lsn(self.position)
    }

    /// The epoch of the last record read.
    pub(super) fn epoch(&self) -> Option<u32> {
        self.epoch
    }

    fn corrupt(&self, what: String) -> Error {
        let (file, offset) = self.segments.locate(self.position);
        Error::Corrupt {
            file,
            offset,
            page: None,
            what,
        }
    }

    /// The error for a log without the record at which the last checkpoint begins.
    pub(super) fn no_beginning(&self) -> Error {
        self.corrupt("expected the record at which the last checkpoint begins, found none".into())
    }

    /// The record at the position, or what is wrong with it.
    fn record(&mut self) -> Result<Result<LogRecord, &'static str>> {
        let start = self.position;
        let bytes = self.window.get(&self.segments, start, RECORD_HEADER)?;
        let Some(bytes) = bytes.first_chunk::<RECORD_HEADER>() else {
            return Ok(Err("the log's files end"));
        };
        let (header, checksum) = Header::decode(bytes);
        if header.start != start {
            return Ok(Err("there is no record"));
        }
        let len = header.len as usize;
        let end = start + (RECORD_HEADER + len) as u64;
        if len > MAX_PAYLOAD || end > self.segments.end() {
            return Ok(Err("the record's length can't be"));
        }
        let bytes = self
            .window
            .get(&self.segments, start, RECORD_HEADER + len)?;
        let Some(payload) = bytes.get(RECORD_HEADER..RECORD_HEADER + len) else {
            return Ok(Err("the log's files end"));
        };
        if !header.matches(checksum, payload) {
            return Ok(Err("the record's checksum is wrong"));
        }
        let before = match header.kind {
            OPENED => record::mark_payload(payload).and_then(|(_, before)| before),
            _ => None,
        };
        match self.epoch {
            Some(epoch) if epoch != header.epoch && before != Some(epoch) => {
                return Ok(Err("the record is older than the one before it"));
            }
            _ => self.epoch = Some(header.epoch),
        }
        Ok(Ok(LogRecord {
            start: Lsn(start),
            end: Lsn(end),
            kind: header.kind,
            payload: fallible::copy(payload, "a log record")?,
        }))
    }

    /// Searches for a mark behind the position which says that the log was durable beyond it. The search goes on to the
    /// end of the files: the bad record's length may be damaged, too.
    fn later_mark(&mut self) -> Result<Option<u64>> {
        const WHOLE: usize = RECORD_HEADER + OPENED_PAYLOAD;
        let from = self.position;
        let to = match is_planted(PlantedFault::ShortSearch) {
            true => self.segments.end().min(from + SHORT_WRITE),
            false => self.segments.end(),
        };
        let mut at = from + 1;
        while at < to {
            let bytes = self.window.get(&self.segments, at, knobs::log_read())?;
            for begins in beginnings(bytes, at) {
                let Some(header) = bytes[begins..].first_chunk::<RECORD_HEADER>() else {
                    continue;
                };
                let (header, checksum) = Header::decode(header);
                let len = match header.kind {
                    MARK => MARK_PAYLOAD,
                    OPENED => OPENED_PAYLOAD,
                    _ => continue,
                };
                let Some(payload) = bytes[begins + RECORD_HEADER..].get(..len) else {
                    continue;
                };
                let says = record::mark_payload(payload).map_or(0, |(durable, _)| durable);
                if header.len as usize == len && header.matches(checksum, payload) && says > from {
                    return Ok(Some(says));
                }
            }
            if bytes.len() < knobs::log_read() {
                break;
            }
            at += (knobs::log_read() - WHOLE) as u64;
        }
        Ok(None)
    }

    /// `Log::open` takes position 0 for "no checkpoint yet", so `Log::mark` must not return it.
    pub(super) fn next_any(&mut self) -> Option<Result<LogRecord>> {
        if self.finished || self.limit.is_some_and(|limit| self.position >= limit) {
            self.finished = true;
            return None;
        }
        match self.record() {
            Ok(Ok(record)) => {
                self.position = record.end.0;
                Some(Ok(record))
            }
            Err(error) => {
                self.finished = true;
                Some(Err(error))
            }
            Ok(Err(what)) => {
                self.finished = true;
                if let Some(limit) = self.limit {
                    let what = format!("{what}, and the log was valid up to position {limit}");
                    return Some(Err(self.corrupt(what)));
                }
                if !is_planted(PlantedFault::TakeCutSegments) {
                    if let Err(error) = self.segments.check_lengths(self.position) {
                        return Some(Err(error));
                    }
                }
                match self.later_mark() {
                    Ok(None) if self.must_begin && self.epoch.is_none() => {
                        Some(Err(self.no_beginning()))
                    }
                    Ok(None) => None,
                    Ok(Some(says)) => {
                        let what = format!("{what}, and the log was durable up to position {says}");
                        Some(Err(self.corrupt(what)))
                    }
                    Err(error) => Some(Err(error)),
                }
            }
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<LogRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = self.next_any()?;
            match &next {
                Ok(record) if record.kind >= FIRST_OWN_KIND => {}
                _ => return Some(next),
            }
        }
    }
}
