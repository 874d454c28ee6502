//! The lock table: explicit row locks, and the queues of the transactions that wait for rows.
//!
//! Most row locks are only in the row: its version header names the running writer. Only two cases make an entry
//! here: a lock without a write (`SELECT … FOR UPDATE`), and a transaction that waits, which first enters the running
//! writer as holder. A row's entry has holders and a first-in-first-out queue. A holder that ends grants the row to
//! the front of the queue.
//!
//! A transaction that has locked very many rows has no entry for each. Ranges of keys replace the entries, and also
//! lock the rows between (lock escalation: Gray, Lorie, Putzolu, Traiger, "Granularity of locks in a shared data
//! base", 1975).
//!
//! Order of latches and mutexes: leaf latch → shard → shard of ranges → a running transaction's rows → its wait slot.
//! A transaction enters an explicit lock with the row's leaf latched shared. A writer looks here with the leaf
//! latched exclusively. So the leaf latch decides which of the two came first. See `docs/locking.md`.

mod names;
#[cfg(test)]
mod tests;

use std::cmp::Ordering as CmpOrdering;
use std::collections::hash_map::Entry as MapEntry;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

pub use self::names::{KeyLock, NameEntry};
use crate::ids::TreeId;
use crate::knobs;
pub(crate) use crate::lock::queue::Enqueued;
pub use crate::lock::queue::LockMode;
use crate::lock::queue::{Holder, Queue, Waiter};
use crate::lock::range::{Holders, RangeTable};
use crate::lock::row_name::{Row, RowHasher, RowName};
use crate::lock::running_transaction::{RunningTransaction, WaitState};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::Mutex;

pub(super) type Rows = HashMap<Row, Queue, BuildHasherDefault<RowHasher>>;

#[derive(Default)]
pub(crate) struct Shard {
    /// Entries in `rows`, readable without the mutex.
    count: AtomicUsize,
    pub(crate) rows: Mutex<Rows>,
}

impl Shard {
    /// Counts an entry's removal, which took place under the mutex.
    pub fn entry_gone(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// See the module's text.
pub(crate) struct LockTable {
    shards: Box<[CachePadded<Shard>]>,
    /// Rows that are locked without an entry of their own.
    ///
    /// A thread that makes a transaction a holder of a row looks here under the mutex of the row's shard.
    escalated: RangeTable,
    /// Names that are locked without an entry (`txn/waiting/name_lock.rs`).
    pub(crate) names: RangeTable,
    /// The number of entries from which on a transaction gets ranges for further rows and names.
    pub(crate) escalates_at: usize,
}

/// The lock on a row that a transaction held before its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It held nothing of the row.
    Newly(Row),
    /// It had an entry, perhaps a weaker one, or a range that covers the row.
    Before,
}

/// The answer to a writer that wants to write a row.
pub(crate) enum Admitted {
    Yes,
    /// Other transactions hold or await the row.
    BehindHolders,
    /// Other transactions hold ranges around the row.
    BehindRanges(Holders),
}

impl Default for LockTable {
    fn default() -> Self {
        LockTable {
            shards: (0..knobs::lock_shards())
                .map(|_| CachePadded::default())
                .collect(),
            escalated: RangeTable::default(),
            names: RangeTable::default(),
            escalates_at: knobs::rows_before_escalation(),
        }
    }
}

impl LockTable {
    pub(crate) fn shard(&self, row: Row) -> &Shard {
        // Bits that neither the map's buckets (the low ones) nor its tags (the high ones) use.
        &self.shards[(row.0 >> 32) as usize % knobs::lock_shards()]
    }

    /// Locks a name that is not a row's; returns false if other transactions hold or await it.
    pub fn try_lock(
        &self,
        row: Row,
        name: &RowName,
        who: &Arc<RunningTransaction>,
        mode: LockMode,
    ) -> bool {
        let shard = self.shard(row);
        Self::take(shard, &mut shard.rows.lock(), row, name, who, mode).is_some()
    }

    /// Locks a row if nothing is in the way, and returns what `who` held of it before.
    ///
    /// The caller has the row's leaf latched shared, and has seen that the record has no other running writer.
    ///
    /// # Errors
    /// The holders of ranges that are in the way; an empty list if others hold or await the row itself.
    pub fn try_take(
        &self,
        tree: TreeId,
        key: &[u8],
        who: &Arc<RunningTransaction>,
        mode: LockMode,
    ) -> Result<Taken, Holders> {
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let holders = self.escalated.holders(tree, key, who, mode);
        if !holders.is_empty() {
            return Err(holders);
        }
        // Without an entry no transaction waits for the row or holds it by itself. An own range counts like an entry.
        if self.escalated.covers(tree, key, who, mode) && !rows.contains_key(&row) {
            return Ok(Taken::Before);
        }
        let name = RowName::new(tree, key);
        Self::take(shard, &mut rows, row, &name, who, mode).ok_or_else(Holders::new)
    }

    pub(crate) fn take(
        shard: &Shard,
        rows: &mut Rows,
        row: Row,
        name: &RowName,
        who: &Arc<RunningTransaction>,
        mode: LockMode,
    ) -> Option<Taken> {
        let queue = rows.entry(row).or_insert_with(|| {
            shard.count.fetch_add(1, Ordering::Relaxed);
            Queue::new(name)
        });
        if let Some(own) = queue.position(who) {
            let Holder {
                mode: held, ranged, ..
            } = queue.holders[own];
            if held == mode || mode == LockMode::Shared {
                // As holder of a range around the row, it may be listed beside a transaction that holds the row
                // exclusively.
                let excluded = (held == LockMode::Shared || ranged)
                    && !queue.compatible(who, mode)
                    && !is_planted(PlantedFault::ShareExclusive);
                // If `who` only shares the row, it keeps its exclusive hold for the range alone.
                if held == mode || is_planted(PlantedFault::HoldRangesAsRows) {
                    queue.holders[own].ranged &= excluded;
                }
                queue.holders[own].by_header = false;
                return (!excluded).then_some(Taken::Before);
            }
            if queue.holders.len() > 1 {
                return None;
            }
            queue.holders[own].hold(mode);
            return Some(Taken::Before);
        }
        if !queue.waiters.is_empty() || !queue.compatible(who, mode) {
            return None;
        }
        who.add_row(row);
        queue.holders.push(Holder {
            who: who.clone(),
            mode,
            ranged: false,
            by_header: false,
        });
        Some(Taken::Newly(row))
    }

    /// Replaces the entry of a row that `who` has locked by a range, if `who` has many entries and no transaction
    /// waits for the row.
    pub fn escalate(&self, tree: TreeId, key: &[u8], who: &Arc<RunningTransaction>) {
        if who.held_rows() < self.escalates_at {
            return;
        }
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let MapEntry::Occupied(mut occupied) = rows.entry(row) else {
            return;
        };
        let queue = occupied.get_mut();
        let Some(own) = queue.position(who) else {
            return;
        };
        let Holder { mode, ranged, .. } = queue.holders[own];
        if ranged || !queue.waiters.is_empty() {
            return;
        }
        if !is_planted(PlantedFault::EscalateNothing) {
            self.escalated.add_key(tree, who, mode, key);
        }
        queue.holders.remove(own);
        if queue.is_empty() {
            occupied.remove();
            // A thread that sees that the entry is gone also sees the range.
            let order = match is_planted(PlantedFault::UnorderedEscalation) {
                true => Ordering::Relaxed,
                false => Ordering::Release,
            };
            shard.count.fetch_sub(1, order);
        }
        who.forget(row);
    }

    /// Releases what `who` has locked in a tree without entries.
    pub fn release_escalated(&self, tree: TreeId, who: &Arc<RunningTransaction>) {
        self.escalated.release(tree, who);
        self.names.release(tree, who);
    }

    /// Returns whether `who` has an entry for the row.
    pub fn holds(&self, row: Row, who: &Arc<RunningTransaction>) -> bool {
        let rows = self.shard(row).rows.lock();
        rows.get(&row)
            .is_some_and(|queue| queue.position(who).is_some())
    }

    /// Returns whether a writer may write the row, or which transactions are in its way.
    ///
    /// The writer has the row's leaf latched exclusively, and has seen no version of another running writer there.
    ///
    /// With `give_up`, an own lock for which no transaction waits is dropped, because the row's header holds the row
    /// from then on. Otherwise an own lock becomes exclusive. (A rollback to a savepoint makes the entry again:
    /// [`LockTable::hold`].)
    pub fn admits_writer(
        &self,
        tree: TreeId,
        key: &[u8],
        who: &Arc<RunningTransaction>,
        give_up: bool,
    ) -> Admitted {
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        // The leaf latch orders this load after the locks that others took with the leaf latched before. If an entry
        // has become a range, this thread sees the range: it either sees that the entry is gone, or looks under the
        // mutex that guards the change.
        let entries = shard.count.load(Ordering::Acquire) != 0;
        let mut rows = entries.then(|| shard.rows.lock());
        let holders = self.escalated.holders(tree, key, who, LockMode::Exclusive);
        if !holders.is_empty() {
            return Admitted::BehindRanges(holders);
        }
        let Some(rows) = &mut rows else {
            return Admitted::Yes;
        };
        let Some(queue) = rows.get_mut(&row) else {
            return Admitted::Yes;
        };
        let Some(own) = queue.position(who) else {
            return match queue.is_empty() {
                true => Admitted::Yes,
                false => Admitted::BehindHolders,
            };
        };
        if queue.holders.len() > 1 {
            return Admitted::BehindHolders;
        }
        if give_up && queue.waiters.is_empty() {
            rows.remove(&row);
            shard.entry_gone();
            who.forget(row);
        } else if !is_planted(PlantedFault::SharedWriter) {
            // A transaction that waits to share the row must not come to share it with its writer.
            queue.holders[own].hold(LockMode::Exclusive);
        }
        Admitted::Yes
    }

    /// Makes `who`, which holds the row by its header, an exclusive holder in the table.
    ///
    /// The caller has the row's leaf latched exclusively, and takes the header back afterwards.
    pub fn hold(&self, tree: TreeId, key: &[u8], who: &Arc<RunningTransaction>) {
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        if who.held_rows() >= self.escalates_at && !rows.contains_key(&row) {
            self.escalated.add_key(tree, who, LockMode::Exclusive, key);
            return;
        }
        let queue = rows.entry(row).or_insert_with(|| {
            shard.count.fetch_add(1, Ordering::Relaxed);
            Queue::new(&RowName::new(tree, key))
        });
        match queue.position(who) {
            Some(own) => queue.holders[own].hold(LockMode::Exclusive),
            None => {
                who.add_row(row);
                queue.holders.push(Holder {
                    who: who.clone(),
                    mode: LockMode::Exclusive,
                    ranged: false,
                    by_header: false,
                });
            }
        }
    }

    /// Takes a place in the row's queue.
    ///
    /// `writer` is the running writer in the row's header, which becomes a holder in the entry; `None` if the entry's
    /// holders were in the way.
    pub fn enqueue(
        &self,
        row: Row,
        name: &RowName,
        who: &Arc<RunningTransaction>,
        mode: LockMode,
        writer: Option<&Arc<RunningTransaction>>,
    ) -> Enqueued {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let outcome = match rows.entry(row) {
            MapEntry::Occupied(mut occupied) => occupied.get_mut().enqueue(row, who, mode, writer),
            MapEntry::Vacant(vacant) => {
                let mut queue = Queue::new(name);
                let outcome = queue.enqueue(row, who, mode, writer);
                if outcome != Enqueued::Retry {
                    vacant.insert(queue);
                    shard.count.fetch_add(1, Ordering::Relaxed);
                }
                outcome
            }
        };
        outcome
    }

    /// Takes a place in the row's queue behind transactions that hold a range around the row.
    ///
    /// These become holders of the row.
    pub fn enqueue_behind(
        &self,
        row: Row,
        name: &RowName,
        who: &Arc<RunningTransaction>,
        mode: LockMode,
        holders: &[(Arc<RunningTransaction>, LockMode)],
    ) -> Enqueued {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let queue = rows.entry(row).or_insert_with(|| {
            shard.count.fetch_add(1, Ordering::Relaxed);
            Queue::new(name)
        });
        let mut entered = false;
        for (holder, holds) in holders {
            match queue.position(holder) {
                // An ended transaction excludes no other.
                None => entered |= queue.enter(row, holder, *holds, true),
                Some(at) if *holds == LockMode::Exclusive => queue.holders[at].excludes_for_range(),
                Some(_) => {}
            }
        }
        let outcome = queue
            .enqueue(row, who, mode, None)
            .with(entered && queue.waiters.len() > 1);
        if queue.is_empty() {
            rows.remove(&row);
            shard.entry_gone();
        }
        outcome
    }

    /// Leaves the row's queue after a timeout, a kill or the choice as victim.
    ///
    /// Returns true if the lock had been granted before.
    pub fn leave(&self, row: Row, who: &Arc<RunningTransaction>) -> bool {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let MapEntry::Occupied(mut occupied) = rows.entry(row) else {
            return true;
        };
        let queue = occupied.get_mut();
        let Some(at) = queue
            .waiters
            .iter()
            .position(|waiter| Arc::ptr_eq(&waiter.who, who))
        else {
            return true;
        };
        queue.waiters.remove(at);
        who.wait_slot.set(WaitState::Idle);
        let granted = queue.grant(row);
        if queue.is_empty() {
            occupied.remove();
            shard.entry_gone();
        }
        drop(rows);
        granted.wake();
        false
    }

    /// Called when the row's header does not name `who` any more, while `who` runs on.
    ///
    /// If `who` holds the row only by the header, the waiters get the row.
    pub fn header_gone(&self, tree: TreeId, key: &[u8], who: &Arc<RunningTransaction>) {
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        // A transaction that comes to wait after this point finds another header.
        if shard.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let by_header = |queue: &Queue| {
            let own = queue.position(who);
            own.is_some_and(|own| queue.holders[own].by_header)
        };
        if shard.rows.lock().get(&row).is_some_and(by_header) {
            self.release_early(row, who);
        }
    }

    /// Releases a held row, and grants it to the front of the queue.
    pub fn release(&self, row: Row, who: &Arc<RunningTransaction>) {
        self.give_back(row, who, false);
    }

    /// Like [`LockTable::release`], for a transaction that goes on without the row.
    pub fn release_early(&self, row: Row, who: &Arc<RunningTransaction>) {
        self.give_back(row, who, true);
    }

    fn give_back(&self, row: Row, who: &Arc<RunningTransaction>, goes_on: bool) {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let MapEntry::Occupied(mut occupied) = rows.entry(row) else {
            return;
        };
        let queue = occupied.get_mut();
        let Some(own) = queue.position(who) else {
            return;
        };
        queue.holders.remove(own);
        if goes_on {
            who.forget(row);
        }
        let granted = queue.grant(row);
        if queue.is_empty() {
            occupied.remove();
            shard.entry_gone();
        }
        drop(rows);
        granted.wake();
    }

    /// The holders of `row`, for which `who` waits in the row's queue.
    ///
    /// Waiters ahead of `who` wait for the same holders, so each circle through them is also a circle through a
    /// holder. Empty if `who` does not wait there any more.
    pub fn blockers(
        &self,
        row: Row,
        who: &Arc<RunningTransaction>,
    ) -> SmallVec<[Arc<RunningTransaction>; 4]> {
        let rows = self.shard(row).rows.lock();
        let Some(queue) = rows.get(&row) else {
            return SmallVec::new();
        };
        // Grants change this state under the shard's mutex. A search of the queue, which may be long, is not needed.
        if who.wait_slot.state() != WaitState::Queued(row) {
            return SmallVec::new();
        }
        queue
            .holders
            .iter()
            .filter(|holder| !Arc::ptr_eq(&holder.who, who))
            .map(|holder| holder.who.clone())
            .collect()
    }

    /// Calls `f` with `who` and each holder that it waits for, once `who` has its place in the queue of `row`.
    ///
    /// The holders do not end meanwhile.
    pub fn waits(
        &self,
        row: Row,
        who: &Arc<RunningTransaction>,
        mut f: impl FnMut(&RunningTransaction, &RunningTransaction),
    ) {
        let rows = self.shard(row).rows.lock();
        let Some(queue) = rows.get(&row) else {
            return;
        };
        // A search of the queue, which may be long, is not needed.
        if who.wait_slot.state() == WaitState::Queued(row) {
            queue.waits_for_holders(who, &mut f);
        }
    }

    /// Like [`LockTable::waits`], for all waiters of the row; searches the queue.
    ///
    /// Also calls `f` with `who` and each waiter before it that excludes it, and with each such waiter behind it and
    /// `who`.
    pub fn waits_in_queue(
        &self,
        row: Row,
        who: &Arc<RunningTransaction>,
        mut f: impl FnMut(&RunningTransaction, &RunningTransaction),
    ) {
        let rows = self.shard(row).rows.lock();
        let Some(queue) = rows.get(&row) else {
            return;
        };
        let is_who = |waiter: &Waiter| Arc::ptr_eq(&waiter.who, who);
        let Some(place) = queue.waiters.iter().position(is_who) else {
            return;
        };
        let mode = queue.waiters[place].mode;
        for (at, waiter) in queue.waiters.iter().enumerate() {
            queue.waits_for_holders(&waiter.who, &mut f);
            match at.cmp(&place) {
                CmpOrdering::Less if mode.excludes(waiter.mode) => f(who, &waiter.who),
                CmpOrdering::Greater if mode.excludes(waiter.mode) => f(&waiter.who, who),
                _ => {}
            }
        }
    }

    /// Calls `f` with each entry, shard after shard, until `f` returns false.
    pub fn look(&self, mut f: impl FnMut(Row, &RowName, &[Holder], &VecDeque<Waiter>) -> bool) {
        for shard in &self.shards {
            if shard.count.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for (row, queue) in &*shard.rows.lock() {
                if !f(*row, &queue.name, &queue.holders, &queue.waiters) {
                    return;
                }
            }
        }
    }

    /// The name of `row` and the mode in which `who` waits for it.
    pub fn waited(&self, row: Row, who: &Arc<RunningTransaction>) -> Option<(RowName, LockMode)> {
        let rows = self.shard(row).rows.lock();
        let queue = rows.get(&row)?;
        let waiter = queue
            .waiters
            .iter()
            .find(|waiter| Arc::ptr_eq(&waiter.who, who))?;
        Some((queue.name, waiter.mode))
    }

    /// Returns whether `who` has so many entries that ranges replace further ones; `requests`: its lock requests so
    /// far.
    #[inline]
    pub fn escalates(&self, who: &RunningTransaction, requests: u64) -> bool {
        // Most transactions have made too few requests, and find that out without a mutex.
        requests >= self.escalates_at as u64 && who.held_rows() >= self.escalates_at
    }

    /// The tables of ranges that replace entries: of rows and of names.
    pub fn escalated(&self) -> [&RangeTable; 2] {
        [&self.escalated, &self.names]
    }

    /// The number of entries in all shards, and of transactions with ranges in their place.
    pub fn len(&self) -> usize {
        let entries = self.shards.iter().map(|shard| &shard.count);
        let entries: usize = entries.map(|count| count.load(Ordering::Relaxed)).sum();
        entries + self.escalated.len() + self.names.len()
    }
}
