//! Keys as bytes whose memcmp order is the order of their values.
//!
//! A part begins, for a nullable column, with a byte: 0 for NULL (which ends the part), 1 before a value. Then
//!   integers   big-endian, the sign bit flipped when signed
//!   floats     big-endian bits; negative: all flipped, otherwise the sign flipped; −0 as +0
//!   fixed bytes as they are
//!   variable   00 → 01 01, 01 → 01 02, other bytes as they are, then 00
//!   collated   the output of [`Collations::sort_key`]
//! The bytes of a descending part are those, each inverted (the null marker too).
//! A hidden row id is 6 bytes, big-endian.

use super::collation::Collations;
use super::layout::{KeyLayout, PartForm, PartLayout};
use super::value::Value;
use crate::error::{Error, Result};
use crate::ids::MAX_KEY;

/// Bytes of a hidden row id in a key.
pub(crate) const ROW_ID_LEN: usize = 6;

/// Appends a hidden row id.
pub(crate) fn put_row_id(id: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&id.to_be_bytes()[8 - ROW_ID_LEN..]);
}

/// A row id from a clustered key.
pub(crate) fn row_id(key: &[u8]) -> Option<u64> {
    let bytes: [u8; ROW_ID_LEN] = key.try_into().ok()?;
    Some(bytes.iter().fold(0, |id, &b| id << 8 | u64::from(b)))
}

/// An integer value of a column of `bytes` bytes as two's complement; `None` when it does not fit.
#[inline]
pub(crate) fn int_bits(value: Value<'_>, bytes: u8, signed: bool) -> Option<u64> {
    let shift = 64 - 8 * u32::from(bytes);
    let v = match (value, signed) {
        (Value::Int(v), true) => v,
        (Value::UInt(v), true) => i64::try_from(v).ok()?,
        (Value::Int(v), false) => {
            let v = u64::try_from(v).ok()?;
            return (v << shift >> shift == v).then_some(v);
        }
        (Value::UInt(v), false) => return (v << shift >> shift == v).then_some(v),
        _ => return None,
    };
    (v << shift >> shift == v).then_some(v as u64)
}

/// An integer as part of a key: big-endian, with the sign bit flipped.
#[derive(Clone, Copy)]
pub(crate) struct IntPart {
    /// The bytes of the part, followed by zeros.
    be: [u8; 8],
    bytes: u8,
}

impl IntPart {
    /// Returns `None` if the value does not fit.
    #[inline(always)]
    fn new(value: Value<'_>, bytes: u8, signed: bool) -> Option<IntPart> {
        let v = int_bits(value, bytes, signed)?;
        let flip = u64::from(signed) << (8 * bytes - 1);
        let be = (v ^ flip) << (64 - 8 * u32::from(bytes));
        Some(IntPart {
            be: be.to_be_bytes(),
            bytes,
        })
    }

    /// Appends the part.
    #[inline(always)]
    pub fn put(self, out: &mut Vec<u8>) {
        // Appends eight bytes, a constant number, and cuts the surplus off: this needs no call of memcpy.
        let end = out.len() + usize::from(self.bytes);
        out.extend_from_slice(&self.be);
        out.truncate(end);
    }
}

fn put_var(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&b| b <= 1) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[1, rest[at] + 1]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(0);
}

impl PartLayout {
    /// Appends the part for a column's value. Collated strings need `collations`.
    #[inline]
    pub fn encode(
        &self,
        value: Value<'_>,
        collations: Option<&dyn Collations>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if let Some(int) = self.plain_int(value) {
            int.put(out);
            return Ok(());
        }
        let begin = out.len();
        self.encode_ascending(value, collations, out)?;
        if self.descending {
            out[begin..].iter_mut().for_each(|b| *b = !*b);
        }
        Ok(())
    }

    /// The part of an integer, the most frequent one, without a call; `None` for other parts, or if the value does not
    /// fit.
    #[inline(always)]
    pub fn plain_int(&self, value: Value<'_>) -> Option<IntPart> {
        match (self.form, self.nullable, self.descending) {
            (PartForm::Int { bytes, signed }, false, false) => IntPart::new(value, bytes, signed),
            _ => None,
        }
    }

    fn encode_ascending(
        &self,
        value: Value<'_>,
        collations: Option<&dyn Collations>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.nullable {
            if value.is_null() {
                out.push(0);
                return Ok(());
            }
            out.push(1);
        }
        match (self.form, value) {
            (PartForm::Int { bytes, signed }, _) => IntPart::new(value, bytes, signed)
                .ok_or_else(|| self.misfit(value))?
                .put(out),
            (PartForm::Float, Value::Float(v)) => {
                let bits = (v + 0.0).to_bits();
                let flip = if bits >> 31 == 1 { u32::MAX } else { 1 << 31 };
                out.extend_from_slice(&(bits ^ flip).to_be_bytes());
            }
            (PartForm::Double, Value::Double(v)) => {
                let bits = (v + 0.0).to_bits();
                let flip = if bits >> 63 == 1 { u64::MAX } else { 1 << 63 };
                out.extend_from_slice(&(bits ^ flip).to_be_bytes());
            }
            (PartForm::Fixed { len }, Value::Bytes(v)) => {
                let cut = match self.prefix {
                    Some(_) => v.get(..len as usize),
                    None => (v.len() == len as usize).then_some(v),
                };
                out.extend_from_slice(cut.ok_or_else(|| self.misfit(value))?);
            }
            (PartForm::Var, Value::Bytes(v)) => {
                let cut = self.prefix.map_or(v.len(), |p| v.len().min(p as usize));
                // One byte more than the longest key is enough to differ from all keys: a long value is not encoded
                // whole.
                put_var(&v[..cut.min(MAX_KEY + 1)], out);
            }
            (PartForm::Collated { collation }, Value::Bytes(v)) => {
                let Some(collations) = collations else {
                    return Err(Error::Invalid(format!(
                        "collation {collation} is used, but the database was opened without \
                         collations (Options::collations)"
                    )));
                };
                collations.sort_key(collation, v, self.prefix, out)?;
            }
            _ => return Err(self.misfit(value)),
        }
        Ok(())
    }

    #[cold]
    fn misfit(&self, value: Value<'_>) -> Error {
        Error::Invalid(format!(
            "column number {}: {value:?} can't be a key part of form {:?}",
            self.column, self.form
        ))
    }

    /// Whether the part at the front of `key` is NULL; `None` if `key` is empty.
    pub fn is_null(&self, key: &[u8]) -> Option<bool> {
        let null = if self.descending { u8::MAX } else { 0 };
        Some(self.nullable && *key.first()? == null)
    }

    /// The bytes of this part's value at the front of `key`, which moves past the part; the inner `None` is NULL.
    ///
    /// The bytes of a descending part are inverted. The end of a collated part is not marked: `collated_len` is its
    /// length. The outer `None`: the bytes are no such part.
    pub fn take<'k>(
        &self,
        key: &mut &'k [u8],
        collated_len: Option<usize>,
    ) -> Option<Option<&'k [u8]>> {
        if self.nullable {
            let is_null = self.is_null(key)?;
            *key = key.get(1..)?;
            if is_null {
                return Some(None);
            }
        }
        let end = if self.descending { u8::MAX } else { 0 };
        let (len, skip) = match self.form {
            PartForm::Var => (key.iter().position(|&b| b == end)?, 1),
            PartForm::Collated { .. } => (collated_len?, 0),
            form => (form.fixed_len()?, 0),
        };
        let part = key.get(..len)?;
        *key = key.get(len + skip..)?;
        Some(Some(part))
    }

    /// The value of a part whose bytes were restored if necessary.
    #[inline]
    pub fn restored<'k>(&self, bytes: &'k [u8]) -> Option<Value<'k>> {
        match self.form {
            PartForm::Var | PartForm::Collated { .. } => Some(Value::Bytes(bytes)),
            _ => self.decode(bytes),
        }
    }

    /// The value that a part's bytes (from [`PartLayout::take`]) encode; `None` for escaped and collated values.
    pub fn decode<'k>(&self, part: &'k [u8]) -> Option<Value<'k>> {
        Some(match self.form {
            PartForm::Int { bytes, signed } => {
                let v = part.iter().fold(0u64, |v, &b| v << 8 | u64::from(b));
                if signed {
                    let shift = 64 - 8 * u32::from(bytes);
                    let flipped = v ^ 1 << (8 * bytes - 1);
                    Value::Int((flipped << shift) as i64 >> shift)
                } else {
                    Value::UInt(v)
                }
            }
            PartForm::Float => {
                let bits = u32::from_be_bytes(part.try_into().ok()?);
                let flip = if bits >> 31 == 0 { u32::MAX } else { 1 << 31 };
                Value::Float(f32::from_bits(bits ^ flip))
            }
            PartForm::Double => {
                let bits = u64::from_be_bytes(part.try_into().ok()?);
                let flip = if bits >> 63 == 0 { u64::MAX } else { 1 << 63 };
                Value::Double(f64::from_bits(bits ^ flip))
            }
            PartForm::Fixed { .. } => Value::Bytes(part),
            PartForm::Var => {
                if part.contains(&1) {
                    return None;
                }
                Value::Bytes(part)
            }
            PartForm::Collated { .. } => return None,
        })
    }
}

/// Whether a key holds a variable value unescaped, so that a row need not store it again.
pub(crate) fn stands_as_is(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| b > 1)
}

/// Decodes an escaped variable part in place, and returns the length of the original.
///
/// `None` if it is malformed.
pub(crate) fn unescape(part: &mut [u8]) -> Option<usize> {
    let Some(mut to) = part.iter().position(|&b| b <= 1) else {
        return Some(part.len());
    };
    let mut from = to;
    while let Some(&b) = part.get(from) {
        let (value, length) = match b {
            0 => return None,
            1 => match part.get(from + 1)? {
                1 => (0, 2),
                2 => (1, 2),
                _ => return None,
            },
            _ => (b, 1),
        };
        part[to] = value;
        to += 1;
        from += length;
    }
    Some(to)
}

impl KeyLayout {
    /// Appends the parts for a whole row's values.
    ///
    /// Returns whether a part is NULL.
    pub fn encode_row(
        &self,
        row: &[Value<'_>],
        collations: Option<&dyn Collations>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut any_null = false;
        for part in &self.parts {
            let value = row.get(part.column).copied().unwrap_or(Value::Null);
            any_null |= value.is_null();
            part.encode(value, collations, out)?;
        }
        Ok(any_null)
    }

    /// Appends the first `values.len()` parts, from values in the order of the parts.
    #[inline]
    pub fn encode_prefix(
        &self,
        values: &[Value<'_>],
        collations: Option<&dyn Collations>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if values.len() > self.parts.len() {
            return Err(Error::Invalid(format!(
                "the key has {} parts, {} values were given",
                self.parts.len(),
                values.len()
            )));
        }
        for (part, &value) in self.parts.iter().zip(values) {
            part.encode(value, collations, out)?;
        }
        Ok(())
    }

    /// The bytes of part `n` of a clustered key without a collated part before it.
    pub fn part_of<'k>(&self, n: usize, key: &'k [u8]) -> Option<&'k [u8]> {
        let part = self.parts.get(n)?;
        if let Some(at) = part.fixed_at {
            return part.take(&mut key.get(at..)?, None)?;
        }
        let mut rest = key;
        for before in &self.parts[..n] {
            before.take(&mut rest, None)?;
        }
        part.take(&mut rest, None)?
    }

    /// The end of the first `parts` parts in a key without collated parts among them.
    pub fn end_of(&self, parts: usize, key: &[u8]) -> Option<usize> {
        let mut rest = key;
        for part in self.parts.get(..parts)? {
            part.take(&mut rest, None)?;
        }
        Some(key.len() - rest.len())
    }
}
