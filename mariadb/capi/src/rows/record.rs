//! Rows: conversion between the server's record buffer and the engine's values.

use peregrine::{Cursor, NumberPlace, RowView, Table, Text, TextPlace, Value};
use smallvec::SmallVec;

use crate::c_types::Code;
use crate::failure::{Failure, Outcome};
use crate::planted::{is_planted, Fault};
use crate::rows::layout::{ColumnLayout, Kind, Layout};

/// The values of a row, on the stack for ordinary tables.
pub type Values<'a> = SmallVec<[Value<'a>; 32]>;

/// Returns whether a bitmap of the server contains a column.
#[inline]
pub fn has(bitmap: &[u64], column: usize) -> bool {
    bitmap
        .get(column / 64)
        .is_some_and(|word| word >> (column % 64) & 1 != 0)
}

/// The value of a column in a record.
///
/// # Safety
/// For a blob the pointer in the record must be valid for the length beside it, for `'a`.
pub unsafe fn value<'a>(column: &ColumnLayout, record: &'a [u8]) -> Outcome<Value<'a>> {
    if column.null_bit != 0 && record[column.null_offset] & column.null_bit != 0 {
        return Ok(Value::Null);
    }
    // SAFETY: by the caller's promise.
    unsafe { value_at(column, &record[column.offset..]) }
}

/// The value of a column at the beginning of `bytes`.
///
/// # Safety
/// As [`value`].
#[inline]
pub unsafe fn value_at<'a>(column: &ColumnLayout, bytes: &'a [u8]) -> Outcome<Value<'a>> {
    Ok(match column.kind {
        Kind::Signed => Value::Int(signed(&bytes[..column.length])),
        Kind::Unsigned => Value::UInt(unsigned(&bytes[..column.length])),
        Kind::Float => Value::Float(float(bytes)),
        Kind::Double => Value::Double(double(bytes)),
        Kind::Fixed => Value::Bytes(&bytes[..column.length]),
        Kind::Padded => Value::Bytes(trim(column, &bytes[..column.length])),
        Kind::Variable => {
            let length = unsigned(&bytes[..column.length_bytes]) as usize;
            if length > column.length {
                return Err(Failure::argument("length of a string"));
            }
            Value::Bytes(&bytes[column.length_bytes..][..length])
        }
        Kind::Blob => {
            let length = unsigned(&bytes[..column.length_bytes]) as usize;
            // SAFETY: the caller promises the pointer and the length to fit.
            Value::Bytes(unsafe { blob(&bytes[column.length_bytes..], length)? })
        }
        Kind::Absent => Value::Null,
    })
}

/// All stored values of a record, in the engine's order.
///
/// # Safety
/// As [`value`].
pub unsafe fn values<'a>(layout: &Layout, record: &'a [u8], out: &mut Values<'a>) -> Outcome {
    for &column in &layout.stored {
        // SAFETY: by the caller's promise.
        out.push(unsafe { value(&layout.columns[column], record)? });
    }
    Ok(())
}

/// Returns whether a column has the same bytes in two records; for a blob, the same pointer.
pub fn same_bytes(column: &ColumnLayout, a: &[u8], b: &[u8]) -> bool {
    let null = |record: &[u8]| record[column.null_offset] & column.null_bit;
    if null(a) != null(b) {
        return false;
    }
    let (a, b) = (&a[column.offset..], &b[column.offset..]);
    let length = match column.kind {
        Kind::Absent => return true,
        Kind::Variable => {
            let n = column.length_bytes;
            let length = unsigned(&a[..n]) as usize;
            if a[..n] != b[..n] || length > column.length {
                return false;
            }
            n + length
        }
        Kind::Blob => column.length_bytes + size_of::<*const u8>(),
        _ => column.length,
    };
    a[..length] == b[..length]
}

fn signed(bytes: &[u8]) -> i64 {
    let value = unsigned(bytes);
    let unused = 64 - 8 * bytes.len() as u32;
    ((value << unused) as i64) >> unused
}

#[inline]
fn unsigned(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

// Keys must be equal for -0 and 0, as the server finds them equal: `+ 0.0` makes -0 into 0.
fn float(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) + 0.0
}

fn double(bytes: &[u8]) -> f64 {
    let mut all = [0; 8];
    all.copy_from_slice(&bytes[..8]);
    f64::from_le_bytes(all) + 0.0
}

/// A padded value without its padding.
pub fn trim<'a>(column: &ColumnLayout, mut bytes: &'a [u8]) -> &'a [u8] {
    let n = column.pad_length;
    let pad = &column.pad[..n];
    while bytes.len() >= n && &bytes[bytes.len() - n..] == pad {
        bytes = &bytes[..bytes.len() - n];
    }
    bytes
}

/// # Safety
/// The pointer in the first 8 of `bytes` must be valid for `length`.
unsafe fn blob<'a>(bytes: &[u8], length: usize) -> Outcome<&'a [u8]> {
    let mut address = [0; size_of::<*const u8>()];
    address.copy_from_slice(&bytes[..size_of::<*const u8>()]);
    let pointer = usize::from_ne_bytes(address) as *const u8;
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::argument("pointer of a blob"));
    }
    // SAFETY: not null, and valid for `length` by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// The columns that a reader wants, and the prepared steps that write them into a record.
#[derive(Debug, Default)]
pub struct Projection {
    wanted: SmallVec<[u64; 2]>,
    /// The index that is read without its rows; `None`: whole rows.
    index: Option<usize>,
    /// The columns at a fixed place in the key, and their offsets in the record.
    numbers: Vec<(NumberPlace, usize)>,
    /// The strings at a known place in the index entry.
    texts: Vec<(TextPlace, ColumnLayout)>,
    /// The engine's number of each other column wanted, and its layout in the record.
    columns: Vec<(usize, ColumnLayout)>,
    ready: bool,
}

impl Projection {
    /// Returns whether this is prepared for `wanted`.
    #[inline]
    pub fn fits(&self, wanted: &[u64], index: Option<usize>) -> bool {
        // Compares word by word: a call of memcmp would cost more for so few words.
        self.ready && self.index == index && self.wanted.iter().eq(wanted)
    }

    /// Prepares for another bitmap.
    ///
    /// `in_place`: [`Projection::write_in_place`] writes the columns whose place is always the same.
    pub fn prepare(
        &mut self,
        layout: &Layout,
        wanted: &[u64],
        table: &Table,
        index: Option<usize>,
        in_place: bool,
    ) {
        self.ready = true;
        self.index = index;
        self.wanted.clear();
        self.wanted.extend_from_slice(wanted);
        self.numbers.clear();
        self.texts.clear();
        self.columns.clear();
        for (stored, &column) in layout.stored.iter().enumerate() {
            let covered = || index.is_none_or(|index| table.index_covers(index, stored));
            if !has(wanted, column) || !covered() {
                continue;
            }
            let is_last = stored + 1 == layout.stored.len();
            if !in_place && is_last && is_planted(Fault::LoseColumn) {
                continue;
            }
            let column = &layout.columns[column];
            match column.kind {
                Kind::Signed | Kind::Unsigned if in_place && column.null_bit == 0 => {
                    let place = table.number_place(index.unwrap_or(0), stored);
                    if let Some(place) = place.filter(|place| place.bytes() == column.length) {
                        self.numbers.push((place, column.offset));
                        continue;
                    }
                }
                Kind::Variable if in_place => {
                    let place = index.and_then(|index| table.text_place(index, stored));
                    if let Some(place) = place {
                        self.texts.push((place, column.clone()));
                        continue;
                    }
                }
                _ => {}
            }
            self.columns.push((stored, column.clone()));
        }
    }

    /// Writes the columns at known places of the cursor's current key or entry.
    #[inline]
    pub fn write_in_place(&self, cursor: &Cursor, record: &mut [u8]) -> Outcome {
        for (place, offset) in &self.numbers {
            let Some(bits) = cursor.number(place) else {
                return Err(Failure::new(Code::Internal, "a key without its columns"));
            };
            write_number(&mut record[*offset..], place.bytes(), bits);
        }
        for (place, column) in &self.texts {
            let (length, bytes) = record[column.offset..].split_at_mut(column.length_bytes);
            let text = cursor.text(place, &mut bytes[..column.length])?;
            let written = match text {
                Text::Bytes(written) => written,
                Text::Null => 0,
            };
            write_number(length, column.length_bytes, written as u64);
            if column.null_bit != 0 {
                let nulls = &mut record[column.null_offset];
                *nulls &= !column.null_bit;
                if text == Text::Null {
                    *nulls |= column.null_bit;
                }
            }
        }
        Ok(())
    }

    /// Returns whether this is prepared, and [`Projection::write_in_place`] writes all wanted columns.
    #[inline]
    pub fn is_in_place(&self) -> bool {
        self.ready && self.columns.is_empty()
    }

    /// The engine's numbers of the columns that [`Projection::write`] reads.
    pub fn stored(&self) -> Vec<usize> {
        self.columns.iter().map(|(stored, _)| *stored).collect()
    }

    /// Writes the other columns of a row into a record.
    ///
    /// Copies large values, or with `copy` every blob, to `memory`, one buffer for each of the engine's columns.
    /// Pointers to copies in the record stay valid until the next row; other pointers, until the cursor moves.
    pub fn write(
        &self,
        layout: &Layout,
        row: RowView<'_>,
        record: &mut [u8],
        memory: &mut Vec<Vec<u8>>,
        copy: bool,
    ) -> Outcome {
        for (stored, column) in &self.columns {
            let stored = *stored;
            // Borrowed, since a copy of a value that was just written in pieces would stall on store forwarding.
            let got = row.get(stored);
            let value = match &got {
                Ok(value) => value,
                Err(_) => return got.map(drop).map_err(Failure::from),
            };
            if column.null_bit != 0 {
                if value.is_null() {
                    record[column.null_offset] |= column.null_bit;
                    clear(column, &layout.nulls, record);
                    continue;
                }
                record[column.null_offset] &= !column.null_bit;
            }
            let outside = matches!(value, Value::OutOfRow(_));
            if outside || (copy && column.kind == Kind::Blob) {
                if memory.len() < layout.stored.len() {
                    memory.resize_with(layout.stored.len(), Vec::new);
                }
                let buffer = &mut memory[stored];
                row.get_large(stored, buffer)?;
                write_value(column, &layout.nulls, &Value::Bytes(buffer), record)?;
            } else {
                write_value(column, &layout.nulls, value, record)?;
            }
        }
        Ok(())
    }
}

/// Writes one column of a record and its null bit.
pub fn write_column(
    layout: &Layout,
    column: &ColumnLayout,
    value: &Value<'_>,
    record: &mut [u8],
) -> Outcome {
    if column.null_bit != 0 {
        let nulls = &mut record[column.null_offset];
        *nulls &= !column.null_bit;
        if value.is_null() {
            *nulls |= column.null_bit;
        }
    }
    write_value(column, &layout.nulls, value, record)
}

/// Writes the bytes that a record has where a column is NULL.
fn clear(column: &ColumnLayout, nulls: &[u8], record: &mut [u8]) {
    let length = match column.kind {
        Kind::Absent => return,
        Kind::Variable => column.length_bytes,
        Kind::Blob => column.length_bytes + size_of::<*const u8>(),
        _ => column.length,
    };
    let place = column.offset..column.offset + length;
    record[place.clone()].copy_from_slice(&nulls[place]);
}

fn fill(column: &ColumnLayout, bytes: &mut [u8]) {
    match column.pad_length {
        1 => bytes.fill(column.pad[0]),
        n => {
            for unit in bytes.chunks_mut(n) {
                unit.copy_from_slice(&column.pad[..unit.len()]);
            }
        }
    }
}

/// Writes the low bytes of a number.
///
/// Common lengths are constants, since a call of memcpy would cost more.
#[inline(always)]
fn write_number(bytes: &mut [u8], length: usize, v: u64) {
    let all = v.to_le_bytes();
    match length {
        1 => bytes[0] = all[0],
        2 => bytes[..2].copy_from_slice(&all[..2]),
        4 => bytes[..4].copy_from_slice(&all[..4]),
        8 => bytes[..8].copy_from_slice(&all),
        n => bytes[..n].copy_from_slice(&all[..n]),
    }
}

#[inline]
fn write_value(
    column: &ColumnLayout,
    nulls: &[u8],
    value: &Value<'_>,
    record: &mut [u8],
) -> Outcome {
    let bytes = &mut record[column.offset..];
    match (column.kind, value) {
        (Kind::Unsigned, &Value::UInt(v)) => write_number(bytes, column.length, v),
        (Kind::Signed, &Value::Int(v)) => write_number(bytes, column.length, v as u64),
        (Kind::Float, Value::Float(v)) => bytes[..4].copy_from_slice(&v.to_le_bytes()),
        (Kind::Double, Value::Double(v)) => bytes[..8].copy_from_slice(&v.to_le_bytes()),
        (Kind::Variable, Value::Bytes(v)) if v.len() <= column.length => {
            let n = column.length_bytes;
            bytes[..n].copy_from_slice(&(v.len() as u64).to_le_bytes()[..n]);
            bytes[n..n + v.len()].copy_from_slice(v);
        }
        (Kind::Fixed, Value::Bytes(v)) if v.len() == column.length => {
            bytes[..v.len()].copy_from_slice(v);
        }
        (Kind::Padded, Value::Bytes(v)) if v.len() <= column.length => {
            let (value, rest) = bytes[..column.length].split_at_mut(v.len());
            value.copy_from_slice(v);
            fill(column, rest);
        }
        (Kind::Blob, Value::Bytes(v)) => {
            let n = column.length_bytes;
            bytes[..n].copy_from_slice(&(v.len() as u64).to_le_bytes()[..n]);
            bytes[n..n + size_of::<*const u8>()]
                .copy_from_slice(&(v.as_ptr() as usize).to_ne_bytes());
        }
        // The column is NOT NULL, and the row was written before the column was added without a default.
        (_, Value::Null) => clear(column, nulls, record),
        _ => {
            return Err(Failure::new(
                Code::Definition,
                "a stored value does not have its column's type",
            ))
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column(kind: Kind, offset: usize, length: usize) -> ColumnLayout {
        ColumnLayout {
            kind,
            offset,
            length,
            length_bytes: 2,
            null_offset: 0,
            null_bit: 2,
            pad: [b' ', 0, 0, 0],
            pad_length: 1,
            stored_as: Some(0),
        }
    }

    /// Writes a value into a record and returns the record.
    fn round_trip(column: &ColumnLayout, value: Value<'_>) -> Vec<u8> {
        let mut record = vec![0xAA; 64];
        record[0] = 0;
        write_value(column, &[0; 64], &value, &mut record).unwrap();
        record
    }

    #[test]
    fn integers_of_all_widths_keep_their_sign() {
        for (length, low, high) in [
            (1, i64::from(i8::MIN), i64::from(i8::MAX)),
            (2, i64::from(i16::MIN), i64::from(i16::MAX)),
            (3, -(1 << 23), (1 << 23) - 1),
            (4, i64::from(i32::MIN), i64::from(i32::MAX)),
            (8, i64::MIN, i64::MAX),
        ] {
            let signed = column(Kind::Signed, 1, length);
            let unsigned = column(Kind::Unsigned, 1, length);
            for v in [low, -1, 0, 1, high] {
                let record = round_trip(&signed, Value::Int(v));
                // SAFETY: no blob.
                assert_eq!(unsafe { value(&signed, &record) }.unwrap(), Value::Int(v));
                assert_eq!(record[1 + length], 0xAA, "wrote beyond the column");
            }
            let v = u64::MAX >> (64 - 8 * length);
            let record = round_trip(&unsigned, Value::UInt(v));
            // SAFETY: no blob.
            let back = unsafe { value(&unsigned, &record) }.unwrap();
            assert_eq!(back, Value::UInt(v));
        }
    }

    #[test]
    fn negative_zero_is_zero() {
        let double = column(Kind::Double, 1, 8);
        let record = round_trip(&double, Value::Double(-0.0));
        // SAFETY: no blob.
        let Value::Double(v) = unsafe { value(&double, &record) }.unwrap() else {
            panic!()
        };
        assert!(v.is_sign_positive());
    }

    #[test]
    fn padding_goes_and_comes_back() {
        for (pad, length) in [
            ([b' ', 0, 0, 0], 1),
            ([0, b' ', 0, 0], 2),
            ([0, 0, 0, b' '], 4),
        ] {
            let mut c = column(Kind::Padded, 4, 12);
            c.pad = pad;
            c.pad_length = length;
            let unit = [&[b'a'; 4][..length], &pad[..length], &[b'b'; 4][..length]].concat();
            let record = round_trip(&c, Value::Bytes(&unit));
            // SAFETY: no blob.
            assert_eq!(unsafe { value(&c, &record) }.unwrap(), Value::Bytes(&unit));
            if 12 > unit.len() {
                assert_eq!(record[4 + 12 - length..4 + 12], pad[..length]);
            }
            assert_eq!(record[16], 0xAA);
        }
    }

    #[test]
    fn a_string_longer_than_its_column_is_refused() {
        let c = column(Kind::Variable, 1, 5);
        let mut record = vec![0; 64];
        record[1] = 6;
        // SAFETY: no blob.
        assert!(unsafe { value(&c, &record) }.is_err());
        assert!(write_value(&c, &[0; 64], &Value::Bytes(b"123456"), &mut record).is_err());
    }

    #[test]
    fn a_null_leaves_what_the_server_puts_there() {
        let nulls: Vec<u8> = (0..64).collect();
        for (kind, written) in [(Kind::Fixed, 5), (Kind::Padded, 5), (Kind::Variable, 2)] {
            let mut record = vec![0xAA; 64];
            write_value(&column(kind, 7, 5), &nulls, &Value::Null, &mut record).unwrap();
            assert_eq!(record[7..7 + written], nulls[7..7 + written]);
            assert_eq!((record[6], record[7 + written]), (0xAA, 0xAA));
        }
    }

    #[test]
    fn a_blob_is_its_pointer() {
        let c = column(Kind::Blob, 1, 10);
        let bytes = vec![7; 300];
        let record = round_trip(&c, Value::Bytes(&bytes));
        // SAFETY: the pointer is that of `bytes`.
        assert_eq!(unsafe { value(&c, &record) }.unwrap(), Value::Bytes(&bytes));
        let mut null_pointer = record.clone();
        null_pointer[3..11].fill(0);
        // SAFETY: a null pointer is refused.
        assert!(unsafe { value(&c, &null_pointer) }.is_err());
    }

    #[test]
    fn null_is_null_whatever_the_bytes() {
        let c = column(Kind::Unsigned, 1, 4);
        let mut record = round_trip(&c, Value::UInt(5));
        record[0] = 2;
        // SAFETY: no blob.
        assert_eq!(unsafe { value(&c, &record) }.unwrap(), Value::Null);
    }

    proptest! {
        #[test]
        fn same_bytes_is_same_value(a in ".{0,6}", b in ".{0,6}", null in any::<(bool, bool)>()) {
            let c = column(Kind::Variable, 1, 40);
            let mut records = [
                round_trip(&c, Value::Bytes(a.as_bytes())),
                round_trip(&c, Value::Bytes(b.as_bytes())),
            ];
            records[0][0] = 2 * u8::from(null.0);
            records[1][0] = 2 * u8::from(null.1);
            let same = same_bytes(&c, &records[0], &records[1]);
            prop_assert_eq!(same, null.0 == null.1 && a == b);
        }
    }
}
