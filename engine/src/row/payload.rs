//! A row as bytes: its payload in the clustered tree.
//!
//! ```text
//! u8      bits 0-1: width of an offset, 1, 2 or 3 (= 4 bytes); 0: the whole row is stored outside,
//!                   and varint value id, varint length follow
//!         bit 2: a null bitmap follows; bit 3: a bitmap of values outside the row follows
//! varint  number of columns
//! [bitmap of NULLs] [bitmap of values outside]     (n + 7) / 8 bytes each
//! offsets n little-endian numbers: where each column's bytes end, from the first column's begin
//! bytes   integers little-endian without leading zero bytes (zigzag when signed); floats
//!         big-endian bits without trailing zero bytes; bytes as they are;
//!         outside the row: varint value id, varint length
//! ```
//! Zero and the empty string take no byte. Neither do columns that the clustered key gives back: no bytes means "as in
//! the key".

use super::key::{int_bits, stands_as_is};
use super::key_bytes::KeyBytes;
use super::layout::{ColumnLayout, Layout, MAX_COLUMNS};
use super::schema::ColumnType;
use super::value::Value;
use super::varint;
use crate::error::{Error, Result};
use crate::fallible;
use crate::planted::{is_planted, PlantedFault};

pub(super) const WIDTH_MASK: u8 = 3;
pub(super) const HAS_NULLS: u8 = 4;
pub(super) const HAS_OUTSIDE: u8 = 8;

/// A value that is stored in the table's large-value tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LargeRef {
    /// The value's number.
    pub id: u64,
    /// The value's length in bytes.
    pub len: u64,
}

impl LargeRef {
    fn encoded_len(self) -> usize {
        varint::len(self.id) + varint::len(self.len)
    }

    fn put(self, out: &mut Vec<u8>) {
        varint::put(self.id, out);
        varint::put(self.len, out);
    }

    fn take(mut bytes: &[u8]) -> Option<Self> {
        let id = varint::take(&mut bytes)?;
        let len = varint::take(&mut bytes)?;
        bytes.is_empty().then_some(LargeRef { id, len })
    }
}

fn misfit(column: &ColumnLayout, value: Value<'_>) -> Error {
    let name = &column.column.name;
    Error::Invalid(match value {
        Value::Null => format!("column {name} takes no NULL"),
        Value::Bytes(b) => format!(
            "column {name} ({:?}) can't take {} bytes",
            column.column.ty,
            b.len()
        ),
        _ => format!(
            "column {name} ({:?}) can't take {value:?}",
            column.column.ty
        ),
    })
}

/// The stored bytes of a number: at most 8, in a register.
fn number_bytes(column: &ColumnLayout, value: Value<'_>) -> Option<([u8; 8], usize)> {
    let (bytes, len) = match (column.column.ty, value) {
        (ColumnType::Int { bytes, signed }, _) => {
            let bits = int_bits(value, bytes, signed)?;
            let v = if signed {
                bits << 1 ^ (bits as i64 >> 63) as u64
            } else {
                bits
            };
            (v.to_le_bytes(), 8 - v.leading_zeros() as usize / 8)
        }
        (ColumnType::Float, Value::Float(v)) => {
            let bits = u64::from(v.to_bits()) << 32;
            (bits.to_be_bytes(), 8 - bits.trailing_zeros() as usize / 8)
        }
        (ColumnType::Double, Value::Double(v)) => {
            let bits = v.to_bits();
            (bits.to_be_bytes(), 8 - bits.trailing_zeros() as usize / 8)
        }
        _ => return None,
    };
    Some((bytes, len))
}

/// Whether the clustered key gives exactly this value back.
///
/// For a NaN it may give other bits.
fn key_gives(value: Value<'_>) -> bool {
    let trusts = is_planted(PlantedFault::TrustKeyOfNan);
    match value {
        Value::Float(v) => v.to_bits() != (-0.0f32).to_bits() && (trusts || !v.is_nan()),
        Value::Double(v) => v.to_bits() != (-0.0f64).to_bits() && (trusts || !v.is_nan()),
        Value::Bytes(v) => stands_as_is(v),
        _ => true,
    }
}

/// Encodes rows; reuses its buffers from row to row.
#[derive(Default)]
pub(crate) struct RowEncoder {
    ends: Vec<u32>,
    /// Per column, the reference if its value is stored outside the row.
    pub outside: Vec<Option<LargeRef>>,
    nulls: bool,
}

impl RowEncoder {
    /// Checks a row against its schema, and computes its layout with every value inside.
    pub fn measure(&mut self, layout: &Layout, row: &[Value<'_>]) -> Result<()> {
        self.begin(row.len());
        self.lay_out(layout, row)
    }

    /// Starts a row of this many columns, with every value inside.
    pub fn begin(&mut self, columns: usize) {
        self.outside.clear();
        self.outside.resize(columns, None);
    }

    /// Computes the layout again, after a change of `outside`.
    pub fn lay_out(&mut self, layout: &Layout, row: &[Value<'_>]) -> Result<()> {
        if row.len() != layout.columns.len() {
            return Err(Error::Invalid(format!(
                "the row has {} values, the table {} columns",
                row.len(),
                layout.columns.len()
            )));
        }
        self.ends.clear();
        self.nulls = false;
        let mut end = 0usize;
        for ((column, &value), outside) in layout.columns.iter().zip(row).zip(&self.outside) {
            end += match (outside, value) {
                (Some(large), _) => large.encoded_len(),
                (None, Value::Null) => {
                    if !column.column.nullable {
                        return Err(misfit(column, value));
                    }
                    self.nulls = true;
                    0
                }
                (None, Value::Bytes(v)) => {
                    let fits = match column.column.ty {
                        ColumnType::Bytes { len } => v.len() == len as usize,
                        ColumnType::VarBytes { max } => v.len() <= max as usize,
                        ColumnType::Large { max } => v.len() as u64 <= max,
                        _ => false,
                    };
                    if !fits {
                        return Err(misfit(column, value));
                    }
                    if column.from_key.is_some() && key_gives(value) {
                        0
                    } else {
                        v.len()
                    }
                }
                (None, _) => {
                    let (_, len) =
                        number_bytes(column, value).ok_or_else(|| misfit(column, value))?;
                    if column.from_key.is_some() && key_gives(value) {
                        0
                    } else {
                        len
                    }
                }
            };
            self.ends.push(u32::try_from(end).map_err(|_| {
                Error::TooLarge(format!("a row has at most {} bytes, not {end}", u32::MAX))
            })?);
        }
        Ok(())
    }

    /// Bytes of column `n` in the layout.
    pub fn column_len(&self, n: usize) -> usize {
        let begin = if n == 0 { 0 } else { self.ends[n - 1] };
        (self.ends[n] - begin) as usize
    }

    fn any_outside(&self) -> bool {
        self.outside.iter().any(Option::is_some)
    }

    fn width(&self) -> usize {
        match self.ends.last().copied().unwrap_or(0) {
            0..=0xff => 1,
            0x100..=0xffff => 2,
            _ => 4,
        }
    }

    /// Bytes that [`RowEncoder::write`] will append.
    pub fn encoded_len(&self) -> usize {
        let n = self.ends.len();
        let bitmaps = usize::from(self.nulls) + usize::from(self.any_outside());
        1 + varint::len(n as u64)
            + bitmaps * n.div_ceil(8)
            + n * self.width()
            + self.ends.last().copied().unwrap_or(0) as usize
    }

    /// Appends the row in its layout.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; then appends nothing.
    pub fn write(&self, layout: &Layout, row: &[Value<'_>], out: &mut Vec<u8>) -> Result<()> {
        let n = self.ends.len();
        let width = self.width();
        let any_outside = self.any_outside();
        fallible::reserve(out, self.encoded_len(), "a row")?;
        out.push(
            if width == 4 { 3 } else { width as u8 }
                | if self.nulls { HAS_NULLS } else { 0 }
                | if any_outside { HAS_OUTSIDE } else { 0 },
        );
        varint::put(n as u64, out);
        if self.nulls {
            put_bitmap(row.iter().map(|v| v.is_null()), n, out);
        }
        if any_outside {
            put_bitmap(self.outside.iter().map(Option::is_some), n, out);
        }
        match width {
            1 => out.extend(self.ends.iter().map(|&e| e as u8)),
            2 => self
                .ends
                .iter()
                .for_each(|&e| out.extend_from_slice(&(e as u16).to_le_bytes())),
            _ => self
                .ends
                .iter()
                .for_each(|&e| out.extend_from_slice(&e.to_le_bytes())),
        }
        for (i, (column, &value)) in layout.columns.iter().zip(row).enumerate() {
            let len = self.column_len(i);
            if let Some(large) = self.outside[i] {
                large.put(out);
            } else if len == 0 {
                // NULL, zero, empty, or in the key.
            } else if let Value::Bytes(v) = value {
                out.extend_from_slice(v);
            } else if let Some((bytes, len)) = number_bytes(column, value) {
                out.extend_from_slice(&bytes[..len]);
            }
        }
        Ok(())
    }
}

pub(super) fn put_bitmap(bits: impl Iterator<Item = bool>, n: usize, out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + n.div_ceil(8), 0);
    for (i, bit) in bits.enumerate() {
        out[at + i / 8] |= u8::from(bit) << (i % 8);
    }
}

/// Appends the payload of a row that is stored outside as a whole.
pub(crate) fn put_outside_row(large: LargeRef, out: &mut Vec<u8>) {
    out.push(0);
    large.put(out);
}

/// The reference, if the payload is of a row that is stored outside as a whole.
#[inline]
pub(crate) fn outside_row(payload: &[u8]) -> Option<LargeRef> {
    match payload.split_first() {
        Some((0, rest)) => LargeRef::take(rest),
        _ => None,
    }
}

#[cold]
#[inline(never)]
fn damaged(what: &str) -> Error {
    Error::Internal(format!("row payload: {what}"))
}

/// The field of a column that only the clustered key has.
#[inline(never)]
fn key_field<'a>(layout: &'a Layout, key: &'a [u8], part: usize) -> Result<Field<'a>> {
    let parts = &layout.clustered;
    parts
        .part_of(part, key)
        .and_then(|bytes| parts.parts[part].decode(bytes))
        .map(Field::Value)
        .ok_or_else(|| damaged("clustered key"))
}

/// A column's decoded bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Field<'a> {
    Value(Value<'a>),
    Outside(LargeRef),
}

/// A column's bytes in the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored<'a> {
    Null,
    Here(&'a [u8]),
    Outside,
}

/// A clustered row, decoded a column at a time.
#[derive(Clone, Copy)]
pub(crate) struct RowRef<'a> {
    layout: &'a Layout,
    key: KeyBytes<'a>,
    payload: &'a [u8],
    head: Head,
}

/// The head of a payload, in one word.
///
/// Rows are passed on between functions. Several small numbers would be written one by one and read together, which
/// waits for the writes.
#[derive(Clone, Copy)]
struct Head(u64);

impl Head {
    /// The word's parts have room for [`MAX_COLUMNS`] columns.
    ///
    /// `width`: bytes of an offset. `offsets`, `data`: where the offsets and the columns' bytes begin.
    #[inline]
    fn new(flags: u8, width: u8, columns: usize, offsets: usize, data: usize) -> Self {
        const { assert!(16 + MAX_COLUMNS / 8 * 2 + MAX_COLUMNS * 4 < 1 << 16) };
        let low = u64::from(flags) | u64::from(width) << 8 | (columns as u64) << 16;
        Head(low | (offsets as u64) << 32 | (data as u64) << 48)
    }

    #[inline]
    fn has(self, flag: u8) -> bool {
        self.0 as u8 & flag != 0
    }

    #[inline]
    fn width(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline]
    fn columns(self) -> usize {
        usize::from((self.0 >> 16) as u16)
    }

    #[inline]
    fn offsets(self) -> usize {
        usize::from((self.0 >> 32) as u16)
    }

    #[inline]
    fn data(self) -> usize {
        usize::from((self.0 >> 48) as u16)
    }
}

impl<'a> RowRef<'a> {
    /// Reads the head of a payload, which must not be of a row that is stored outside as a whole.
    #[inline]
    pub fn new(layout: &'a Layout, key: &'a [u8], payload: &'a [u8]) -> Result<Self> {
        Self::with_key_of(layout, KeyBytes::Here(key), payload)
    }

    /// As [`RowRef::new`], with a key that few callers will need.
    #[inline(always)]
    pub fn with_key_of(layout: &'a Layout, key: KeyBytes<'a>, payload: &'a [u8]) -> Result<Self> {
        let &flags = payload.first().ok_or_else(|| damaged("empty"))?;
        let width = match flags & WIDTH_MASK {
            0 => return Err(damaged("the row stands outside")),
            3 => 4,
            w => w,
        };
        let (columns, head) = match payload.get(1) {
            Some(&n) if n < 0x80 => (n.into(), 2),
            _ => many_columns(payload)?,
        };
        if columns > layout.columns.len() {
            return Err(damaged("column count"));
        }
        let bitmaps = usize::from(flags & HAS_NULLS != 0) + usize::from(flags & HAS_OUTSIDE != 0);
        let offsets = head + bitmaps * columns.div_ceil(8);
        let data = offsets + columns * usize::from(width);
        if data > payload.len() {
            return Err(damaged("cut off"));
        }
        Ok(RowRef {
            layout,
            key,
            payload,
            head: Head::new(flags, width, columns, offsets, data),
        })
    }

    /// The whole payload.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// Whether column `n`'s bit is set in a bitmap; `behind` bitmaps are between this one and the offsets.
    #[inline]
    fn is_set(&self, behind: usize, n: usize) -> bool {
        let bitmap = self.head.columns().div_ceil(8);
        self.payload[self.head.offsets() - bitmap * (1 + behind) + n / 8] >> (n % 8) & 1 == 1
    }

    #[inline]
    fn is_null(&self, n: usize) -> bool {
        self.head.has(HAS_NULLS) && self.is_set(self.head.has(HAS_OUTSIDE).into(), n)
    }

    #[inline]
    fn is_outside(&self, n: usize) -> bool {
        self.head.has(HAS_OUTSIDE) && self.is_set(0, n)
    }

    /// Where a column's bytes begin and end in the payload.
    #[inline(always)]
    fn span(&self, n: usize) -> (usize, usize) {
        let data = self.head.data();
        let offsets = &self.payload[self.head.offsets()..data];
        let end = |n: usize| match self.head.width() {
            1 => usize::from(offsets[n]),
            2 => usize::from(u16::from_le_bytes([offsets[2 * n], offsets[2 * n + 1]])),
            _ => (0..4).rfold(0, |end, i| end << 8 | usize::from(offsets[4 * n + i])),
        };
        let begin = if n == 0 { 0 } else { end(n - 1) };
        (data + begin, data + end(n))
    }

    /// Where a column's bytes begin in the payload, and the bytes.
    #[inline(always)]
    fn bytes_of(&self, n: usize) -> Result<(usize, &'a [u8])> {
        let (begin, end) = self.span(n);
        let bytes = self.payload.get(begin..end);
        Ok((begin, bytes.ok_or_else(|| damaged("offsets"))?))
    }

    /// The field of a column.
    #[inline(always)]
    pub fn field(&self, n: usize) -> Result<Field<'a>> {
        let Some(column) = self.layout.columns.get(n) else {
            return Err(no_column(n));
        };
        if n >= self.columns() {
            return Ok(Field::Value(column.column.default.as_value()));
        }
        if self.is_null(n) {
            return Ok(Field::Value(Value::Null));
        }
        let (begin, bytes) = self.bytes_of(n)?;
        if self.is_outside(n) {
            return outside_field(column, bytes);
        }
        if let (true, Some(part)) = (bytes.is_empty(), column.from_key) {
            return key_field(self.layout, self.key.whole(), part);
        }
        let value = match column.column.ty {
            ColumnType::Bytes { .. } | ColumnType::VarBytes { .. } | ColumnType::Large { .. } => {
                Value::Bytes(bytes)
            }
            ColumnType::Int { signed, .. } => {
                let v = number(bytes, self.payload.get(begin..))?;
                if signed {
                    Value::Int((v >> 1) as i64 ^ -((v & 1) as i64))
                } else {
                    Value::UInt(v)
                }
            }
            ColumnType::Float => Value::Float(f32::from_bits(
                (number(bytes, None)?.swap_bytes() >> 32) as u32,
            )),
            ColumnType::Double => Value::Double(f64::from_bits(number(bytes, None)?.swap_bytes())),
        };
        Ok(Field::Value(value))
    }

    /// The number of columns that the row was written with.
    #[inline]
    pub(super) fn columns(&self) -> usize {
        self.head.columns()
    }

    /// The bytes of a column.
    pub(super) fn stored(&self, n: usize) -> Result<Stored<'a>> {
        if self.is_null(n) {
            return Ok(Stored::Null);
        }
        if self.is_outside(n) {
            return Ok(Stored::Outside);
        }
        Ok(Stored::Here(self.bytes_of(n)?.1))
    }

    /// The value of a column.
    #[inline(always)]
    pub fn get(&self, n: usize) -> Result<Value<'a>> {
        Ok(match self.field(n)? {
            Field::Value(value) => value,
            Field::Outside(large) => Value::OutOfRow(large.len),
        })
    }

    /// The references to values outside the row.
    pub fn references(&self) -> impl Iterator<Item = Result<(usize, LargeRef)>> + 'a {
        let row = *self;
        let n = match row.head.has(HAS_OUTSIDE) {
            false => 0,
            true => row.columns(),
        };
        (0..n).filter_map(move |i| match row.field(i) {
            Ok(Field::Outside(large)) => Some(Ok((i, large))),
            Ok(Field::Value(_)) => None,
            Err(e) => Some(Err(e)),
        })
    }
}

/// The column count of a payload, and the length of flags and count, if the count takes more than a byte.
#[inline(never)]
fn many_columns(payload: &[u8]) -> Result<(usize, usize)> {
    let mut rest = payload.get(1..).unwrap_or(&[]);
    let columns = varint::take(&mut rest).and_then(|n| usize::try_from(n).ok());
    let columns = columns.ok_or_else(|| damaged("column count"))?;
    Ok((columns, payload.len() - rest.len()))
}

/// The field of a column whose value is stored outside the row.
fn outside_field<'a>(column: &ColumnLayout, reference: &[u8]) -> Result<Field<'a>> {
    match LargeRef::take(reference) {
        Some(large) => Ok(Field::Outside(large)),
        None if reference.is_empty() => Err(Error::Invalid(format!(
            "column {} was read, but Cursor::set_columns said that it would not be",
            column.column.name
        ))),
        None => Err(damaged("reference")),
    }
}

#[cold]
#[inline(never)]
fn no_column(n: usize) -> Error {
    Error::NotFound {
        what: "column",
        name: n.to_string(),
    }
}

/// Stored number bytes, zero-extended at the end, as a little-endian number.
///
/// `from` begins with the same bytes: if eight bytes are there, one load and a mask are enough.
#[inline]
fn number(bytes: &[u8], from: Option<&[u8]>) -> Result<u64> {
    if bytes.len() > 8 {
        return Err(damaged("number"));
    }
    if let Some(eight) = from.and_then(|from| from.first_chunk::<8>()) {
        let mask = u64::MAX
            .checked_shr(64 - 8 * bytes.len() as u32)
            .unwrap_or(0);
        return Ok(u64::from_le_bytes(*eight) & mask);
    }
    Ok(bytes.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)))
}
