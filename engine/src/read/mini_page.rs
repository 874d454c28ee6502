//! Reads of some columns from mini-pages, of leaves that are not in memory.
//!
//! Where the pool holds only a part of a table, it keeps mini-pages ([`crate::tree`]'s `mini_page`): of a leaf, the
//! columns that reads asked for. Reads of single rows, and aggregates over short ranges, make them. A mini-page has
//! only versions that every snapshot sees, and only reads without locks use it.

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
    /// These columns of a table; `None` if the read may ask for all columns.
    pub fn of(table: &'a Table, columns: Option<ColumnSet>) -> Option<Projection<'a>> {
        columns.map(|columns| Projection {
            layout: &table.layout,
            columns,
        })
    }

    /// Whether the leaf has a mini-page with these columns.
    pub fn has(&self, tree: &Tree, leaf: LeafNotResident) -> bool {
        tree.has_mini_page(leaf, self.columns.0)
    }

    /// Appends the payload of a row from the mini-page of its leaf, which is not in memory.
    ///
    /// `Some(false)`: there is no such row. `None`: no mini-page has the columns.
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
            // Bytes may have been appended before the leaf proved to be loaded meanwhile.
            Some(Some(None)) | None => {
                out.truncate(begin);
                None
            }
        }
    }

    /// Makes a mini-page of the leaf from which the key's row was just read, if that is possible.
    ///
    /// A failure is only logged: the read does not need the mini-page.
    pub fn keep(&self, txn: &txn::TreeTransaction, tree: &Tree, key: &[u8]) {
        txn.transactions().moments.come_to(Moment::RowBrought);
        let kept = tree.keep_mini_page(key, self.columns.0, |value, columns, out| {
            match txn.for_all(value) {
                FrozenVersion::NotFrozen => ProjectedRecord::Unclear,
                FrozenVersion::Deleted => ProjectedRecord::Gone,
                FrozenVersion::Row(payload) => {
                    match project(self.layout, payload, ColumnSet(columns), out) {
                        Ok(true) => ProjectedRecord::Kept,
                        // A reader of the row itself gets the error.
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
    /// Appends the payload that a view sees of a record, or one with the columns asked for alone.
    ///
    /// Returns false if the view sees no record.
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
