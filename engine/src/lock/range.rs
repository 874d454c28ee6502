//! Range locks: the keys that a serializable transaction has searched, also where it found nothing; and the rows of a
//! transaction that has locked too many to list them ([`crate::lock::table`] has a table of those).
//!
//! A range is a stretch of keys of one tree. Ranges of the first kind never exclude each other; they exclude writers.
//! A writer of a record asks which other transactions hold a range around its key, and waits for them. A reader
//! enters its range *before* it copies the leaf; a writer asks with the leaf latched exclusively. So the leaf latch
//! decides which of the two came first, as for row locks: see `docs/locking.md`. If no transaction is serializable, a
//! writer pays one load.
//!
//! Predicate locks over key ranges: Eswaran, Gray, Lorie, Traiger, "The notions of consistency and predicate locks in
//! a database system", CACM 19(11), 1976.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crossbeam_utils::CachePadded;
use smallvec::SmallVec;

use crate::ids::TreeId;
use crate::knobs;
use crate::lock::queue::LockMode;
use crate::lock::running_transaction::RunningTransaction;
use crate::planted::{is_planted, PlantedFault};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::Mutex;

/// The ranges of one transaction in one tree: a map from beginning to end.
///
/// The end is not in the range; `None`: the range has no end. Ranges neither overlap nor touch.
#[derive(Debug, Default)]
pub(super) struct Ranges(BTreeMap<Box<[u8]>, Option<Box<[u8]>>>);

impl Ranges {
    /// Adds the keys from `from` up to, not including, `to`.
    pub fn add(&mut self, from: &[u8], to: Option<&[u8]>) {
        if to.is_some_and(|to| to <= from) {
            return;
        }
        // A range that begins at or before `from`, and reaches it, grows.
        let before = self.0.range_mut::<[u8], _>(up_to(from)).next_back();
        let (begin, mut end) = match before {
            Some((begin, end)) if reaches(end.as_deref(), from) => {
                if end.is_none() || (to.is_some() && end.as_deref() >= to) {
                    return;
                }
                *end = to.map(Into::into);
                (begin.clone(), end.clone())
            }
            _ => {
                let (begin, end): (Box<[u8]>, _) = (from.into(), to.map(Into::into));
                self.0.insert(begin.clone(), end.clone());
                (begin, end)
            }
        };
        // The range absorbs the ranges that it reaches.
        let behind = (Bound::Excluded(&*begin), Bound::Unbounded);
        while let Some((next, next_end)) = self.0.range::<[u8], _>(behind).next() {
            if !reaches(end.as_deref(), next) {
                break;
            }
            let next = next.clone();
            let next_end = next_end.clone();
            self.0.remove(&next);
            if end.is_some() && (next_end.is_none() || next_end > end) {
                end = next_end;
                self.0.insert(begin.clone(), end.clone());
            }
        }
    }

    /// Like [`Ranges::add`], but adds no further range where there are `most` ranges or more.
    ///
    /// If the new keys then touch no range, a neighbour grows up to them, over the keys between.
    pub fn add_within(&mut self, from: &[u8], to: Option<&[u8]>, most: usize) {
        if self.0.len() < most || to.is_some_and(|to| to <= from) {
            return self.add(from, to);
        }
        let before = self.0.range::<[u8], _>(up_to(from)).next_back();
        let behind = (Bound::Excluded(from), Bound::Unbounded);
        let next = self.0.range::<[u8], _>(behind).next();
        let touches = before.is_some_and(|(_, end)| reaches(end.as_deref(), from))
            || next.is_some_and(|(begin, _)| reaches(to, begin));
        match (before, next) {
            (Some((begin, _)), _) if !touches => {
                let begin = begin.clone();
                self.add(&begin, to);
            }
            (None, Some((begin, _))) if !touches => {
                let begin = begin.clone();
                self.add(from, Some(&begin));
            }
            _ => self.add(from, to),
        }
    }

    /// Like [`Ranges::add_within`], for one key.
    pub fn add_key(&mut self, key: &[u8], most: usize) {
        let successor = [key, &[0]].concat();
        self.add_within(key, Some(&successor), most);
    }

    /// Returns whether a range covers `key`.
    pub fn covers(&self, key: &[u8]) -> bool {
        let before = self.0.range::<[u8], _>(up_to(key)).next_back();
        before.is_some_and(|(_, end)| end.as_deref().is_none_or(|end| key < end))
    }
}

fn up_to(key: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(key))
}

/// Returns whether a range with this end overlaps or touches one that begins at `key`.
fn reaches(end: Option<&[u8]>, key: &[u8]) -> bool {
    end.is_none_or(|end| end >= key)
}

struct Held {
    who: Arc<RunningTransaction>,
    mode: LockMode,
    ranges: Ranges,
}

#[derive(Default)]
struct Shard {
    /// The number of holders in all trees of the shard, readable without the mutex.
    count: AtomicUsize,
    trees: Mutex<HashMap<TreeId, Vec<Held>>>,
}

/// See the module's text.
pub(crate) struct RangeTable {
    shards: Box<[CachePadded<Shard>]>,
}

impl Default for RangeTable {
    fn default() -> Self {
        RangeTable {
            shards: (0..knobs::range_shards())
                .map(|_| CachePadded::default())
                .collect(),
        }
    }
}

/// Transactions whose ranges are in the way of another, with the strengths of these ranges.
pub(crate) type Holders = SmallVec<[(Arc<RunningTransaction>, LockMode); 4]>;

impl RangeTable {
    fn shard(&self, tree: TreeId) -> &Shard {
        &self.shards[tree.0 as usize % knobs::range_shards()]
    }

    /// Enters a shared range from `from` up to, not including, `to` (`None`: without end).
    ///
    /// If `who` has very many ranges, the range also covers keys between these and others. The caller holds no latch,
    /// and copies the leaf with these keys only afterwards.
    pub fn add(&self, tree: TreeId, who: &Arc<RunningTransaction>, from: &[u8], to: Option<&[u8]>) {
        let most = match is_planted(PlantedFault::RangeForEachSearch) {
            true => usize::MAX,
            false => knobs::searched_ranges(),
        };
        self.enter(tree, who, LockMode::Shared, |ranges| {
            ranges.add_within(from, to, most);
        });
    }

    /// Enters the key of a row that `who` has locked, and keys between it and others if `who` has many ranges.
    pub fn add_key(&self, tree: TreeId, who: &Arc<RunningTransaction>, mode: LockMode, key: &[u8]) {
        let most = knobs::escalated_ranges();
        self.enter(tree, who, mode, |ranges| ranges.add_key(key, most));
    }

    fn enter(
        &self,
        tree: TreeId,
        who: &Arc<RunningTransaction>,
        mode: LockMode,
        add: impl FnOnce(&mut Ranges),
    ) {
        let shard = self.shard(tree);
        let mut trees = shard.trees.lock();
        let holders = trees.entry(tree).or_default();
        let is_who = |held: &Held| Arc::ptr_eq(&held.who, who) && held.mode == mode;
        let at = match holders.iter().position(is_who) {
            Some(at) => at,
            None => {
                who.add_ranged_tree(tree);
                shard.count.fetch_add(1, Ordering::Relaxed);
                holders.push(Held {
                    who: who.clone(),
                    mode,
                    ranges: Ranges::default(),
                });
                holders.len() - 1
            }
        };
        add(&mut holders[at].ranges);
    }

    /// The other transactions that have a range around `key` which excludes `mode`.
    ///
    /// The caller has the key's leaf latched; a writer has it latched exclusively.
    #[inline]
    pub fn holders(
        &self,
        tree: TreeId,
        key: &[u8],
        who: &Arc<RunningTransaction>,
        mode: LockMode,
    ) -> Holders {
        // The leaf latch orders this load after the entries of readers that copied the leaf before.
        if self.shard(tree).count.load(Ordering::Acquire) == 0 {
            return Holders::new();
        }
        self.find_holders(tree, key, who, mode)
    }

    fn find_holders(
        &self,
        tree: TreeId,
        key: &[u8],
        who: &Arc<RunningTransaction>,
        mode: LockMode,
    ) -> Holders {
        let trees = self.shard(tree).trees.lock();
        let Some(holders) = trees.get(&tree) else {
            return Holders::new();
        };
        holders
            .iter()
            .filter(|held| !Arc::ptr_eq(&held.who, who) && mode.excludes(held.mode))
            .filter(|held| held.ranges.covers(key))
            .map(|held| (held.who.clone(), held.mode))
            .collect()
    }

    /// Returns whether `who` has a range around `key` that is at least as strong as `mode`.
    pub fn covers(
        &self,
        tree: TreeId,
        key: &[u8],
        who: &Arc<RunningTransaction>,
        mode: LockMode,
    ) -> bool {
        let shard = self.shard(tree);
        if shard.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let trees = shard.trees.lock();
        trees.get(&tree).is_some_and(|holders| {
            let strong = |held: &&Held| held.mode == mode || held.mode == LockMode::Exclusive;
            let own = holders.iter().filter(|held| Arc::ptr_eq(&held.who, who));
            own.filter(strong).any(|held| held.ranges.covers(key))
        })
    }

    /// Gives up all ranges of `who` in a tree.
    pub fn release(&self, tree: TreeId, who: &Arc<RunningTransaction>) {
        let shard = self.shard(tree);
        // The transaction's own thread has entered its ranges, so it sees a count above zero if there are any.
        if shard.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut trees = shard.trees.lock();
        let Some(holders) = trees.get_mut(&tree) else {
            return;
        };
        let before = holders.len();
        holders.retain(|held| !Arc::ptr_eq(&held.who, who));
        let gone = before - holders.len();
        shard.count.fetch_sub(gone, Ordering::Relaxed);
        if holders.is_empty() {
            trees.remove(&tree);
        }
    }

    /// Calls `f` with each range, shard after shard, until `f` returns false: tree, holder, strength, beginning and
    /// end.
    pub fn look(
        &self,
        mut f: impl FnMut(TreeId, &Arc<RunningTransaction>, LockMode, &[u8], Option<&[u8]>) -> bool,
    ) {
        for shard in &self.shards {
            if shard.count.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for (tree, holders) in &*shard.trees.lock() {
                for held in holders {
                    for (from, to) in &held.ranges.0 {
                        if !f(*tree, &held.who, held.mode, from, to.as_deref()) {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// The number of holders, counted once for each tree and strength.
    pub fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.count.load(Ordering::Relaxed))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0u8..4, 0..3)
    }

    fn all_keys() -> Vec<Vec<u8>> {
        let mut keys = vec![vec![]];
        for length in 0..3 {
            for key in keys.clone() {
                if key.len() == length {
                    keys.extend((0..5).map(|byte| [&key[..], &[byte]].concat()));
                }
            }
        }
        keys
    }

    proptest! {
        /// The ranges cover exactly the keys that were added, and no two of them touch.
        #[test]
        fn covers_what_was_added(added in prop::collection::vec((key(), prop::option::of(key())), 0..12)) {
            let mut ranges = Ranges::default();
            for (from, to) in &added {
                ranges.add(from, to.as_deref());
            }
            for key in all_keys() {
                let expected = added
                    .iter()
                    .any(|(from, to)| *from <= key && to.as_ref().is_none_or(|to| key < *to));
                prop_assert_eq!(ranges.covers(&key), expected, "{:?} in {:?}", key, ranges);
            }
            let pieces: Vec<_> = ranges.0.iter().collect();
            for pair in pieces.windows(2) {
                prop_assert!(!reaches(pair[0].1.as_deref(), pair[1].0), "{:?}", ranges);
            }
        }

        /// The ranges cover all keys that were added, and no others while their number is below the limit.
        #[test]
        fn searches_are_covered_within_so_many_ranges(
            added in prop::collection::vec((key(), prop::option::of(key())), 1..12),
            most in 1usize..12,
        ) {
            let mut ranges = Ranges::default();
            let mut unlimited = Ranges::default();
            for (from, to) in &added {
                ranges.add_within(from, to.as_deref(), most);
                unlimited.add(from, to.as_deref());
                prop_assert!(ranges.0.len() <= most, "{:?}", ranges);
            }
            for key in all_keys() {
                prop_assert!(ranges.covers(&key) || !unlimited.covers(&key), "{:?} in {:?}", key, ranges);
                prop_assert!(added.len() > most || ranges.covers(&key) == unlimited.covers(&key));
            }
        }

        /// The ranges cover each key alone while their number is below the limit, and later with its neighbours.
        #[test]
        fn keys_are_covered_within_so_many_ranges(keys in prop::collection::vec(key(), 1..12), most in 1usize..12) {
            let mut ranges = Ranges::default();
            for key in &keys {
                ranges.add_key(key, most);
                prop_assert!(ranges.0.len() <= most, "{:?}", ranges);
            }
            let fits = keys.iter().collect::<std::collections::HashSet<_>>().len() <= most;
            for key in all_keys() {
                let added = keys.contains(&key);
                prop_assert!(ranges.covers(&key) == added || !(added || fits), "{:?} in {:?}", key, ranges);
            }
        }
    }

    #[test]
    fn a_transaction_has_so_many_ranges_however_much_it_searches() {
        let table = RangeTable::default();
        let [a, b] = [(); 2].map(|()| RunningTransaction::new(Default::default()));
        let tree = TreeId(1);
        let key = |n: u32| n.to_be_bytes();
        let searches = knobs::searched_ranges() as u32 + 100;
        for n in 0..searches {
            // In random order.
            let at = n.wrapping_mul(0x9E37_79B1) | 1;
            table.add(tree, &a, &key(at - 1), Some(&key(at)));
        }
        let mut ranges = 0;
        table.look(|_, _, _, _, _| {
            ranges += 1;
            true
        });
        assert!(ranges <= knobs::searched_ranges(), "{ranges}");
        for n in 0..searches {
            let at = n.wrapping_mul(0x9E37_79B1) | 1;
            let holders = table.holders(tree, &key(at - 1), &b, LockMode::Exclusive);
            assert_eq!(holders.len(), 1, "{n}");
        }
    }

    #[test]
    fn only_others_are_in_the_way_and_only_while_they_hold() {
        let table = RangeTable::default();
        let [a, b] = [(); 2].map(|()| RunningTransaction::new(Default::default()));
        let (tree, other) = (TreeId(1), TreeId(1 + knobs::range_shards() as u32));
        let exclusive = LockMode::Exclusive;
        let blocks = |tree, key: &[u8], who| !table.holders(tree, key, who, exclusive).is_empty();
        table.add(tree, &a, b"b", Some(b"d"));
        table.add(tree, &a, b"d", None);
        table.add(tree, &b, b"x", Some(b"y"));
        assert!(blocks(tree, b"c", &b) && !blocks(tree, b"c", &a));
        assert!(!blocks(tree, b"a", &b) && !blocks(other, b"c", &b));
        assert_eq!(table.holders(tree, b"x", &b, exclusive).len(), 1);
        assert!(table.holders(tree, b"x", &b, LockMode::Shared).is_empty());
        assert_eq!(table.len(), 2);
        table.release(tree, &a);
        table.release(tree, &a);
        assert!(!blocks(tree, b"c", &b));
        assert_eq!(table.len(), 1);
    }
}
