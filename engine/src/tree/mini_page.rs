//! The bytes of mini-pages: see [`crate::buffer`]'s `mini_page`, which stores them, for their purpose.
//!
//! ```text
//! u16 records · u16 bytes of the keys' common prefix · the prefix ·
//! per record: u16 where it begins, counted from the copy's begin · u16 bytes of the rest of its key
//! per record: the rest of its key · what is kept of its value
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use super::descend::Route;
use super::{LeafNotResident, Tree};
use crate::buffer::SharedGuard;
use crate::error::Result;
use crate::knobs;
use crate::leaf_cache::LeafSeen;
use crate::node::{LeafLayoutHint, Node};

/// Bytes of a record's slot: where the record begins, and the length of its key's rest.
const SLOT: usize = 4;

/// The part of a record's value that a projection keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectedRecord {
    /// The bytes that were appended.
    Kept,
    /// Nothing: no snapshot needs the record.
    Gone,
    /// The projection can't decide: so no mini-page of the leaf is made.
    Unclear,
}

impl Tree {
    /// Looks for a key in the mini-page of its leaf, which is not in memory.
    ///
    /// `f` gets the part of the value that is kept, and its columns. `None` if there is no mini-page with these
    /// columns: then the caller must read the leaf. `Some(None)` if the leaf has no such record.
    pub fn read_mini_page<R>(
        &self,
        leaf: LeafNotResident,
        key: &[u8],
        columns: u64,
        f: impl FnOnce(&[u8], u64) -> R,
    ) -> Option<Option<R>> {
        let found =
            self.pool
                .read_mini_page(leaf.0, (leaf.1, self.id.0), columns, |copy, columns| {
                    Some(find(copy, key)?.map(|value| f(value, columns)))
                });
        found.flatten()
    }

    /// Returns whether a leaf has a mini-page with these columns.
    pub fn has_mini_page(&self, leaf: LeafNotResident, columns: u64) -> bool {
        self.pool.has_mini_page(leaf.1, self.id.0, columns)
    }

    /// Makes a mini-page of a key's leaf, which has just been loaded for one record or a few.
    ///
    /// It makes none if the pool has room for whole leaves. `project` appends what is to be kept of a value. This is
    /// the columns asked for, and those of the leaf's last mini-page if they are not too much. `project` runs under
    /// the leaf's latch.
    ///
    /// # Errors
    /// Those of reading inner nodes.
    pub fn keep_mini_page(
        &self,
        key: &[u8],
        columns: u64,
        mut project: impl FnMut(&[u8], u64, &mut Vec<u8>) -> ProjectedRecord,
    ) -> Result<()> {
        if !self.pool.wants_mini_page() {
            return Ok(());
        }
        let found = self.locate(Route::InMemory(key, &LeafLayoutHint::default()), 0)?;
        let Some(leaf) = self.latch_found::<SharedGuard<'_>>(found) else {
            return Ok(());
        };
        let seen = LeafSeen {
            frame: leaf.frame(),
            version: leaf.version(),
        };
        let page = leaf.page().0;
        let before = self.pool.mini_page_columns(page, self.id.0);
        let before = before.unwrap_or(columns);
        let node = leaf.node();
        let both = columns | before;
        let mut copy = Vec::new();
        let mut kept =
            build(node, &mut copy, |value, out| project(value, both, out)).map(|()| both);
        if kept.is_none() && both != columns {
            kept =
                build(node, &mut copy, |value, out| project(value, columns, out)).map(|()| columns);
        }
        drop(leaf);
        if let Some(columns) = kept {
            self.pool.keep_mini_page(page, seen, columns, &copy);
        }
        Ok(())
    }
}

/// Writes a mini-page of a leaf into `out`; `None` if a record is unclear, or the mini-page becomes too long.
fn build(
    node: Node<'_>,
    out: &mut Vec<u8>,
    mut project: impl FnMut(&[u8], &mut Vec<u8>) -> ProjectedRecord,
) -> Option<()> {
    let prefix = node.prefix();
    let mut records = Vec::new();
    let mut slots = Vec::new();
    let mut key = Vec::new();
    for i in 0..node.count() {
        let begin = records.len();
        key.clear();
        node.append_key(i, &mut key);
        let rest = key.get(prefix.len()..)?;
        records.extend_from_slice(rest);
        match project(node.value(i), &mut records) {
            ProjectedRecord::Kept => slots.push((begin, rest.len())),
            ProjectedRecord::Gone => records.truncate(begin),
            ProjectedRecord::Unclear => return None,
        }
        if records.len() > knobs::longest_mini_page() {
            return None;
        }
    }
    let base = 4 + prefix.len() + SLOT * slots.len();
    if base + records.len() > knobs::longest_mini_page() {
        return None;
    }
    out.clear();
    put(slots.len(), out);
    put(prefix.len(), out);
    out.extend_from_slice(prefix);
    for (begin, rest) in slots {
        put(base + begin, out);
        put(rest, out);
    }
    out.extend_from_slice(&records);
    Some(())
}

/// Appends a number, which is below the length of the longest mini-page.
fn put(number: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(number as u16).to_le_bytes());
}

/// Returns what a mini-page keeps of a key's value.
///
/// `Some(None)` if it has no such key; `None` if the bytes are not a mini-page.
fn find<'a>(copy: &'a [u8], key: &[u8]) -> Option<Option<&'a [u8]>> {
    let copy = MiniPageBytes::new(copy)?;
    let at = copy.lower_bound(key)?;
    if at == copy.count {
        return Some(None);
    }
    let record = copy.record(at)?;
    let is_it = key.strip_prefix(record.prefix) == Some(record.rest);
    Some(is_it.then_some(record.kept))
}

/// The bytes of a mini-page; its methods return `None` for bytes that can't be in one.
#[derive(Clone, Copy)]
struct MiniPageBytes<'a> {
    bytes: &'a [u8],
    count: usize,
    prefix: &'a [u8],
}

impl<'a> MiniPageBytes<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut copy = MiniPageBytes {
            bytes,
            count: 0,
            prefix: &[],
        };
        copy.count = copy.number(0)?;
        copy.prefix = bytes.get(4..4 + copy.number(2)?)?;
        Some(copy)
    }

    #[inline]
    fn number(self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at + 2)?;
        Some(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    fn slot(self, i: usize) -> usize {
        4 + self.prefix.len() + SLOT * i
    }

    #[inline]
    fn record(self, i: usize) -> Option<MiniPageRecord<'a>> {
        let slot = self.slot(i);
        let begin = self.number(slot)?;
        let kept = begin + self.number(slot + 2)?;
        // A record ends where the next one begins.
        let end = match i + 1 < self.count {
            true => self.number(slot + SLOT)?,
            false => self.bytes.len(),
        };
        Some(MiniPageRecord {
            prefix: self.prefix,
            rest: self.bytes.get(begin..kept)?,
            kept: self.bytes.get(kept..end)?,
        })
    }

    /// Returns the first record with a key that is not below `key`.
    fn lower_bound(self, key: &[u8]) -> Option<usize> {
        let (head, rest) = key.split_at(key.len().min(self.prefix.len()));
        match head.cmp(self.prefix) {
            Ordering::Less => return Some(0),
            Ordering::Greater => return Some(self.count),
            Ordering::Equal => {}
        }
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.record(middle)?.rest < rest {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

/// The records of a range in a leaf's mini-page.
pub struct MiniPage<'a> {
    copy: MiniPageBytes<'a>,
    range: Range<usize>,
    /// The columns that the mini-page has.
    pub columns: u64,
}

/// The part of a record that a mini-page has.
#[derive(Clone, Copy)]
pub struct MiniPageRecord<'a> {
    prefix: &'a [u8],
    rest: &'a [u8],
    /// The part of the value that is kept.
    pub kept: &'a [u8],
}

impl MiniPageRecord<'_> {
    /// Returns the length of the key.
    #[inline]
    pub fn key_len(&self) -> usize {
        self.prefix.len() + self.rest.len()
    }

    /// Returns a byte of the key; `at` must be below `key_len()`.
    #[inline]
    pub fn key_byte(&self, at: usize) -> u8 {
        match at.checked_sub(self.prefix.len()) {
            None => self.prefix[at],
            Some(at) => self.rest[at],
        }
    }
}

impl<'a> MiniPage<'a> {
    /// Makes a mini-page with these columns, limited to keys from `from` up to, not including, `to`.
    ///
    /// `None` if the bytes are not a mini-page.
    pub(super) fn new(
        bytes: &'a [u8],
        columns: u64,
        from: &[u8],
        to: Option<&[u8]>,
    ) -> Option<Self> {
        let copy = MiniPageBytes::new(bytes)?;
        let end = match to {
            Some(to) => copy.lower_bound(to)?,
            None => copy.count,
        };
        Some(MiniPage {
            copy,
            range: copy.lower_bound(from)?.min(end)..end,
            columns,
        })
    }

    /// Returns the records; `None` in place of a record whose bytes are damaged.
    pub fn records(&self) -> impl Iterator<Item = Option<MiniPageRecord<'a>>> + '_ {
        self.range.clone().map(|i| self.copy.record(i))
    }
}
