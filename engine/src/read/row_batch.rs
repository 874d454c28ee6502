//! Batches of rows found through a secondary index, or by their clustered keys.
//!
//! A cursor collects index entries, reads their rows in the order of the clustered key, and returns them in the order
//! of the index. In the order of the clustered key it visits each page once, and pages in order. Batches start at one
//! row and double, so that a reader that stops early has read few rows more than it needs.

use crate::error::Result;
use crate::ids::PageId;
use crate::lock::LockMode;
use crate::mvcc::ReadView;
use crate::node::LeafLayoutHint;
use crate::read::get::RowRead;
use crate::read::mini_page::Projection;
use crate::read::options::CursorOptions;
use crate::row::entry;
use crate::session::transaction::Transaction;
use crate::table::large;
use crate::table::open_table::TableTrees;
use crate::tree::{LeafHint, LeafNotResident, Tree};
use crate::txn::LastCommitted;
use crate::{fallible, knobs};
use smallvec::SmallVec;

/// Name of a batch's memory in error messages.
const ROWS: &str = "rows read ahead";

/// Beginning and end of a piece of [`Batch::bytes`], or of [`Batch::rows`].
type Span = (u32, u32);

#[derive(Clone, Copy)]
struct Item {
    key: Span,
    clustered: Span,
    /// The row; `None` if it does not exist or is not read yet.
    row: Option<Span>,
}

/// Index entries, or clustered keys, with their rows.
#[derive(Default)]
pub(super) struct Batch {
    /// Keys of the entries and of their rows.
    bytes: Vec<u8>,
    /// Payloads of rows.
    rows: Vec<u8>,
    items: Vec<Item>,
    /// The items in the order of their clustered keys, with the first bytes of these.
    order: Vec<(u64, u32)>,
    /// The number of the cursor's item, plus one.
    next: usize,
    /// Entries that the next batch collects.
    size: usize,
    /// Layout of the leaves read last.
    shape: LeafLayoutHint,
    /// Leaves that must be read.
    away: Vec<LeafNotResident>,
    /// Whether the last batch had any.
    was_not_resident: bool,
    /// Leaves that were read, each with the first row of it that is not read yet, as a position in `order`.
    brought: Vec<(PageId, u32)>,
}

impl Batch {
    /// Removes all entries; the next batch has one.
    pub fn restart(&mut self) {
        self.clear();
        self.size = 1;
        self.was_not_resident = false;
    }

    /// Removes the entries.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.items.clear();
        self.next = 0;
    }

    /// The number of entries to collect; doubles it for the next batch.
    pub fn take_size(&mut self) -> usize {
        let size = self.size.max(1);
        let most = if self.was_not_resident {
            knobs::batch_rows_away()
        } else {
            knobs::batch_rows()
        };
        self.size = (size * 2).min(most);
        size.min(most)
    }

    /// Adds an index entry.
    pub fn add(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        let clustered = entry::clustered_key(key, payload)?;
        let key = self.push(key);
        let clustered = self.push(clustered);
        self.items.push(Item {
            key,
            clustered,
            row: None,
        });
        Ok(())
    }

    /// Adds the clustered key of a row.
    pub fn add_row(&mut self, key: &[u8]) {
        let key = self.push(key);
        self.items.push(Item {
            key,
            clustered: key,
            row: None,
        });
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The `n`th entry's clustered key and row, if it has a row.
    #[inline]
    pub fn found(&self, n: usize) -> Option<(&[u8], &[u8])> {
        let item = self.items.get(n)?;
        let (from, to) = item.row?;
        let row = self.rows.get(from as usize..to as usize)?;
        Some((self.span(item.clustered), row))
    }

    /// Keeps the entries, but removes their rows.
    pub fn forget_rows(&mut self) {
        self.rows.clear();
        for item in &mut self.items {
            item.row = None;
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Span {
        let begin = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        (begin, self.bytes.len() as u32)
    }

    fn span(&self, span: Span) -> &[u8] {
        self.bytes
            .get(span.0 as usize..span.1 as usize)
            .unwrap_or(&[])
    }

    /// Reads the rows of all entries as a view sees them, all columns or those asked for alone.
    pub fn fetch(
        &mut self,
        txn: &Transaction,
        trees: &TableTrees,
        view: &ReadView,
        asked: Option<Projection<'_>>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        self.put_in_order();
        let tree = &trees.clustered;
        self.was_not_resident = false;
        self.brought.clear();
        let mut looked_ahead = 0;
        let mut begin = 0;
        while begin < self.order.len() {
            // Find the leaves of some rows before the first of them is read: the waits for memory then overlap.
            let end = self.order.len().min(begin + knobs::batch_leaves_ahead());
            let mut hints: SmallVec<[Option<LeafHint>; 16]> = SmallVec::new();
            self.away.clear();
            for n in begin..end {
                let hint = tree.find_leaf(self.clustered_of(n), &self.shape)?;
                let read = match hint.away() {
                    None => false,
                    Some(leaf) => self.take_kept(tree, n, leaf, asked),
                };
                hints.push((!read).then_some(hint));
            }
            if !self.away.is_empty() && begin >= looked_ahead {
                // A leaf must be read: read at the same time the leaves that the next rows need.
                looked_ahead = end;
                while looked_ahead < self.order.len() && self.away.len() < tree.most_brought() {
                    let hint = tree.find_leaf(self.clustered_of(looked_ahead), &self.shape)?;
                    let kept =
                        |leaf: &LeafNotResident| asked.is_some_and(|asked| asked.has(tree, *leaf));
                    if let Some(leaf) = hint.away().filter(|leaf| !kept(leaf)) {
                        self.bring(looked_ahead, leaf);
                    }
                    looked_ahead += 1;
                }
                tree.bring(&self.away);
                self.was_not_resident = true;
            }
            for (n, hint) in (begin..end).zip(hints) {
                if let Some(hint) = hint {
                    self.read(txn, trees, view, n, hint, buffer)?;
                }
            }
            if let (Some(asked), false) = (asked, self.brought.is_empty()) {
                self.keep_brought(txn, tree, asked, end);
            }
            begin = end;
        }
        Ok(())
    }

    /// Sorts the rows by their clustered keys.
    fn put_in_order(&mut self) {
        let Batch {
            order,
            items,
            bytes,
            ..
        } = self;
        let key = |n: u32| {
            let (from, to) = items[n as usize].clustered;
            &bytes[from as usize..to as usize]
        };
        order.clear();
        order.extend((0..items.len() as u32).map(|n| (first_bytes(key(n)), n)));
        // Mostly the first bytes decide.
        order.sort_unstable_by(|(a, m), (b, n)| a.cmp(b).then_with(|| key(*m).cmp(key(*n))));
    }

    /// The item of the `n`th row in sorted order.
    #[inline]
    fn item_of(&self, n: usize) -> usize {
        self.order[n].1 as usize
    }

    /// The clustered key of the `n`th row in sorted order.
    #[inline]
    fn clustered_of(&self, n: usize) -> &[u8] {
        self.span(self.items[self.item_of(n)].clustered)
    }

    /// Notes that the leaf of the `n`th row must be read.
    fn bring(&mut self, n: usize, leaf: LeafNotResident) {
        self.away.push(leaf);
        let (page, n) = (leaf.page(), n as u32);
        // Once for each leaf, even if it was read ahead and evicted before this row was read.
        let last = self.brought.last();
        if last.is_none_or(|(last, before)| *last != page && *before < n) {
            self.brought.push((page, n));
        }
    }

    /// Takes the `n`th row from the mini-page of its leaf, which is not in memory; false if the leaf must be read.
    #[cold]
    fn take_kept(
        &mut self,
        tree: &Tree,
        n: usize,
        leaf: LeafNotResident,
        asked: Option<Projection<'_>>,
    ) -> bool {
        let item = self.item_of(n);
        let at = self.rows.len();
        let (from, to) = self.items[item].clustered;
        let Batch { bytes, rows, .. } = self;
        let key = &bytes[from as usize..to as usize];
        match asked.and_then(|asked| asked.copy_kept(tree, leaf, key, rows)) {
            Some(found) => {
                self.items[item].row = found.then_some((at as u32, self.rows.len() as u32));
                true
            }
            None => {
                self.bring(n, leaf);
                false
            }
        }
    }

    /// Makes mini-pages of the leaves that were read for the rows before the `end`th.
    ///
    /// Does so soon after these rows were read: with many readers, leaves are evicted early.
    #[cold]
    fn keep_brought(&mut self, txn: &Transaction, tree: &Tree, asked: Projection<'_>, end: usize) {
        let read = self.brought.partition_point(|(_, n)| (*n as usize) < end);
        for (_, n) in &self.brought[..read] {
            asked.keep(&txn.tree_txn, tree, self.clustered_of(*n as usize));
        }
        self.brought.drain(..read);
    }

    /// Reads the `n`th row in sorted order.
    #[inline]
    fn read(
        &mut self,
        txn: &Transaction,
        trees: &TableTrees,
        view: &ReadView,
        n: usize,
        hint: LeafHint,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let item = self.item_of(n);
        let (from, to) = self.items[item].clustered;
        let at = self.rows.len();
        let Batch {
            bytes, rows, shape, ..
        } = self;
        let key = &bytes[from as usize..to as usize];
        let found = txn
            .tree_txn
            .read_in(&trees.clustered, hint, shape, key, view, |payload| {
                rows.extend_from_slice(payload);
            })?;
        if found.is_none() {
            return Ok(());
        }
        if self.rows.get(at) == Some(&0) {
            // The row is stored outside its page.
            buffer.clear();
            buffer.extend_from_slice(&self.rows[at..]);
            large::bring_inside(trees, buffer)?;
            self.rows.truncate(at);
            fallible::reserve(&mut self.rows, buffer.len(), ROWS)?;
            self.rows.extend_from_slice(buffer);
        }
        self.items[item].row = Some((at as u32, self.rows.len() as u32));
        Ok(())
    }

    /// Locks and reads the rows of all entries, one by one.
    pub fn fetch_locked(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        options: &CursorOptions,
        newest: bool,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        for item in 0..self.items.len() {
            let key = self.items[item].clustered;
            let (from, to) = (key.0 as usize, key.1 as usize);
            let how = RowRead {
                lock: options.lock,
                skip: options.skip_locked,
                newest,
                asked: None,
            };
            if txn.read_row(trees, &self.bytes[from..to], how, buffer)? {
                self.keep_row(item, buffer)?;
            }
        }
        Ok(())
    }

    /// As [`Batch::fetch_locked`] for the only entry under READ COMMITTED, but never waits.
    ///
    /// If another transaction has locked the row, this reads its last committed version. It then also returns the
    /// snapshot that keeps that version.
    pub fn fetch_or_committed(
        &mut self,
        txn: &mut Transaction,
        trees: &TableTrees,
        mode: LockMode,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<LastCommitted>> {
        let Some(&Item {
            clustered: (from, to),
            ..
        }) = self.items.first()
        else {
            return Ok(None);
        };
        let key = &self.bytes[from as usize..to as usize];
        let (found, committed) = txn.read_row_or_committed(trees, key, mode, buffer)?;
        if found {
            self.keep_row(0, buffer)?;
        }
        Ok(committed)
    }

    /// Stores the row of an item.
    fn keep_row(&mut self, item: usize, row: &[u8]) -> Result<()> {
        let at = self.rows.len() as u32;
        fallible::reserve(&mut self.rows, row.len(), ROWS)?;
        self.rows.extend_from_slice(row);
        self.items[item].row = Some((at, self.rows.len() as u32));
        Ok(())
    }

    /// Goes to the next entry that has a row; false if the batch has no more.
    pub fn advance(&mut self) -> bool {
        while let Some(item) = self.items.get(self.next) {
            self.next += 1;
            if item.row.is_some() {
                return true;
            }
        }
        false
    }

    fn current(&self) -> Option<&Item> {
        self.items.get(self.next.checked_sub(1)?)
    }

    /// The key of the last entry, with or without a row: how far the record cursor has come.
    pub fn last_key(&self) -> &[u8] {
        self.items.last().map_or(&[], |item| self.span(item.key))
    }

    /// The clustered key of the last entry; empty if the batch is empty.
    pub fn last_clustered_key(&self) -> &[u8] {
        self.items
            .last()
            .map_or(&[], |item| self.span(item.clustered))
    }

    pub fn key(&self) -> &[u8] {
        self.current().map_or(&[], |item| self.span(item.key))
    }

    pub fn clustered_key(&self) -> &[u8] {
        self.current().map_or(&[], |item| self.span(item.clustered))
    }

    pub fn row(&self) -> &[u8] {
        self.current()
            .and_then(|item| item.row)
            .and_then(|(from, to)| self.rows.get(from as usize..to as usize))
            .unwrap_or(&[])
    }
}

/// The first eight bytes of a key, as a number that compares as they do.
#[inline]
fn first_bytes(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    for (to, from) in first.iter_mut().zip(key) {
        *to = *from;
    }
    u64::from_be_bytes(first)
}
