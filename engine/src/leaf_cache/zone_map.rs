//! Zone maps of leaves: what a column's values in a leaf come to, kept beside the leaf's frame for as
//! long as its bytes stay the same.
//!
//! A zone map names the version of the frame's latch under which it was made. Whoever changes a
//! frame's bytes, puts another page there or takes one out, holds the latch exclusively and so
//! raises the version, and none comes twice: a zone map that names the present version is of the
//! present bytes. So nobody who changes a page need know of zone maps.
//!
//! Each stands in a cache line of its own, guarded by a sequence number (Boehm, "Can Seqlocks Get
//! Along with Programming Language Memory Models?", 2012). Memory comes in chunks, when the first
//! zone map of 256 neighbouring frames is kept, and goes with the pool.

use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::ids::{FrameId, LatchVersion};
use crate::knobs;
use crate::sync::atomic::{fence, AtomicU64, Ordering};

/// How many columns of a leaf can have a zone map at once; those whose numbers are equal modulo this
/// take one another's place.
const PLANES: usize = 4;
/// The bits of a tag that name the column: those that no version has.
const COLUMN: u64 = (1 << 19) - 1;

/// What a column's values in a leaf come to. The values are whatever ordered numbers the layers above
/// make of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneMap {
    /// The newest transaction that changed a record of the leaf.
    pub max_txid: u64,
    /// Records that are not deleted.
    pub records: u32,
    /// Those of them in which the column has a value.
    pub values: u32,
    /// The values' sum.
    pub sum: i128,
    /// The least value; `u64::MAX` without one.
    pub min: u64,
    /// The greatest value; 0 without one.
    pub max: u64,
}

/// The zone maps of a leaf, by column; `None`: of the number of records alone.
pub(crate) type LeafZoneMaps = SmallVec<[(Option<usize>, ZoneMap); 1]>;

/// The zone map of a column among a leaf's; without a column, any: the number of records is the same
/// in all.
pub(crate) fn of_column(zone_maps: &LeafZoneMaps, column: Option<usize>) -> Option<ZoneMap> {
    zone_maps
        .iter()
        .find(|(of, _)| column.is_none() || *of == column)
        .map(|(_, zone_map)| *zone_map)
}

/// A place for one zone map.
#[derive(Default)]
#[repr(align(64))]
struct Slot {
    /// Odd while the rest is being written.
    sequence: AtomicU64,
    /// The latch's version and, in its unused low bits, the column; 0: nothing here.
    tag: AtomicU64,
    words: [AtomicU64; 6],
}

type Chunk = Box<[Slot]>;

/// All zone maps of a pool.
pub(crate) struct ZoneMaps {
    planes: [Box<[OnceLock<Chunk>]>; PLANES],
}

/// The tag for a column, or for none: a count of records alone.
fn tag(version: LatchVersion, column: Option<usize>) -> Option<u64> {
    let column = column.map_or(1, |column| column as u64 + 2);
    (column <= COLUMN).then_some(version.number() | column)
}

impl ZoneMaps {
    pub fn new(frames: usize) -> ZoneMaps {
        let chunks = frames.div_ceil(knobs::zone_map_chunk());
        ZoneMaps {
            planes: std::array::from_fn(|_| (0..chunks).map(|_| OnceLock::new()).collect()),
        }
    }

    fn chunk(&self, frame: FrameId, column: Option<usize>) -> Option<&OnceLock<Chunk>> {
        self.planes[column.unwrap_or(0) % PLANES].get(frame as usize / knobs::zone_map_chunk())
    }

    /// The zone map of a column of the leaf that the frame holds at this version. Without a column,
    /// any will do: the number of records is the same in all.
    #[inline]
    pub fn get(
        &self,
        frame: FrameId,
        version: LatchVersion,
        column: Option<usize>,
    ) -> Option<ZoneMap> {
        let slot = &self.chunk(frame, column)?.get()?[frame as usize % knobs::zone_map_chunk()];
        let sequence = slot.sequence.load(Ordering::Acquire);
        let found = slot.tag.load(Ordering::Relaxed);
        let fits = match column {
            None => found & !COLUMN == version.number() && found & COLUMN != 0,
            Some(_) => Some(found) == tag(version, column),
        };
        if !fits || sequence & 1 != 0 {
            return None;
        }
        let word = |i: usize| slot.words[i].load(Ordering::Relaxed);
        let zone_map = ZoneMap {
            max_txid: word(0),
            records: (word(1) >> 32) as u32,
            values: word(1) as u32,
            sum: (u128::from(word(2)) << 64 | u128::from(word(3))) as i128,
            min: word(4),
            max: word(5),
        };
        // Orders the reads above before the second look at the number.
        fence(Ordering::Acquire);
        (slot.sequence.load(Ordering::Relaxed) == sequence).then_some(zone_map)
    }

    /// All zone maps of the leaf that the frame holds at this version.
    pub fn all(&self, frame: FrameId, version: LatchVersion) -> LeafZoneMaps {
        let mut all = LeafZoneMaps::new();
        for plane in 0..PLANES {
            let Some(slots) = self.chunk(frame, Some(plane)).and_then(OnceLock::get) else {
                continue;
            };
            let tag = slots[frame as usize % knobs::zone_map_chunk()]
                .tag
                .load(Ordering::Relaxed);
            let column = match tag & COLUMN {
                _ if tag & !COLUMN != version.number() => continue,
                0 => continue,
                1 => None,
                column => Some(column as usize - 2),
            };
            all.extend(
                self.get(frame, version, column)
                    .map(|found| (column, found)),
            );
        }
        all
    }

    /// Whether no zone map of the leaf that the frame holds at this version stands in the column's
    /// place.
    pub fn has_room(&self, frame: FrameId, version: LatchVersion, column: usize) -> bool {
        let Some(chunk) = self.chunk(frame, Some(column)) else {
            return false;
        };
        let tag = chunk.get().map_or(0, |slots| {
            slots[frame as usize % knobs::zone_map_chunk()]
                .tag
                .load(Ordering::Relaxed)
        });
        tag == 0 || tag & !COLUMN != version.number()
    }

    /// Keeps a zone map of the leaf that the frame holds at this version; the caller has it latched.
    /// Where somebody else is writing, nothing is kept.
    pub fn put(
        &self,
        frame: FrameId,
        version: LatchVersion,
        column: Option<usize>,
        zone_map: &ZoneMap,
    ) {
        let (Some(chunk), Some(tag)) = (self.chunk(frame, column), tag(version, column)) else {
            return;
        };
        let slots = chunk.get_or_init(|| {
            (0..knobs::zone_map_chunk())
                .map(|_| Slot::default())
                .collect()
        });
        let slot = &slots[frame as usize % knobs::zone_map_chunk()];
        let sequence = slot.sequence.load(Ordering::Relaxed);
        let taken = sequence & 1 == 0
            && slot
                .sequence
                .compare_exchange(sequence, sequence + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if !taken {
            return;
        }
        // Orders the taking before the stores: who reads one of them sees the slot taken.
        fence(Ordering::Release);
        slot.tag.store(tag, Ordering::Relaxed);
        let words = [
            zone_map.max_txid,
            u64::from(zone_map.records) << 32 | u64::from(zone_map.values),
            (zone_map.sum as u128 >> 64) as u64,
            zone_map.sum as u64,
            zone_map.min,
            zone_map.max,
        ];
        for (place, word) in slot.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        slot.sequence.store(sequence + 2, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::latch::Latch;

    fn zone_map(n: u64) -> ZoneMap {
        ZoneMap {
            max_txid: n,
            records: n as u32,
            values: n as u32,
            sum: -i128::from(n) << 70,
            min: n,
            max: n,
        }
    }

    /// A latch's versions, one after the other.
    fn versions() -> impl Iterator<Item = LatchVersion> {
        let latch = Latch::default();
        std::iter::from_fn(move || {
            let version = latch.optimistic();
            latch.lock_exclusive();
            latch.unlock_exclusive();
            Some(version)
        })
    }

    #[test]
    fn a_zone_map_is_of_one_version_of_one_frame_and_column() {
        if crate::knobs::SHAKEN {
            // It counts what production's numbers make of it.
            return;
        }
        let zone_maps = ZoneMaps::new(knobs::zone_map_chunk() + 1);
        let mut versions = versions();
        let counted = versions.next().unwrap();
        zone_maps.put(3, counted, None, &zone_map(5));
        assert_eq!(zone_maps.get(3, counted, None), Some(zone_map(5)));
        assert_eq!(
            zone_maps.get(3, counted, Some(0)),
            None,
            "a count of records tells nothing of a column"
        );
        assert_eq!(zone_maps.all(3, counted)[..], [(None, zone_map(5))]);
        let (first, second) = (versions.next().unwrap(), versions.next().unwrap());
        assert_eq!(zone_maps.get(3, first, Some(0)), None, "never written");
        assert_eq!(zone_maps.get(3, first, None), None, "never written");
        zone_maps.put(3, first, Some(0), &zone_map(7));
        assert_eq!(zone_maps.get(3, first, Some(0)), Some(zone_map(7)));
        assert_eq!(
            zone_maps.get(3, first, None),
            Some(zone_map(7)),
            "any column tells the number of records"
        );
        assert_eq!(zone_maps.get(3, second, Some(0)), None);
        assert_eq!(zone_maps.get(3, second, None), None);
        assert_eq!(zone_maps.get(4, first, Some(0)), None);
        assert_eq!(zone_maps.get(3, first, Some(PLANES)), None);
        assert!(!zone_maps.has_room(3, first, 0) && !zone_maps.has_room(3, first, PLANES));
        assert!(zone_maps.has_room(3, first, 1) && zone_maps.has_room(3, second, 0));
        zone_maps.put(3, first, Some(1), &zone_map(8));
        assert_eq!(zone_maps.get(3, first, Some(0)), Some(zone_map(7)));
        zone_maps.put(3, second, Some(PLANES), &zone_map(9));
        assert_eq!(zone_maps.all(3, first)[..], [(Some(1), zone_map(8))]);
        assert_eq!(zone_maps.get(3, first, Some(0)), None, "one place for both");
        assert_eq!(zone_maps.get(3, second, Some(PLANES)), Some(zone_map(9)));
        let last = knobs::zone_map_chunk() as FrameId;
        zone_maps.put(last, first, None, &zone_map(1));
        assert_eq!(zone_maps.get(last, first, None), Some(zone_map(1)));
        let beyond = 2 * knobs::zone_map_chunk() as FrameId;
        zone_maps.put(beyond, first, None, &zone_map(1));
        assert_eq!(zone_maps.get(beyond, first, None), None, "no such frame");
    }

    #[test]
    fn what_is_read_was_written_as_one() {
        let zone_maps = ZoneMaps::new(1);
        let version = versions().next().unwrap();
        std::thread::scope(|scope| {
            for column in [0, PLANES] {
                let zone_maps = &zone_maps;
                scope.spawn(move || {
                    for n in 0..40_000 {
                        let n = 2 * n + (column / PLANES) as u64;
                        zone_maps.put(0, version, Some(column), &zone_map(n));
                    }
                });
                scope.spawn(move || {
                    for _ in 0..40_000 {
                        if let Some(read) = zone_maps.get(0, version, Some(column)) {
                            assert_eq!(read, zone_map(read.min));
                            assert_eq!(read.min % 2, (column / PLANES) as u64);
                        }
                    }
                });
            }
        });
    }
}
