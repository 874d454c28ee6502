//! Rows of which only some columns are asked for, of leaves that are not in memory.
//!
//! Where the pool holds a part of a table, it keeps of leaves that single rows were read from, or short ranges
//! taken in by aggregates, what was asked for ([`crate::tree`]'s `mini_page`): the columns, not the rows. Only what
//! every snapshot sees is kept so, and only reads without locks look there.

use crate::error::Result;
use crate::mvcc::{FrozenVersion, ReadView};
use crate::node::LeafLayoutHint;
use crate::row::layout::Layout;
use crate::row::projection::{project, widen, ColumnSet};
use crate::session::transaction::Transaction;
use crate::sync::Moment;
use crate::table::open_table::Table;
use crate::tree::{LeafNotResident, ProjectedRecord, Tree};
use crate::txn;

/// The columns that a read asks for.
#[derive(Clone, Copy)]
pub(super) struct Projection<'a> {
    pub layout: &'a Layout,
    pub columns: ColumnSet,
}

impl<'a> Projection<'a> {
    /// These columns of a table's; `None` where all may be looked at.
    pub fn of(table: &'a Table, columns: Option<ColumnSet>) -> Option<Projection<'a>> {
        columns.map(|columns| Projection {
            layout: &table.layout,
            columns,
        })
    }

    /// Whether there is a copy of a leaf with these columns.
    pub fn has(&self, tree: &Tree, leaf: LeafNotResident) -> bool {
        tree.has_mini_page(leaf, self.columns.0)
    }

    /// Appends the payload of a row from the copy of its leaf, which is not in memory. `Some(false)`: there
    /// is no such row. `None`: there is no copy that would do.
    pub fn copy_kept(
        &self,
        tree: &Tree,
        leaf: LeafNotResident,
        key: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let begin = out.len();
        let count = self.layout.columns.len();
        let widened = tree.read_mini_page(leaf, key, self.columns.0, |kept, columns| {
            widen(count, kept, ColumnSet(columns), out)
        });
        match widened {
            Some(Some(Some(()))) => Some(true),
            Some(None) => Some(false),
            // Widened, it may have proved to be of another time.
            Some(Some(None)) | None => {
                out.truncate(begin);
                None
            }
        }
    }

    /// Keeps what is asked for of the leaf that a key's row was just read from, where that can be done: the row has
    /// been read without it.
    pub fn keep(&self, txn: &txn::TreeTransaction, tree: &Tree, key: &[u8]) {
        txn.transactions().moments.come_to(Moment::RowBrought);
        let kept = tree.keep_mini_page(key, self.columns.0, |value, columns, out| {
            match txn.for_all(value) {
                FrozenVersion::NotFrozen => ProjectedRecord::Unclear,
                FrozenVersion::Deleted => ProjectedRecord::Gone,
                FrozenVersion::Row(payload) => {
                    match project(self.layout, payload, ColumnSet(columns), out) {
                        Ok(true) => ProjectedRecord::Kept,
                        // Whoever reads the row itself is told what is wrong with it.
                        Ok(false) | Err(_) => ProjectedRecord::Unclear,
                    }
                }
            }
        });
        if let Err(error) = kept {
            tracing::debug!("no copy of a leaf's columns: {error}");
        }
    }
}

impl Transaction {
    /// Appends the payload that a view sees of a record, or one of the columns asked for alone; false when
    /// it sees none.
    pub(super) fn copy_asked(
        &self,
        tree: &Tree,
        key: &[u8],
        view: &ReadView,
        asked: Projection<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut shape = LeafLayoutHint::default();
        let hint = tree.find_leaf(key, &shape)?;
        let away = hint.away();
        if let Some(found) = away.and_then(|leaf| asked.copy_kept(tree, leaf, key, out)) {
            return Ok(found);
        }
        let found = self
            .tree_txn
            .read_in(tree, hint, &mut shape, key, view, |payload| {
                out.extend_from_slice(payload);
            })?;
        if away.is_some() {
            asked.keep(&self.tree_txn, tree, key);
        }
        Ok(found.is_some())
    }
}

#[cfg(test)]
mod tests;
