//! Aggregates over single rows: rows whose versions must be checked, rows that are stored outside the tree, and rows
//! that a cursor locks.

use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::knobs;
use crate::mvcc::{live_payload, ReadView};
use crate::read::aggregate::plan::{Plan, Totals};
use crate::read::aggregate::IndexRange;
use crate::read::cursor::{Cursor, Seek};
use crate::read::options::CursorOptions;
use crate::read::row_view::RowView;
use crate::row::entry::{EntryBuffer, EntryRef};
use crate::row::key_bytes::KeyBytes;
use crate::row::scalar::{Found, ScalarPlace};
use crate::session::transaction::Transaction;
use crate::table::large;
use crate::table::open_table::{IndexId, Table, TableTrees};
use crate::tree::{Leaf, LeafImage, Tree};
use crate::txn::{Copied, VersionResolver};

/// The rows of a copied leaf.
pub(super) struct Rows<'a> {
    table: &'a Table,
    trees: &'a TableTrees,
    plan: &'a Plan,
    image: LeafImage,
    range: Range<usize>,
    copied: Copied,
    key: Vec<u8>,
    /// An older version, read from undo.
    older: Vec<u8>,
    /// A row that is stored outside its page.
    brought: Vec<u8>,
    entry: EntryBuffer,
}

impl<'a> Rows<'a> {
    pub fn new(table: &'a Table, trees: &'a TableTrees, plan: &'a Plan) -> Self {
        Rows {
            table,
            trees,
            plan,
            image: LeafImage::new(),
            range: 0..0,
            copied: Copied::default(),
            key: Vec::new(),
            older: Vec::new(),
            brought: Vec::new(),
            entry: EntryBuffer::default(),
        }
    }

    /// Copies a latched leaf; the caller has noted `copied` before.
    pub fn copy(&mut self, leaf: &Leaf<'_>, copied: Copied) {
        leaf.copy_to(&mut self.image);
        self.range = leaf.range.clone();
        self.copied = copied;
    }

    /// Adds those records of the copied leaf that the view sees.
    pub fn take_in(
        &mut self,
        versions: &VersionResolver<'_>,
        tree: &Tree,
        view: &ReadView,
        totals: &mut Totals,
    ) -> Result<()> {
        let all_seen = self.image.max_txid() < view.low.0;
        for i in self.range.clone() {
            let (image, copied) = (&self.image, self.copied);
            let value = image.value(i);
            let payload = if all_seen {
                live_payload(value)?
            } else {
                let key = |key: &mut Vec<u8>| image.key(i, key);
                versions.visible(view, value, &mut self.older, copied, tree, key)?
            };
            let Some(mut payload) = payload else { continue };
            if self.plan.index == 0 && self.trees.large.is_some() && payload.first() == Some(&0) {
                self.brought.clear();
                self.brought.extend_from_slice(payload);
                large::bring_inside(self.trees, &mut self.brought)?;
                payload = &self.brought;
            }
            let length = image.key_len(i);
            let read = |place: &ScalarPlace| match place
                .read(payload, length, |at| image.key_byte(i, at))
            {
                Found::Bits(bits) => Some(Some(bits)),
                Found::Null => Some(None),
                Found::Unknown => None,
            };
            if self.plan.places().all(|place| read(place).is_some()) {
                add(self.plan, totals, |place| Ok(read(place).flatten()))?;
                continue;
            }
            image.key(i, &mut self.key);
            let (key, entry) = (&self.key, &mut self.entry);
            let record = view_of(self.table, self.plan.index, key, payload, entry)?;
            add(self.plan, totals, |place| {
                Ok(place.form.bits(record.get(place.column)?))
            })?;
        }
        Ok(())
    }
}

/// Adds a row, whose columns `bits` returns, if the plan's filters accept it.
fn add(
    plan: &Plan,
    totals: &mut Totals,
    bits: impl Fn(&ScalarPlace) -> Result<Option<u64>>,
) -> Result<()> {
    for filter in &plan.filters {
        if !filter.lets_through(bits(&filter.place)?) {
            return Ok(());
        }
    }
    let totals = match &plan.group {
        None => totals,
        Some(place) => {
            let groups = &mut totals.groups;
            groups.entry(bits(place)?).or_insert_with(|| plan.nothing())
        }
    };
    totals.rows += 1;
    for (place, values) in plan.columns.iter().zip(&mut totals.columns) {
        if let Some(bits) = bits(place)? {
            values.add(place.form, bits);
        }
    }
    Ok(())
}

/// A record, for decoding column by column.
fn view_of<'a>(
    table: &'a Table,
    index: IndexId,
    key: &'a [u8],
    payload: &'a [u8],
    buffer: &'a mut EntryBuffer,
) -> Result<RowView<'a>> {
    let key = KeyBytes::Here(key);
    if index == 0 {
        return RowView::row(table, key, payload);
    }
    let keys = table.key_layout(index)?;
    buffer.decode(keys, usize::MAX, key, payload)?;
    let entry = EntryRef::new(&table.layout, keys, key, payload, buffer);
    Ok(RowView::entry(table, entry))
}

/// Adds the rows of a range as a cursor returns them; the cursor locks them and the range.
pub(super) fn by_cursor(
    txn: &mut Transaction,
    table: &Arc<Table>,
    range: &IndexRange<'_>,
    plan: &Plan,
) -> Result<Totals> {
    let options = CursorOptions {
        index_only: true,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(table, range.index, options);
    match range.end {
        Bound::Unbounded => {}
        Bound::Included(prefix) => cursor.set_end(prefix, true),
        Bound::Excluded(prefix) => cursor.set_end(prefix, false),
    }
    let (prefix, to) = match range.start {
        Bound::Unbounded => (&[][..], Seek::First),
        Bound::Included(prefix) => (prefix, Seek::AtOrAfter),
        Bound::Excluded(prefix) => (prefix, Seek::After),
    };
    let mut totals = plan.nothing();
    let mut more = cursor.seek(txn, prefix, to)?;
    let mut count = 0;
    while more {
        if count == 0 {
            txn.tree_txn.check_killed()?;
        }
        count = (count + 1) % knobs::rows_a_look();
        let row = cursor.row()?;
        add(plan, &mut totals, |place| {
            Ok(place.form.bits(row.get(place.column)?))
        })?;
        more = cursor.next(txn)?;
    }
    Ok(totals)
}
