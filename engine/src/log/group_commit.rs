//! Group commit: one thread writes and syncs for all that wait.
//!
//! Appending copies into a buffer under a short lock. Whoever needs the log written and finds
//! nobody writing takes the buffer and writes it; whoever needs it synced and finds nobody syncing
//! writes what has come together meanwhile and syncs it. The others wait. Appends go on during
//! both.
//!
//! Who waits for a sync sleeps on its own, and leaves without the mutex when it is woken: else the
//! many that one sync releases would go through the mutex one after another, and each wake the next.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use super::record::{
    self, Header, FIRST_OWN_KIND, MARK_PAYLOAD, MAX_PAYLOAD, OPENED_PAYLOAD, RECORD_HEADER,
};
use super::segments::Segments;
use super::tail::Tail;
use crate::error::{Error, Result};
use crate::os::StopFlag;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::Thread;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::{fallible, knobs};

/// Room for so many marks is left behind every record: on a full disk a checkpoint finds it, and so does a
/// later opening.
const MARKS_BEHIND: usize = 8;

/// The end of the log: buffer, written, durable.
#[derive(Debug)]
pub struct GroupCommit {
    pub segments: Arc<Segments>,
    stop: Arc<StopFlag>,
    epoch: u32,
    state: Mutex<State>,
    /// The end of what is durable; changed under `state`.
    durable: AtomicU64,
    written_changed: Condvar,
    sync_ended: Condvar,
    batch_is_whole: Condvar,
    tail: Mutex<Tail>,
    pub writes: AtomicU64,
    pub written_bytes: AtomicU64,
    pub syncs: AtomicU64,
    /// A record found no room on the disk.
    refused: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// Records from `written` (or what the writer took) on. Begins with a mark, unless empty.
    buffer: Vec<u8>,
    /// The buffer before, to be used again.
    spare: Vec<u8>,
    buffer_start: u64,
    written: u64,
    /// Segments have been made up to here.
    prepared: u64,
    /// So many bytes of them are for records that are still to come: [`GroupCommit::promise`].
    promised: u64,
    /// The end of the last mark which says that all before it is durable.
    confirmed: u64,
    /// Where the last mark begins and ends.
    last_mark: (u64, u64),
    /// The epoch before, as long as nothing of this opening is written: its first record tells it.
    before: Option<u32>,
    writing: bool,
    syncing: bool,
    /// Those that sleep until a sync has ended.
    sleepers: Vec<Sleeper>,
    delay: CommitDelay,
}

#[derive(Debug)]
struct Sleeper {
    upto: u64,
    thread: Thread,
}

/// How long a leader waits for more commits before it syncs.
///
/// Without a delay, committers that take turns fall into two halves: those that wait for the sync that
/// runs, and those that it will release; each sync serves a half. So a leader waits a little for
/// those that the last sync released, if they were quick to come back before.
#[derive(Debug, Default)]
struct CommitDelay {
    /// How many waited, the leader among them, when the last sync ended: those it served, and those
    /// that came late.
    expected: usize,
    /// A leader waits.
    delaying: bool,
    /// So many syncs are begun without waiting, because it was in vain the last time.
    syncs_left_without: u32,
    /// A running average.
    sync_time: Duration,
}

impl CommitDelay {
    fn ended(&mut self, waited: usize, took: Duration) {
        self.expected = waited;
        self.sync_time = (self.sync_time * 7 + took) / 8;
    }
}

impl State {
    /// Threads that wait for a sync, the leader among them.
    fn waiting(&self) -> usize {
        self.sleepers.len() + 1
    }

    fn end(&self) -> u64 {
        self.buffer_start + self.buffer.len() as u64
    }

    /// Begins a buffer with room for a mark; the writer fills it in.
    fn begin_buffer(&mut self) {
        if self.buffer.is_empty() {
            let opens = self.more_to_open();
            self.buffer.resize(RECORD_HEADER + MARK_PAYLOAD + opens, 0);
        }
    }

    /// So many bytes the first record of this opening is longer than a mark, as long as it is to come.
    fn more_to_open(&self) -> usize {
        self.before.map_or(0, |_| OPENED_PAYLOAD - MARK_PAYLOAD)
    }
}

/// Bytes that are left behind every record.
pub fn room_behind() -> u64 {
    (MARKS_BEHIND * (RECORD_HEADER + MARK_PAYLOAD)) as u64
}

/// Refuses records that are too long.
fn check_len(len: usize) -> Result<()> {
    match len > MAX_PAYLOAD {
        false => Ok(()),
        true => Err(Error::TooLarge(format!(
            "a log record of {len} bytes; the limit is {MAX_PAYLOAD}"
        ))),
    }
}

fn crc_of(payload: &[&[u8]]) -> u32 {
    payload
        .iter()
        .fold(0, |crc, part| crc32c::crc32c_append(crc, part))
}

impl GroupCommit {
    /// At the end of the stream, `tail`, all of it durable; `epoch` is this opening's number. `last_mark`: where a mark
    /// begins and ends, if the stream ends with one. `before`: the epoch before, where this one has no record yet.
    pub fn new(
        segments: Arc<Segments>,
        stop: Arc<StopFlag>,
        epoch: u32,
        tail: Tail,
        (end, last_mark): (u64, (u64, u64)),
        before: Option<u32>,
    ) -> GroupCommit {
        let prepared = segments.end();
        GroupCommit {
            segments,
            stop,
            epoch,
            state: Mutex::new(State {
                buffer: Vec::with_capacity(knobs::log_write_at() * 2),
                spare: Vec::new(),
                buffer_start: end,
                written: end,
                prepared,
                promised: 0,
                confirmed: end,
                last_mark,
                before,
                writing: false,
                syncing: false,
                sleepers: Vec::new(),
                delay: CommitDelay::default(),
            }),
            durable: AtomicU64::new(end),
            written_changed: Condvar::new(),
            sync_ended: Condvar::new(),
            batch_is_whole: Condvar::new(),
            tail: Mutex::new(tail),
            writes: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            refused: AtomicBool::new(false),
        }
    }

    /// Ends of what was appended, written, and made durable.
    pub fn ends(&self) -> (u64, u64, u64) {
        let state = self.state.lock();
        (state.end(), state.written, self.durable())
    }

    fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Appends a record; returns its end.
    pub fn append(&self, kind: u8, payload: &[&[u8]]) -> Result<u64> {
        let len: usize = payload.iter().map(|part| part.len()).sum();
        check_len(len)?;
        let crc = crc_of(payload);
        let state = self.state_with_room(RECORD_HEADER + len, MARKS_BEHIND)?;
        self.append_to(state, kind, (len, crc), payload)
    }

    /// Promises room for a record of `len` bytes. Returns how many bytes of the log that is: nobody else gets them.
    pub fn promise(&self, len: usize) -> Result<u64> {
        check_len(len)?;
        // The record may begin a buffer.
        let bytes = RECORD_HEADER + MARK_PAYLOAD + RECORD_HEADER + len;
        let mut state = self.state_with_room(bytes, MARKS_BEHIND)?;
        state.promised += bytes as u64;
        Ok(bytes as u64)
    }

    /// Others can have so many bytes that were promised.
    pub fn take_promise_back(&self, promised: u64) {
        self.state.lock().promised -= promised;
    }

    /// As [`GroupCommit::append`], with a record for which there is `promised` room; that is 0 afterwards.
    pub fn append_promised(&self, kind: u8, payload: &[&[u8]], promised: &mut u64) -> Result<u64> {
        let len: usize = payload.iter().map(|part| part.len()).sum();
        let crc = crc_of(payload);
        let mut state = self.state.lock();
        self.stop.check()?;
        if (RECORD_HEADER + MARK_PAYLOAD + RECORD_HEADER + len) as u64 > *promised {
            return Err(Error::Internal(format!(
                "a log record of {len} bytes has {promised} bytes of room"
            )));
        }
        state.promised -= std::mem::take(promised);
        self.append_to(state, kind, (len, crc), payload)
    }

    /// Appends a record, whose length and checksum are given. There is room for it.
    fn append_to(
        &self,
        mut state: MutexGuard<'_, State>,
        kind: u8,
        (len, crc): (usize, u32),
        payload: &[&[u8]],
    ) -> Result<u64> {
        if kind >= FIRST_OWN_KIND {
            return Err(Error::Internal(format!(
                "log record kind {kind}: kinds from {FIRST_OWN_KIND} on are the log's own"
            )));
        }
        let more = RECORD_HEADER + OPENED_PAYLOAD + RECORD_HEADER + len;
        fallible::reserve(&mut state.buffer, more, "a log record")?;
        state.begin_buffer();
        let header = Header {
            epoch: self.epoch,
            start: state.end(),
            len: len as u32,
            kind,
        };
        state.buffer.extend_from_slice(&header.encode(crc));
        for part in payload {
            state.buffer.extend_from_slice(part);
        }
        let end = state.end();
        while state.buffer.len() >= knobs::log_write_at() {
            if !state.writing {
                self.write(&mut state, false)?;
            } else if state.buffer.len() >= knobs::log_backpressure_at() {
                self.written_changed.wait(&mut state);
                self.stop.check()?;
            } else {
                break;
            }
        }
        Ok(end)
    }

    /// The state, when there are segments for `len` more bytes and some marks. They are made here and
    /// not when the bytes are written, so that a full disk is an error of who wants to append,
    /// and never one of what was appended.
    fn state_with_room(&self, len: usize, marks: usize) -> Result<MutexGuard<'_, State>> {
        loop {
            let state = self.state.lock();
            self.stop.check()?;
            let marks = marks * (RECORD_HEADER + MARK_PAYLOAD) + state.more_to_open();
            let behind = (len + marks) as u64;
            let wanted = state.end() + state.promised + behind;
            if wanted <= state.prepared {
                return Ok(state);
            }
            drop(state);
            self.prepare(wanted).inspect_err(|error| {
                if matches!(error, Error::NoSpace { .. }) {
                    self.refused.store(true, Ordering::Relaxed);
                }
            })?;
        }
    }

    /// Makes the segments up to `position`.
    fn prepare(&self, position: u64) -> Result<()> {
        let end = self.segments.prepare(position)?;
        let mut state = self.state.lock();
        // Another may have made more meanwhile.
        state.prepared = state.prepared.max(end);
        Ok(())
    }

    /// Makes the segment after that of the log's end, so that appenders need not wait for it.
    pub fn prepare_next(&self) -> Result<()> {
        let (end, capacity) = (self.ends().0, self.segments.capacity());
        if end % capacity > capacity / 4 {
            self.prepare(end + capacity)?;
        }
        Ok(())
    }

    /// Where a mark begins with which the log ends: the last one, or one that is appended now. So attempts
    /// at a checkpoint, however many, take no room.
    pub fn mark(&self) -> Result<u64> {
        {
            let state = self.state.lock();
            self.stop.check()?;
            if state.last_mark.1 == state.end() {
                return Ok(state.last_mark.0);
            }
        }
        self.append_mark()
    }

    fn append_mark(&self) -> Result<u64> {
        let mut state = self.state_with_room(0, 1)?;
        let start = state.end();
        if state.buffer.is_empty() {
            state.begin_buffer();
            if self.durable() == start {
                state.confirmed = state.end();
            }
        } else {
            let mark = record::mark(self.epoch, start, self.durable());
            state.buffer.extend_from_slice(&mark);
        }
        state.last_mark = (start, state.end());
        Ok(start)
    }

    /// Whether a record has found no room on the disk since this was last asked.
    pub fn take_refused(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }

    /// Makes everything durable, and then a mark that says so, unless the log ends with one.
    pub fn confirm(&self) -> Result<()> {
        let end = self.ends().0;
        self.wait_durable(end)?;
        self.confirm_durable(end)
    }

    /// As [`GroupCommit::confirm`], where all before `end` is durable.
    pub fn confirm_durable(&self, end: u64) -> Result<()> {
        let confirmed = self.state.lock().confirmed;
        if confirmed >= end {
            // The mark may be another's, that has not come further.
            return match is_planted(PlantedFault::TrustOthersMark) {
                false => self.wait_durable(confirmed),
                true => Ok(()),
            };
        }
        match self.append_mark() {
            Ok(mark) => self.wait_durable(mark + 1),
            // Without room for the mark all is as durable as it was.
            Err(Error::NoSpace { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns when everything before `upto` is written.
    pub fn wait_written(&self, upto: u64) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            self.stop.check()?;
            if state.written >= upto {
                return Ok(());
            }
            if state.writing {
                self.written_changed.wait(&mut state);
            } else {
                self.write(&mut state, false)?;
            }
        }
    }

    /// Returns when everything before `upto` is durable.
    pub fn wait_durable(&self, upto: u64) -> Result<()> {
        loop {
            if let Err(error) = self.stop.check() {
                // This thread may be the one that was to lead.
                let state = self.state.lock();
                self.wake(state, |_| true);
                return Err(error);
            }
            if self.durable() >= upto {
                return Ok(());
            }
            let state = self.state.lock();
            if self.durable() >= upto {
                continue;
            }
            if state.syncing {
                self.sleep(state, upto);
            } else {
                self.lead(state)?;
            }
        }
    }

    /// Sleeps until a sync has made `upto` durable or failed, or this thread is to lead the next.
    fn sleep(&self, mut state: MutexGuard<'_, State>, upto: u64) {
        let thread = crate::sync::thread::current();
        let me = thread.id();
        state.sleepers.push(Sleeper { upto, thread });
        if state.delay.delaying && state.waiting() >= state.delay.expected {
            self.batch_is_whole.notify_one();
        }
        drop(state);
        loop {
            crate::sync::thread::park();
            // Whoever wakes a sleeper has taken it off the list; a park can also end by itself.
            if self.durable() >= upto {
                return;
            }
            let state = self.state.lock();
            if !state
                .sleepers
                .iter()
                .any(|sleeper| sleeper.thread.id() == me)
            {
                return;
            }
        }
    }

    /// Writes and syncs for all who wait.
    fn lead(&self, mut state: MutexGuard<'_, State>) -> Result<()> {
        state.syncing = true;
        self.wait_for_batch(&mut state);
        let outcome = self.write_and_sync(&mut state);
        state.syncing = false;
        self.sync_ended.notify_all();
        let durable = self.durable();
        self.wake(state, |sleeper| outcome.is_err() || sleeper.upto <= durable);
        outcome
    }

    /// Wakes the sleepers that need not wait any more, and of the others one, to lead.
    fn wake(&self, mut state: MutexGuard<'_, State>, done: impl Fn(&Sleeper) -> bool) {
        // On the heap only where one sync served more.
        let mut woken = SmallVec::<[Thread; 32]>::new();
        let mut leads = None;
        let mut at = 0;
        while let Some(sleeper) = state.sleepers.get(at) {
            if done(sleeper) {
                woken.push(state.sleepers.swap_remove(at).thread);
            } else if leads.is_none() {
                leads = Some(state.sleepers.swap_remove(at).thread);
            } else {
                at += 1;
            }
        }
        drop(state);
        for thread in leads.iter().chain(&woken) {
            thread.unpark();
        }
    }

    /// Ends the use of the files: sets the stop flag, and returns when nobody writes, syncs, or makes files.
    pub fn close(&self) {
        self.stop.close();
        let mut state = self.state.lock();
        while state.writing || state.syncing {
            if state.writing {
                self.written_changed.wait(&mut state);
            } else {
                self.sync_ended.wait(&mut state);
            }
        }
        drop(state);
        self.segments.close();
    }

    /// Waits a little for those that are expected to commit now.
    fn wait_for_batch(&self, state: &mut MutexGuard<'_, State>) {
        if state.delay.syncs_left_without > 0 {
            state.delay.syncs_left_without -= 1;
            return;
        }
        let limit = (state.delay.sync_time / 4).min(knobs::longest_commit_delay());
        let until = crate::sync::now() + limit;
        state.delay.delaying = true;
        while state.waiting() < state.delay.expected {
            if self.batch_is_whole.wait_until(state, until).timed_out() {
                state.delay.syncs_left_without = knobs::syncs_without_wait();
                break;
            }
        }
        state.delay.delaying = false;
    }

    fn write_and_sync(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        while state.writing {
            self.written_changed.wait(state);
        }
        if is_planted(PlantedFault::AcknowledgeBeforeSync) {
            self.segments
                .sync(state.written.saturating_sub(1), state.written)?;
            self.write(state, true)?;
            self.durable.store(state.written, Ordering::Release);
            return Ok(());
        }
        self.write(state, true)?;
        let (from, to) = (self.durable(), state.written);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let began = crate::sync::now();
        let outcome = MutexGuard::unlocked(state, || {
            // The other of store and log may have failed meanwhile.
            self.stop.check()?;
            match self.segments.sync(from, to) {
                Err(_) if is_planted(PlantedFault::RetryFailedSync) => self.segments.sync(from, to),
                outcome => outcome,
            }
        });
        match outcome {
            Ok(()) => {
                let to = match is_planted(PlantedFault::SyncedMeanwhile) {
                    false => to,
                    true => state.written,
                };
                self.durable.store(to, Ordering::Release);
                let waited = state.waiting();
                state.delay.ended(waited, crate::sync::since(began));
                Ok(())
            }
            Err(error) => Err(self.stop.stop(error.to_string())),
        }
    }

    /// Writes the buffer; nobody else may be writing.
    fn write(&self, state: &mut MutexGuard<'_, State>, to_sync: bool) -> Result<()> {
        if state.buffer.is_empty() {
            return Ok(());
        }
        let spare = std::mem::take(&mut state.spare);
        let mut bytes = std::mem::replace(&mut state.buffer, spare);
        let start = state.buffer_start;
        state.buffer_start += bytes.len() as u64;
        state.writing = true;
        let before = state.before.take();
        record::begin(&mut bytes, self.epoch, start, self.durable(), before);
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.written_bytes
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let outcome = MutexGuard::unlocked(state, || {
            self.stop.check()?;
            self.tail.lock().write(&self.segments, &bytes, to_sync)
        });
        state.writing = false;
        let outcome = match outcome {
            Ok(()) => {
                state.written = start + bytes.len() as u64;
                Ok(())
            }
            // The records in `bytes` are gone from the buffer: nothing after them may be
            // acknowledged.
            Err(error) => Err(self.stop.stop(error.to_string())),
        };
        bytes.clear();
        if bytes.capacity() <= 2 * knobs::log_backpressure_at() {
            state.spare = bytes;
        }
        self.written_changed.notify_all();
        outcome
    }
}
