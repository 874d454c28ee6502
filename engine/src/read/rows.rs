//! Reading many rows of one table in one snapshot, with the least work for each.
//!
//! [`Transaction::rows`] does once what each read alone would repeat: it finds the trees, takes the snapshot, and notes
//! that the transaction uses the table. Only the first reads allocate, for the buffers.

use std::cell::{Cell, OnceCell};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::mvcc::{live_payload, ReadView};
use crate::node::{LeafLayoutHint, Prefix};
use crate::read::options::RowLock;
use crate::read::row_view::RowView;
use crate::row::key_bytes::{KeyBytes, KeyInPieces};
use crate::row::payload::{self, RowRef};
use crate::row::Value;
use crate::session::transaction::Transaction;
use crate::table::large;
use crate::table::open_table::{Table, TableTrees};
use crate::tree::{Leaf, LeafImage, Step};
use crate::txn::Copied;
use crate::{knobs, txn};

/// The rows of a table as one snapshot sees them.
///
/// Made by [`Transaction::rows`].
///
/// [`Rows::get`] copies the row from its page without taking the page's latch, and checks afterwards whether the page
/// has changed meanwhile: readers write to no memory that others read. [`Rows::columns`] does the same, but copies only
/// as much of the row as the columns need.
///
/// [`Rows::get_in_place`] and [`Rows::each`] copy nothing: their function runs while the row's page is latched, and
/// writers to the page wait for it. So the function must be short, must not wait, and must not call the database: a
/// call that needs the same page could deadlock.
///
/// ```
/// # use peregrine::{Column, ColumnType, Database, Isolation, Key, Options, TableSchema, Value};
/// # use std::ops::ControlFlow;
/// # fn main() -> peregrine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path().join("db"), Options::default())?;
/// # let people = db.create_table(
/// #     "people",
/// #     &TableSchema {
/// #         columns: vec![
/// #             Column::new("id", ColumnType::Int { bytes: 4, signed: false }),
/// #             Column::new("name", ColumnType::VarBytes { max: 64 }),
/// #         ],
/// #         primary: Some(Key::new(&[0])),
/// #         indexes: vec![],
/// #         user: vec![],
/// #     },
/// # )?;
/// # let mut txn = db.begin(Isolation::RepeatableRead);
/// # for (id, name) in [(1u32, "Ada"), (2, "Grace"), (3, "Edsger")] {
/// #     txn.insert(&people, &[id.into(), name.into()])?;
/// # }
/// # txn.commit()?;
/// let key = people.encode_key(0, &[Value::UInt(2)])?;
/// let mut rows = txn.rows(&people)?;
/// let grace = rows.get(&key)?;
/// assert_eq!(grace.unwrap().get(1)?, Value::Bytes(b"Grace"));
///
/// let mut letters = 0;
/// rows.each(&[], |row| {
///     if let Ok(Value::Bytes(name)) = row.get(1) {
///         letters += name.len();
///     }
///     ControlFlow::<()>::Continue(())
/// })?;
/// assert_eq!(letters, 14);
/// # drop(txn);
/// # db.close()
/// # }
/// ```
pub struct Rows<'t> {
    txn: &'t txn::TreeTransaction,
    table: &'t Table,
    trees: Arc<TableTrees>,
    view: ReadView,
    /// Layout of the leaves read last.
    shape: LeafLayoutHint,
    /// The first bytes of the last row read by [`Rows::columns`]: as many as fit into two cache lines.
    row_prefix: Prefix<64>,
    /// More of that row, when the prefix was too short.
    longer_row_prefix: Prefix<256>,
    /// Grows with each prefix that was too short; falls by 1 with each prefix that was long enough.
    fell_short: u32,
    /// The row that was read last, as a whole.
    row_bytes: Vec<u8>,
    /// A row that is stored outside its page as a whole.
    brought: Vec<u8>,
    copies: VersionedLeaf,
}

/// From this count on, reads skip the short prefix: more than one in sixteen was too short.
fn without_row_prefix() -> u32 {
    4 * knobs::prefix_too_short()
}

/// From this count on, reads skip the longer prefix, too.
fn without_longer_row_prefix() -> u32 {
    2 * without_row_prefix()
}

/// Buffers for a leaf with records that the snapshot may not see.
#[derive(Default)]
struct VersionedLeaf {
    image: LeafImage,
    key: Vec<u8>,
    /// A version from undo.
    older: Vec<u8>,
}

impl Transaction {
    /// The rows of a table as this transaction sees them, for many reads.
    ///
    /// # Errors
    /// `Error::Invalid` at [`crate::Isolation::Serializable`], where rows are locked as they are read;
    /// [`Error::TableNewerThanSnapshot`]; [`Error::NotFound`] for a table that was dropped.
    pub fn rows<'t>(&'t mut self, table: &'t Table) -> Result<Rows<'t>> {
        if self.read_lock(RowLock::None).is_some() {
            return Err(Error::Invalid(
                "at SERIALIZABLE rows are locked as they are read, by Transaction::get or a cursor"
                    .into(),
            ));
        }
        self.enter_table(table)?;
        let view = self.read_view(None);
        Ok(Rows {
            txn: &self.tree_txn,
            table,
            trees: table.trees.load_full(),
            view,
            shape: LeafLayoutHint::default(),
            row_prefix: Prefix::default(),
            longer_row_prefix: Prefix::default(),
            fell_short: 0,
            row_bytes: Vec::new(),
            brought: Vec::new(),
            copies: VersionedLeaf::default(),
        })
    }
}

/// Result of a read of a record, or of a leaf, under its latch.
enum LeafOutcome<R> {
    /// The read is complete.
    Done(R),
    /// The row is stored outside, and its payload was copied.
    Outside,
    /// The leaf was copied; these of its records are still to be read.
    Copied(Range<usize>),
    /// The caller's function has ended the scan.
    Break(R),
}

impl Rows<'_> {
    /// The row with the given clustered key, if there is one: a copy, valid until the next call.
    ///
    /// # Errors
    /// Those of reading pages.
    #[inline]
    pub fn get<'r>(&'r mut self, clustered_key: &'r [u8]) -> Result<Option<RowView<'r>>> {
        let Rows {
            txn,
            table,
            trees,
            view,
            shape,
            row_bytes,
            brought,
            ..
        } = self;
        let found =
            txn.copy_payload_outlined(&trees.clustered, clustered_key, view, shape, row_bytes)?;
        let Some(payload) = found else {
            return Ok(None);
        };
        let payload = inside(trees, payload, brought)?;
        RowView::row(table, KeyBytes::Here(clustered_key), payload).map(Some)
    }

    /// Some columns of the row with the given clustered key, if there is one: copies, valid until the next call.
    ///
    /// Faster than [`Rows::get`] if the columns lie within the row's prefix, since no more of the row is copied. A
    /// value that is stored outside the row is [`Value::OutOfRow`].
    ///
    /// ```
    /// # use peregrine::{Column, ColumnType, Database, Isolation, Key, Options, TableSchema, Value};
    /// # fn main() -> peregrine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path().join("db"), Options::default())?;
    /// # let people = db.create_table(
    /// #     "people",
    /// #     &TableSchema {
    /// #         columns: vec![
    /// #             Column::new("id", ColumnType::Int { bytes: 4, signed: false }),
    /// #             Column::new("name", ColumnType::VarBytes { max: 64 }),
    /// #         ],
    /// #         primary: Some(Key::new(&[0])),
    /// #         indexes: vec![],
    /// #         user: vec![],
    /// #     },
    /// # )?;
    /// # let mut txn = db.begin(Isolation::RepeatableRead);
    /// # txn.insert(&people, &[2u32.into(), "Grace".into()])?;
    /// # txn.commit()?;
    /// let key = people.encode_key(0, &[Value::UInt(2)])?;
    /// let mut rows = txn.rows(&people)?;
    /// assert_eq!(rows.columns(&key, [1, 0])?, Some([Value::Bytes(b"Grace"), Value::UInt(2)]));
    /// # drop(txn);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of reading pages, and those of [`RowView::get`].
    #[inline]
    pub fn columns<'r, const N: usize>(
        &'r mut self,
        clustered_key: &'r [u8],
        columns: [usize; N],
    ) -> Result<Option<[Value<'r>; N]>> {
        let Rows {
            txn,
            table,
            trees,
            view,
            shape,
            row_prefix,
            longer_row_prefix,
            fell_short,
            row_bytes,
            brought,
            ..
        } = self;
        let tree = &*trees.clustered;
        if *fell_short < without_row_prefix() {
            let Some(payload) = txn.copy_payload(tree, clustered_key, view, shape, row_prefix)?
            else {
                return Ok(None);
            };
            // If the payload is damaged, rather than too short, the read of the whole row reports it.
            let found = values(table, clustered_key, payload, columns).ok();
            if found.is_some() {
                *fell_short = fell_short.saturating_sub(1);
                return Ok(found);
            }
            *fell_short += knobs::prefix_too_short();
        }
        if *fell_short < without_longer_row_prefix() {
            let Some(payload) =
                txn.copy_payload_outlined(tree, clustered_key, view, shape, longer_row_prefix)?
            else {
                return Ok(None);
            };
            let found = values(table, clustered_key, payload, columns).ok();
            if found.is_some() {
                return Ok(found);
            }
            *fell_short += knobs::prefix_too_short();
        }
        let Some(payload) =
            txn.copy_payload_outlined(tree, clustered_key, view, shape, row_bytes)?
        else {
            return Ok(None);
        };
        let payload = inside(trees, payload, brought)?;
        values(table, clustered_key, payload, columns).map(Some)
    }

    /// Reads the row with the given clustered key; calls `f` with the row, if there is one, under the page's latch.
    ///
    /// See [`Rows`] for what `f` may do.
    ///
    /// # Errors
    /// Those of reading pages.
    #[inline]
    pub fn get_in_place<R>(
        &mut self,
        clustered_key: &[u8],
        f: impl FnOnce(RowView<'_>) -> R,
    ) -> Result<Option<R>> {
        let Rows {
            txn,
            table,
            trees,
            view,
            brought,
            ..
        } = self;
        let mut f = Some(f);
        let look = |payload: &[u8]| -> Result<LeafOutcome<Option<R>>> {
            if payload::outside_row(payload).is_some() {
                brought.clear();
                brought.extend_from_slice(payload);
                return Ok(LeafOutcome::Outside);
            }
            let row = RowView::row(table, KeyBytes::Here(clustered_key), payload)?;
            Ok(LeafOutcome::Done(f.take().map(|f| f(row))))
        };
        match txn.read_in_place(&trees.clustered, clustered_key, view, look)? {
            None => Ok(None),
            Some(Ok(LeafOutcome::Done(result))) => Ok(result),
            Some(Err(error)) => Err(error),
            Some(Ok(_)) => {
                large::bring_inside(trees, brought)?;
                let row = RowView::row(table, KeyBytes::Here(clustered_key), brought)?;
                Ok(f.take().map(|f| f(row)))
            }
        }
    }

    /// Calls `f` with each row in the order of the clustered key, beginning at an encoded key (or a prefix of one).
    ///
    /// An empty key begins at the first row. `f` runs under a page's latch, see [`Rows`]; it ends the scan with
    /// [`ControlFlow::Break`].
    ///
    /// # Errors
    /// Those of reading pages; [`Error::Interrupted`] when killed.
    pub fn each<B>(
        &mut self,
        from: &[u8],
        mut f: impl FnMut(RowView<'_>) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        let trees = self.trees.clone();
        let tree = &*trees.clustered;
        let mut leaves = tree.leaves(from.to_vec(), None);
        let spare = Cell::default();
        loop {
            self.txn.check_killed()?;
            let copied = self.txn.versions().before_copy();
            let (table, low) = (self.table, self.view.low.0);
            let image = &mut self.copies.image;
            let read = |leaf: &Leaf<'_>| -> Result<LeafOutcome<Option<B>>> {
                let records = leaf.range.clone();
                let mut from = records.start;
                if leaf.max_txid() < low {
                    match in_leaf(table, leaf, &spare, &mut f)? {
                        LeafOutcome::Copied(rest) => from = rest.start,
                        look => return Ok(look),
                    }
                }
                leaf.copy_to(image);
                Ok(LeafOutcome::Copied(from..records.end))
            };
            match leaves.next(|_| false, read)? {
                Step::End => return Ok(None),
                Step::Known => {}
                Step::Read(look) => match look? {
                    LeafOutcome::Done(_) | LeafOutcome::Outside => {}
                    LeafOutcome::Break(result) => return Ok(result),
                    LeafOutcome::Copied(records) => {
                        if let ControlFlow::Break(result) = self.in_copy(records, copied, &mut f)? {
                            return Ok(Some(result));
                        }
                    }
                },
            }
        }
    }

    /// Calls `f` with the visible rows among these records of the copied leaf.
    fn in_copy<B>(
        &mut self,
        records: Range<usize>,
        copied: Copied,
        f: &mut impl FnMut(RowView<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>> {
        let VersionedLeaf { image, key, older } = &mut self.copies;
        for i in records {
            let at = |key: &mut Vec<u8>| image.key(i, key);
            let value = image.value(i);
            let tree = &self.trees.clustered;
            let Some(payload) = self
                .txn
                .versions()
                .visible(&self.view, value, older, copied, tree, at)?
            else {
                continue;
            };
            let payload = inside(&self.trees, payload, &mut self.brought)?;
            image.key(i, key);
            if let ControlFlow::Break(result) =
                f(RowView::row(self.table, KeyBytes::Here(key), payload)?)
            {
                return Ok(ControlFlow::Break(result));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Returns the payload; if the row is stored outside its page as a whole, loads it into `brought`.
#[inline]
fn inside<'r>(trees: &TableTrees, payload: &'r [u8], brought: &'r mut Vec<u8>) -> Result<&'r [u8]> {
    if payload::outside_row(payload).is_none() {
        return Ok(payload);
    }
    brought.clear();
    brought.extend_from_slice(payload);
    large::bring_inside(trees, brought)?;
    Ok(brought)
}

/// Decodes columns of a payload, or of its prefix; fails if a column lies beyond the prefix.
#[inline(always)]
fn values<'r, const N: usize>(
    table: &'r Table,
    clustered_key: &'r [u8],
    payload: &'r [u8],
    columns: [usize; N],
) -> Result<[Value<'r>; N]> {
    let row = RowRef::new(&table.layout, clustered_key, payload)?;
    let mut values = [Value::Null; N];
    for (value, column) in values.iter_mut().zip(columns) {
        *value = row.get(column)?;
    }
    Ok(values)
}

/// Calls `f` with the rows of a latched leaf, all of which the snapshot sees.
///
/// Returns [`LeafOutcome::Copied`] at the first row that is stored outside, with that row and all behind it.
fn in_leaf<B>(
    table: &Table,
    leaf: &Leaf<'_>,
    spare: &Cell<Vec<u8>>,
    f: &mut impl FnMut(RowView<'_>) -> ControlFlow<B>,
) -> Result<LeafOutcome<Option<B>>> {
    let records = leaf.range.clone();
    let count = records.len();
    for (n, i) in records.clone().enumerate() {
        // Fetch a part of the next leaf into the processor's cache while this one is read.
        leaf.prefetch_next(n, count);
        let Some(payload) = live_payload(leaf.value(i))? else {
            continue;
        };
        if payload::outside_row(payload).is_some() {
            return Ok(LeafOutcome::Copied(i..records.end));
        }
        let key = LeafKey {
            leaf,
            i,
            key: OnceCell::new(),
            spare,
        };
        if let ControlFlow::Break(result) = f(RowView::row(table, KeyBytes::There(&key), payload)?)
        {
            return Ok(LeafOutcome::Break(Some(result)));
        }
    }
    Ok(LeafOutcome::Done(None))
}

/// The key of a record of a leaf, put together when it is needed.
struct LeafKey<'a> {
    leaf: &'a Leaf<'a>,
    i: usize,
    key: OnceCell<Vec<u8>>,
    /// The buffer, reused from key to key.
    spare: &'a Cell<Vec<u8>>,
}

impl KeyInPieces for LeafKey<'_> {
    fn whole(&self) -> &[u8] {
        self.key.get_or_init(|| {
            let mut key = self.spare.take();
            self.leaf.key(self.i, &mut key);
            key
        })
    }

    fn length(&self) -> usize {
        self.leaf.key_len(self.i)
    }

    fn copy_to(&self, from: usize, out: &mut [u8]) -> bool {
        self.leaf.copy_key(self.i, from, out)
    }
}

impl Drop for LeafKey<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.spare.set(key);
        }
    }
}
