//! Repeats logged row changes on recovery: writes frozen records, and changes index entries to match.
//!
//! No transaction runs meanwhile, and every record in the trees is visible to all: rows are read without a view and
//! written without versions. A change has the new row; the old one is in the tree, so index entries are changed by the
//! difference.

use smallvec::SmallVec;

use super::large;
use super::open_table::{Table, TableTrees};
use crate::error::{Error, Result};
use crate::ids::MAX_VALUE;
use crate::knobs;
use crate::mvcc::{encode_frozen, live_payload, MAX_PAYLOAD};
use crate::row::key::row_id;
use crate::row::payload::{self, Field, LargeRef, RowEncoder, RowRef};
use crate::row::{entry, Value};
use crate::tree::{RecordEdit, Tree};

/// The old row, with values that are stored outside.
struct Old {
    bytes: Vec<u8>,
    references: Vec<LargeRef>,
}

/// The payload of a live record that is frozen, or written by the calling transaction.
pub(crate) fn read_live(tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
    tree.read(key, |value, _| -> Result<Option<Vec<u8>>> {
        Ok(value
            .map(live_payload)
            .transpose()?
            .flatten()
            .map(<[u8]>::to_vec))
    })?
}

fn put(tree: &Tree, key: &[u8], payload: &[u8]) -> Result<()> {
    if payload.len() > MAX_PAYLOAD {
        return Err(Error::Internal(format!(
            "replay: a record of {} bytes",
            payload.len()
        )));
    }
    tree.modify(key, MAX_VALUE, 0, |_, out| {
        encode_frozen(payload, out);
        (RecordEdit::Put, ())
    })
}

fn remove(tree: &Tree, key: &[u8]) -> Result<()> {
    tree.modify(key, 0, 0, |old, _| match old {
        Some(_) => (RecordEdit::Remove, ()),
        None => (RecordEdit::Keep, ()),
    })
}

fn old_row(table: &Table, trees: &TableTrees, key: &[u8]) -> Result<Option<Old>> {
    let Some(stored) = read_live(&trees.clustered, key)? else {
        return Ok(None);
    };
    let mut references = Vec::new();
    let mut bytes = stored;
    if trees.large.is_some() {
        large::references(&table.layout, trees, key, &bytes, &mut references)?;
        large::bring_inside(trees, &mut bytes)?;
    }
    Ok(Some(Old { bytes, references }))
}

/// Makes `redo` the row of `key`.
pub(crate) fn apply_put(table: &Table, key: &[u8], redo: &[u8]) -> Result<()> {
    let trees = table.trees.load();
    let layout = &table.layout;
    if layout.hidden {
        if let Some(id) = row_id(key) {
            let next = &table.state.next_row_id;
            next.fetch_max(id + 1, crate::sync::atomic::Ordering::Relaxed);
        }
    }
    let old = old_row(table, &trees, key)?;
    let old_ref = match &old {
        Some(old) => Some(RowRef::new(layout, key, &old.bytes)?),
        None => None,
    };
    let new = RowRef::new(layout, key, redo)?;
    let mut buffers = Vec::new();
    let old_values = match old_ref {
        Some(old) => large::values(layout, &trees, old, false, &mut buffers)?,
        None => Vec::new(),
    };

    // A reference in the log means: as in the row before.
    let mut keep: SmallVec<[Option<LargeRef>; 16]> = SmallVec::new();
    let mut row: SmallVec<[Value<'_>; 16]> = SmallVec::new();
    for column in 0..layout.columns.len() {
        let (value, kept) = match new.field(column)? {
            Field::Value(value) => (value, None),
            Field::Outside(_) => match old_ref.map(|old| old.field(column)).transpose()? {
                Some(Field::Outside(at)) => {
                    let prefix = old_values.get(column).copied().unwrap_or(Value::Null);
                    (prefix, Some(at))
                }
                Some(Field::Value(value)) => (value, None),
                None => {
                    return Err(Error::Internal(format!(
                        "replay: table {} has no row from which column {column} is kept",
                        table.name()
                    )))
                }
            },
        };
        row.push(value);
        keep.push(kept);
    }

    let mut encoder = RowEncoder::default();
    encoder.begin(row.len());
    encoder.outside.copy_from_slice(&keep);
    encoder.lay_out(layout, &row)?;
    if encoder.encoded_len() > knobs::in_row_limit() {
        for column in large::choose(layout, &row, &mut encoder)? {
            if let Value::Bytes(bytes) = row[column] {
                encoder.outside[column] = Some(large::write_frozen(table, &trees, bytes)?);
            }
        }
        encoder.lay_out(layout, &row)?;
    }
    let mut stored = Vec::new();
    encoder.write(layout, &row, &mut stored)?;
    if stored.len() > MAX_PAYLOAD {
        let at = large::write_frozen(table, &trees, &stored)?;
        stored.clear();
        payload::put_outside_row(at, &mut stored);
    }
    put(&trees.clustered, key, &stored)?;
    change_entries(
        table,
        &trees,
        key,
        old.as_ref().map(|_| &old_values[..]),
        Some(&row),
    )?;
    if let (Some(old), Some(tree)) = (&old, &trees.large) {
        for &value in old.references.iter().filter(|r| !keep.contains(&Some(**r))) {
            large::free(tree, value)?;
        }
    }
    table.state.restore_rows(i64::from(old.is_none()));
    Ok(())
}

/// Deletes the row of `key`.
pub(crate) fn apply_delete(table: &Table, key: &[u8]) -> Result<()> {
    let trees = table.trees.load();
    let Some(old) = old_row(table, &trees, key)? else {
        return Ok(());
    };
    let row = RowRef::new(&table.layout, key, &old.bytes)?;
    let mut buffers = Vec::new();
    let values = large::values(&table.layout, &trees, row, false, &mut buffers)?;
    remove(&trees.clustered, key)?;
    change_entries(table, &trees, key, Some(&values), None)?;
    if let Some(tree) = &trees.large {
        for &value in &old.references {
            large::free(tree, value)?;
        }
    }
    table.state.restore_rows(-1);
    Ok(())
}

/// Removes the old row's entries and inserts the new row's, where they differ.
fn change_entries(
    table: &Table,
    trees: &TableTrees,
    key: &[u8],
    old: Option<&[Value<'_>]>,
    new: Option<&[Value<'_>]>,
) -> Result<()> {
    let encode = |index, row: Option<&[Value<'_>]>| -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let Some(row) = row else { return Ok(None) };
        let (mut entry_key, mut payload) = (Vec::new(), Vec::new());
        entry::encode(
            index,
            row,
            key,
            table.collations(),
            &mut entry_key,
            &mut payload,
        )?;
        Ok(Some((entry_key, payload)))
    };
    for (index, tree) in table.layout.indexes.iter().zip(&trees.indexes) {
        let old = encode(index, old)?;
        let new = encode(index, new)?;
        if old == new {
            continue;
        }
        if let Some((old_key, _)) = &old {
            if new.as_ref().map(|(k, _)| k) != Some(old_key) {
                remove(tree, old_key)?;
            }
        }
        if let Some((new_key, payload)) = &new {
            put(tree, new_key, payload)?;
        }
    }
    Ok(())
}
