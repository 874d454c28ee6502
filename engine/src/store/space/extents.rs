//! The free space of the data file: extents by offset and by length.
//!
//! In memory only; opening rebuilds it from the parts that the last checkpoint uses.

use std::collections::{BTreeMap, BTreeSet};

/// The free extents below the file's end. All numbers are units.
#[derive(Debug, Default)]
pub struct Extents {
    by_offset: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    free: u64,
    /// Free units that images of the greatest length can use.
    roomy: u64,
    end: u64,
}

/// Units of the longest image of a page.
pub const LONGEST: u64 = 17;

/// Units of a free extent that images of the greatest length can use.
fn roomy(units: u64) -> u64 {
    units - units % LONGEST
}

impl Extents {
    /// Nothing free, and everything below `end` in use.
    pub fn new(end: u64) -> Self {
        Extents {
            end,
            ..Extents::default()
        }
    }

    /// First unit beyond the file.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Free units below the end.
    pub fn free_units(&self) -> u64 {
        self.free
    }

    /// Free units that images of the greatest length can use.
    pub fn roomy_units(&self) -> u64 {
        self.roomy
    }

    /// Takes `units` behind the end; a free tail is left as it is.
    pub fn append(&mut self, units: u64) -> u64 {
        let offset = self.end;
        self.end += units;
        offset
    }

    /// Undoes the last [`Extents::append`], which gave `offset`.
    pub fn retract(&mut self, offset: u64) {
        self.end = offset;
    }

    fn insert(&mut self, offset: u64, units: u64) {
        self.by_offset.insert(offset, units);
        self.by_length.insert((units, offset));
        self.free += units;
        self.roomy += roomy(units);
    }

    fn remove(&mut self, offset: u64, units: u64) {
        self.by_offset.remove(&offset);
        self.by_length.remove(&(units, offset));
        self.free -= units;
        self.roomy -= roomy(units);
    }

    /// Takes `units` from the shortest free extent that has them, the lowest if several are equal.
    pub fn take(&mut self, units: u64) -> Option<u64> {
        self.take_between(units, units).map(|(offset, _)| offset)
    }

    /// Takes at most `most` units from the shortest free extent of at least `least`; returns offset and length.
    pub fn take_between(&mut self, least: u64, most: u64) -> Option<(u64, u64)> {
        let &(length, offset) = self.by_length.range((least, 0)..).next()?;
        self.remove(offset, length);
        let taken = length.min(most);
        if length > taken {
            self.insert(offset + taken, length - taken);
        }
        Some((offset, taken))
    }

    /// Takes `units` at the end of the file, which grows; a free tail shorter than `units` becomes part of them.
    pub fn extend(&mut self, units: u64) -> u64 {
        let tail = self.by_offset.last_key_value();
        let offset = match tail.map(|(&offset, &length)| (offset, length)) {
            Some((offset, length)) if offset + length == self.end && length < units => {
                self.remove(offset, length);
                offset
            }
            _ => self.end,
        };
        self.end = offset + units;
        offset
    }

    /// Gives units back, and joins them with free neighbours.
    pub fn give(&mut self, offset: u64, units: u64) {
        let (mut start, mut length) = (offset, units);
        if let Some((&before, &len)) = self.by_offset.range(..offset).next_back() {
            debug_assert!(before + len <= offset, "{offset} is given back twice");
            if before + len == offset {
                self.remove(before, len);
                (start, length) = (before, length + len);
            }
        }
        if let Some((&after, &len)) = self.by_offset.range(offset..).next() {
            debug_assert!(offset + units <= after, "{offset} is given back twice");
            if offset + units == after {
                self.remove(after, len);
                length += len;
            }
        }
        debug_assert!(start + length <= self.end);
        self.insert(start, length);
    }

    /// Cuts off a free tail, at most `most` units of it, if that is at least `least`; returns the new end.
    pub fn cut_tail(&mut self, least: u64, most: u64) -> Option<u64> {
        let (&offset, &length) = self.by_offset.last_key_value()?;
        let cut = length.min(most);
        if offset + length != self.end || cut < least || cut == 0 {
            return None;
        }
        self.remove(offset, length);
        if length > cut {
            self.insert(offset, length - cut);
        }
        self.end -= cut;
        Some(self.end)
    }

    /// Units of the longest free extent.
    #[cfg(test)]
    fn longest(&self) -> u64 {
        self.by_length.last().map_or(0, |&(length, _)| length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Op {
        Take(u64),
        TakeBetween(u64, u64),
        Extend(u64),
        Give(usize),
        Append(u64),
        Cut(u64, u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (1u64..20).prop_map(Op::Take),
            1 => (1u64..40, 1u64..40).prop_map(|(least, most)| Op::TakeBetween(least, most)),
            2 => (1u64..20).prop_map(Op::Extend),
            6 => any::<usize>().prop_map(Op::Give),
            1 => (1u64..20).prop_map(Op::Append),
            1 => (1u64..30, 1u64..60).prop_map(|(least, most)| Op::Cut(least, most)),
        ]
    }

    proptest! {
        /// The model is a vector with one flag per unit.
        #[test]
        fn extents_never_overlap_and_free_space_coalesces(
            ops in proptest::collection::vec(op(), 1..200),
        ) {
            let mut extents = Extents::new(8);
            let mut used = vec![true; 8];
            let mut held: Vec<(u64, u64)> = Vec::new();
            for op in ops {
                let got = match op {
                    Op::Take(units) => {
                        let longest = extents.longest();
                        let got = extents.take(units).map(|offset| (offset, units));
                        prop_assert_eq!(got.is_some(), longest >= units);
                        got
                    }
                    Op::TakeBetween(least, most) => {
                        let got = extents.take_between(least, most);
                        if let Some((_, n)) = got {
                            prop_assert!(least.min(most) <= n && n <= most);
                        }
                        got
                    }
                    Op::Extend(units) => {
                        let offset = extents.extend(units);
                        prop_assert_eq!(offset + units, extents.end());
                        used.resize(extents.end() as usize, false);
                        Some((offset, units))
                    }
                    Op::Give(which) if !held.is_empty() => {
                        let (offset, units) = held.swap_remove(which % held.len());
                        extents.give(offset, units);
                        used[offset as usize..(offset + units) as usize].fill(false);
                        None
                    }
                    Op::Give(_) => None,
                    Op::Append(units) => {
                        let offset = extents.append(units);
                        prop_assert_eq!(offset, used.len() as u64);
                        used.resize(extents.end() as usize, true);
                        held.push((offset, units));
                        None
                    }
                    Op::Cut(least, most) => {
                        let tail = used.iter().rev().take_while(|used| !**used).count() as u64;
                        let cut = extents.cut_tail(least, most);
                        prop_assert_eq!(cut.is_some(), tail.min(most) >= least);
                        used.truncate(extents.end() as usize);
                        let left = used.iter().rev().take_while(|used| !**used).count() as u64;
                        prop_assert_eq!(left, tail - cut.map_or(0, |_| tail.min(most)));
                        None
                    }
                };
                if let Some((offset, units)) = got {
                    for unit in &mut used[offset as usize..(offset + units) as usize] {
                        prop_assert!(!*unit, "given out twice");
                        *unit = true;
                    }
                    held.push((offset, units));
                }
                let mut free = Vec::new();
                for (at, used) in used.iter().enumerate() {
                    match free.last_mut() {
                        _ if *used => {}
                        Some((offset, units)) if *offset + *units == at as u64 => *units += 1,
                        _ => free.push((at as u64, 1)),
                    }
                }
                let found: Vec<_> = extents.by_offset.iter().map(|(a, b)| (*a, *b)).collect();
                prop_assert_eq!(&found, &free);
                prop_assert_eq!(extents.by_length.len(), free.len());
                prop_assert_eq!(extents.free_units(), free.iter().map(|f| f.1).sum::<u64>());
            }
        }
    }
}
