//! Zone maps of leaves in memory, kept beside the leaf's frame while its bytes stay the same.
//!
//! A zone map names the version of the frame's latch at which it was made. A thread that changes a frame's bytes,
//! puts a page there or takes a page out holds the latch exclusively, and so raises the version. No version comes
//! twice. So a zone map with the present version is of the present bytes, and code that changes a page need not know
//! of zone maps.
//!
//! Each zone map is in a cache line of its own, guarded by a sequence number. (Boehm, "Can Seqlocks Get Along with
//! Programming Language Memory Models?", 2012.) The pool allocates memory in chunks, when the first zone map of 256
//! neighbouring frames is kept, and frees it at its own end.

use std::sync::OnceLock;

use smallvec::SmallVec;

use crate::ids::{FrameId, LatchVersion};
use crate::knobs;
use crate::sync::atomic::{fence, AtomicU64, Ordering};

/// The number of zone maps that a leaf can have at once; columns whose numbers are equal modulo this share a place.
const PLANES: usize = 4;
/// The bits of a tag that name the column: no version uses them.
const COLUMN: u64 = (1 << 19) - 1;

/// Count, sum, minimum and maximum of a column's values in a leaf.
///
/// The layers above turn the values into ordered numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneMap {
    /// The newest transaction that changed a record of the leaf.
    pub max_txid: u64,
    /// Records that are not deleted.
    pub records: u32,
    /// Of these, the records in which the column has a value.
    pub values: u32,
    /// The sum of the values.
    pub sum: i128,
    /// The least value; `u64::MAX` without one.
    pub min: u64,
    /// The greatest value; 0 without one.
    pub max: u64,
}

/// The zone maps of a leaf, each with its column; `None` for one that has the number of records alone.
pub(crate) type LeafZoneMaps = SmallVec<[(Option<usize>, ZoneMap); 1]>;

/// Returns a column's zone map among a leaf's; without a column, any of them, since all have the same number of
/// records.
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
    /// The latch's version and, in its unused low bits, the column; 0 in an empty slot.
    tag: AtomicU64,
    words: [AtomicU64; 6],
}

type Chunk = Box<[Slot]>;

/// All zone maps of a pool.
pub(crate) struct ZoneMaps {
    planes: [Box<[OnceLock<Chunk>]>; PLANES],
}

/// Returns the tag of a column's zone map, or of one that has the number of records alone.
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

    /// Returns the zone map of a column of the leaf that the frame holds at this version.
    ///
    /// Without a column, returns the zone map in the first place, whatever its column: all have the same number of
    /// records.
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
        // Orders the reads above before the second read of the sequence number.
        fence(Ordering::Acquire);
        (slot.sequence.load(Ordering::Relaxed) == sequence).then_some(zone_map)
    }

    /// Returns all zone maps of the leaf that the frame holds at this version.
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

    /// Returns whether the column's place has no zone map of the leaf that the frame holds at this version.
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
    ///
    /// Keeps nothing if another thread is writing to the same place.
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
        // Orders the taking before the stores: a reader that sees one of them sees the slot taken.
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
            // The test counts results of the knobs' default values.
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
