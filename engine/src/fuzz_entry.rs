//! Every decoder of the formats, for tests that feed them invalid bytes.
//!
//! Each target takes any bytes, and must neither panic, nor run forever, nor read beyond them. If a decoder checks a
//! checksum first, the target makes that right: otherwise almost no input would pass it.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::{DdlRecord, Definition};
use crate::error::Result;
use crate::ids::{PageId, PAGE_SIZE};
use crate::log::{fuzz_entry as log, Log, LOG_DIR};
use crate::mvcc::Header;
use crate::node::{Node, Page, PageKind, KIND};
use crate::os::{OpenMode, Os};
use crate::recovery::{Meta, QuarantinedTable};
use crate::row::entry::{self, EntryBuffer, EntryRef};
use crate::row::key_bytes::KeyBytes;
use crate::row::layout::Layout;
use crate::row::payload::{self, Field, RowRef};
use crate::row::{key, Column, ColumnType, Index, Key, KeyPart, TableSchema};
use crate::store::{fuzz_entry as store, PartKind, Store};
use crate::table::large;
use crate::table::row_text::key_text;
use crate::txn::{decode_rolled_back, ChangeReader, PreparedRecord};
use crate::undo::committed_version;

/// The names of the decoders.
pub const TARGETS: [&str; 6] = ["page", "header", "log", "catalog", "row", "key"];

/// Decodes bytes as one of the [`TARGETS`]; returns whether a checksum or a structure accepts them.
///
/// A target of another name accepts nothing.
pub fn decode(target: &str, bytes: &[u8]) -> bool {
    match target {
        "page" => page(bytes),
        "header" => store::headers(bytes),
        "log" => log_record(bytes),
        "catalog" => definition(bytes),
        "row" => row(bytes),
        "key" => keys(bytes),
        _ => false,
    }
}

/// An image as in the file, and a page as in memory.
fn page(bytes: &[u8]) -> bool {
    let mut page: Box<Page> = Box::new([0; PAGE_SIZE]);
    let unpacked = store::image(bytes, &mut page[..]);
    if !unpacked {
        // Take the bytes as a page, behind the checks of the image.
        let len = bytes.len().min(PAGE_SIZE);
        page[..len].copy_from_slice(&bytes[..len]);
    }
    if page[KIND] == PageKind::Undo as u8 {
        return undo(&page);
    }
    let node = Node::new(&page);
    if node.validate().is_err() {
        return unpacked;
    }
    let _ = node.validate_order();
    // A search comes to this node only with keys between the fences.
    let lead = |key: &[u8]| {
        let above = key >= node.lower_fence();
        if above && node.upper_fence().is_none_or(|upper| key < upper) {
            let _ = (node.lower_bound(key), node.child_for(key));
        }
    };
    let mut key = Vec::new();
    for i in 0..node.count() {
        key.clear();
        node.append_key(i, &mut key);
        lead(&key);
        if node.is_leaf() {
            let _ = Header::decode(node.value(i));
        } else {
            let _ = node.child(i);
        }
    }
    lead(node.lower_fence());
    lead(bytes);
    let _ = node.prefix();
    true
}

/// A chain of versions that begins anywhere in an undo page.
fn undo(page: &Page) -> bool {
    let running = HashSet::from([crate::ids::TxId(1)]);
    let mut accepted = false;
    for offset in (0..64u8).step_by(3) {
        let mut record = vec![2, 1, 0, 0, 0, 0, 0, offset, 0];
        record.extend_from_slice(&[7, 0, 0, 0, 0, 0]);
        let mut reads = 0;
        let mut read = |id: PageId| {
            reads += 1;
            if reads > 1000 {
                return Err(crate::Error::Internal(format!("page {id} again and again")));
            }
            Ok(Box::new(*page))
        };
        accepted |= committed_version(&record, &running, &mut read, &HashSet::new()).is_ok();
    }
    accepted
}

fn log_record(bytes: &[u8]) -> bool {
    let mut accepted = log::record(bytes);
    if let Ok((_, changes)) = ChangeReader::new(bytes) {
        accepted |= changes.filter(Result::is_ok).count() > 0;
    }
    accepted |= PreparedRecord::decode(bytes).is_ok();
    accepted |= decode_rolled_back(bytes).is_ok();
    accepted | DdlRecord::decode(bytes).is_ok()
}

fn definition(bytes: &[u8]) -> bool {
    let mut accepted = Meta::decode(bytes, Path::new("data")).is_ok();
    accepted |= QuarantinedTable::decode_any(Path::new("aside"), bytes);
    let definitions = [
        Definition::decode(bytes).ok(),
        match DdlRecord::decode(bytes) {
            Ok(
                DdlRecord::Create(definition)
                | DdlRecord::CreateCounted(definition, _)
                | DdlRecord::Truncate(definition),
            ) => Some(definition),
            _ => None,
        },
    ];
    for definition in definitions.into_iter().flatten() {
        accepted = true;
        if let Ok(layout) = Layout::new(&definition.schema) {
            let _ = large::can_need(&layout);
            all_columns(&layout, bytes, bytes);
        }
    }
    accepted
}

/// Schemas with every type of column and form of key.
fn layouts() -> Vec<Layout> {
    let int = |bytes, signed| ColumnType::Int { bytes, signed };
    let columns = vec![
        Column::new("a", int(4, false)),
        Column::new("b", int(3, true)).nullable(),
        Column::new("c", ColumnType::Float).nullable(),
        Column::new("d", ColumnType::Double),
        Column::new("e", ColumnType::Bytes { len: 3 }),
        Column::new("f", ColumnType::VarBytes { max: 300 }).collation(8),
        Column::new("g", ColumnType::VarBytes { max: 300 }).nullable(),
        Column::new("h", ColumnType::Large { max: 1 << 24 }).nullable(),
    ];
    let part = |column, descending| KeyPart {
        column,
        prefix: (column == 7).then_some(9),
        descending,
    };
    let keys: [&[usize]; 4] = [&[0], &[5, 0], &[4, 3, 1], &[6, 7, 2]];
    let mut schemas = vec![TableSchema {
        columns: columns.clone(),
        ..TableSchema::default()
    }];
    for primary in [&[0][..], &[4, 3, 0], &[5, 4]] {
        schemas.push(TableSchema {
            columns: columns.clone(),
            primary: Some(Key::new(primary)),
            ..TableSchema::default()
        });
    }
    schemas
        .into_iter()
        .filter_map(|mut schema| {
            for (n, columns) in keys.iter().enumerate() {
                for descending in [false, true] {
                    schema.indexes.push(Index {
                        name: format!("i{n}"),
                        parts: columns.iter().map(|&c| part(c, descending)).collect(),
                        unique: n % 2 == 0,
                    });
                }
            }
            Layout::new(&schema).ok()
        })
        .collect()
}

thread_local! {
    static LAYOUTS: Vec<Layout> = layouts();
}

/// Two parts of the input; its first byte is the length of the first part.
fn halves(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.split_first() {
        Some((&at, rest)) => rest.split_at(usize::from(at).min(rest.len())),
        None => (&[], &[]),
    }
}

fn all_columns(layout: &Layout, key: &[u8], payload: &[u8]) -> bool {
    let Ok(row) = RowRef::new(layout, key, payload) else {
        return false;
    };
    let _ = row.references().count();
    (0..layout.columns.len()).all(|column| match row.field(column) {
        Ok(Field::Outside(value)) => large::chunks(value.len).is_ok(),
        Ok(Field::Value(_)) => true,
        Err(_) => false,
    })
}

fn row(bytes: &[u8]) -> bool {
    let (key, record) = halves(bytes);
    let payload = Header::decode(record).map_or(record, |(_, payload)| payload);
    let outside = payload::outside_row(payload).is_some();
    let _ = large::read_note(record);
    LAYOUTS.with(|layouts| {
        let mut accepted = outside;
        for layout in layouts {
            accepted |= all_columns(layout, key, payload);
            for index in &layout.indexes {
                let mut buffer = EntryBuffer::default();
                if buffer
                    .decode(index, usize::MAX, KeyBytes::Here(key), payload)
                    .is_ok()
                {
                    let entry = EntryRef::new(layout, index, KeyBytes::Here(key), payload, &buffer);
                    accepted |= (0..layout.columns.len()).all(|column| entry.get(column).is_ok());
                }
                for parts in 0..=index.parts.len() {
                    let _ = entry::end_of(index, parts, key, payload);
                }
            }
        }
        accepted | entry::clustered_key(key, payload).is_ok()
    })
}

fn keys(bytes: &[u8]) -> bool {
    let mut accepted = key::unescape(&mut bytes.to_vec()).is_some();
    let _ = (key::row_id(bytes), large::id_of(bytes));
    LAYOUTS.with(|layouts| {
        for layout in layouts {
            for index in 0..=layout.indexes.len() {
                let _ = key_text(
                    layout,
                    index,
                    bytes,
                    bytes.first().is_some_and(|b| b % 2 == 1),
                );
                let Some(key) = layout.key(index) else {
                    continue;
                };
                let mut rest = bytes;
                for (n, part) in key.parts.iter().enumerate() {
                    let Some(value) = part.take(&mut rest, Some(n)) else {
                        break;
                    };
                    accepted |= value.and_then(|value| part.decode(value)).is_some();
                }
                for parts in 0..=key.parts.len() {
                    let _ = (key.part_of(parts, bytes), key.end_of(parts, bytes));
                }
            }
        }
        accepted
    })
}

/// Bytes that each target accepts, from a database's files: the first inputs of a fuzzer.
///
/// # Errors
/// Those of reading the database, which must be sound.
pub fn samples(os: Arc<dyn Os>, dir: &Path) -> Result<Vec<(&'static str, Vec<u8>)>> {
    /// Keys and rows taken of each leaf.
    const OF_A_LEAF: usize = 3;
    let mut damage = Vec::new();
    let (store, meta) = Store::open_damaged(os.clone(), dir, &mut damage)?;
    let mut samples = vec![("catalog", meta.clone())];
    let meta = Meta::decode(&meta, store.path())?;
    let mut page: Box<Page> = Box::new([0; PAGE_SIZE]);
    for id in store.pages() {
        store.read_page(id, &mut page[..])?;
        samples.push(("page", page.to_vec()));
        if page[KIND] != PageKind::Leaf as u8 {
            continue;
        }
        let node = Node::new(&page);
        for i in (0..node.count()).take(OF_A_LEAF) {
            let (key, value) = (node.key(i), node.value(i));
            let (_, payload) = Header::decode(value)?;
            samples.push(("catalog", payload.to_vec()));
            samples.push(("key", key.clone()));
            let front = [key.len().min(255) as u8];
            samples.push(("row", [&front[..], &key[..], value].concat()));
        }
    }
    let file = os.open(store.path(), OpenMode::ReadOnly)?;
    for part in store.parts() {
        let mut bytes = vec![0; part.len as usize];
        file.read_at(&mut bytes, part.offset)?;
        samples.push(match part.kind {
            PartKind::Page(_) => ("page", bytes),
            _ => ("header", bytes),
        });
    }
    let log = Log::read_only(os, &dir.join(LOG_DIR), store.database_id(), meta.log_from())?;
    for record in log {
        samples.push(("log", record?.payload));
    }
    Ok(samples)
}
