//! Entries of secondary indexes.
//!
//! ```text
//! key:     the index's parts; then the clustered key, unless the index is unique and no part
//!          is NULL
//! payload: varint (length of the clustered key × 2 + 1 when it is stored here)
//!          [clustered key]
//!          per collated part that is not NULL: varint length of its sort key; then, unless it is
//!          a prefix or descending, what gives the original back (case_map)
//! ```

use super::collation::Collations;
use super::key::unescape;
use super::key_bytes::KeyBytes;
use super::layout::{KeyLayout, Layout, PartForm, PartLayout};
use super::value::Value;
use super::varint;
use crate::error::{Error, Result};
use crate::fallible;
use crate::row::collation::case_map;
use crate::row::collation::case_map::Restored;

/// Appends a row's entry to `key` and `payload`.
pub(crate) fn encode(
    index: &KeyLayout,
    row: &[Value<'_>],
    clustered_key: &[u8],
    collations: Option<&dyn Collations>,
    key: &mut Vec<u8>,
    payload: &mut Vec<u8>,
) -> Result<()> {
    let value_of = |column: usize| row.get(column).copied().unwrap_or(Value::Null);
    let inline = index.unique && !index.parts.iter().any(|p| value_of(p.column).is_null());
    varint::put(
        (clustered_key.len() as u64) << 1 | u64::from(inline),
        payload,
    );
    if inline {
        payload.extend_from_slice(clustered_key);
    }
    for part in &index.parts {
        let value = value_of(part.column);
        let at = key.len();
        part.encode(value, collations, key)?;
        if let (PartForm::Collated { .. }, Value::Bytes(v)) = (part.form, value) {
            let weights = &key[at + usize::from(part.nullable)..];
            varint::put(weights.len() as u64, payload);
            if part.gives_back() {
                fallible::reserve(payload, v.len(), "an index entry")?;
                case_map::encode(v, weights, payload);
            }
        }
    }
    if !inline {
        key.extend_from_slice(clustered_key);
    }
    Ok(())
}

fn damaged(what: &str) -> Error {
    Error::Internal(format!("index entry: {what}"))
}

/// Splits an entry into the clustered key that it leads to and the rest of the payload.
fn split<'a>(key: &'a [u8], payload: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let mut rest = payload;
    let head = varint::take(&mut rest)?;
    let len = usize::try_from(head >> 1).ok()?;
    if head & 1 == 1 {
        rest.split_at_checked(len)
    } else {
        Some((key.get(key.len().checked_sub(len)?..)?, rest))
    }
}

/// The clustered key that an entry leads to.
pub(crate) fn clustered_key<'a>(key: &'a [u8], payload: &'a [u8]) -> Result<&'a [u8]> {
    split(key, payload)
        .map(|(key, _)| key)
        .ok_or_else(|| damaged("clustered key"))
}

/// Where the first `parts` parts of an entry's key end.
pub(crate) fn end_of(index: &KeyLayout, parts: usize, key: &[u8], payload: &[u8]) -> Result<usize> {
    let end = || -> Option<usize> {
        let (_, mut info) = split(key, payload)?;
        let mut rest = key;
        for part in index.parts.get(..parts)? {
            let collated = matches!(part.form, PartForm::Collated { .. });
            let is_null = part.is_null(rest)?;
            let mut weights = None;
            if collated && !is_null {
                weights = Some(usize::try_from(varint::take(&mut info)?).ok()?);
                if part.gives_back() {
                    case_map::skip(&mut info)?;
                }
            }
            part.take(&mut rest, weights)?;
        }
        Some(key.len() - rest.len())
    };
    end().ok_or_else(|| damaged("parts"))
}

/// Where a part's value is.
#[derive(Clone, Copy, Debug)]
enum Found {
    Null,
    /// In the buffer's bytes.
    Buffer(u32, u32),
    /// In the entry's payload, unencoded.
    Payload(u32, u32),
    /// Not decoded, or not given back by the entry.
    Absent,
}

/// The buffers of a decoded entry; reused from entry to entry.
#[derive(Default)]
pub(crate) struct EntryBuffer {
    found: Vec<Found>,
    /// The key from the first decoded part on.
    ///
    /// Values are restored in place.
    bytes: Vec<u8>,
}

impl EntryBuffer {
    /// Finds the first `parts` parts of an entry, and restores those whose key bytes are not the value.
    ///
    /// Skips the leading parts that are at a fixed place.
    #[inline]
    pub fn decode(
        &mut self,
        index: &KeyLayout,
        parts: usize,
        key: KeyBytes<'_>,
        payload: &[u8],
    ) -> Result<()> {
        self.found.clear();
        let parts = index.parts.get(..parts).unwrap_or(&index.parts);
        let Some(first) = parts.get(index.in_place) else {
            return Ok(());
        };
        self.found.resize(index.in_place, Found::Absent);
        key.copy_rest(first.fixed_at.unwrap_or(0), &mut self.bytes);
        self.find(&parts[index.in_place..], payload)
            .ok_or_else(|| damaged("parts"))
    }

    fn find(&mut self, parts: &[PartLayout], payload: &[u8]) -> Option<()> {
        let mut info = payload;
        let head = varint::take(&mut info)?;
        if head & 1 == 1 {
            info = info.get(usize::try_from(head >> 1).ok()?..)?;
        }
        let mut at = 0;
        for part in parts {
            let mut rest = self.bytes.get(at..)?;
            let collated = matches!(part.form, PartForm::Collated { .. });
            let weights = if collated && !part.is_null(rest)? {
                Some(usize::try_from(varint::take(&mut info)?).ok()?)
            } else {
                None
            };
            let value = part.take(&mut rest, weights)?.map(<[u8]>::len);
            let begin = at + usize::from(part.nullable);
            at = self.bytes.len() - rest.len();
            let Some(length) = value else {
                self.found.push(Found::Null);
                continue;
            };
            let bytes = &mut self.bytes[begin..begin + length];
            let in_buffer = |length: usize| Found::Buffer(begin as u32, (begin + length) as u32);
            self.found.push(match part.form {
                _ if !part.gives_back() => Found::Absent,
                PartForm::Collated { .. } => match case_map::restore(&mut info, bytes)? {
                    Restored::Front(length) => in_buffer(length),
                    Restored::Whole(length) => {
                        let end = payload.len() - info.len();
                        Found::Payload((end - length) as u32, end as u32)
                    }
                },
                PartForm::Var => in_buffer(unescape(bytes)?),
                _ => in_buffer(length),
            });
        }
        Some(())
    }
}

/// An index entry, decoded: the columns of the index and of the clustered key.
#[derive(Clone, Copy)]
pub(crate) struct EntryRef<'a> {
    layout: &'a Layout,
    index: &'a KeyLayout,
    key: KeyBytes<'a>,
    payload: &'a [u8],
    buffer: &'a EntryBuffer,
}

impl<'a> EntryRef<'a> {
    /// An entry; `buffer` has decoded the parts that are not at a fixed place.
    #[inline]
    pub fn new(
        layout: &'a Layout,
        index: &'a KeyLayout,
        key: KeyBytes<'a>,
        payload: &'a [u8],
        buffer: &'a EntryBuffer,
    ) -> Self {
        EntryRef {
            layout,
            index,
            key,
            payload,
            buffer,
        }
    }

    /// The entry's payload.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The value of a column that the entry covers (see [`Layout::covers`]).
    #[inline]
    pub fn get(&self, column: usize) -> Result<Value<'a>> {
        if let Some(n) = self.index.entry_part(column) {
            let part = &self.index.parts[n];
            if let Some(at) = part.stands_at() {
                let value = || match part.take(&mut self.key.whole().get(at..)?, None)? {
                    None => Some(Value::Null),
                    Some(bytes) => part.decode(bytes),
                };
                return value().ok_or_else(|| damaged("part"));
            }
            let span = |bytes: &'a [u8], from: u32, to: u32| {
                bytes
                    .get(from as usize..to as usize)
                    .ok_or_else(|| damaged("span"))
            };
            match self.buffer.found.get(n) {
                Some(Found::Null) => return Ok(Value::Null),
                Some(&Found::Buffer(from, to)) => {
                    return part
                        .restored(span(&self.buffer.bytes, from, to)?)
                        .ok_or_else(|| damaged("part"))
                }
                Some(&Found::Payload(from, to)) => {
                    return Ok(Value::Bytes(span(self.payload, from, to)?))
                }
                _ => {}
            }
        }
        let clustered = &self.layout.clustered;
        if let Some(n) = clustered.restorable_exactly(column) {
            return clustered
                .part_of(n, clustered_key(self.key.whole(), self.payload)?)
                .and_then(|bytes| clustered.parts[n].decode(bytes))
                .ok_or_else(|| damaged("clustered key"));
        }
        Err(Error::NotFound {
            what: "column in the index",
            name: column.to_string(),
        })
    }
}
