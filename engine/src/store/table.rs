//! The place table: page id → place, in up to three versions.
//!
//! *Durable* is the version that the last complete checkpoint has on disk. *Pending* is the one that the running
//! checkpoint will have (the table as of its barrier). *Current* is where pages are read. A chunk that nothing changed
//! has the same content in all three; the first change of a chunk makes copies. A place is free again when none of the
//! three versions names it.

use std::sync::Arc;

use super::place::Place;
use crate::ids::PageId;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock};

/// Entries of a chunk; a chunk is written as a whole.
pub const CHUNK: usize = 1024;

type Entries = Box<[u64; CHUNK]>;

const IDLE: u64 = 0;
/// Images as of the barrier are being written.
const OPEN: u64 = 1;
/// The pending version is being written, and does not change any more.
const SEALED: u64 = 2;

/// The place table. A look-up takes no lock of the chunk; a change takes the chunk's lock.
#[derive(Debug)]
pub struct Table {
    chunks: RwLock<Vec<Arc<Chunk>>>,
    /// Number of the newest checkpoint << 2 | phase.
    phase: AtomicU64,
}

#[derive(Debug)]
struct Chunk {
    current: [AtomicU64; CHUNK],
    versions: Mutex<Versions>,
}

#[derive(Debug, Default)]
struct Versions {
    /// `None`: the same as current (and pending).
    durable: Option<Entries>,
    /// Valid if `pending_of` is the running checkpoint; otherwise pending is the same as current.
    pending: Option<Entries>,
    pending_of: u64,
    /// The newest checkpoint that has ended for this chunk.
    finished: u64,
}

/// Places that no version names any more.
pub type Freed = smallvec::SmallVec<[Place; 4]>;

impl Chunk {
    fn new(entries: &[u64]) -> Self {
        Chunk {
            current: std::array::from_fn(|i| {
                AtomicU64::new(entries.get(i).copied().unwrap_or_default())
            }),
            versions: Mutex::default(),
        }
    }

    fn copy(&self) -> Entries {
        Box::new(std::array::from_fn(|i| {
            self.current[i].load(Ordering::Relaxed)
        }))
    }
}

impl Table {
    /// A table with these chunks, all durable; `epoch` is the last complete checkpoint.
    pub fn new(chunks: &[Vec<u64>], epoch: u64) -> Self {
        let chunks = chunks.iter().map(|entries| Arc::new(Chunk::new(entries)));
        Table {
            chunks: RwLock::new(chunks.collect()),
            phase: AtomicU64::new(epoch << 2 | IDLE),
        }
    }

    fn chunk(&self, page: PageId) -> Option<Arc<Chunk>> {
        let index = page.0 as usize / CHUNK;
        self.chunks.read().get(index).cloned()
    }

    fn chunk_or_new(&self, page: PageId) -> Arc<Chunk> {
        if let Some(chunk) = self.chunk(page) {
            return chunk;
        }
        let index = page.0 as usize / CHUNK;
        let mut chunks = self.chunks.write();
        while chunks.len() <= index {
            chunks.push(Arc::new(Chunk::new(&[])));
        }
        Arc::clone(&chunks[index])
    }

    /// One more than the highest page id for which there is a chunk.
    pub fn ids(&self) -> u64 {
        (self.chunks.read().len() * CHUNK) as u64
    }

    /// The place where `page` is read.
    pub fn current(&self, page: PageId) -> Place {
        let chunks = self.chunks.read();
        chunks
            .get(page.0 as usize / CHUNK)
            .map_or(Place::NONE, |chunk| {
                Place(chunk.current[page.0 as usize % CHUNK].load(Ordering::Acquire))
            })
    }

    /// The number of the newest checkpoint that has begun.
    pub fn epoch(&self) -> u64 {
        self.phase.load(Ordering::Acquire) >> 2
    }

    /// The number of the running checkpoint, if there is one.
    pub fn running(&self) -> Option<u64> {
        let now = self.phase.load(Ordering::Acquire);
        (now & 3 != IDLE).then_some(now >> 2)
    }

    /// Begins the next checkpoint: the pending version is the table as it is now. Returns the checkpoint's number, or
    /// `None` if one is running.
    pub fn begin(&self) -> Option<u64> {
        let now = self.phase.load(Ordering::Acquire);
        if now & 3 != IDLE {
            return None;
        }
        let epoch = (now >> 2) + 1;
        let next = epoch << 2 | OPEN;
        self.phase
            .compare_exchange(now, next, Ordering::AcqRel, Ordering::Acquire)
            .ok()
            .map(|_| epoch)
    }

    fn set_phase(&self, phase: u64) {
        self.phase
            .store(self.epoch() << 2 | phase, Ordering::Release);
    }

    /// Sets the place of `page`: the current one if `to_current`, and the running checkpoint's if that began after
    /// epoch `seen_in`. Returns the places that became free; `place` is one of them if no version took it.
    fn set(&self, page: PageId, place: Place, to_current: bool, seen_in: Option<u64>) -> Freed {
        let chunk = self.chunk_or_new(page);
        let mut versions = chunk.versions.lock();
        self.set_in(&chunk, &mut versions, page, place, to_current, seen_in)
    }

    fn set_in(
        &self,
        chunk: &Chunk,
        versions: &mut Versions,
        page: PageId,
        place: Place,
        to_current: bool,
        seen_in: Option<u64>,
    ) -> Freed {
        let i = page.0 as usize % CHUNK;
        // Read under the lock: a checkpoint that begins later copies the place that is set here.
        let now = self.phase.load(Ordering::Acquire);
        let (epoch, phase) = (now >> 2, now & 3);
        let running = phase != IDLE && versions.finished != epoch;
        let to_pending = running && phase == OPEN && seen_in.is_some_and(|seen| seen < epoch);
        if running && versions.pending_of != epoch {
            versions.pending = Some(chunk.copy());
            versions.pending_of = epoch;
        }
        let durable = versions.durable.get_or_insert_with(|| chunk.copy());
        if to_current && is_planted(PlantedFault::TakeInUse) {
            durable[i] = place.0;
        }
        let durable = durable[i];

        let mut before = Freed::new();
        before.push(place);
        if to_current {
            before.push(Place(chunk.current[i].swap(place.0, Ordering::AcqRel)));
        }
        let mut pending = Place::NONE;
        if let Some(entries) = versions.pending.as_mut().filter(|_| running) {
            if to_pending {
                before.push(Place(std::mem::replace(&mut entries[i], place.0)));
            }
            pending = Place(entries[i]);
        }
        let current = Place(chunk.current[i].load(Ordering::Relaxed));
        let named = [Place::NONE, Place(durable), pending, current];
        before.retain(|place| !named.contains(place));
        before.sort_unstable_by_key(|place| place.0);
        before.dedup();
        before
    }

    /// Sets the newest place of `page`. `seen` is the epoch in which the image's content was fixed: if a checkpoint has
    /// begun since, the image is that checkpoint's too.
    pub fn put(&self, page: PageId, place: Place, seen: u64) -> Freed {
        self.set(page, place, true, Some(seen))
    }

    /// Sets the place of the image as of the barrier; it is also the newest one if `still_current`. If no checkpoint
    /// takes it, the place is free again.
    pub fn put_as_of_barrier(&self, page: PageId, place: Place, still_current: bool) -> Freed {
        self.set(page, place, still_current, Some(0))
    }

    /// Moves the current place of `page` from `from` to `to`; frees `to` if `page` was written meanwhile.
    pub fn move_current(&self, page: PageId, from: Place, to: Place) -> Freed {
        let chunk = self.chunk_or_new(page);
        let mut versions = chunk.versions.lock();
        if self.current(page) != from {
            return Freed::from_elem(to, 1);
        }
        self.set_in(&chunk, &mut versions, page, to, true, None)
    }

    /// Moves the place of an image of `page`, not yet written, from unit `from` to unit `to`, in each version that
    /// names it; returns false if none does. The durable version never names it, as the image was never in the file.
    pub fn relocate(&self, page: PageId, from: u64, to: u64) -> bool {
        let Some(chunk) = self.chunk(page) else {
            return false;
        };
        let mut versions = chunk.versions.lock();
        let versions = &mut *versions;
        let i = page.0 as usize % CHUNK;
        let moved = |word: u64| {
            let place = Place(word);
            let is_it = !place.is_none() && place.offset() == from;
            is_it.then(|| place.moved_to(to).0)
        };
        let mut is_named = false;
        if versions.pending_of == self.epoch() {
            if let Some(entry) = versions.pending.as_mut().map(|entries| &mut entries[i]) {
                if let Some(word) = moved(*entry) {
                    *entry = word;
                    is_named = true;
                }
            }
        }
        // A pending version that is the same as the current one moves with it.
        if let Some(word) = moved(chunk.current[i].load(Ordering::Relaxed)) {
            versions.durable.get_or_insert_with(|| chunk.copy());
            chunk.current[i].store(word, Ordering::Release);
            is_named = true;
        }
        is_named
    }

    /// Clears the current place of `page`; the running and the last checkpoint keep their places.
    pub fn clear(&self, page: PageId) -> Freed {
        if self.current(page).is_none() {
            return Freed::new();
        }
        self.set(page, Place::NONE, true, None)
    }

    /// From now on the pending version does not change any more.
    pub fn stop_taking(&self) {
        self.set_phase(SEALED);
    }

    /// Calls `write` with the index and entries of each chunk whose pending version differs from the durable one, or
    /// for which `anyway` is true. The pending version must not change any more ([`Table::stop_taking`]).
    pub fn seal<E>(
        &self,
        anyway: impl Fn(usize) -> bool,
        mut write: impl FnMut(usize, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let epoch = self.epoch();
        let chunks = self.chunks.read().clone();
        for (index, chunk) in chunks.iter().enumerate() {
            let entries = {
                let versions = chunk.versions.lock();
                let entries = match &versions.pending {
                    Some(pending) if versions.pending_of == epoch => pending.clone(),
                    _ if versions.durable.is_none() && !anyway(index) => continue,
                    _ => chunk.copy(),
                };
                if Some(&entries) == versions.durable.as_ref() && !anyway(index) {
                    continue;
                }
                entries
            };
            write(index, &entries[..])?;
        }
        Ok(())
    }

    /// Ends the running checkpoint: if `complete`, pending becomes durable; otherwise the checkpoint is given up. Calls
    /// `free` with each place that no version names any more.
    pub fn finish(&self, complete: bool, mut free: impl FnMut(Place)) {
        let epoch = self.epoch();
        if self.phase.load(Ordering::Acquire) & 3 == IDLE {
            return;
        }
        self.set_phase(SEALED);
        let chunks = self.chunks.read().clone();
        for chunk in &chunks {
            let mut versions = chunk.versions.lock();
            versions.finished = epoch;
            let pending = versions
                .pending
                .take()
                .filter(|_| versions.pending_of == epoch);
            let (Some(durable), now) = (versions.durable.take(), chunk.copy()) else {
                continue;
            };
            let (old, new) = if complete {
                (Some(durable), pending.unwrap_or_else(|| now.clone()))
            } else {
                (pending, durable)
            };
            for (i, &place) in old.iter().flat_map(|old| old.iter()).enumerate() {
                if place != 0 && place != new[i] && place != now[i] {
                    free(Place(place));
                }
            }
            versions.durable = (new != now).then_some(new);
        }
        self.set_phase(IDLE);
    }
}
