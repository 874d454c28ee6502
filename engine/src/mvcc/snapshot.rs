//! Snapshots: what a reader sees, and the horizon that no reader looks behind.
//!
//! Each transaction owns a slot, in which it registers its snapshot. Taking one is a store, a fence, two loads and
//! two stores: no mutex, nothing shared with other readers.
//!
//! The horizon is the oldest registered snapshot. Its computation races with transactions that take their snapshots
//! at the same time. So a reader first marks its slot as *registering*, then (after a fence) loads the newest commit.
//! The thread that computes the horizon loads the newest commit, then (after a fence) scans the slots. If the scan
//! misses the mark, the reader's load comes after the scanner's load. Then the reader's snapshot is at least as new
//! as the horizon. If the scan sees the mark, the horizon does not move.

use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use crate::broken::IsolationFault;
use crate::error::{Error, Result};
use crate::ids::{Csn, TxId};
use crate::knobs;
use crate::mvcc::live_snapshots::{Horizon, LiveSnapshots};
use crate::mvcc::order::CommitOrder;
use crate::mvcc::status::Status;
use crate::mvcc::undo_reclamation::UndoReclamation;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{fence, AtomicBool, AtomicU64, AtomicU8, Ordering};
use crate::sync::thread_number;

const CHUNKS: usize = 16 * 1024;

const REGISTERING: u64 = 0;
const IDLE: u64 = u64::MAX;

/// The state that a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadView {
    /// The view sees transactions that committed up to this CSN.
    pub csn: Csn,
    /// Every transaction below this number has ended, and the view sees it.
    ///
    /// On a page whose `max_txid` is below, a reader needs no versions ([`live_payload`](crate::mvcc::live_payload)
    /// strips their headers).
    pub low: TxId,
    /// The reader's own number (0: it has not written).
    pub own: TxId,
}

impl ReadView {
    /// Returns whether this is a view of the newest state, which also sees transactions that commit later.
    #[inline]
    pub fn is_newest(&self) -> bool {
        self.csn == Csn(u64::MAX)
    }

    /// Returns whether this view sees what `txid` wrote.
    ///
    /// # Errors
    /// [`Error::Internal`] for a number that was never given.
    #[inline]
    pub(crate) fn sees(&self, order: &CommitOrder, txid: TxId) -> Result<bool> {
        if txid < self.low || txid == self.own {
            return Ok(true);
        }
        match order.status(txid) {
            Status::Committed(csn) => Ok(csn <= self.csn),
            Status::Active => Ok(order.broken.is(IsolationFault::DirtyRead)),
            Status::Aborted(_) => Ok(false),
            Status::Unknown => Err(never_given(txid)),
        }
    }
}

#[cold]
pub(crate) fn never_given(txid: TxId) -> Error {
    Error::Internal(format!(
        "a record names transaction {txid}, which was never begun"
    ))
}

struct Slot {
    taken: AtomicBool,
    csn: AtomicU64,
    low: AtomicU64,
    /// A second, newer snapshot, taken while the first had to stay; mostly idle.
    second: AtomicU64,
    /// [`UndoReclamation::retired`] when the present walk along undo pointers began; idle without a walk.
    walking: AtomicU64,
    owner: Owner,
}

/// The transaction that owns a slot, for lists of transactions.
///
/// The owner writes these fields into the cache line that it also uses for its snapshot.
#[derive(Default)]
pub(crate) struct Owner {
    /// The number that the embedding program gave.
    pub session: AtomicU64,
    /// When the transaction began, in microseconds since 1970; 0 if the program has not told it.
    pub started_us: AtomicU64,
    /// An [`Isolation`](crate::Isolation) as a number.
    pub isolation: AtomicU8,
    /// The number of transactions that have owned the slot so far.
    transactions: AtomicU64,
}

/// Returns the snapshot registered in a word.
///
/// Registering takes a few instructions, so waiting is worthwhile. If the owner's thread is suspended meanwhile, the
/// wait ends after 50 tries.
fn registered(word: &AtomicU64) -> u64 {
    for _ in 0..50 {
        match word.load(Ordering::Acquire) {
            REGISTERING => crate::sync::thread::yield_now(),
            csn => return csn,
        }
    }
    REGISTERING
}

/// Orders the access before it against the loads after it.
///
/// The access is an owner's store to its slot, or a scan's load of the newest commit.
#[inline(always)]
fn fence_unless(fault: PlantedFault) {
    if !is_planted(fault) {
        fence(Ordering::SeqCst);
    }
}

type Chunk = Box<[CachePadded<Slot>]>;

/// All slots.
pub(crate) struct SnapshotRegistry {
    chunks: Box<[OnceLock<Chunk>]>,
}

/// One transaction's slot.
pub(crate) struct SnapshotSlot {
    registry: Arc<SnapshotRegistry>,
    chunk: usize,
    index: usize,
}

impl SnapshotRegistry {
    pub fn new() -> Arc<Self> {
        Arc::new(SnapshotRegistry {
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
        })
    }

    /// Claims a free slot; a thread usually gets the one that it had before.
    ///
    /// Where all slots are taken (1,048,576 with the knobs' defaults), it waits for a transaction to end.
    pub fn claim(self: &Arc<Self>) -> SnapshotSlot {
        loop {
            if let Some(slot) = self.try_claim() {
                return slot;
            }
            crate::sync::thread::yield_now();
        }
    }

    fn try_claim(self: &Arc<Self>) -> Option<SnapshotSlot> {
        let hint = thread_number() % knobs::snapshot_places();
        for (number, chunk) in self.chunks.iter().enumerate() {
            let slots = chunk.get_or_init(new_chunk);
            for step in 0..knobs::snapshot_places() {
                let index = (hint + step) % knobs::snapshot_places();
                let taken = &slots[index].taken;
                if !taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::AcqRel) {
                    return Some(SnapshotSlot {
                        registry: self.clone(),
                        chunk: number,
                        index,
                    });
                }
            }
        }
        None
    }

    /// Returns the owner of the slot with this number; the owner may change at any time.
    pub fn owner(&self, number: u32) -> Option<&Owner> {
        let chunk = self
            .chunks
            .get(number as usize / knobs::snapshot_places())?
            .get()?;
        Some(&chunk[number as usize % knobs::snapshot_places()].owner)
    }

    /// The registered snapshots, with the numbers of their slots.
    pub fn registered(&self) -> Vec<(u32, Csn)> {
        let mut found = Vec::new();
        let chunks = self.chunks.iter().map_while(OnceLock::get);
        for (number, slot) in chunks.flatten().enumerate() {
            let csn = slot.csn.load(Ordering::Acquire);
            if csn != IDLE && csn != REGISTERING {
                found.push((number as u32, Csn(csn)));
            }
        }
        found
    }

    /// Returns the horizon; `None` while a transaction takes a snapshot and does not finish soon.
    pub fn horizon(&self, order: &CommitOrder) -> Option<Horizon> {
        let mut horizon = order.newest();
        fence_unless(PlantedFault::UnfencedHorizon);
        for chunk in &self.chunks {
            let Some(slots) = chunk.get() else { break };
            for slot in slots {
                match registered(&slot.csn) {
                    IDLE => {}
                    REGISTERING => return None,
                    csn => {
                        horizon.csn = horizon.csn.min(Csn(csn));
                        let low = TxId(slot.low.load(Ordering::Acquire));
                        horizon.low = horizon.low.min(low);
                    }
                }
            }
        }
        Some(horizon)
    }

    /// Returns the snapshots that are registered; `None` as with [`SnapshotRegistry::horizon`].
    pub fn live(&self, order: &CommitOrder) -> Option<LiveSnapshots> {
        let newest = order.newest().csn;
        fence(Ordering::SeqCst);
        let mut csns = Vec::new();
        for chunk in &self.chunks {
            let Some(slots) = chunk.get() else { break };
            for slot in slots {
                for word in [&slot.csn, &slot.second] {
                    match registered(word) {
                        IDLE => {}
                        REGISTERING => return None,
                        csn => csns.push(csn),
                    }
                }
            }
        }
        Some(LiveSnapshots::of(newest, csns))
    }

    /// Returns the count of retired pages at which the oldest active walk began.
    pub fn oldest_walk(&self) -> u64 {
        let chunks = self.chunks.iter().map_while(|chunk| chunk.get());
        let slots = chunks.flat_map(|slots| slots.iter());
        let walks = slots.map(|slot| slot.walking.load(Ordering::SeqCst));
        walks.min().unwrap_or(IDLE)
    }
}

/// A walk along undo pointers; it ends when this is dropped.
pub(crate) struct Walking<'a> {
    slot: &'a Slot,
}

impl Drop for Walking<'_> {
    fn drop(&mut self) {
        self.slot.walking.store(IDLE, Ordering::Release);
    }
}

fn new_chunk() -> Chunk {
    (0..knobs::snapshot_places())
        .map(|_| {
            CachePadded::new(Slot {
                taken: AtomicBool::new(false),
                csn: AtomicU64::new(IDLE),
                low: AtomicU64::new(0),
                second: AtomicU64::new(IDLE),
                owner: Owner::default(),
                walking: AtomicU64::new(IDLE),
            })
        })
        .collect()
}

impl SnapshotSlot {
    fn slot(&self) -> &Slot {
        &self.registry.chunks[self.chunk].get_or_init(new_chunk)[self.index]
    }

    /// The slot's number: no two running transactions have the same.
    pub fn number(&self) -> u32 {
        (self.chunk * knobs::snapshot_places() + self.index) as u32
    }

    /// The transaction that owns the slot.
    pub fn owner(&self) -> &Owner {
        &self.slot().owner
    }

    /// Returns a number for the slot's next transaction that no other transaction of the system has.
    pub fn next_generation(&self) -> u64 {
        let before = &self.owner().transactions;
        // Only the slot's owner writes this counter.
        let number = before.load(Ordering::Relaxed) + 1;
        before.store(number, Ordering::Relaxed);
        u64::from(self.number()) << 40 | number & ((1 << 40) - 1)
    }

    /// Takes a snapshot of the newest state, and gives up the one before.
    pub fn take(&self, order: &CommitOrder) -> Horizon {
        let slot = self.slot();
        slot.csn.store(REGISTERING, Ordering::Relaxed);
        fence_unless(PlantedFault::UnfencedSnapshot);
        let newest = order.newest();
        slot.low.store(newest.low.0, Ordering::Release);
        slot.csn.store(newest.csn.0, Ordering::Release);
        newest
    }

    /// Registers a snapshot that another slot holds.
    #[cfg(feature = "broken")]
    pub fn take_as(&self, held: &Horizon) {
        let slot = self.slot();
        slot.low.store(held.low.0, Ordering::Release);
        slot.csn.store(held.csn.0, Ordering::Release);
    }

    /// Registers a walk: the caller reads the undo pointers that it follows after this call.
    pub fn walk(&self, reclamation: &UndoReclamation) -> Walking<'_> {
        let slot = self.slot();
        slot.walking.store(reclamation.retired(), Ordering::Relaxed);
        fence_unless(PlantedFault::UnfencedWalk);
        Walking { slot }
    }

    /// Takes a second snapshot, of the newest state; the first, older one stays.
    pub fn take_second(&self, order: &CommitOrder) -> Horizon {
        let slot = self.slot();
        slot.second.store(REGISTERING, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let newest = order.newest();
        slot.second.store(newest.csn.0, Ordering::Release);
        newest
    }

    /// Gives the second snapshot up.
    pub fn clear_second(&self) {
        self.slot().second.store(IDLE, Ordering::Release);
    }

    /// Gives the snapshot up.
    pub fn clear(&self) {
        self.slot().csn.store(IDLE, Ordering::Release);
    }
}

impl Drop for SnapshotSlot {
    fn drop(&mut self) {
        self.clear();
        self.clear_second();
        let slot = self.slot();
        slot.owner.session.store(0, Ordering::Relaxed);
        slot.owner.started_us.store(0, Ordering::Relaxed);
        slot.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::running_transaction::RunningTransaction;
    use crate::mvcc::order::End;

    #[test]
    fn horizon_is_the_oldest_registered_snapshot() {
        let order = CommitOrder::new(TxId(1));
        let registry = SnapshotRegistry::new();
        let commit = || {
            let running = RunningTransaction::new(Default::default());
            let txid = order.begin(&running);
            order.end(txid, End::Commit)
        };
        commit();
        let (a, b) = (registry.claim(), registry.claim());
        let old = a.take(&order);
        commit();
        let new = b.take(&order);
        commit();
        assert!(old.csn < new.csn && old.low < new.low);
        assert_eq!(registry.horizon(&order), Some(old));
        a.clear();
        assert_eq!(registry.horizon(&order), Some(new));
        drop(b);
        assert_eq!(registry.horizon(&order), Some(order.newest()));
        let again = registry.claim();
        assert!(again.take(&order).csn == order.newest().csn);
    }

    /// No transaction holds a snapshot older than a horizon that was computed before the snapshot was taken or while
    /// it was held.
    #[test]
    fn horizon_never_passes_a_snapshot_being_taken() {
        let order = CommitOrder::new(TxId(1));
        let registry = SnapshotRegistry::new();
        let announced = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let slot = registry.claim();
                    while !stop.load(Ordering::Relaxed) {
                        let view = slot.take(&order);
                        for _ in 0..3 {
                            let horizon = announced.load(Ordering::SeqCst);
                            assert!(view.csn.0 >= horizon, "{view:?} behind {horizon}");
                        }
                        slot.clear();
                    }
                });
            }
            let mut horizons = 0;
            while horizons < 5000 {
                let running = RunningTransaction::new(Default::default());
                let txid = order.begin(&running);
                order.end(txid, End::Commit);
                if let Some(horizon) = registry.horizon(&order) {
                    announced.fetch_max(horizon.csn.0, Ordering::SeqCst);
                    horizons += 1;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}
