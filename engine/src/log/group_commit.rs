//! Group commit: one thread writes and syncs for all threads that wait.
//!
//! A thread that appends copies its record into a buffer under a short lock. A thread that needs the log written takes
//! the buffer and writes it, if no other thread is writing. A thread that needs the log synced becomes the leader, if
//! no other thread is syncing: it writes what was appended meanwhile, and syncs it. The others wait. Appends go on
//! during both.
//!
//! Each thread that waits for a sync sleeps by itself, and does not take the mutex when it is woken. Otherwise the many
//! threads that one sync releases would go through the mutex one after another, and each would wake the next.

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

/// Space for so many marks is asked for behind every record (the mark that begins a buffer is one of them). On a full
/// disk, a checkpoint and a later opening find it.
const MARKS_BEHIND: usize = 8;

/// The end of the log: the buffer, and the written and durable positions.
#[derive(Debug)]
pub struct GroupCommit {
    pub segments: Arc<Segments>,
    stop: Arc<StopFlag>,
    epoch: u32,
    state: Mutex<State>,
    /// The end of the durable bytes; changed under `state`.
    durable: AtomicU64,
    written_changed: Condvar,
    sync_ended: Condvar,
    batch_is_whole: Condvar,
    tail: Mutex<Tail>,
    pub writes: AtomicU64,
    pub written_bytes: AtomicU64,
    pub syncs: AtomicU64,
    /// Whether a record found no space on the disk.
    refused: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// The records from `buffer_start` on. Begins with a mark, unless empty.
    buffer: Vec<u8>,
    /// The memory of the buffer before, to be used again.
    spare: Vec<u8>,
    buffer_start: u64,
    written: u64,
    /// Segments have been made up to this position.
    prepared: u64,
    /// Bytes of these segments that are reserved for records still to come: [`GroupCommit::promise`].
    promised: u64,
    /// The end of the last mark that says that all before it is durable.
    confirmed: u64,
    /// Where the last mark begins and ends.
    last_mark: (u64, u64),
    /// The epoch before, until this opening has written its first record, which holds it.
    before: Option<u32>,
    writing: bool,
    syncing: bool,
    /// Threads that sleep until a sync has ended.
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
/// Without a delay, committers that alternate fall into two halves: those that wait for the running sync, and those
/// that it will release. Each sync then serves one half. So a leader waits a little for the threads that the last sync
/// released, if they were quick to come back before.
#[derive(Debug, Default)]
struct CommitDelay {
    /// Threads that waited when the last sync ended, the leader among them: those it served, and those that came too
    /// late for it.
    expected: usize,
    /// Whether a leader waits.
    delaying: bool,
    /// Syncs that begin without a wait, because the last wait was in vain.
    syncs_left_without: u32,
    /// A running average of the time of a sync.
    sync_time: Duration,
}

impl CommitDelay {
    fn ended(&mut self, waited: usize, took: Duration) {
        self.expected = waited;
        self.sync_time = (self.sync_time * 7 + took) / 8;
    }
}

impl State {
    /// Threads that wait for a sync, with the leader.
    fn waiting(&self) -> usize {
        self.sleepers.len() + 1
    }

    fn end(&self) -> u64 {
        self.buffer_start + self.buffer.len() as u64
    }

    /// Begins a buffer with room for a mark, which the writer fills in.
    fn begin_buffer(&mut self) {
        if self.buffer.is_empty() {
            let opens = self.more_to_open();
            self.buffer.resize(RECORD_HEADER + MARK_PAYLOAD + opens, 0);
        }
    }

    /// Bytes that the first record of this opening has more than a mark, until it is written.
    fn more_to_open(&self) -> usize {
        self.before.map_or(0, |_| OPENED_PAYLOAD - MARK_PAYLOAD)
    }
}

/// Bytes for marks that are asked for behind every record.
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
    /// Begins at the end of the stream, `tail`, all of it durable. `epoch` is this opening's number. `last_mark`: the
    /// beginning and end of the mark with which the stream ends, if any. `before`: the epoch before, if this one has no
    /// record yet.
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

    /// The ends of the appended, the written, and the durable bytes.
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

    /// Promises space for a record of `len` bytes; returns the number of bytes, which no other record gets.
    pub fn promise(&self, len: usize) -> Result<u64> {
        check_len(len)?;
        // The record may begin a buffer.
        let bytes = RECORD_HEADER + MARK_PAYLOAD + RECORD_HEADER + len;
        let mut state = self.state_with_room(bytes, MARKS_BEHIND)?;
        state.promised += bytes as u64;
        Ok(bytes as u64)
    }

    /// Releases so many promised bytes for other records.
    pub fn take_promise_back(&self, promised: u64) {
        self.state.lock().promised -= promised;
    }

    /// Like [`GroupCommit::append`], for a record with `promised` bytes of space; sets `promised` to 0.
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

    /// Appends a record with the given length and checksum. The caller has found space for it.
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

    /// The locked state, once there are segments for `len` more bytes and `marks` marks. Segments are made here, not
    /// when the bytes are written: so a full disk is an error of the thread that appends, and never one of appended
    /// records.
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
        // Another thread may have made more segments meanwhile.
        state.prepared = state.prepared.max(end);
        Ok(())
    }

    /// Makes the segment behind that of the log's end, so that appenders need not wait for it.
    pub fn prepare_next(&self) -> Result<()> {
        let (end, capacity) = (self.ends().0, self.segments.capacity());
        if end % capacity > capacity / 4 {
            self.prepare(end + capacity)?;
        }
        Ok(())
    }

    /// The beginning of a mark with which the log ends: the last one, or one appended now. So repeated attempts at a
    /// checkpoint take no space.
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

    /// Returns whether a record has found no space on the disk since the last call.
    pub fn take_refused(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }

    /// Makes everything durable, and then a mark that says so, unless the log ends with one.
    pub fn confirm(&self) -> Result<()> {
        let end = self.ends().0;
        self.wait_durable(end)?;
        self.confirm_durable(end)
    }

    /// Like [`GroupCommit::confirm`], for a caller that knows that all before `end` is durable.
    pub fn confirm_durable(&self, end: u64) -> Result<()> {
        let confirmed = self.state.lock().confirmed;
        if confirmed >= end {
            // Another thread may have appended the mark, and not made it durable yet.
            return match is_planted(PlantedFault::TrustOthersMark) {
                false => self.wait_durable(confirmed),
                true => Ok(()),
            };
        }
        match self.append_mark() {
            Ok(mark) => self.wait_durable(mark + 1),
            // Without space for the mark, the log is as durable as before.
            Err(Error::NoSpace { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until everything before `upto` is written.
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

    /// Waits until everything before `upto` is durable.
    pub fn wait_durable(&self, upto: u64) -> Result<()> {
        loop {
            if let Err(error) = self.stop.check() {
                // This thread may be the one that was woken to lead, so it wakes the others.
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

    /// Sleeps until a sync has made `upto` durable or failed, or until this thread is to lead the next sync.
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
            // The waker takes a sleeper off the list; a park can also end by itself.
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

    /// Writes and syncs for all threads that wait.
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

    /// Wakes the sleepers that need not wait any more, and one of the others to lead.
    fn wake(&self, mut state: MutexGuard<'_, State>, done: impl Fn(&Sleeper) -> bool) {
        // On the heap only if one sync served more threads.
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

    /// Ends the use of the files: sets the stop flag, and waits until no thread writes, syncs, or makes files.
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

    /// Waits a little for the threads that are expected to commit now.
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
            // The store shares the stop flag, and may have failed meanwhile.
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

    /// Writes the buffer; no other thread may be writing.
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
            // The records in `bytes` are not in the buffer any more, so nothing after them may be acknowledged.
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
