//! Narrow copies of leaves: see [`crate::page`]'s `narrow`, which keeps them, for what they are for.
//!
//! ```text
//! u16 records · u16 bytes of the keys' common front · the front ·
//! per record: u16 where it begins, counted from the copy's begin · u16 bytes of the rest of its key
//! per record: the rest of its key · what is kept of its value
//! ```

use std::cmp::Ordering;

use super::descend::Route;
use super::{AwayLeaf, Tree};
use crate::error::Result;
use crate::page::{LeafSeen, LeafShape, Node, SharedGuard, LONGEST};

/// Bytes a record has in front.
const SLOT: usize = 4;

/// What is to be kept of a record's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Narrowed {
    /// What was appended.
    Kept,
    /// Nothing: the record is nobody's any more.
    Gone,
    /// It can't be told, and so no copy of the leaf is made.
    Unclear,
}

impl Tree {
    /// Looks for a key in the narrow copy of its leaf, which is not in memory. `f` gets what is kept of the
    /// value, and the columns that it is of. `None` where there is no copy with these columns (then the
    /// leaf must be read), `Some(None)` where the leaf has no such record.
    pub fn read_narrow<R>(
        &self,
        leaf: AwayLeaf,
        key: &[u8],
        columns: u64,
        f: impl FnOnce(&[u8], u64) -> R,
    ) -> Option<Option<R>> {
        let found = self
            .core
            .read_narrow(leaf.0, leaf.1, columns, |copy, columns| {
                Some(find(copy, key)?.map(|value| f(value, columns)))
            });
        found.flatten()
    }

    /// Whether there is a narrow copy of a leaf with these columns.
    pub fn has_narrow(&self, leaf: AwayLeaf, columns: u64) -> bool {
        let kept = self.core.narrow_columns(leaf.1);
        kept.is_some_and(|kept| columns & !kept == 0)
    }

    /// Makes a narrow copy of a key's leaf, which has just been brought for one record, unless the pool has
    /// room for leaves as they are. `narrow` appends what is to be kept of a value: the columns asked for,
    /// and, where that is not too much, those of which there was a copy before; it runs under the leaf's latch.
    ///
    /// # Errors
    /// Those of reading inner nodes.
    pub fn keep_narrow(
        &self,
        key: &[u8],
        columns: u64,
        mut narrow: impl FnMut(&[u8], u64, &mut Vec<u8>) -> Narrowed,
    ) -> Result<()> {
        if !self.core.wants_narrow() {
            return Ok(());
        }
        let found = self.locate(Route::InMemory(key, &LeafShape::default()), 0)?;
        let Some(leaf) = self.latch_found::<SharedGuard<'_>>(found) else {
            return Ok(());
        };
        let seen = LeafSeen {
            frame: leaf.frame(),
            version: leaf.version(),
        };
        let page = leaf.page().0;
        let before = self.core.narrow_columns(page).unwrap_or(columns);
        let node = leaf.node();
        let both = columns | before;
        let mut copy = Vec::new();
        let mut kept = build(node, &mut copy, |value, out| narrow(value, both, out)).map(|()| both);
        if kept.is_none() && both != columns {
            kept =
                build(node, &mut copy, |value, out| narrow(value, columns, out)).map(|()| columns);
        }
        drop(leaf);
        if let Some(columns) = kept {
            self.core.keep_narrow(page, seen, columns, &copy);
        }
        Ok(())
    }
}

/// Puts a copy of a leaf into `out`; `None` where it is unclear, or becomes too long.
fn build(
    node: Node<'_>,
    out: &mut Vec<u8>,
    mut narrow: impl FnMut(&[u8], &mut Vec<u8>) -> Narrowed,
) -> Option<()> {
    let front = node.prefix();
    let mut records = Vec::new();
    let mut slots = Vec::new();
    let mut key = Vec::new();
    for i in 0..node.count() {
        let begin = records.len();
        key.clear();
        node.append_key(i, &mut key);
        let rest = key.get(front.len()..)?;
        records.extend_from_slice(rest);
        match narrow(node.value(i), &mut records) {
            Narrowed::Kept => slots.push((begin, rest.len())),
            Narrowed::Gone => records.truncate(begin),
            Narrowed::Unclear => return None,
        }
        if records.len() > LONGEST {
            return None;
        }
    }
    let base = 4 + front.len() + SLOT * slots.len();
    if base + records.len() > LONGEST {
        return None;
    }
    out.clear();
    put(slots.len(), out);
    put(front.len(), out);
    out.extend_from_slice(front);
    for (begin, rest) in slots {
        put(base + begin, out);
        put(rest, out);
    }
    out.extend_from_slice(&records);
    Some(())
}

/// Appends a number, which is below the longest copy's.
fn put(number: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(number as u16).to_le_bytes());
}

/// What a copy keeps of a key's value: `Some(None)` where it has no such key, `None` where the bytes are no
/// copy.
fn find<'a>(copy: &'a [u8], key: &[u8]) -> Option<Option<&'a [u8]>> {
    let number = |at: usize| {
        let bytes = copy.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    };
    let (count, front) = (number(0)?, number(2)?);
    let Some(rest) = key.strip_prefix(copy.get(4..4 + front)?) else {
        return Some(None);
    };
    let slot = |i: usize| 4 + front + SLOT * i;
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high) / 2;
        let begin = number(slot(middle))?;
        let value = begin + number(slot(middle) + 2)?;
        match copy.get(begin..value)?.cmp(rest) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => {
                // It ends where the next begins.
                let next = middle + 1;
                let end = if next < count {
                    number(slot(next))?
                } else {
                    copy.len()
                };
                return Some(Some(copy.get(value..end)?));
            }
        }
    }
    Some(None)
}
