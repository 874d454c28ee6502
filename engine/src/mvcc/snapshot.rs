//! Snapshots: what a reader sees, and the horizon that no reader looks behind.
//!
//! Each transaction owns a slot, in which it registers its snapshot. Taking one is a store, a
//! fence, two loads and two stores: no mutex, nothing shared with other readers.
//!
//! The horizon is the oldest registered snapshot. It races with transactions that are just taking
//! theirs, so a reader first marks its slot as *registering*, then (after a fence) loads the newest
//! commit. The other side loads the newest commit, then (after a fence) scans the slots. If the
//! scan missed the mark, the reader's load comes after the scanner's and gives a commit that is at
//! least as new as the horizon. If the scan sees the mark, the horizon stays where it was.

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

/// What a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadView {
    /// Transactions that ended up to here are seen.
    pub csn: Csn,
    /// Every transaction below has ended, and is seen: a page whose `max_txid` is below needs no
    /// look at its records' versions ([`live_payload`](crate::mvcc::live_payload) strips their headers).
    pub low: TxId,
    /// The reader's own number (0: it has not written).
    pub own: TxId,
}

impl ReadView {
    /// Whether this is a view of the newest state: it sees who commits later, too.
    #[inline]
    pub fn is_newest(&self) -> bool {
        self.csn == Csn(u64::MAX)
    }

    /// Whether this view sees what `txid` wrote.
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
    /// While undo pointers are followed: [`UndoReclamation::retired`] when that began; otherwise idle.
    walking: AtomicU64,
    owner: Owner,
}

/// Whose transaction stands behind a slot: for lists of transactions. Written by the owner, into
/// the cache line that it has for its snapshot anyway.
#[derive(Default)]
pub(crate) struct Owner {
    /// The number that the embedding program gave.
    pub session: AtomicU64,
    /// When the transaction began, in microseconds since 1970, where the program says so; 0: not.
    pub started_us: AtomicU64,
    /// An [`Isolation`](crate::Isolation) as a number.
    pub isolation: AtomicU8,
    /// Transactions that have stood there so far.
    transactions: AtomicU64,
}

/// The snapshot registered in a word. Registering takes a few instructions, so it is worth waiting
/// for, unless the thread was suspended in its middle.
fn registered(word: &AtomicU64) -> u64 {
    for _ in 0..50 {
        match word.load(Ordering::Acquire) {
            REGISTERING => crate::sync::thread::yield_now(),
            csn => return csn,
        }
    }
    REGISTERING
}

/// Orders what a slot says against what its owner, or who looks at all slots, loads next.
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

    /// Claims a free slot; a thread usually gets the one it had before. With 1,048,576 open
    /// transactions it waits for one to end.
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

    /// The owner of the slot of this number; it may have changed.
    pub fn owner(&self, number: u32) -> Option<&Owner> {
        let chunk = self
            .chunks
            .get(number as usize / knobs::snapshot_places())?
            .get()?;
        Some(&chunk[number as usize % knobs::snapshot_places()].owner)
    }

    /// The registered snapshots, by the numbers of their slots.
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

    /// The horizon now; `None` while somebody is just taking a snapshot, and does not come to an
    /// end with it.
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

    /// The snapshots registered now; `None` as with [`SnapshotRegistry::horizon`].
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

    /// Where the oldest walk under way began.
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

    /// Whose transaction it is.
    pub fn owner(&self) -> &Owner {
        &self.slot().owner
    }

    /// A number that no other transaction of the system has: of the next one that stands here.
    pub fn next_generation(&self) -> u64 {
        let before = &self.owner().transactions;
        // Of the slot's owner alone.
        let number = before.load(Ordering::Relaxed) + 1;
        before.store(number, Ordering::Relaxed);
        u64::from(self.number()) << 40 | number & ((1 << 40) - 1)
    }

    /// Takes a snapshot of now, giving up the one before.
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

    /// Says that undo pointers are going to be followed, that will be read from now on.
    pub fn walk(&self, reclamation: &UndoReclamation) -> Walking<'_> {
        let slot = self.slot();
        slot.walking.store(reclamation.retired(), Ordering::Relaxed);
        fence_unless(PlantedFault::UnfencedWalk);
        Walking { slot }
    }

    /// Takes a second snapshot, of now; the first, which is older, stays.
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

    /// Nobody ever holds a snapshot older than a horizon that was computed before it was taken
    /// or while it stood.
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
