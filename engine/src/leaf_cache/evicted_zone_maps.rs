//! Zone maps of leaves that are not in memory.
//!
//! While a leaf is not in memory, no thread changes it: so its zone maps from the eviction hold until it is loaded
//! again. The evictor makes or removes an entry when it takes the leaf from its parent, under the latches of both. A
//! new page removes the entry of its number. So if the parent referred to the leaf by its number all the time, a
//! reader's entry is for the leaf's bytes. An entry also keeps the tree, because a damaged parent may refer to another
//! tree's leaf. A reader that uses a zone map does not read the leaf, and so could not find this out.

use std::collections::BTreeMap;

use crate::knobs;
use crate::leaf_cache::zone_map::{of_column, LeafZoneMaps};
use crate::planted::{is_planted, PlantedFault};
use crate::sync::Mutex;

/// The zone maps of all evicted leaves.
pub(crate) struct EvictedZoneMaps {
    shards: Box<[Mutex<Shard>]>,
    most_a_shard: usize,
}

/// The entry of one evicted leaf.
struct Left {
    tree: u32,
    zone_maps: LeafZoneMaps,
}

impl Left {
    fn is_of(&self, tree: u32) -> bool {
        self.tree == tree || is_planted(PlantedFault::KeptByNumber)
    }
}

#[derive(Default)]
struct Shard {
    entries: BTreeMap<u64, Left>,
    /// The number of newcomers that found the shard full.
    newcomers: usize,
    /// The page whose entry a newcomer replaced last.
    hand: u64,
}

impl EvictedZoneMaps {
    pub fn new(frames: usize) -> EvictedZoneMaps {
        EvictedZoneMaps {
            shards: (0..knobs::evicted_zone_map_shards())
                .map(|_| Mutex::default())
                .collect(),
            most_a_shard: (frames * knobs::evicted_zone_maps_a_frame()
                / knobs::evicted_zone_map_shards())
            .max(1),
        }
    }

    fn shard(&self, page: u64) -> &Mutex<Shard> {
        &self.shards[page as usize % knobs::evicted_zone_map_shards()]
    }

    /// Enters the zone maps of a leaf that is being evicted; if it has none, removes its entry.
    pub fn leave(&self, page: u64, tree: u32, zone_maps: LeafZoneMaps) {
        let shard = &mut *self.shard(page).lock();
        let entries = &mut shard.entries;
        if zone_maps.is_empty() {
            if !is_planted(PlantedFault::KeepOldZoneMaps) {
                entries.remove(&page);
            }
            return;
        }
        if entries.len() >= self.most_a_shard && !entries.contains_key(&page) {
            shard.newcomers += 1;
            if shard.newcomers % knobs::evicted_zone_map_turns() != 0 {
                return;
            }
            // Entries give way in descending order of pages. Scans go upwards: so the entries that came last give way
            // last.
            let below = entries.range(..shard.hand).next_back();
            let other = below.or_else(|| entries.iter().next_back());
            if let Some(other) = other.map(|(&page, _)| page) {
                entries.remove(&other);
                shard.hand = other;
            }
        }
        entries.insert(page, Left { tree, zone_maps });
    }

    /// Returns the zone maps with which a leaf was evicted, if the leaf is of this tree.
    pub fn of(&self, page: u64, tree: u32) -> Option<LeafZoneMaps> {
        let shard = self.shard(page).lock();
        let left = shard.entries.get(&page)?;
        left.is_of(tree).then(|| left.zone_maps.clone())
    }

    /// Returns whether an evicted leaf has a zone map of each of these columns; without columns, of any column.
    pub fn has(&self, page: u64, tree: u32, columns: &[usize]) -> bool {
        let shard = self.shard(page).lock();
        let has = |left: &Left| {
            let of = |column: &usize| of_column(&left.zone_maps, Some(*column));
            left.is_of(tree) && columns.iter().all(|column| of(column).is_some())
        };
        shard.entries.get(&page).is_some_and(has)
    }

    /// Removes the entry of a page whose number is given to a new page.
    pub fn forget(&self, page: u64) {
        self.shard(page).lock().entries.remove(&page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf_cache::zone_map::ZoneMap;

    fn zone_map(records: u32) -> ZoneMap {
        ZoneMap {
            max_txid: 1,
            records,
            values: records,
            sum: 0,
            min: 0,
            max: 0,
        }
    }

    fn of_leaf(page: u64) -> LeafZoneMaps {
        [(Some(3), zone_map(page as u32))].into_iter().collect()
    }

    #[test]
    fn an_entry_says_what_its_leaf_came_to_and_goes_with_it() {
        if crate::knobs::SHAKEN {
            // The test counts results of the knobs' default values.
            return;
        }
        let left = EvictedZoneMaps::new(64);
        for page in 0..200 {
            left.leave(page, 1, of_leaf(page));
            let found = left.of(page, 1).unwrap();
            assert_eq!(of_column(&found, Some(3)), Some(zone_map(page as u32)));
            assert_eq!(of_column(&found, None), Some(zone_map(page as u32)));
            assert_eq!(of_column(&found, Some(2)), None);
            assert!(left.has(page, 1, &[3]) && left.has(page, 1, &[]));
            assert!(!left.has(page, 1, &[2]) && !left.has(page, 1, &[3, 2]));
            assert!(left.of(page, 2).is_none() && !left.has(page, 2, &[3]));
        }
        left.leave(199, 1, LeafZoneMaps::new());
        assert!(left.of(199, 1).is_none() && !left.has(199, 1, &[]));
        left.forget(198);
        assert!(left.of(198, 1).is_none());
    }

    #[test]
    fn a_table_with_more_leaves_than_there_is_room_for_finds_most_again_at_each_scan() {
        if crate::knobs::SHAKEN {
            // The test counts results of the knobs' default values.
            return;
        }
        let left = EvictedZoneMaps::new(64);
        let room = 64 * knobs::evicted_zone_maps_a_frame() as u64;
        let leaves = room * 5 / 4;
        for scan in 0..20 {
            let found = (0..leaves)
                .filter(|page| {
                    let is_there = left.of(*page, 1).is_some();
                    left.leave(*page, 1, of_leaf(*page));
                    is_there
                })
                .count() as u64;
            assert!(found <= room);
            assert!(scan == 0 || found >= room * 3 / 4, "{found} of {leaves}");
        }
        // A scan of another table replaces these entries in the end.
        for _ in 0..100 {
            (0..room).for_each(|page| left.leave(leaves + page, 1, of_leaf(page)));
        }
        let found = (leaves..leaves + room).filter(|page| left.of(*page, 1).is_some());
        assert!(found.count() as u64 >= room * 3 / 4);
    }

    #[test]
    fn what_has_just_come_is_not_the_first_to_go() {
        if crate::knobs::SHAKEN {
            // The test counts results of the knobs' default values.
            return;
        }
        let left = EvictedZoneMaps::new(64);
        let leaves = 8 * 64 * knobs::evicted_zone_maps_a_frame() as u64;
        let let_in = leaves / knobs::evicted_zone_map_turns() as u64;
        // Tables with higher and higher page numbers, each scanned once. After a quarter of a table, the test puts
        // each hand right below the table.
        for table in 1..50 {
            let pages = || table * leaves..(table + 1) * leaves;
            for page in pages() {
                if page == pages().start + leaves / 4 {
                    let last_to_go = pages().start - 1;
                    left.shards
                        .iter()
                        .for_each(|shard| shard.lock().hand = last_to_go);
                }
                left.leave(page, 1, of_leaf(page));
            }
            let stay = pages().filter(|page| left.of(*page, 1).is_some()).count() as u64;
            assert!(stay > let_in / 2, "{stay} of table {table}");
        }
    }
}
