//! Keys of an index as text for people: the index's name and the values of the key.

use super::open_table::Table;
use crate::ids::TreeId;
use crate::row::layout::{Layout, PartLayout};
use crate::row::Value;

impl Table {
    /// The name of the index with this tree: "PRIMARY" for the clustered one.
    ///
    /// `None` for a tree of large values, or of another table.
    pub(crate) fn index_name(&self, tree: TreeId) -> Option<String> {
        match self.index_of(tree)? {
            0 => Some("PRIMARY".into()),
            n => Some(self.schema().indexes.get(n - 1)?.name.clone()),
        }
    }

    fn index_of(&self, tree: TreeId) -> Option<usize> {
        let trees = self.trees.load();
        let indexes = std::iter::once(&trees.clustered).chain(&trees.indexes);
        indexes.into_iter().position(|t| t.id() == tree)
    }

    /// The values of an encoded key, or of the beginning of one (`cut`), separated by commas.
    ///
    /// In hexadecimal: bytes that are no text, and strings with a collation, whose key has the sort key instead of the
    /// characters. An entry of a secondary index has the values of the clustered key behind its own.
    pub(crate) fn key_text(&self, tree: TreeId, key: &[u8], cut: bool) -> String {
        match self.index_of(tree) {
            Some(index) => key_text(&self.layout, index, key, cut),
            None => hexadecimal(key),
        }
    }
}

/// As [`Table::key_text`], for index number `index` of a table that need not be open.
pub(crate) fn key_text(layout: &Layout, index: usize, key: &[u8], cut: bool) -> String {
    let mut values = Vec::new();
    let mut rest = key;
    let own = layout.key(index).map_or(&[][..], |key| &key.parts);
    let clustered = match index {
        0 => &[][..],
        _ => &layout.clustered.parts,
    };
    for part in own.iter().chain(clustered) {
        if rest.is_empty() {
            break;
        }
        let mut after = rest;
        let Some(value) = part.take(&mut after, None) else {
            break;
        };
        values.push(value.map_or_else(|| "NULL".into(), |bytes| part_text(part, bytes)));
        rest = after;
    }
    if layout.hidden && !cut {
        if let Some(id) = crate::row::key::row_id(rest) {
            values.push(id.to_string());
            rest = &[];
        }
    }
    if !rest.is_empty() {
        values.push(hexadecimal(rest));
    }
    if cut {
        values.push("…".into());
    }
    values.join(", ")
}

fn part_text(part: &PartLayout, bytes: &[u8]) -> String {
    let inverted: Vec<u8>;
    let bytes = if part.descending {
        inverted = bytes.iter().map(|b| !b).collect();
        &inverted
    } else {
        bytes
    };
    match part.decode(bytes) {
        Some(Value::Int(v)) => v.to_string(),
        Some(Value::UInt(v)) => v.to_string(),
        Some(Value::Float(v)) => v.to_string(),
        Some(Value::Double(v)) => v.to_string(),
        Some(Value::Bytes(v)) => bytes_text(v),
        // The key does not hold the value in decodable form.
        _ => {
            let mut plain = bytes.to_vec();
            match crate::row::key::unescape(&mut plain) {
                Some(length) => bytes_text(&plain[..length]),
                None => hexadecimal(bytes),
            }
        }
    }
}

fn bytes_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        _ => hexadecimal(bytes),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
    format!("X'{digits}'")
}
