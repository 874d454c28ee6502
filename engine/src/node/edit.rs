//! Changing a node in place: adding, changing and removing records.

use crate::ids::PAGE_SIZE;
use crate::node::build::{Frame, Items};
use crate::node::header::*;
use crate::node::leaf_layout_hint::{HEAD, LEAF_ENTRY};
use crate::node::view::{head_of, shared_prefix, Node, INNER_ENTRY};

/// Element sizes of a leaf's arrays: heads, slots.
const LEAF_ARRAYS: &[usize] = &[4, 6];
/// Element sizes of an inner node's arrays: children, heads, slots.
const INNER_ARRAYS: &[usize] = &[8, 4, 4];

/// A node for changing; its page has passed [`Node::validate`], or this code has written it.
pub(crate) struct NodeMut<'a> {
    page: &'a mut Page,
}

impl<'a> NodeMut<'a> {
    pub fn new(page: &'a mut Page) -> NodeMut<'a> {
        NodeMut { page }
    }

    pub fn node(&self) -> Node<'_> {
        Node::new(self.page)
    }

    /// Raises the leaf's newest transaction to `txid`.
    pub fn touch(&mut self, txid: u64) {
        if txid > get_u64(self.page, MAX_TXID) {
            put_u64(self.page, MAX_TXID, txid);
        }
    }

    fn arrays(&self) -> &'static [usize] {
        if self.node().is_leaf() {
            LEAF_ARRAYS
        } else {
            INNER_ARRAYS
        }
    }

    /// Makes room for one more element at `at` in every array.
    fn open_entry(&mut self, at: usize) {
        let n = self.node().count();
        let arrays = self.arrays();
        let before: usize = arrays.iter().sum();
        let mut sizes = before;
        for &size in arrays.iter().rev() {
            sizes -= size;
            let (old, new) = (HEADER_SIZE + n * sizes, HEADER_SIZE + (n + 1) * sizes);
            self.page
                .copy_within(old + at * size..old + n * size, new + (at + 1) * size);
            if sizes > 0 {
                self.page.copy_within(old..old + at * size, new);
            }
        }
        put_u16(self.page, COUNT, n + 1);
        put_u16(self.page, HOLE_START, HEADER_SIZE + (n + 1) * before);
    }

    /// Removes element `at` from every array.
    fn close_entry(&mut self, at: usize) {
        let n = self.node().count();
        let arrays = self.arrays();
        let mut sizes = 0;
        for &size in arrays {
            let (old, new) = (HEADER_SIZE + n * sizes, HEADER_SIZE + (n - 1) * sizes);
            if sizes > 0 {
                self.page.copy_within(old..old + at * size, new);
            }
            self.page
                .copy_within(old + (at + 1) * size..old + n * size, new + at * size);
            sizes += size;
        }
        put_u16(self.page, COUNT, n - 1);
        put_u16(self.page, HOLE_START, HEADER_SIZE + (n - 1) * sizes);
    }

    /// Takes `len` bytes from the hole for the heap, and returns where they begin; the caller has checked the hole's
    /// size.
    fn take_heap(&mut self, len: usize) -> usize {
        let end = get_u16(self.page, HOLE_END) - len;
        put_u16(self.page, HOLE_END, end);
        end
    }

    fn add_garbage(&mut self, len: usize) {
        let garbage = get_u16(self.page, GARBAGE) + len;
        put_u16(self.page, GARBAGE, garbage);
    }

    /// Closes the gaps in the heap and chooses the prefix anew.
    ///
    /// If a key `incoming` is to be added, it must share the new prefix, and `need` bytes must stay free for it (see
    /// [`Node::fits`]).
    pub fn compact(&mut self, incoming: Option<&[u8]>, need: usize) {
        let copy = *self.page;
        let node = Node::new(&copy);
        let items = Items::of(node);
        let prefix = node.prefix();
        let fallback = incoming.map_or(prefix.len(), |key| shared_prefix(prefix, key));
        items.write(
            self.page,
            &Frame::of(node),
            (0, items.len()),
            incoming,
            need,
            fallback,
        );
        self.page[LAST_INSERT..MAX_TXID].copy_from_slice(&copy[LAST_INSERT..MAX_TXID]);
    }

    /// Makes room for a new key that takes `entry` array bytes, and `value` heap bytes besides its key rest.
    fn make_room(&mut self, key: &[u8], entry: usize, value: usize) {
        let node = self.node();
        let shared = !node.has_loose_prefix() || key.starts_with(node.prefix());
        let rest = key.len().saturating_sub(node.prefix().len() + HEAD);
        if !shared || node.hole() < entry + rest + value {
            // A shorter prefix makes the new record longer, too; `fits` has counted this.
            let kept = shared_prefix(node.prefix(), key);
            let rest = key.len().saturating_sub(kept + HEAD);
            self.compact(Some(key), entry + rest + value);
        }
    }

    /// Inserts a new record at `at`; the caller has asked [`Node::fits`].
    pub fn insert(&mut self, at: usize, key: &[u8], value: &[u8]) {
        self.make_room(key, LEAF_ENTRY, value.len());
        let suffix = &key[self.node().prefix().len()..];
        self.open_entry(at);
        let rest = suffix.get(HEAD..).unwrap_or(&[]);
        let place = self.take_heap(rest.len() + value.len());
        self.page[place..place + rest.len()].copy_from_slice(rest);
        self.page[place + rest.len()..place + rest.len() + value.len()].copy_from_slice(value);
        let (head, slot) = (self.node().heads_at() + 4 * at, self.node().slot_at(at));
        put_u32(self.page, head, head_of(suffix));
        put_u16(self.page, slot, place);
        put_u16(self.page, slot + 2, suffix.len());
        put_u16(self.page, slot + 4, value.len());
        let run = if at > 0 && get_u16(self.page, LAST_INSERT) == at - 1 {
            (get_u16(self.page, INSERT_RUN) + 1).min(u16::MAX.into())
        } else {
            0
        };
        put_u16(self.page, LAST_INSERT, at);
        put_u16(self.page, INSERT_RUN, run);
    }

    /// Replaces the value of record `at`; the caller has asked [`Node::fits`].
    pub fn set_value(&mut self, at: usize, value: &[u8]) {
        let node = self.node();
        let slot = node.slot_at(at);
        let rest = node.suffix_len(at).saturating_sub(HEAD);
        let old = node.value_len(at);
        if value.len() <= old {
            let place = node.offset(at) + rest;
            self.page[place..place + value.len()].copy_from_slice(value);
            put_u16(self.page, slot + 4, value.len());
            self.add_garbage(old - value.len());
            return;
        }
        if node.hole() < rest + value.len() {
            // Drop the old value first: with its bytes there is room.
            put_u16(self.page, slot + 4, 0);
            self.move_to_heap_end(at);
            self.grow_last(at, value);
            return;
        }
        let from = node.offset(at);
        let place = self.take_heap(rest + value.len());
        self.page.copy_within(from..from + rest, place);
        self.page[place + rest..place + rest + value.len()].copy_from_slice(value);
        self.add_garbage(rest + old);
        put_u16(self.page, slot, place);
        put_u16(self.page, slot + 4, value.len());
    }

    /// Closes the gaps in the heap and puts record `at`, whose value is empty, last.
    ///
    /// Its key rest can then move down into the hole by the length of a value.
    fn move_to_heap_end(&mut self, at: usize) {
        let copy = *self.page;
        let node = Node::new(&copy);
        let mut end = PAGE_SIZE;
        // The fences and the prefix keep the order in which the writer stores them.
        let mut lay = |page: &mut Page, bytes: &[u8]| {
            end -= bytes.len();
            page[end..end + bytes.len()].copy_from_slice(bytes);
            end
        };
        let lower = lay(self.page, node.lower_fence());
        let upper = lay(self.page, node.upper_fence().unwrap_or(&[]));
        let prefix = if get_u16(&copy, PREFIX_OFF) == get_u16(&copy, LOWER_OFF) {
            lower
        } else {
            lay(self.page, node.prefix())
        };
        put_u16(self.page, LOWER_OFF, lower);
        put_u16(self.page, UPPER_OFF, upper);
        put_u16(self.page, PREFIX_OFF, prefix);
        for i in (0..node.count()).filter(|i| *i != at).chain([at]) {
            lay(self.page, node.value(i));
            let place = lay(self.page, node.rest(i));
            let slot = node.slot_at(i);
            put_u16(self.page, slot, place);
        }
        put_u16(self.page, HOLE_END, end);
        put_u16(self.page, GARBAGE, 0);
    }

    /// Sets the value of the record that is last in the heap and has an empty value.
    fn grow_last(&mut self, at: usize, value: &[u8]) {
        let node = self.node();
        let (slot, old) = (node.slot_at(at), node.offset(at));
        let rest = node.suffix_len(at).saturating_sub(HEAD);
        let place = self.take_heap(value.len());
        self.page.copy_within(old..old + rest, place);
        self.page[place + rest..place + rest + value.len()].copy_from_slice(value);
        put_u16(self.page, slot, place);
        put_u16(self.page, slot + 4, value.len());
    }

    /// Removes record `at` from a leaf.
    pub fn remove(&mut self, at: usize) {
        let node = self.node();
        let len = node.suffix_len(at).saturating_sub(HEAD) + node.value_len(at);
        let place = node.offset(at);
        if place == get_u16(self.page, HOLE_END) {
            put_u16(self.page, HOLE_END, place + len);
        } else {
            self.add_garbage(len);
        }
        self.close_entry(at);
    }

    /// Adds the separator `key`, at which child `at` was split: the child stays left of it, and `right` is the new
    /// child.
    ///
    /// The caller has asked [`Node::fits_separator`].
    pub fn insert_separator(&mut self, at: usize, key: &[u8], right: u64) {
        self.make_room(key, INNER_ENTRY, 0);
        let left = self.node().child(at);
        let suffix = &key[self.node().prefix().len()..];
        self.open_entry(at);
        let rest = suffix.get(HEAD..).unwrap_or(&[]);
        let place = self.take_heap(rest.len());
        self.page[place..place + rest.len()].copy_from_slice(rest);
        let (head, slot) = (self.node().heads_at() + 4 * at, self.node().slot_at(at));
        put_u32(self.page, head, head_of(suffix));
        put_u16(self.page, slot, place);
        put_u16(self.page, slot + 2, suffix.len());
        self.set_child(at, left);
        self.set_child(at + 1, right);
        let n = self.node().count();
        if n.is_power_of_two() && n >= 4 {
            // Each time the count doubles, look again for a prefix longer than the fences promise.
            self.compact(None, 0);
        }
    }

    /// Removes the separator and the right one of children `at` and `at + 1`, which were merged into child `at`.
    pub fn remove_separator(&mut self, at: usize) {
        let left = self.node().child(at);
        self.set_child(at + 1, left);
        let len = self.node().suffix_len(at).saturating_sub(HEAD);
        self.add_garbage(len);
        self.close_entry(at);
    }

    /// Sets an inner node's child reference.
    pub fn set_child(&mut self, at: usize, child: u64) {
        let place = self.node().child_at(at);
        put_u64(self.page, place, child);
    }
}

impl Node<'_> {
    /// Returns whether a value of `value` bytes fits under `key`; `old` is the key's record, if there is one.
    pub fn fits(&self, key: &[u8], old: Option<usize>, value: usize) -> bool {
        match old {
            Some(at) => self.value_len(at) + self.hole() + self.garbage() >= value,
            None => self.fits_new(key, LEAF_ENTRY, value),
        }
    }

    /// Returns whether an inner node has room for the separator `key`.
    pub fn fits_separator(&self, key: &[u8]) -> bool {
        self.fits_new(key, INNER_ENTRY, 0)
    }

    fn fits_new(&self, key: &[u8], entry: usize, value: usize) -> bool {
        let free = self.hole() + self.garbage();
        let prefix = self.prefix();
        let rest = key.len().saturating_sub(prefix.len() + HEAD);
        if !self.has_loose_prefix() || key.starts_with(prefix) {
            return entry + rest + value <= free;
        }
        // The prefix must shrink to what the new key shares: the other records grow.
        let promised = self
            .upper_fence()
            .map_or(0, |upper| shared_prefix(self.lower_fence(), upper));
        let kept = shared_prefix(prefix, key).max(promised);
        let growth: usize = (0..self.count())
            .map(|i| {
                let len = self.suffix_len(i);
                (len + prefix.len() - kept).saturating_sub(HEAD) - len.saturating_sub(HEAD)
            })
            .sum();
        let rest = key.len().saturating_sub(kept + HEAD);
        entry + rest + value + growth <= free
    }
}
