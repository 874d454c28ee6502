//! The rows of a table: the checkpoint's, with the changes of the log.

use std::collections::{btree_map, HashSet};
use std::iter::Peekable;

use super::changes::{RowChange, TableChanges};
use super::nodes::{Nodes, Part, Range};
use super::{Missing, RowVisitor};
use crate::catalog::{Definition, TreeRoot};
use crate::error::{Error, Result};
use crate::fallible;
use crate::ids::TxId;
use crate::mvcc::live_payload;
use crate::row::layout::Layout;
use crate::row::payload::{self, Field, LargeRef, RowRef};
use crate::row::OwnedValue;
use crate::table::large;
use crate::table::row_text::key_text;
use crate::undo::committed_version;

type ChangesLeft<'a> = Peekable<btree_map::Iter<'a, Vec<u8>, RowChange>>;

struct Rows<'a> {
    nodes: &'a Nodes,
    running: &'a HashSet<TxId>,
    unfinished: &'a HashSet<TxId>,
    name: &'a str,
    layout: Layout,
    large: Option<TreeRoot>,
    changes: ChangesLeft<'a>,
    visit: &'a mut RowVisitor<'a>,
    missing: &'a mut dyn FnMut(Missing),
    shown: u64,
}

/// Calls `visit` with every readable row of a table; returns their number.
pub(super) fn all(
    nodes: &Nodes,
    running: &HashSet<TxId>,
    definition: &Definition,
    changes: &TableChanges,
    visit: &mut RowVisitor<'_>,
    missing: &mut dyn FnMut(Missing),
) -> Result<u64> {
    let Some(clustered) = definition.trees.first() else {
        return Err(Error::Internal("a table definition without trees".into()));
    };
    let mut rows = Rows {
        nodes,
        running,
        unfinished: &changes.unfinished,
        name: &definition.name,
        layout: Layout::new(&definition.schema)?,
        large: definition.large,
        changes: changes.rows.iter().peekable(),
        visit,
        missing,
        shown: 0,
    };
    if !changes.emptied {
        nodes.walk(clustered.id, clustered.root, &mut |part| match part {
            Part::Leaf(leaf) => {
                for i in 0..leaf.count() {
                    let key = leaf.key(i);
                    rows.changes_before(Some(&key))?;
                    rows.stored(&key, leaf.value(i))?;
                }
                Ok(())
            }
            Part::Missing(range, why) => {
                rows.changes_before(Some(&range.lower))?;
                rows.gap(&range, &why)
            }
        })?;
    }
    rows.changes_before(None)?;
    Ok(rows.shown)
}

impl Rows<'_> {
    fn miss(&mut self, key: &[u8], why: Error) {
        (self.missing)(Missing {
            what: format!(
                "table {}: the row of key {}",
                self.name,
                key_text(&self.layout, 0, key, false)
            ),
            why,
        });
    }

    fn show(&mut self, key: &[u8], row: Result<Vec<OwnedValue>>) -> Result<()> {
        match row {
            Ok(row) => {
                self.shown += 1;
                (self.visit)(&row)
            }
            Err(why) => {
                self.miss(key, why);
                Ok(())
            }
        }
    }

    /// Shows rows below `key` that are only in the log.
    fn changes_before(&mut self, key: Option<&[u8]>) -> Result<()> {
        let next = |at: &(&Vec<u8>, &RowChange)| key.is_none_or(|key| &at.0[..] < key);
        while let Some((key, change)) = self.changes.next_if(next) {
            if !change.puts.is_empty() {
                let row = self.changed(key, change, Ok(None));
                self.show(key, row)?;
            }
        }
        Ok(())
    }

    /// Shows the row of a record of the clustered tree.
    fn stored(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        let change = self.changes.next_if(|at| &at.0[..] == key);
        match change {
            Some((_, change)) if change.puts.is_empty() => Ok(()),
            Some((_, change)) if change.replaces => {
                let row = self.changed(key, change, Ok(None));
                self.show(key, row)
            }
            Some((_, change)) => {
                let row = self
                    .version(record)
                    .and_then(|stored| self.changed(key, change, Ok(stored)));
                self.show(key, row)
            }
            None => match self.version(record) {
                Ok(None) => Ok(()),
                Ok(Some(stored)) => {
                    let row = self.values(key, stored);
                    self.show(key, row)
                }
                Err(why) => {
                    self.miss(key, why);
                    Ok(())
                }
            },
        }
    }

    /// Handles keys whose page can't be read: only rows are known that the log has as a whole.
    fn gap(&mut self, range: &Range, why: &Error) -> Result<()> {
        let text = |key: &[u8]| match key {
            [] => "the first key".to_owned(),
            key => format!("key {}", key_text(&self.layout, 0, key, false)),
        };
        let upper = range.upper.as_deref();
        (self.missing)(Missing {
            what: format!(
                "table {}: the rows from {} to {}",
                self.name,
                text(&range.lower),
                upper.map_or("the last".into(), |upper| format!("before {}", text(upper)))
            ),
            why: why.clone(),
        });
        let within = |at: &(&Vec<u8>, &RowChange)| upper.is_none_or(|upper| &at.0[..] < upper);
        while let Some((key, change)) = self.changes.next_if(within) {
            if !change.puts.is_empty() {
                let row = self.changed(key, change, Err(why.clone()));
                self.show(key, row)?;
            }
        }
        Ok(())
    }

    /// The payload that was committed at the checkpoint.
    fn version(&self, record: &[u8]) -> Result<Option<Vec<u8>>> {
        committed_version(
            record,
            self.running,
            &mut |page| self.nodes.page(page),
            self.unfinished,
        )
    }

    /// A row that the log changed, with unchanged values from the checkpoint.
    fn changed(
        &self,
        key: &[u8],
        change: &RowChange,
        stored: Result<Option<Vec<u8>>>,
    ) -> Result<Vec<OwnedValue>> {
        let mut layers = Vec::new();
        for put in &change.puts {
            layers.push(RowRef::new(&self.layout, key, put)?);
        }
        let mut before = None;
        (0..self.layout.columns.len())
            .map(|column| {
                for layer in layers.iter().rev() {
                    if let Field::Value(value) = layer.field(column)? {
                        return Ok(value.to_owned());
                    }
                }
                // The log has "as in the row before": only the checkpoint has the value.
                if before.is_none() {
                    let stored = stored.clone()?.ok_or_else(|| {
                        Error::Internal(format!(
                            "the log keeps column {column} of a row that was not there"
                        ))
                    })?;
                    before = Some(self.values(key, stored)?);
                }
                let value = before.as_ref().and_then(|row| row.get(column));
                Ok(value.cloned().unwrap_or_default())
            })
            .collect()
    }

    /// The values of a row from its payload in the tree.
    fn values(&self, key: &[u8], mut stored: Vec<u8>) -> Result<Vec<OwnedValue>> {
        if let Some(value) = payload::outside_row(&stored) {
            stored = self.large_value(value)?;
        }
        let row = RowRef::new(&self.layout, key, &stored)?;
        (0..self.layout.columns.len())
            .map(|column| match row.field(column)? {
                Field::Value(value) => Ok(value.to_owned()),
                Field::Outside(value) => self.large_value(value).map(OwnedValue::Bytes),
            })
            .collect()
    }

    fn large_value(&self, value: LargeRef) -> Result<Vec<u8>> {
        let Some(tree) = self.large else {
            return Err(Error::Internal(
                "the table has no tree for large values".into(),
            ));
        };
        let wrong = |found: usize| {
            Error::Internal(format!(
                "large value {} of tree {} has {found} bytes instead of {}",
                value.id, tree.id, value.len
            ))
        };
        let mut bytes = Vec::new();
        let want = usize::try_from(value.len).unwrap_or(usize::MAX);
        fallible::reserve(&mut bytes, want, "a large value")?;
        for chunk in 0..large::chunks(value.len)? {
            let key = large::key(value.id, chunk);
            let found = self.nodes.find(tree.id, tree.root, &key)?;
            match found.as_deref().map(live_payload).transpose()?.flatten() {
                Some(part) => bytes.extend_from_slice(part),
                None => return Err(wrong(bytes.len())),
            }
        }
        if bytes.len() as u64 != value.len {
            return Err(wrong(bytes.len()));
        }
        Ok(bytes)
    }
}
