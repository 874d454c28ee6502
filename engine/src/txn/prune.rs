//! Pruning: while an old snapshot holds the horizon back, undo pages are emptied one by one.
//!
//! Purge frees undo from its old end as the horizon passes. Under an old snapshot the horizon
//! stands, but of what was written since nearly nothing is needed: for each row the version that
//! the snapshot sees, and none of those that came and went after. So each page of ended
//! transactions is visited once, soon after they ended. What nobody sees leaves its row's chain
//! ([`prune_chain`](super::prune_chain)), what somebody sees moves to the stream's *survivors*, a
//! stream of its own, and the page is freed. What undo costs is then what the snapshots need, however long
//! they live and however much is written meanwhile.
//!
//! Who writes prunes: a transaction that has filled a page empties one or two older ones of its
//! stream after its commit, so that garbage can't be made faster than it is taken away. The purge
//! thread does the rest.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use super::grace::Grace;
use super::prune_chain::{Pruner, Visit};
use super::snapshot::{Horizon, LiveSnapshots};
use super::undo::{Kind, UndoCopy, UndoRecord, MAX_RECORD};
use super::undo_stream::{Finished, FullPage, Stream, StreamWriter};
use super::version::UndoPtr;
use super::System;
use crate::error::Result;
use crate::ids::{Csn, PageId, TxId};

/// A snapshot that has stood for this long (and at most twice this) is *old*. What the others see
/// is not pruned yet: they will soon be gone, and their versions would be moved for nothing.
const OLD: Duration = Duration::from_millis(500);
/// Pages that a committing transaction empties, of its own stream; and when that has many.
const OWN_PAGES: usize = 2;
const OWN_PAGES_BEHIND: usize = 6;
const BEHIND: u64 = 128;
/// Pages that a step of purge empties, of each stream.
const STEP_PAGES: usize = 8;
/// Undo records looked at for what purge has to do, by a committing transaction and by purge.
const OWN_MARKS: usize = 64;
const STEP_MARKS: usize = 4096;
/// How often a visit is tried again when undo pages had to be read, or records were moved.
const TRIES: usize = 256;
/// Survivors fewer than these, in pages, are not looked through again.
const FEW_SURVIVORS: u64 = 16;
/// Survivors are looked through again at most this often.
const AGAIN: Duration = Duration::from_secs(1);

/// What pruning keeps for the whole system.
#[derive(Default)]
pub(super) struct Pruning {
    /// Transactions that ended up to here are pruned; 0: no snapshot is old enough for that.
    below: AtomicU64,
    aim: Mutex<Aim>,
    /// Held shared while pages are emptied, and exclusively while the horizon moves: behind the
    /// horizon undo goes at once, and nobody may be on the way there.
    pub horizon: RwLock<()>,
    pub grace: Grace,
    /// Pages emptied.
    pub emptied: AtomicU64,
}

/// Which snapshots are old.
#[derive(Default)]
struct Aim {
    noted: Option<Instant>,
    /// The snapshots that stood when they were last noted, and the time before.
    last: Vec<u64>,
    before: Vec<u64>,
}

/// What pruning keeps for a stream. Locked by who prunes it.
#[derive(Default)]
pub(super) struct StreamPruning {
    /// Number of the next page to empty.
    next: u64,
    /// Where what is still needed goes.
    survivors: Option<StreamWriter>,
    /// Number of the next page of survivors to look through again, when there is a reason.
    again: Option<u64>,
    /// Old snapshots for which survivors were kept when they were last looked through, and when.
    kept_for: Vec<u64>,
    looked: Option<Instant>,
}

impl StreamPruning {
    /// Gives the stream of survivors back, when none is left.
    pub fn take_empty(&mut self) -> Option<StreamWriter> {
        self.survivors
            .take_if(|writer| writer.stream().counts().1 == 0)
    }
}

/// What came of a page.
enum Emptied {
    Yes,
    /// It stays until the horizon passes it.
    No,
}

impl System {
    /// Notes now and then which snapshots stand; says up to where pruning goes.
    pub(super) fn aim_pruning(&self, horizon: Horizon) {
        let mut below = 0;
        if horizon.csn < self.order().newest().csn {
            let Some(live) = self.snapshots().live(self.order()) else {
                return;
            };
            let mut aim = self.pruning.aim.lock();
            if aim.noted.is_none_or(|then| then.elapsed() >= OLD) {
                aim.before = std::mem::replace(&mut aim.last, live.all().to_vec());
                aim.noted = Some(Instant::now());
            }
            let (old, young): (Vec<u64>, Vec<u64>) = live
                .all()
                .iter()
                .partition(|csn| aim.before.binary_search(csn).is_ok());
            if !old.is_empty() {
                below = young.first().copied().unwrap_or(live.newest().0);
            }
        }
        self.pruning.below.store(below, Ordering::Release);
    }

    /// Prunes all there is, as if every snapshot were old.
    #[cfg(test)]
    pub(super) fn prune_now(&self) {
        let below = self.order().newest().csn.0;
        self.pruning.below.store(below, Ordering::Release);
        while self.prune_step().unwrap() {}
        self.pruning.below.store(0, Ordering::Release);
    }

    /// Whether there is anything to prune now.
    #[inline]
    pub(super) fn prunes(&self) -> bool {
        self.pruning.below.load(Ordering::Relaxed) != 0
    }

    /// After a commit that filled an undo page: empties older ones of the same stream.
    pub(super) fn prune_own(&self, stream: &Stream) {
        let pages = if stream.counts().0 > BEHIND {
            OWN_PAGES_BEHIND
        } else {
            OWN_PAGES
        };
        if let Err(error) = self.prune_stream(stream, pages, false) {
            tracing::warn!(%error, "pruning failed; it will be tried again");
        }
    }

    /// One bounded step over all streams; whether there is more to do now.
    pub(super) fn prune_step(&self) -> Result<bool> {
        let mut more = false;
        if self.prunes() {
            let streams = self.streams().all().into_iter();
            for stream in streams.filter(|stream| !stream.apart.load(Ordering::Acquire)) {
                more |= self.prune_stream(&stream, STEP_PAGES, true)?;
            }
        }
        self.free_retired()?;
        Ok(more)
    }

    /// Empties pages of a stream; whether there may be more to empty.
    fn prune_stream(&self, stream: &Stream, pages: usize, thorough: bool) -> Result<bool> {
        let Some(mut pruning) = stream.pruning.try_lock() else {
            return Ok(false);
        };
        let Some(_horizon_stands) = self.pruning.horizon.try_read() else {
            return Ok(false);
        };
        let below = Csn(self.pruning.below.load(Ordering::Acquire));
        let passed = self.order().horizon_csn();
        let Some(live) = self.snapshots().live(self.order()) else {
            return Ok(false);
        };
        let pruning = &mut *pruning;
        let mut done = 0;
        while done < pages {
            let Some(page) = stream.full_page(&mut pruning.next, passed, below) else {
                break;
            };
            let survivors = pruning
                .survivors
                .get_or_insert_with(|| self.streams().acquire_apart());
            if !self.clear_marks(stream, &page, survivors, &live, thorough)? {
                // Much to look at, which a committing transaction leaves to the purge thread.
                return Ok(thorough);
            }
            self.empty(stream, &page, survivors, &live)?;
            pruning.next = page.number + 1;
            done += 1;
        }
        if thorough {
            self.look_again(pruning, passed, below, &live)?;
        }
        if done > 0 {
            self.free_retired()?;
        }
        Ok(done == pages)
    }

    /// When a snapshot is gone for which survivors were kept: some may not be needed any more.
    fn look_again(
        &self,
        pruning: &mut StreamPruning,
        passed: Csn,
        below: Csn,
        live: &LiveSnapshots,
    ) -> Result<()> {
        let Some(survivors) = &mut pruning.survivors else {
            return Ok(());
        };
        let stream = survivors.stream().clone();
        let old = live.older_than(below);
        if pruning.again.is_none() {
            let gone = |csn: &u64| old.binary_search(csn).is_err();
            let due = pruning.looked.is_none_or(|then| then.elapsed() >= AGAIN);
            if due && pruning.kept_for.iter().any(gone) && stream.counts().0 > FEW_SURVIVORS {
                pruning.again = Some(0);
            }
            if due {
                pruning.kept_for = old.to_vec();
                pruning.looked = Some(Instant::now());
            }
        }
        let Some(next) = &mut pruning.again else {
            return Ok(());
        };
        // Those moved by this pass stand behind, and are not looked at in it.
        let end = stream.end();
        for _ in 0..STEP_PAGES {
            let page = stream.full_page(next, passed, below);
            let Some(page) = page.filter(|page| page.number < end) else {
                pruning.again = None;
                break;
            };
            if !self.clear_marks(&stream, &page, survivors, live, true)? {
                break;
            }
            self.empty(&stream, &page, survivors, live)?;
            *next = page.number + 1;
        }
        Ok(())
    }

    /// Does what the undo of transactions that end in `page`, or behind it, asks of purge: so that
    /// purge has nothing to look at there. False when there is too much of it.
    fn clear_marks(
        &self,
        stream: &Stream,
        page: &FullPage,
        survivors: &mut StreamWriter,
        live: &LiveSnapshots,
        thorough: bool,
    ) -> Result<bool> {
        let mut copy = UndoCopy::default();
        let mut left = if thorough { STEP_MARKS } else { OWN_MARKS };
        while let Some(end) = stream.end_to_look_at(page.number) {
            let mut head = end.head;
            while !head.is_none() {
                if left == 0 {
                    return Ok(false);
                }
                left -= 1;
                let record = copy.read(self.pool(), head)?;
                let previous = record.previous;
                self.clear_mark(stream, &end, &record, survivors, live)?;
                head = previous;
            }
        }
        Ok(true)
    }

    /// Removes the record that a delete mark stands in, if nobody sees what was before; otherwise,
    /// and for a note, leaves word with the survivors.
    fn clear_mark(
        &self,
        stream: &Stream,
        end: &Finished,
        record: &UndoRecord<'_>,
        survivors: &mut StreamWriter,
        live: &LiveSnapshots,
    ) -> Result<()> {
        let tree = match record.kind {
            Kind::PurgeNote => None,
            _ if record.marks_delete => match self.trees()?.tree(record.tree)? {
                Some(tree) => Some(tree),
                None => return self.mark_is_clear(stream, end, record),
            },
            _ => return self.mark_is_clear(stream, end, record),
        };
        let mut tries = 0;
        loop {
            let inside = self.gate().enter();
            survivors.reserve(self.pool(), MAX_RECORD)?;
            let visit = match &tree {
                Some(tree) => self.pruner(PageId(0), live, survivors).visit(
                    tree,
                    record.key,
                    Some(end.txid),
                )?,
                None => Visit::Needed,
            };
            tries += 1;
            match visit {
                Visit::Missing(page) if tries < TRIES => {
                    survivors.unpin();
                    drop(inside);
                    self.pool().fetch_shared(page)?;
                    continue;
                }
                Visit::Removed | Visit::OtherRecord { covered: false } => {}
                _ => {
                    let word = UndoRecord {
                        previous: survivors.open_end(end.txid),
                        tree: record.tree,
                        kind: match record.kind {
                            Kind::PurgeNote => Kind::PurgeNote,
                            _ => Kind::Absent,
                        },
                        marks_delete: record.marks_delete,
                        key: record.key,
                        value: match record.kind {
                            Kind::PurgeNote => record.value,
                            _ => &[],
                        },
                    };
                    let head = survivors.append(&word)?;
                    survivors.finish(end.txid, end.csn, head);
                }
            }
            survivors.unpin();
            stream.set_head(end, record.previous);
            return Ok(());
        }
    }

    fn mark_is_clear(
        &self,
        stream: &Stream,
        end: &Finished,
        record: &UndoRecord<'_>,
    ) -> Result<()> {
        let _inside = self.gate().enter();
        stream.set_head(end, record.previous);
        Ok(())
    }

    fn pruner<'a>(
        &'a self,
        page: PageId,
        live: &'a LiveSnapshots,
        survivors: &'a mut StreamWriter,
    ) -> Pruner<'a> {
        Pruner {
            pool: self.pool(),
            order: self.order(),
            live,
            page,
            survivors,
            newest: Csn(0),
            buf: Vec::new(),
        }
    }

    /// Takes everything out of a page, and retires it; unless something in it can't be reached.
    fn empty(
        &self,
        stream: &Stream,
        page: &FullPage,
        survivors: &mut StreamWriter,
        live: &LiveSnapshots,
    ) -> Result<Emptied> {
        let body = {
            let latched = self.pool().fetch_shared(page.id)?;
            latched.body()[..latched.used()].to_vec()
        };
        let mut newest = Csn(0);
        let mut seen: HashSet<(u32, &[u8])> = HashSet::new();
        let mut rest = &body[..];
        let mut outcome = Emptied::Yes;
        while !rest.is_empty() {
            let Some(record) = UndoRecord::decode(page.id, rest) else {
                outcome = Emptied::No;
                break;
            };
            rest = &rest[record.len(page.id)..];
            if record.kind == Kind::Previous && seen.insert((record.tree.0, record.key)) {
                let visited = self.empty_row(page.id, &record, survivors, live, &mut newest)?;
                if matches!(visited, Emptied::No) {
                    outcome = Emptied::No;
                }
            }
        }
        let _inside = self.gate().enter();
        if newest > Csn(0) {
            survivors.finish(TxId(0), newest, UndoPtr::NONE);
        }
        if matches!(outcome, Emptied::Yes) && stream.remove_page(page) {
            self.pruning.grace.retire(page.id);
            self.pruning.emptied.fetch_add(1, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    fn empty_row(
        &self,
        page: PageId,
        record: &UndoRecord<'_>,
        survivors: &mut StreamWriter,
        live: &LiveSnapshots,
        newest: &mut Csn,
    ) -> Result<Emptied> {
        let Some(tree) = self.trees()?.tree(record.tree)? else {
            return Ok(Emptied::Yes);
        };
        for _ in 0..TRIES {
            let inside = self.gate().enter();
            survivors.reserve(self.pool(), MAX_RECORD)?;
            let mut pruner = self.pruner(page, live, survivors);
            let visit = pruner.visit(&tree, record.key, None);
            *newest = (*newest).max(pruner.newest);
            survivors.unpin();
            drop(inside);
            match visit? {
                Visit::Done => return Ok(Emptied::Yes),
                Visit::Again => {}
                Visit::Missing(page) => drop(self.pool().fetch_shared(page)?),
                Visit::TooLong | Visit::OtherRecord { .. } | Visit::Needed | Visit::Removed => {
                    return Ok(Emptied::No)
                }
            }
        }
        Ok(Emptied::No)
    }

    /// Frees retired pages to which nobody is on the way.
    fn free_retired(&self) -> Result<()> {
        let _inside = self.gate().enter();
        let grace = &self.pruning.grace;
        for page in grace.take_free(|| self.snapshots().oldest_walk()) {
            self.pool().free(page)?;
        }
        Ok(())
    }

    /// Gives back the streams of survivors that are empty.
    pub(super) fn release_survivors(&self) {
        for stream in self.streams().all() {
            let empty = stream.pruning.try_lock().and_then(|mut p| p.take_empty());
            if let Some(writer) = empty {
                self.streams().release(writer);
            }
        }
    }
}

/// The stream whose pages a transaction shall empty after its commit, if any.
pub(super) fn stream_to_prune(system: &System, undo: &StreamWriter) -> Option<Arc<Stream>> {
    (undo.has_filled_page() && system.prunes()).then(|| undo.stream().clone())
}
