//! The lock table: explicit row locks, and the queues of those who wait.
//!
//! Most row locks stand nowhere but in the row: its version header names the running writer.
//! Only two things make an entry here: a lock without a write (`SELECT … FOR UPDATE`), and a
//! transaction that waits, which first writes the running writer in as holder. A row's entry has
//! holders and a first-in-first-out queue; whoever ends grants to the front of the queue.
//!
//! Order of latches and mutexes: leaf latch → shard → participant's rows → parker. An explicit
//! lock is entered with the row's leaf latched shared; a writer looks here with the leaf latched
//! exclusively. So the leaf latch decides which of the two came first. See `docs/locking.md`.

use std::collections::hash_map::{DefaultHasher, Entry as MapEntry};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::participant::{Participant, WaitState};
use crate::ids::TreeId;

const SHARDS: usize = 256;

/// Strength of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Others may lock it shared too; nobody else writes it.
    Shared,
    /// Nobody else locks or writes it.
    Exclusive,
}

/// A row's name in the lock table: a hash of tree and key. Two rows of the same name share their
/// locks, which costs a needless wait in 2^64 and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Row(u64);

impl Row {
    pub fn new(tree: TreeId, key: &[u8]) -> Row {
        let mut hasher = DefaultHasher::new();
        tree.hash(&mut hasher);
        key.hash(&mut hasher);
        Row(hasher.finish())
    }
}

/// `Row` is a hash already.
#[derive(Default)]
struct RowHasher(u64);

impl Hasher for RowHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, row: u64) {
        self.0 = row;
    }
}

struct Holder {
    who: Arc<Participant>,
    mode: LockMode,
    /// The savepoint count of the holder when it locked; see [`LockTable::admits_writer`].
    since: u32,
}

struct Waiter {
    who: Arc<Participant>,
    mode: LockMode,
    since: u32,
}

#[derive(Default)]
struct Queue {
    holders: SmallVec<[Holder; 1]>,
    waiters: VecDeque<Waiter>,
}

type Rows = HashMap<Row, Queue, BuildHasherDefault<RowHasher>>;

#[derive(Default)]
struct Shard {
    /// Entries in `rows`, readable without the mutex.
    count: AtomicUsize,
    rows: Mutex<Rows>,
}

/// See the module's text.
pub(super) struct LockTable {
    shards: Box<[CachePadded<Shard>]>,
}

/// What came of asking for a place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enqueued {
    /// What was in the way is gone.
    Retry,
    /// In the queue; the parker's state says so.
    Waiting,
}

impl Default for LockTable {
    fn default() -> Self {
        LockTable {
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
        }
    }
}

impl LockTable {
    fn shard(&self, row: Row) -> &Shard {
        // Bits that neither the map's buckets (the low ones) nor its tags (the high ones) use.
        &self.shards[(row.0 >> 32) as usize % SHARDS]
    }

    /// Locks a row where nothing is in the way. Called with the row's leaf latched shared, after
    /// the record was seen to have no other running writer.
    pub fn try_lock(&self, row: Row, who: &Arc<Participant>, mode: LockMode, since: u32) -> bool {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let queue = match rows.entry(row) {
            MapEntry::Occupied(occupied) => occupied.into_mut(),
            MapEntry::Vacant(vacant) => {
                let queue = vacant.insert(Queue::default());
                shard.count.fetch_add(1, Ordering::Relaxed);
                queue
            }
        };
        if let Some(own) = queue.position(who) {
            if queue.holders[own].mode == mode || mode == LockMode::Shared {
                return true;
            }
            if queue.holders.len() > 1 {
                return false;
            }
            queue.holders[own].mode = mode;
            return true;
        }
        if !queue.waiters.is_empty() || !queue.compatible(who, mode) {
            return false;
        }
        who.add_row(row);
        queue.holders.push(Holder {
            who: who.clone(),
            mode,
            since,
        });
        true
    }

    /// Whether no other transaction holds or awaits the row. Called by a writer with the row's
    /// leaf latched exclusively, after it saw that no other running writer's version stands there.
    ///
    /// An own lock that nobody waits for, and that was taken after the newest savepoint (`since`
    /// is the savepoint count), goes: the row's header holds it from now on.
    pub fn admits_writer(
        &self,
        tree: TreeId,
        key: &[u8],
        who: &Arc<Participant>,
        since: u32,
    ) -> bool {
        let row = Row::new(tree, key);
        let shard = self.shard(row);
        // The leaf latch orders this load after the lock of whoever had the leaf before.
        if shard.count.load(Ordering::Acquire) == 0 {
            return true;
        }
        let mut rows = shard.rows.lock();
        let Some(queue) = rows.get(&row) else {
            return true;
        };
        match queue.position(who) {
            Some(own) => {
                if queue.holders.len() > 1 {
                    return false;
                }
                if queue.waiters.is_empty() && queue.holders[own].since == since {
                    rows.remove(&row);
                    shard.count.fetch_sub(1, Ordering::Relaxed);
                    who.forget_newest(row);
                }
                true
            }
            None => queue.holders.is_empty() && queue.waiters.is_empty(),
        }
    }

    /// Takes a place in the row's queue. `writer` is the running writer seen in the row's header,
    /// which becomes a holder in the entry; `None` when the entry's holders were in the way.
    pub fn enqueue(
        &self,
        row: Row,
        who: &Arc<Participant>,
        mode: LockMode,
        since: u32,
        writer: Option<&Arc<Participant>>,
    ) -> Enqueued {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let outcome = match rows.entry(row) {
            MapEntry::Occupied(mut occupied) => {
                occupied.get_mut().enqueue(row, who, mode, since, writer)
            }
            MapEntry::Vacant(vacant) => {
                let mut queue = Queue::default();
                let outcome = queue.enqueue(row, who, mode, since, writer);
                if outcome == Enqueued::Waiting {
                    vacant.insert(queue);
                    shard.count.fetch_add(1, Ordering::Relaxed);
                }
                outcome
            }
        };
        outcome
    }

    /// Leaves the row's queue (late, killed, chosen as victim). Whether the lock was granted first.
    pub fn leave(&self, row: Row, who: &Arc<Participant>) -> bool {
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
        queue.grant(row);
        if queue.is_empty() {
            occupied.remove();
            shard.count.fetch_sub(1, Ordering::Relaxed);
        }
        false
    }

    /// Gives a held row back and grants it to the front of the queue.
    pub fn release(&self, row: Row, who: &Arc<Participant>) {
        let shard = self.shard(row);
        let mut rows = shard.rows.lock();
        let MapEntry::Occupied(mut occupied) = rows.entry(row) else {
            return;
        };
        let queue = occupied.get_mut();
        queue
            .holders
            .retain(|holder| !Arc::ptr_eq(&holder.who, who));
        queue.grant(row);
        if queue.is_empty() {
            occupied.remove();
            shard.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whom `who` waits for in the queue of `row`: its holders. (Those ahead in the queue wait for
    /// the same holders, so a circle through them is a circle through a holder too.) Empty when
    /// it does not wait there any more.
    pub fn blockers(&self, row: Row, who: &Arc<Participant>) -> SmallVec<[Arc<Participant>; 4]> {
        let rows = self.shard(row).rows.lock();
        let Some(queue) = rows.get(&row) else {
            return SmallVec::new();
        };
        if !queue
            .waiters
            .iter()
            .any(|waiter| Arc::ptr_eq(&waiter.who, who))
        {
            return SmallVec::new();
        }
        queue
            .holders
            .iter()
            .filter(|holder| !Arc::ptr_eq(&holder.who, who))
            .map(|holder| holder.who.clone())
            .collect()
    }

    /// Entries in all shards.
    pub fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.count.load(Ordering::Relaxed))
            .sum()
    }
}

impl Queue {
    fn position(&self, who: &Arc<Participant>) -> Option<usize> {
        self.holders
            .iter()
            .position(|holder| Arc::ptr_eq(&holder.who, who))
    }

    fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.waiters.is_empty()
    }

    /// Whether `who` could hold the row in `mode` beside the present holders.
    fn compatible(&self, who: &Arc<Participant>, mode: LockMode) -> bool {
        self.holders.iter().all(|holder| {
            Arc::ptr_eq(&holder.who, who)
                || (mode == LockMode::Shared && holder.mode == LockMode::Shared)
        })
    }

    fn enqueue(
        &mut self,
        row: Row,
        who: &Arc<Participant>,
        mode: LockMode,
        since: u32,
        writer: Option<&Arc<Participant>>,
    ) -> Enqueued {
        match writer {
            Some(writer) => match self.position(writer) {
                Some(held) => self.holders[held].mode = LockMode::Exclusive,
                None => {
                    // Fails when the writer has ended: then there is nothing to wait for.
                    if !writer.add_row(row) {
                        return Enqueued::Retry;
                    }
                    self.holders.push(Holder {
                        who: writer.clone(),
                        mode: LockMode::Exclusive,
                        since: 0,
                    });
                }
            },
            None => {
                if self.waiters.is_empty() && self.compatible(who, mode) {
                    return Enqueued::Retry;
                }
            }
        }
        let waiter = Waiter {
            who: who.clone(),
            mode,
            since,
        };
        who.parker.set(WaitState::Queued(row));
        // Who holds the row already and wants more of it goes first: nobody behind can be granted
        // before it has it.
        if self.position(who).is_some() {
            self.waiters.push_front(waiter);
        } else {
            self.waiters.push_back(waiter);
        }
        Enqueued::Waiting
    }

    fn grant(&mut self, row: Row) {
        while let Some(front) = self.waiters.front() {
            if !self.compatible(&front.who, front.mode) {
                return;
            }
            let Some(waiter) = self.waiters.pop_front() else {
                return;
            };
            match self.position(&waiter.who) {
                Some(own) => {
                    if waiter.mode == LockMode::Exclusive {
                        self.holders[own].mode = LockMode::Exclusive;
                    }
                }
                None => {
                    waiter.who.add_row(row);
                    self.holders.push(Holder {
                        who: waiter.who.clone(),
                        mode: waiter.mode,
                        since: waiter.since,
                    });
                }
            }
            waiter.who.parker.wake(WaitState::Granted);
        }
    }
}
