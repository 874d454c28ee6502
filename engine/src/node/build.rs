//! Writing a whole node at once: after a split, a merge, or to close the gaps in its heap.

use crate::ids::PAGE_SIZE;
use crate::knobs;
use crate::node::header::*;
use crate::node::leaf_layout_hint::{HEAD, LEAF_ENTRY};
use crate::node::view::{head_of, shared_prefix, Node, INNER_ENTRY};

/// All of a node except its records.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub page_id: u64,
    pub tree_id: u32,
    pub level: u8,
    pub lower: &'a [u8],
    pub upper: Option<&'a [u8]>,
    pub max_txid: u64,
    /// The last child; 0 in a leaf.
    pub upper_child: u64,
}

impl<'a> Frame<'a> {
    /// Returns the frame of an existing node.
    pub fn of(node: Node<'a>) -> Frame<'a> {
        Frame {
            page_id: get_u64(node.page, PAGE_ID),
            tree_id: get_u32(node.page, TREE_ID),
            level: node.level(),
            lower: node.lower_fence(),
            upper: node.upper_fence(),
            max_txid: node.max_txid(),
            upper_child: if node.is_leaf() {
                0
            } else {
                get_u64(node.page, UPPER_CHILD)
            },
        }
    }

    fn entry_size(&self) -> usize {
        if self.level == 0 {
            LEAF_ENTRY
        } else {
            INNER_ENTRY
        }
    }

    /// Returns the length of the prefix that all keys share because of the fences.
    fn promised_prefix(&self) -> usize {
        self.upper
            .map_or(0, |upper| shared_prefix(self.lower, upper))
    }

    /// Returns the bytes of the header and the fences.
    fn base_size(&self) -> usize {
        HEADER_SIZE + self.lower.len() + self.upper.map_or(0, <[u8]>::len)
    }
}

/// A record to be written into a node.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    key_start: u32,
    key_len: u32,
    /// A leaf record's value.
    pub value: &'a [u8],
    /// An inner node's child left of the separator.
    pub child: u64,
}

/// Records to be written into nodes, in key order.
#[derive(Default)]
pub(crate) struct Items<'a> {
    keys: Vec<u8>,
    list: Vec<Item<'a>>,
}

impl<'a> Items<'a> {
    /// Returns all records of a node.
    pub fn of(node: Node<'a>) -> Items<'a> {
        let mut items = Items::default();
        items.append(node);
        items
    }

    /// Appends all records of a node.
    pub fn append(&mut self, node: Node<'a>) {
        self.list.reserve(node.count());
        for i in 0..node.count() {
            let start = self.keys.len();
            node.append_key(i, &mut self.keys);
            self.list.push(Item {
                key_start: start as u32,
                key_len: (self.keys.len() - start) as u32,
                value: if node.is_leaf() { node.value(i) } else { &[] },
                child: if node.is_leaf() { 0 } else { node.child(i) },
            });
        }
    }

    /// Appends a separator and the child left of it.
    pub fn push_separator(&mut self, key: &[u8], child: u64) {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.list.push(Item {
            key_start: start as u32,
            key_len: key.len() as u32,
            value: &[],
            child,
        });
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn get(&self, i: usize) -> Item<'a> {
        self.list[i]
    }

    pub fn key(&self, i: usize) -> &[u8] {
        let item = &self.list[i];
        &self.keys[item.key_start as usize..(item.key_start + item.key_len) as usize]
    }

    /// Returns the size of a node with records `from..to` and a prefix of `prefix` bytes, stored on its own if `own`.
    fn size(&self, frame: &Frame<'_>, from: usize, to: usize, prefix: usize, own: bool) -> usize {
        let records: usize = self.list[from..to]
            .iter()
            .map(|item| (item.key_len as usize).saturating_sub(prefix + HEAD) + item.value.len())
            .sum();
        frame.base_size()
            + (to - from) * frame.entry_size()
            + records
            + if own { prefix } else { 0 }
    }

    /// Returns the most bytes that a node of these records takes.
    pub fn plain_size(&self, frame: &Frame<'_>) -> usize {
        self.size(frame, 0, self.len(), frame.promised_prefix(), false)
    }

    /// Writes records `from..to` as a whole node.
    ///
    /// If a record with the key `incoming` is to be added, `need` bytes stay free for it. The caller knows that they
    /// do with a prefix of `fallback` bytes at the latest.
    pub fn write(
        &self,
        page: &mut Page,
        frame: &Frame<'_>,
        (from, to): (usize, usize),
        incoming: Option<&[u8]>,
        need: usize,
        fallback: usize,
    ) {
        let promised = frame.promised_prefix();
        let mut prefix = promised;
        let mut own = false;
        if to > from {
            // The fences of a level's first and last node promise little, and appends go to these nodes: give them
            // the prefix that their keys really share.
            let first = self.key(from);
            let mut shared = shared_prefix(first, self.key(to - 1));
            if let Some(key) = incoming {
                shared = shared.min(shared_prefix(first, key));
            }
            let wanted = if to - from >= 2 { shared } else { 0 };
            for candidate in [
                wanted.min(knobs::longest_loose_prefix()),
                fallback.min(shared),
            ] {
                let in_fence = frame.lower.starts_with(&first[..candidate]);
                if candidate > promised
                    && self.size(frame, from, to, candidate, !in_fence) + need <= PAGE_SIZE
                {
                    (prefix, own) = (candidate, !in_fence);
                    break;
                }
            }
        }
        Writer::new(page, frame, to - from).write(self, frame, from, prefix, promised, own);
    }
}

/// A node that is being written, its heap from the back.
struct Writer<'p> {
    page: &'p mut Page,
    end: usize,
    n: usize,
}

impl<'p> Writer<'p> {
    fn new(page: &'p mut Page, frame: &Frame<'_>, n: usize) -> Writer<'p> {
        page[..HEADER_SIZE].fill(0);
        put_u64(page, PAGE_ID, frame.page_id);
        put_u32(page, TREE_ID, frame.tree_id);
        page[KIND] = if frame.level == 0 {
            PageKind::Leaf as u8
        } else {
            PageKind::Inner as u8
        };
        page[LEVEL] = frame.level;
        put_u64(page, MAX_TXID, frame.max_txid);
        put_u64(page, UPPER_CHILD, frame.upper_child);
        put_u16(page, COUNT, n);
        put_u16(page, HOLE_START, HEADER_SIZE + n * frame.entry_size());
        Writer {
            page,
            end: PAGE_SIZE,
            n,
        }
    }

    fn heap(&mut self, bytes: &[u8]) -> usize {
        let start = self.end - bytes.len();
        self.page[start..self.end].copy_from_slice(bytes);
        self.end = start;
        start
    }

    fn write(
        mut self,
        items: &Items<'_>,
        frame: &Frame<'_>,
        from: usize,
        prefix: usize,
        promised: usize,
        own: bool,
    ) {
        let mut flags = 0;
        let lower = self.heap(frame.lower);
        put_u16(self.page, LOWER_OFF, lower);
        put_u16(self.page, LOWER_LEN, frame.lower.len());
        let upper = self.heap(frame.upper.unwrap_or(&[]));
        put_u16(self.page, UPPER_OFF, upper);
        put_u16(self.page, UPPER_LEN, frame.upper.map_or(0, <[u8]>::len));
        if frame.upper.is_none() {
            flags |= FLAG_NO_UPPER;
        }
        if prefix > promised {
            flags |= FLAG_LOOSE_PREFIX;
        }
        let prefix_at = if own {
            self.heap(&items.key(from)[..prefix])
        } else {
            lower
        };
        put_u16(self.page, PREFIX_OFF, prefix_at);
        put_u16(self.page, PREFIX_LEN, prefix);
        put_u16(self.page, FLAGS, usize::from(flags));
        let leaf = frame.level == 0;
        let n = self.n;
        for i in 0..n {
            let item = items.get(from + i);
            let suffix = &items.key(from + i)[prefix..];
            let head = head_of(suffix);
            if leaf {
                self.heap(item.value);
            }
            let at = self.heap(suffix.get(HEAD..).unwrap_or(&[]));
            let (heads, slot) = if leaf {
                (HEADER_SIZE, HEADER_SIZE + 4 * n + 6 * i)
            } else {
                put_u64(self.page, HEADER_SIZE + 8 * i, item.child);
                (HEADER_SIZE + 8 * n, HEADER_SIZE + 12 * n + 4 * i)
            };
            put_u32(self.page, heads + 4 * i, head);
            put_u16(self.page, slot, at);
            put_u16(self.page, slot + 2, suffix.len());
            if leaf {
                put_u16(self.page, slot + 4, item.value.len());
            }
        }
        put_u16(self.page, HOLE_END, self.end);
        debug_assert!(get_u16(self.page, HOLE_START) <= self.end);
    }
}

/// Writes an empty node.
pub(crate) fn write_empty(page: &mut Page, frame: &Frame<'_>) {
    Items::default().write(page, frame, (0, 0), None, 0, 0);
}
