//! The lock table: explicit row locks, and the queues of those who wait.
//!
//! Most row locks stand nowhere but in the row: its version header names the running writer.
//! Only two things make an entry here: a lock without a write (`SELECT … FOR UPDATE`), and a
//! transaction that waits, which first writes the running writer in as holder. A row's entry has
//! holders and a first-in-first-out queue; whoever ends grants to the front of the queue.
//!
//! Who has locked very many rows has no entry for each: ranges of keys stand for them, which hold the rows between them,
//! too (lock escalation: Gray, Lorie, Putzolu, Traiger, "Granularity of locks in a shared data base", 1975).
//!
//! Order of latches and mutexes: leaf latch → shard → shard of ranges → a running transaction's rows → its wait slot. An explicit
//! lock is entered with the row's leaf latched shared; a writer looks here with the leaf latched
//! exclusively. So the leaf latch decides which of the two came first. See `docs/locking.md`.

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
    /// An entry has been removed, under the mutex.
    pub fn entry_gone(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// See the module's text.
pub(crate) struct LockTable {
    shards: Box<[CachePadded<Shard>]>,
    /// Rows that are locked without an entry of their own. Who comes to hold a row asks here under the mutex of the
    /// row's shard.
    escalated: RangeTable,
    /// Names that are locked without an entry (`txn/waiting/name_lock.rs`).
    pub(crate) names: RangeTable,
    /// Who has so many entries gets ranges for further rows and names.
    pub(crate) escalates_at: usize,
}

/// How a row came to be locked, for the one who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It held nothing of the row.
    Newly(Row),
    /// It had an entry already, if perhaps a weaker one.
    Before,
}

/// Whether a writer may write a row.
pub(crate) enum Admitted {
    Yes,
    /// Others hold or await the row.
    BehindHolders,
    /// Others hold ranges around the row.
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

    /// Locks a name that is no row's, where nothing is in the way.
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

    /// Locks a row where nothing is in the way, and says whether the lock is a new one. Called with the row's leaf
    /// latched shared, after the record was seen to have no other running writer.
    ///
    /// # Errors
    /// Who holds ranges that are in the way; none: others hold or await the row itself.
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
        // Nobody holds or awaits it, but for ranges: one of its own is as good as an entry.
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
                // For a range around the row it may stand beside one that has the row for itself.
                let excluded = (held == LockMode::Shared || ranged)
                    && !queue.compatible(who, mode)
                    && !is_planted(PlantedFault::ShareExclusive);
                // Who only shares it goes on holding the rest for the range.
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

    /// A row that `who` has locked gets a range instead of an entry, where `who` has many, and nobody waits for this one.
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
            // Who sees that there is no entry sees the range.
            let order = match is_planted(PlantedFault::UnorderedEscalation) {
                true => Ordering::Relaxed,
                false => Ordering::Release,
            };
            shard.count.fetch_sub(1, order);
        }
        who.forget(row);
    }

    /// Gives up what `who` has locked in a tree without entries.
    pub fn release_escalated(&self, tree: TreeId, who: &Arc<RunningTransaction>) {
        self.escalated.release(tree, who);
        self.names.release(tree, who);
    }

    /// Whether `who` has an entry for the row.
    pub fn holds(&self, row: Row, who: &Arc<RunningTransaction>) -> bool {
        let rows = self.shard(row).rows.lock();
        rows.get(&row)
            .is_some_and(|queue| queue.position(who).is_some())
    }

    /// Whether other transactions hold or await the row. Called by a writer with the row's
    /// leaf latched exclusively, after it saw that no other running writer's version stands there.
    ///
    /// With `give_up`, an own lock that nobody waits for goes: the row's header holds it from now
    /// on. Another becomes exclusive. (A rollback to a savepoint makes the entry again: [`LockTable::hold`].)
    pub fn admits_writer(
        &self,
        tree: TreeId,
        key: &[u8],
        who: &Arc<RunningTransaction>,
        give_up: bool,
    ) -> Admitted {
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        // The leaf latch orders this load after the lock of whoever had the leaf before. An entry that has become a
        // range is looked for as an entry first, or under the mutex, under which it becomes one.
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
            // Those who wait to share the row must not come to do so beside its writer.
            queue.holders[own].hold(LockMode::Exclusive);
        }
        Admitted::Yes
    }

    /// Makes `who` an exclusive holder, which it is by the row's header so far. Called with the
    /// row's leaf latched exclusively, before the header is taken back.
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

    /// Takes a place in the row's queue. `writer` is the running writer seen in the row's header,
    /// which becomes a holder in the entry; `None` when the entry's holders were in the way.
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

    /// Takes a place in the row's queue behind transactions that hold a range around it, which
    /// become holders of the row.
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
                // One that has ended by now is in nobody's way.
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

    /// Leaves the row's queue (late, killed, chosen as victim). Whether the lock was granted first.
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

    /// The row's header names `who` no more, which goes on. Others that wait for it there get the row, where `who` has
    /// not locked it otherwise.
    pub fn header_gone(&self, tree: TreeId, key: &[u8], who: &Arc<RunningTransaction>) {
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        // Who comes to wait from now on finds another header.
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

    /// Gives a held row back and grants it to the front of the queue.
    pub fn release(&self, row: Row, who: &Arc<RunningTransaction>) {
        self.give_back(row, who, false);
    }

    /// As [`LockTable::release`], before `who` ends: it goes on without the row.
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

    /// Whom `who` waits for in the queue of `row`: its holders. (Those ahead in the queue wait for
    /// the same holders, so a circle through them is a circle through a holder too.) Empty when
    /// it does not wait there any more.
    pub fn blockers(
        &self,
        row: Row,
        who: &Arc<RunningTransaction>,
    ) -> SmallVec<[Arc<RunningTransaction>; 4]> {
        let rows = self.shard(row).rows.lock();
        let Some(queue) = rows.get(&row) else {
            return SmallVec::new();
        };
        // Grants change this under the shard's mutex. The queue itself may be long.
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

    /// Shows who `who` waits for to `f`, once it has its place in the queue of `row`: each holder. They do not end
    /// meanwhile.
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
        // The queue itself may be long.
        if who.wait_slot.state() == WaitState::Queued(row) {
            queue.waits_for_holders(who, &mut f);
        }
    }

    /// As [`LockTable::waits`], of all that wait there; and `who` and those before it, those behind it and `who`. It
    /// searches the queue.
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

    /// Shows every entry, shard after shard, to `f`, until it says false.
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

    /// What `who` waits for in the queue of `row`.
    pub fn waited(&self, row: Row, who: &Arc<RunningTransaction>) -> Option<(RowName, LockMode)> {
        let rows = self.shard(row).rows.lock();
        let queue = rows.get(&row)?;
        let waiter = queue
            .waiters
            .iter()
            .find(|waiter| Arc::ptr_eq(&waiter.who, who))?;
        Some((queue.name, waiter.mode))
    }

    /// Whether `who`, that has asked for locks so often, has so many entries that ranges stand for further rows.
    #[inline]
    pub fn escalates(&self, who: &RunningTransaction, requests: u64) -> bool {
        // Most have asked too seldom, and need no mutex to know it.
        requests >= self.escalates_at as u64 && who.held_rows() >= self.escalates_at
    }

    /// Those that have locked rows without entries, and names.
    pub fn escalated(&self) -> [&RangeTable; 2] {
        [&self.escalated, &self.names]
    }

    /// Entries in all shards, and those that have locked rows or names without entries.
    pub fn len(&self) -> usize {
        let entries = self.shards.iter().map(|shard| &shard.count);
        let entries: usize = entries.map(|count| count.load(Ordering::Relaxed)).sum();
        entries + self.escalated.len() + self.names.len()
    }
}
