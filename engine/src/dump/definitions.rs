//! The definitions that the catalog still has.

use std::collections::BTreeMap;

use super::nodes::{Nodes, Part};
use super::{unnamed, Missing};
use crate::catalog::{Definition, CATALOG_TREE};
use crate::error::{Error, Result};
use crate::ids::{PageId, TableId};
use crate::mvcc::live_payload;

/// Reads every definition that can be read.
pub(super) fn load(
    nodes: &Nodes,
    root: PageId,
    missing: &mut Vec<Missing>,
) -> BTreeMap<TableId, Definition> {
    let mut chunks: BTreeMap<TableId, BTreeMap<u16, Vec<u8>>> = BTreeMap::new();
    let walked = nodes.walk(CATALOG_TREE, root, &mut |part| {
        match part {
            Part::Leaf(leaf) => {
                for i in 0..leaf.count() {
                    if let Err(why) = chunk(&leaf.key(i), leaf.value(i), &mut chunks) {
                        let what = "a definition of a table".into();
                        missing.push(Missing { what, why });
                    }
                }
            }
            Part::Missing(range, why) => missing.push(Missing {
                what: format!(
                    "the definitions of tables, from number {} to {}",
                    number(&range.lower).unwrap_or(0),
                    match range.upper.as_deref().and_then(number) {
                        Some(below) => below.to_string(),
                        None => "the last".into(),
                    }
                ),
                why,
            }),
        }
        Ok(())
    });
    if let Err(why) = walked {
        let what = "definitions of tables".into();
        missing.push(Missing { what, why });
    }
    let mut definitions = BTreeMap::new();
    for (id, chunks) in chunks {
        match whole(&chunks) {
            Ok(definition) => {
                definitions.insert(id, definition);
            }
            Err(why) => missing.push(Missing {
                what: unnamed(id),
                why,
            }),
        }
    }
    definitions
}

fn number(key: &[u8]) -> Option<u32> {
    // A fence may be shorter than a key.
    let mut bytes = [0; 4];
    let len = key.len().min(4);
    bytes[..len].copy_from_slice(&key[..len]);
    (!key.is_empty()).then_some(u32::from_be_bytes(bytes))
}

fn chunk(
    key: &[u8],
    value: &[u8],
    chunks: &mut BTreeMap<TableId, BTreeMap<u16, Vec<u8>>>,
) -> Result<()> {
    let (Some(table), Some(number)) = (
        key.first_chunk::<4>(),
        key.get(4..).and_then(|rest| rest.first_chunk::<2>()),
    ) else {
        return Err(Error::Internal("catalog: a key is too short".into()));
    };
    if let Some(bytes) = live_payload(value)? {
        chunks
            .entry(TableId(u32::from_be_bytes(*table)))
            .or_default()
            .insert(u16::from_be_bytes(*number), bytes.to_vec());
    }
    Ok(())
}

fn whole(chunks: &BTreeMap<u16, Vec<u8>>) -> Result<Definition> {
    let in_order = chunks.keys().enumerate();
    if in_order.clone().any(|(n, &chunk)| n != usize::from(chunk)) {
        return Err(Error::Internal(
            "a part of the definition is missing".into(),
        ));
    }
    let bytes: Vec<u8> = chunks.values().flatten().copied().collect();
    Definition::decode(&bytes)
}
