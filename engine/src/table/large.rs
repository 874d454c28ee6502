//! Large values: columns, or whole rows, that are stored outside the clustered tree.
//!
//! Each table that can need it has a tree for them. Key: value number (u64, big-endian), chunk number (u32,
//! big-endian); value: a frozen record with up to [`CHUNK`] bytes. A value is written once and never changed, so it has
//! no versions. It is freed when the row version that made it is rolled back, or when no snapshot sees the last version
//! that refers to it. The transaction layer keeps a note for each of the two cases, and then calls [`free`].
//! `row/large_format.rs` describes the keys and notes.

use super::open_table::{Table, TableTrees};
use crate::error::{Error, Result};
use crate::mvcc::{encode_frozen, live_payload};
use crate::planted::{is_planted, PlantedFault};
use crate::row::large_format::CHUNK;
use crate::row::layout::{Layout, PrefixNeed};
use crate::row::payload::{self, Field, LargeRef, RowEncoder, RowRef};
use crate::row::Value;
use crate::sync::atomic::Ordering;
use crate::tree::{RecordEdit, Tree};
use crate::txn::{TransactionManager, TreeTransaction};
use crate::{fallible, knobs};

pub(crate) use crate::row::large_format::{chunks, id_of, key, note, read_note};

/// Whether a row of this schema may need the tree.
pub(crate) fn can_need(layout: &Layout) -> bool {
    use crate::row::ColumnType::*;
    let longest = layout.columns.iter().fold(0u64, |sum, c| {
        sum.saturating_add(match c.column.ty {
            Int { .. } | Float | Double => 8,
            Bytes { len } => len.into(),
            VarBytes { max } => max.into(),
            Large { max } => max,
        })
    });
    // At most two bytes of offset and two bits of bitmaps per column.
    let head = 8 + 3 * layout.columns.len() as u64;
    longest.saturating_add(head) > knobs::in_row_limit() as u64
}

fn put_chunk(tree: &Tree, id: u64, chunk: u32, bytes: &[u8]) -> Result<()> {
    tree.modify(&key(id, chunk), bytes.len() + 1, 0, |_, out| {
        encode_frozen(bytes, out);
        (RecordEdit::Put, ())
    })
}

fn tree_of(trees: &TableTrees) -> Result<&Tree> {
    trees
        .large
        .as_deref()
        .ok_or_else(|| Error::Internal("the table has no tree for large values".into()))
}

/// Writes a value for a transaction, whose rollback removes it.
///
/// Must not be called inside the barrier.
pub(crate) fn write(
    txn: &mut TreeTransaction,
    transactions: &TransactionManager,
    table: &Table,
    trees: &TableTrees,
    bytes: &[u8],
) -> Result<LargeRef> {
    let tree = tree_of(trees)?;
    let value = LargeRef {
        id: table.state.next_large.fetch_add(1, Ordering::Relaxed),
        len: bytes.len() as u64,
    };
    chunks(value.len)?;
    {
        let inside = transactions.barrier().enter();
        txn.note_on_rollback(&inside, &note(tree.id(), value))?;
    }
    let mut number = 0;
    for stay in bytes.chunks(CHUNK * knobs::large_chunks_a_stay()) {
        transactions.pool().check_room()?;
        let _inside = transactions.barrier().enter();
        for chunk in stay.chunks(CHUNK) {
            put_chunk(tree, value.id, number, chunk)?;
            number += 1;
        }
    }
    Ok(value)
}

/// Writes a value without a transaction (replay).
pub(crate) fn write_frozen(table: &Table, trees: &TableTrees, bytes: &[u8]) -> Result<LargeRef> {
    let tree = tree_of(trees)?;
    let value = LargeRef {
        id: table.state.next_large.fetch_add(1, Ordering::Relaxed),
        len: bytes.len() as u64,
    };
    chunks(value.len)?;
    for (number, chunk) in (0..).zip(bytes.chunks(CHUNK)) {
        put_chunk(tree, value.id, number, chunk)?;
    }
    Ok(value)
}

/// Removes a value; does nothing if it is gone already.
///
/// Must be called inside the barrier.
pub(crate) fn free(tree: &Tree, value: LargeRef) -> Result<()> {
    for chunk in 0..chunks(value.len)? {
        tree.modify(&key(value.id, chunk), 0, 0, |old, _| match old {
            Some(_) => (RecordEdit::Remove, ()),
            None => (RecordEdit::Keep, ()),
        })?;
    }
    Ok(())
}

/// Calls `look` with the first `limit` bytes of a value in pieces, in order, until it returns false.
fn walk(
    trees: &TableTrees,
    value: LargeRef,
    limit: u64,
    look: impl FnMut(&[u8]) -> bool,
) -> Result<()> {
    let missing = walk_what_is_there(trees, value, limit, look)?;
    if missing > 0 {
        return Err(Error::Internal(format!(
            "large value {} of tree {} lacks {missing} of {} bytes",
            value.id,
            tree_of(trees)?.id(),
            value.len
        )));
    }
    Ok(())
}

/// As [`walk`], for a value that may be gone, or be freed meanwhile.
///
/// Returns how many of the bytes are missing.
fn walk_what_is_there(
    trees: &TableTrees,
    value: LargeRef,
    limit: u64,
    mut look: impl FnMut(&[u8]) -> bool,
) -> Result<u64> {
    let tree = tree_of(trees)?;
    let want = value.len.min(limit);
    let mut got = 0;
    for chunk in 0..chunks(want)? {
        let more = tree.read(&key(value.id, chunk), |record, _| -> Result<Option<bool>> {
            let Some(bytes) = record.map(live_payload).transpose()?.flatten() else {
                return Ok(None);
            };
            let left = usize::try_from(want - got).unwrap_or(usize::MAX);
            let bytes = &bytes[..bytes.len().min(left)];
            got += bytes.len() as u64;
            Ok(Some(look(bytes)))
        })??;
        match more {
            Some(true) => {}
            Some(false) => return Ok(0),
            None => break,
        }
    }
    Ok(want.saturating_sub(got))
}

/// Appends the first `limit` bytes of a value to `out`.
pub(crate) fn read(
    trees: &TableTrees,
    value: LargeRef,
    limit: u64,
    out: &mut Vec<u8>,
) -> Result<()> {
    let want = value.len.min(limit);
    chunks(want)?;
    let want = usize::try_from(want).unwrap_or(usize::MAX);
    fallible::reserve(out, want, "a large value")?;
    walk(trees, value, limit, |bytes| {
        out.extend_from_slice(bytes);
        true
    })
}

/// The first `limit` bytes of a value; `None` if it is gone.
///
/// For readers without a lock or snapshot that keeps the value. An open table gives no value number twice, so bytes
/// that are found belong to this value.
pub(crate) fn read_if_there(
    trees: &TableTrees,
    value: LargeRef,
    limit: u64,
) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let want = usize::try_from(value.len.min(limit)).unwrap_or(usize::MAX);
    fallible::reserve(&mut bytes, want, "a large value")?;
    let missing = walk_what_is_there(trees, value, limit, |piece| {
        bytes.extend_from_slice(piece);
        true
    })?;
    Ok((missing == 0).then_some(bytes))
}

/// Reads all of a value, to check that it can be read.
pub(crate) fn pass_over(trees: &TableTrees, value: LargeRef) -> Result<()> {
    walk(trees, value, u64::MAX, |_| true)
}

/// Whether a value has exactly these bytes.
pub(crate) fn is(trees: &TableTrees, value: LargeRef, bytes: &[u8]) -> Result<bool> {
    let mut rest = bytes;
    let mut same = value.len == bytes.len() as u64;
    if same {
        walk(trees, value, u64::MAX, |piece| {
            same = rest.starts_with(piece);
            rest = rest.get(piece.len()..).unwrap_or(&[]);
            same
        })?;
    }
    Ok(same)
}

/// If a payload refers to a row that is stored outside as a whole, replaces it by that row's payload.
pub(crate) fn bring_inside(trees: &TableTrees, payload: &mut Vec<u8>) -> Result<()> {
    if let Some(value) = payload::outside_row(payload) {
        payload.clear();
        read(trees, value, u64::MAX, payload)?;
    }
    Ok(())
}

/// Appends the large values that a row payload refers to, as it is stored in the tree.
pub(crate) fn references(
    layout: &Layout,
    trees: &TableTrees,
    key: &[u8],
    stored: &[u8],
    out: &mut Vec<LargeRef>,
) -> Result<()> {
    let inflated;
    let payload = match payload::outside_row(stored) {
        Some(whole) => {
            out.push(whole);
            let mut bytes = Vec::new();
            read(trees, whole, u64::MAX, &mut bytes)?;
            inflated = bytes;
            &inflated
        }
        None => stored,
    };
    for reference in RowRef::new(layout, key, payload)?.references() {
        out.push(reference?.1);
    }
    Ok(())
}

/// The columns to move outside, so that a measured row fits: the longest first, those that indexes use last.
///
/// Sets `encoder.outside` of these columns to placeholders of full size. Skips values that are stored outside already:
/// of these, `row` may have only the part that indexes need.
pub(crate) fn choose(
    layout: &Layout,
    row: &[Value<'_>],
    encoder: &mut RowEncoder,
) -> Result<Vec<usize>> {
    let mut candidates: Vec<usize> = (0..row.len())
        .filter(|&i| {
            matches!(row[i], Value::Bytes(v) if v.len() >= knobs::worth_moving())
                && layout.columns[i].from_key.is_none()
                && (encoder.outside[i].is_none() || is_planted(PlantedFault::MoveKeptValues))
        })
        .collect();
    candidates.sort_by_key(|&i| {
        (
            layout.columns[i].indexed,
            std::cmp::Reverse(encoder.column_len(i)),
        )
    });
    let mut moved = Vec::new();
    for i in candidates {
        if encoder.encoded_len() <= knobs::in_row_limit() {
            break;
        }
        encoder.outside[i] = Some(LargeRef {
            id: u64::MAX,
            len: u64::MAX,
        });
        encoder.lay_out(layout, row)?;
        moved.push(i);
    }
    Ok(moved)
}

/// The values of a row.
///
/// Reads those outside into `buffers`: as much as indexes need, or all with `whole`.
pub(crate) fn values<'a>(
    layout: &Layout,
    trees: &TableTrees,
    row: RowRef<'a>,
    whole: bool,
    buffers: &'a mut Vec<Vec<u8>>,
) -> Result<Vec<Value<'a>>> {
    let needed = |column| match whole {
        true => PrefixNeed::All,
        false => layout.prefix_need(column),
    };
    needed_values(layout, trees, row, needed, buffers)
}

/// As [`values`], with as much of each outside value as `needed` says of its column.
pub(crate) fn needed_values<'a>(
    layout: &Layout,
    trees: &TableTrees,
    row: RowRef<'a>,
    needed: impl Fn(usize) -> PrefixNeed,
    buffers: &'a mut Vec<Vec<u8>>,
) -> Result<Vec<Value<'a>>> {
    let mut outside = Vec::new();
    buffers.clear();
    for reference in row.references() {
        let (column, value) = reference?;
        let need = needed(column);
        if need == PrefixNeed::Nothing {
            continue;
        }
        let mut bytes = Vec::new();
        read(trees, value, need.bytes(), &mut bytes)?;
        buffers.push(bytes);
        outside.push(column);
    }
    let mut values = (0..layout.columns.len())
        .map(|i| {
            Ok(match row.field(i)? {
                Field::Value(value) => value,
                Field::Outside(value) => Value::OutOfRow(value.len),
            })
        })
        .collect::<Result<Vec<Value<'a>>>>()?;
    let buffers: &'a Vec<Vec<u8>> = buffers;
    for (column, bytes) in outside.into_iter().zip(buffers) {
        values[column] = Value::Bytes(bytes);
    }
    Ok(values)
}
