//! Pruning: empties undo pages one by one while an old snapshot holds the horizon back.
//!
//! Purge frees undo from its old end as the horizon passes. An old snapshot stops the horizon. But of the versions
//! written since, it needs only one for each row, which it sees, and none of those that came and went after. So
//! pruning visits each page of ended transactions once, soon after they ended. It removes versions that no snapshot
//! sees from their rows' chains ([`prune_chain`](crate::undo::prune_chain)). It moves versions that a snapshot sees
//! to the stream's *survivors*, a stream of its own, and frees the page. So undo takes only the space that the
//! snapshots need, however long they live and however much is written meanwhile.
//!
//! A transaction that writes also prunes: if it has filled a page, it empties two older ones of its stream after its
//! commit. If the stream has more than 128 pages, it empties six. So transactions can't make garbage faster than they
//! remove it. The purge thread does the rest.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ids::{Csn, PageId, TxId, UndoPtr};
use crate::knobs;
use crate::mvcc::live_snapshots::{Horizon, LiveSnapshots};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::Ordering;
use crate::sync::Moment;
use crate::tree::Tree;
use crate::txn::checkpoint_barrier::BarrierGuard;
use crate::txn::purge::{go_on_past_damage, is_damage, read_past_damage};
use crate::txn::TransactionManager;
use crate::undo::prune_chain::{Pruner, Visit};
use crate::undo::pruning::Pace;
use crate::undo::record::{ChainWalk, Kind, UndoCopy, UndoRecord, MAX_RECORD};
use crate::undo::stream::{Finished, FullPage, Pass, Stream, StreamPruning, StreamWriter};

/// The outcome for a page.
enum Emptied {
    Yes,
    /// The page stays until the horizon passes it.
    No,
}

impl TransactionManager {
    /// Notes the live snapshots from time to time, and decides up to which CSN pruning goes.
    pub(super) fn aim_pruning(&self, horizon: Horizon) {
        let mut below = 0;
        if horizon.csn < self.order().newest().csn {
            let Some(live) = self.snapshots().live(self.order()) else {
                return;
            };
            let Pace { old, .. } = *self.pruning.pace.lock();
            let mut aim = self.pruning.aim.lock();
            if aim.noted.is_none_or(|then| crate::sync::since(then) >= old) {
                aim.before = std::mem::replace(&mut aim.last, live.all().to_vec());
                aim.noted = Some(crate::sync::now());
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

    /// Prunes all undo, as if every snapshot were old.
    #[cfg(test)]
    pub(crate) fn prune_now(&self) {
        let below = self.order().newest().csn.0;
        self.pruning.below.store(below, Ordering::Release);
        while self.prune_step().unwrap() {}
        self.pruning.below.store(0, Ordering::Release);
    }

    /// Prunes as transactions do after their commits, as if every snapshot were old.
    #[cfg(test)]
    pub(crate) fn prune_own_now(&self) {
        let below = self.order().newest().csn.0;
        self.pruning.below.store(below, Ordering::Release);
        let streams = self.streams().all().into_iter();
        for stream in streams.filter(|stream| !stream.apart.load(Ordering::Acquire)) {
            self.prune_own(&stream);
        }
        self.pruning.below.store(0, Ordering::Release);
    }

    /// Returns whether an old snapshot makes pruning worthwhile.
    #[inline]
    pub(super) fn prunes(&self) -> bool {
        self.pruning.below.load(Ordering::Relaxed) != 0
    }

    /// Empties older pages of the stream, after a commit that filled an undo page.
    pub(crate) fn prune_own(&self, stream: &Stream) {
        let pages = if stream.counts().0 > knobs::prune_behind() {
            knobs::prune_own_pages_behind()
        } else {
            knobs::prune_own_pages()
        };
        if let Err(error) = self.prune_stream(stream, pages, false) {
            tracing::warn!(%error, "pruning failed; it will be tried again");
        }
    }

    /// Does one bounded step over all streams; returns whether more can be done at once.
    pub(super) fn prune_step(&self) -> Result<bool> {
        let mut more = Ok(false);
        if self.prunes() {
            let streams = self.streams().all().into_iter();
            for stream in streams.filter(|stream| !stream.apart.load(Ordering::Acquire)) {
                // An error in one stream does not stop the pruning of others.
                let pruned = self.prune_stream(&stream, knobs::prune_step_pages(), true);
                more = more.and_then(|before| Ok(pruned? || before));
            }
        }
        self.free_retired()?;
        more
    }

    /// Empties pages of a stream; returns whether there may be more to empty.
    fn prune_stream(&self, stream: &Stream, pages: usize, thorough: bool) -> Result<bool> {
        let Some(mut pruning) = stream.pruning.try_lock() else {
            return Ok(false);
        };
        // The stream may have begun to take survivors since it was chosen. The thread that prunes their stream then
        // prunes it.
        if stream.apart.load(Ordering::Acquire) {
            return Ok(false);
        }
        let Some(_horizon_stands) = self.pruning.horizon.try_read() else {
            return Ok(false);
        };
        let below = Csn(self.pruning.below.load(Ordering::Acquire));
        let passed = self.order().horizon_csn();
        let pruning = &mut *pruning;
        let any = stream.full_page(&mut pruning.next, passed, below);
        if any.is_none() && (!thorough || pruning.survivors.is_none()) {
            return Ok(false);
        }
        let survivors = pruning
            .survivors
            .get_or_insert_with(|| self.streams().acquire_apart());
        let kept = survivors.stream().clone();
        // Purge may be working on the survivors.
        let Some(_alone) = kept.pruning.try_lock() else {
            return Ok(false);
        };
        let slot = self.snapshots().claim();
        // A missing undo page is read without a latch, and must not be freed meanwhile.
        let unseen = is_planted(PlantedFault::PruneUnseen);
        let walking = (!unseen).then(|| slot.walk(&self.pruning.reclamation));
        let Some(live) = self.snapshots().live(self.order()) else {
            return Ok(false);
        };
        let mut done = 0;
        while done < pages {
            let Some(page) = stream.full_page(&mut pruning.next, passed, below) else {
                break;
            };
            if !self.clear_marks(stream, &page, survivors, &live, thorough)? {
                // A committing transaction leaves a page with many marks to the purge thread.
                return Ok(thorough);
            }
            self.empty(stream, &page, survivors, &live)?;
            pruning.next = page.number + 1;
            done += 1;
        }
        if thorough {
            self.look_again(pruning, passed, below, &live)?;
        }
        drop(walking);
        if done > 0 {
            self.free_retired()?;
        }
        Ok(done == pages)
    }

    /// Looks at survivors again if a snapshot is gone for which they were kept; some may be no longer needed.
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
            let Pace { again, few, .. } = *self.pruning.pace.lock();
            let gone = |csn: &u64| old.binary_search(csn).is_err();
            let due = pruning
                .looked
                .is_none_or(|then| crate::sync::since(then) >= again);
            if due && pruning.kept_for.iter().any(gone) && stream.counts().0 > few {
                let end = survivors.seal();
                pruning.again = Some(Pass { next: 0, end });
            }
            if due {
                pruning.kept_for = old.to_vec();
                pruning.looked = Some(crate::sync::now());
            }
        }
        let Some(pass) = &mut pruning.again else {
            return Ok(());
        };
        if is_planted(PlantedFault::EndlessSecondLook) {
            pass.end = stream.end();
        }
        for _ in 0..knobs::prune_step_pages() {
            let page = stream.full_page(&mut pass.next, passed, below);
            let Some(page) = page.filter(|page| page.number < pass.end) else {
                pruning.again = None;
                break;
            };
            if !self.clear_marks(&stream, &page, survivors, live, true)? {
                break;
            }
            self.empty(&stream, &page, survivors, live)?;
            pass.next = page.number + 1;
        }
        Ok(())
    }

    /// Does what the undo of ended transactions in `page` asks of purge, so that purge need not look there.
    ///
    /// Returns false if there is too much of it.
    fn clear_marks(
        &self,
        stream: &Stream,
        page: &FullPage,
        survivors: &mut StreamWriter,
        live: &LiveSnapshots,
        thorough: bool,
    ) -> Result<bool> {
        let mut copy = UndoCopy::default();
        let mut left = if thorough {
            knobs::prune_step_marks()
        } else {
            knobs::prune_own_marks()
        };
        while let Some(mut end) = stream.end_to_look_at(page.number) {
            let mut walk = ChainWalk::from(end.head);
            while !end.head.is_none() {
                if left == 0 {
                    return Ok(false);
                }
                left -= 1;
                match read_past_damage(self.pool(), end.txid, end.head, &mut copy)? {
                    Some(record) => self.clear_mark(stream, &mut end, &record, survivors, live)?,
                    None => self.looked_at(stream, &mut end, UndoPtr::NONE)?,
                }
                if go_on_past_damage(end.txid, &mut walk, end.head)?.is_none() {
                    self.looked_at(stream, &mut end, UndoPtr::NONE)?;
                }
            }
        }
        Ok(true)
    }

    /// Removes the record with a delete mark if no snapshot sees a version before it.
    ///
    /// Otherwise, and for a note, it leaves a record for purge with the survivors.
    fn clear_mark(
        &self,
        stream: &Stream,
        end: &mut Finished,
        record: &UndoRecord<'_>,
        survivors: &mut StreamWriter,
        live: &LiveSnapshots,
    ) -> Result<()> {
        let is_note = record.kind == Kind::PurgeNote;
        if !is_note && !record.marks_delete {
            return self.looked_at(stream, end, record.previous);
        }
        // A note has no row to visit.
        let mut reached = !is_note;
        let mut tries = 0;
        loop {
            let (inside, tree) = self.enter_to_visit(record)?;
            survivors.reserve(self.pool(), MAX_RECORD)?;
            let visit = match tree {
                _ if !reached => Ok(Visit::Needed),
                Some(tree) => {
                    self.pruner(PageId(0), live, survivors)
                        .visit(&tree, record.key, Some(end.txid))
                }
                // The mark is gone with its tree.
                None => Ok(Visit::Removed),
            };
            tries += 1;
            match past_damage(visit) {
                Err(error) => {
                    survivors.unpin();
                    return Err(error);
                }
                Ok(Some(Visit::Missing(page))) if tries < knobs::prune_tries() => {
                    survivors.unpin();
                    drop(inside);
                    reached = past_damage(self.bring(page))?.is_some();
                    continue;
                }
                Ok(Some(Visit::Removed | Visit::OtherRecord { covered: false })) => {}
                Ok(_) => {
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
                    let head = survivors.append(&word);
                    survivors.unpin();
                    survivors.finish(end.txid, end.csn, head?);
                }
            }
            survivors.unpin();
            return end_is_there(stream.set_head(end, record.previous));
        }
    }

    /// Enters the barrier, and then looks for the tree of a record; `None` if the tree is gone.
    ///
    /// A tree is dropped while the barrier is closed, and its pages go to others. So a tree found outside may be gone
    /// inside.
    fn enter_to_visit(
        &self,
        record: &UndoRecord<'_>,
    ) -> Result<(BarrierGuard<'_>, Option<Arc<Tree>>)> {
        let find = || self.trees()?.tree(record.tree);
        let early = is_planted(PlantedFault::TreeBeforeBarrier).then(find);
        self.moments.come_to(Moment::BeforeVisit);
        let inside = self.barrier().enter();
        let tree = early.unwrap_or_else(find)?;
        Ok((inside, tree))
    }

    /// Records that an end has been looked at down to `head`.
    fn looked_at(&self, stream: &Stream, end: &mut Finished, head: UndoPtr) -> Result<()> {
        let _inside = self.barrier().enter();
        end_is_there(stream.set_head(end, head))
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

    /// Moves or removes everything in a page, and retires the page, unless it has something that can't be reached.
    fn empty(
        &self,
        stream: &Stream,
        page: &FullPage,
        survivors: &mut StreamWriter,
        live: &LiveSnapshots,
    ) -> Result<Emptied> {
        let read = self.pool().fetch_shared(page.id);
        let Some(body) =
            past_damage(read.map(|latched| latched.body()[..latched.used()].to_vec()))?
        else {
            return Ok(Emptied::No);
        };
        let mut seen: HashSet<(u32, &[u8])> = HashSet::new();
        let mut rest = &body[..];
        let mut outcome = Emptied::Yes;
        let mut moved = Csn(0);
        while !rest.is_empty() {
            let Some(record) = UndoRecord::decode(page.id, rest) else {
                outcome = Emptied::No;
                break;
            };
            rest = &rest[record.len(page.id)..];
            if record.kind == Kind::Previous && seen.insert((record.tree.0, record.key)) {
                let visited = self.empty_row(page.id, &record, survivors, live, &mut moved)?;
                if matches!(visited, Emptied::No) {
                    outcome = Emptied::No;
                }
            }
        }
        let _inside = self.barrier().enter();
        if moved > Csn(0) && is_planted(PlantedFault::UnendedSurvivors) {
            survivors.finish(TxId(0), moved, UndoPtr::NONE);
        }
        if matches!(outcome, Emptied::Yes) && stream.remove_page(page) {
            self.pruning.reclamation.retire(page.id);
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
        moved: &mut Csn,
    ) -> Result<Emptied> {
        for _ in 0..knobs::prune_tries() {
            let (inside, tree) = self.enter_to_visit(record)?;
            let Some(tree) = tree else {
                return Ok(Emptied::Yes);
            };
            survivors.reserve(self.pool(), MAX_RECORD)?;
            let mut pruner = self.pruner(page, live, survivors);
            let visit = pruner.visit(&tree, record.key, None);
            let newest = pruner.newest;
            *moved = (*moved).max(newest);
            survivors.unpin();
            // Moved records must stay until every snapshot sees what replaced them, whatever happens to the rest of
            // the page.
            if newest > Csn(0) && !is_planted(PlantedFault::UnendedSurvivors) {
                survivors.finish(TxId(0), newest, UndoPtr::NONE);
            }
            drop(inside);
            match past_damage(visit)? {
                Some(Visit::Done) => return Ok(Emptied::Yes),
                Some(Visit::Again) => {}
                Some(Visit::Missing(page)) => {
                    if past_damage(self.bring(page))?.is_none() {
                        return Ok(Emptied::No);
                    }
                }
                Some(
                    Visit::TooLong | Visit::OtherRecord { .. } | Visit::Needed | Visit::Removed,
                )
                | None => return Ok(Emptied::No),
            }
        }
        Ok(Emptied::No)
    }

    /// Reads an undo page into memory that a visit did not find there.
    fn bring(&self, page: PageId) -> Result<()> {
        self.moments.come_to(Moment::PageMissing);
        self.pool().fetch_shared(page).map(drop)
    }

    /// Frees retired pages that no reader can be about to read.
    fn free_retired(&self) -> Result<()> {
        let _inside = self.barrier().enter();
        let reclamation = &self.pruning.reclamation;
        let free = reclamation.take_free(|| self.snapshots().oldest_walk());
        reclamation.free_all(self.pool(), free)
    }

    /// Gives back streams of survivors that are empty.
    pub(crate) fn release_survivors(&self) {
        for stream in self.streams().all() {
            let empty = stream.pruning.try_lock().and_then(|mut p| p.take_empty());
            if let Some(writer) = empty {
                self.streams().release(writer);
            }
        }
    }
}

/// The stream whose pages a transaction must empty after its commit, if any.
pub(crate) fn stream_to_prune(
    transactions: &TransactionManager,
    undo: &StreamWriter,
) -> Option<Arc<Stream>> {
    (undo.has_filled_page() && transactions.prunes()).then(|| undo.stream().clone())
}

/// Returns `None` in place of a damaged page.
///
/// Damage is permanent, unlike some failed reads. So pruning leaves what it can't reach, and goes on with the rest.
fn past_damage<T>(looked: Result<T>) -> Result<Option<T>> {
    match looked {
        Err(error) if is_damage(&error) => {
            // Purge reads no undo but that of deletions, so this may be the only report.
            if matches!(error, Error::Internal(_)) {
                tracing::error!(%error, "pruning leaves undo that makes no sense");
            }
            Ok(None)
        }
        looked => looked.map(Some),
    }
}

/// Checks that an end is unchanged: the thread that looks at ends has the stream locked.
fn end_is_there(found: bool) -> Result<()> {
    match found {
        true => Ok(()),
        false => Err(Error::Internal(
            "an end has changed while its undo was looked at".into(),
        )),
    }
}
