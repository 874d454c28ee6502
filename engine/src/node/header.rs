//! The first 64 bytes of every page: offsets of its fields, all little endian.
//!
//! `docs/format.md` ("Nodes") describes the same for readers of the files.

use crate::ids::PAGE_SIZE;

/// A page's bytes.
pub type Page = [u8; PAGE_SIZE];

/// Bytes of the header.
pub const HEADER_SIZE: usize = 64;
/// Bytes of a page after its header: the body that guards give for pages outside trees.
pub const BODY_SIZE: usize = PAGE_SIZE - HEADER_SIZE;

/// u64: the page's own id.
pub const PAGE_ID: usize = 0;
/// u32: the tree that the page belongs to; 0 for pages outside trees.
pub const TREE_ID: usize = 16;
/// u8: [`PageKind`].
pub const KIND: usize = 20;
/// u8: 0 for leaves, the children's level + 1 for inner nodes.
pub const LEVEL: usize = 21;
/// u16: where the hole begins, the bytes that are not in use.
pub const HOLE_START: usize = 22;
/// u16: the first byte after the hole.
pub const HOLE_END: usize = 24;
/// u16: records of a leaf, separators of an inner node.
pub const COUNT: usize = 26;
/// u16: length of the prefix that all keys of the node share and that records don't repeat.
pub const PREFIX_LEN: usize = 28;
/// u16: where that prefix is stored.
pub const PREFIX_OFF: usize = 30;
/// u16: where the lower fence is stored.
pub const LOWER_OFF: usize = 32;
/// u16: length of the lower fence.
pub const LOWER_LEN: usize = 34;
/// u16: where the upper fence is stored.
pub const UPPER_OFF: usize = 36;
/// u16: length of the upper fence.
pub const UPPER_LEN: usize = 38;
/// u16: `FLAG_…`.
pub const FLAGS: usize = 40;
/// u16: bytes of the heap, outside the hole, that are not in use.
pub const GARBAGE: usize = 42;
/// u16: where the last record was inserted.
pub const LAST_INSERT: usize = 44;
/// u16: how many inserts in a row each went right behind the previous one.
pub const INSERT_RUN: usize = 46;
/// u64: the newest transaction that changed a record of the leaf.
pub const MAX_TXID: usize = 48;
/// u64: an inner node's last child.
pub const UPPER_CHILD: usize = 56;

/// The node has no upper fence: it is the last of its level.
pub const FLAG_NO_UPPER: u16 = 1;
/// The prefix is longer than the fences promise: a search must compare it.
pub const FLAG_LOOSE_PREFIX: u16 = 2;

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// A tree's leaf: records.
    Leaf = 1,
    /// A tree's inner node: separators and children.
    Inner = 2,
    /// Undo records, laid out by the transaction layer.
    Undo = 3,
}

impl PageKind {
    /// Returns the kind for the header's byte.
    pub fn from_byte(byte: u8) -> Option<PageKind> {
        match byte {
            1 => Some(PageKind::Leaf),
            2 => Some(PageKind::Inner),
            3 => Some(PageKind::Undo),
            _ => None,
        }
    }
}

/// Reads the u16 at `at`.
#[inline]
pub fn get_u16(page: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([page[at], page[at + 1]]))
}

/// Writes the u16 at `at`; every number of a page is below 2^16.
#[inline]
pub fn put_u16(page: &mut [u8], at: usize, value: usize) {
    debug_assert!(value <= usize::from(u16::MAX));
    page[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

/// Reads the u32 at `at`.
#[inline]
pub fn get_u32(page: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&page[at..at + 4]);
    u32::from_le_bytes(bytes)
}

/// Writes the u32 at `at`.
#[inline]
pub fn put_u32(page: &mut [u8], at: usize, value: u32) {
    page[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Reads the u64 at `at`.
#[inline]
pub fn get_u64(page: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Writes the u64 at `at`.
#[inline]
pub fn put_u64(page: &mut [u8], at: usize, value: u64) {
    page[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
