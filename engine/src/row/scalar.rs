//! Scalars: columns whose values are ordered like 64-bit numbers, decoded for many rows one after the other.
//!
//! Integers and short fixed bytes become such numbers; of any other column, only whether it is NULL. The place of a
//! column in the records of an index is computed once. If a record has the column elsewhere, or is damaged, the result
//! is [`Found::Unknown`], and ordinary decoding must follow.

use super::layout::{KeyLayout, Layout, PartForm, PartLayout};
use super::payload::{HAS_NULLS, HAS_OUTSIDE, WIDTH_MASK};
use super::projection::{self, ColumnSet};
use super::schema::{Column, ColumnType};
use super::value::{OwnedValue, Value};

const SIGN: u64 = 1 << 63;

/// How a column's values become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarForm {
    /// Unchanged.
    Unsigned,
    /// With the sign bit flipped.
    Signed,
    /// This many bytes, big-endian.
    Bytes(u8),
    /// They do not: every value is 0.
    Presence,
}

impl ScalarForm {
    /// The form of a column's values.
    pub fn of(column: &Column) -> ScalarForm {
        match column.ty {
            ColumnType::Int { signed: true, .. } => ScalarForm::Signed,
            ColumnType::Int { signed: false, .. } => ScalarForm::Unsigned,
            ColumnType::Bytes { len: len @ 1..=8 } if column.collation == 0 => {
                ScalarForm::Bytes(len as u8)
            }
            _ => ScalarForm::Presence,
        }
    }

    /// Whether the numbers are ordered like the values, and can be converted back.
    pub fn is_ordered(self) -> bool {
        self != ScalarForm::Presence
    }

    /// Whether the values are integers.
    pub fn is_integer(self) -> bool {
        matches!(self, ScalarForm::Unsigned | ScalarForm::Signed)
    }

    /// The number of a value of the column; `None` for NULL, and for a value of another type.
    pub fn bits(self, value: Value<'_>) -> Option<u64> {
        match (self, value) {
            (_, Value::Null) => None,
            (ScalarForm::Presence, _) => Some(0),
            (ScalarForm::Unsigned, Value::UInt(v)) => Some(v),
            (ScalarForm::Signed, Value::Int(v)) => Some(v as u64 ^ SIGN),
            (ScalarForm::Bytes(len), Value::Bytes(v)) if v.len() == usize::from(len) => {
                Some(big_endian(v))
            }
            _ => None,
        }
    }

    /// The value of a number.
    pub fn value(self, bits: u64) -> OwnedValue {
        match self {
            ScalarForm::Unsigned => OwnedValue::UInt(bits),
            ScalarForm::Signed => OwnedValue::Int((bits ^ SIGN) as i64),
            ScalarForm::Bytes(len) => {
                OwnedValue::Bytes(bits.to_be_bytes()[8 - usize::from(len)..].to_vec())
            }
            ScalarForm::Presence => OwnedValue::Null,
        }
    }

    /// The integer of a number; 0 if the values are no integers.
    #[inline]
    pub fn integer(self, bits: u64) -> i128 {
        match self {
            ScalarForm::Unsigned => bits.into(),
            ScalarForm::Signed => ((bits ^ SIGN) as i64).into(),
            ScalarForm::Bytes(_) | ScalarForm::Presence => 0,
        }
    }
}

#[inline]
fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |v, &b| v << 8 | u64::from(b))
}

/// The value of a column in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No value.
    Null,
    /// The number of a value.
    Bits(u64),
    /// Not known: ordinary decoding must follow.
    Unknown,
}

/// A column's place in the records of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScalarPlace {
    /// The column.
    pub column: usize,
    /// The form of its values.
    pub form: ScalarForm,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the row; rows that were written before the column was added have the default.
    Row { default: Found },
    /// At a fixed place in the key.
    Key(KeyPlace),
    /// At no known place.
    Anywhere,
}

#[derive(Clone, Copy, Debug)]
struct KeyPlace {
    /// Bytes from the key's front, or from its end.
    at: usize,
    from_end: bool,
    /// Whether a byte comes before the value, which is 0 for NULL.
    nullable: bool,
    bytes: usize,
}

impl KeyPlace {
    fn new(part: &PartLayout, at: usize, from_end: bool) -> Option<KeyPlace> {
        let bytes = match part.form {
            PartForm::Int { .. } | PartForm::Fixed { len: 1..=8 } => part.form.fixed_len()?,
            _ => return None,
        };
        part.gives_back().then_some(KeyPlace {
            at,
            from_end,
            nullable: part.nullable,
            bytes,
        })
    }

    fn in_key(layout: &Layout, index: usize, column: usize) -> Option<KeyPlace> {
        let key = layout.key(index)?;
        if let Some(part) = part_with(key, column) {
            return KeyPlace::new(part, part.stands_at()?, false);
        }
        // Keys of a non-unique index end with the clustered key.
        if index == 0 || key.unique {
            return None;
        }
        let part = part_with(&layout.clustered, column)?;
        let from_end = layout
            .clustered
            .fixed_len()?
            .checked_sub(part.stands_at()?)?;
        KeyPlace::new(part, from_end, true)
    }

    #[inline]
    fn read(&self, form: ScalarForm, length: usize, byte: impl Fn(usize) -> u8) -> Found {
        let Some(mut begin) = (match self.from_end {
            true => length.checked_sub(self.at),
            false => Some(self.at),
        }) else {
            return Found::Unknown;
        };
        if self.nullable {
            if begin >= length {
                return Found::Unknown;
            }
            if byte(begin) == 0 {
                return Found::Null;
            }
            begin += 1;
        }
        let end = begin + self.bytes;
        if end > length {
            return Found::Unknown;
        }
        if form == ScalarForm::Presence {
            return Found::Bits(0);
        }
        let bits = (begin..end).fold(0, |bits, i| bits << 8 | u64::from(byte(i)));
        Found::Bits(match form {
            ScalarForm::Signed => {
                // The sign bit is that of the column's own width: move it to that of 64 bits.
                let shift = 64 - 8 * self.bytes as u32;
                let flipped = bits ^ 1 << (8 * self.bytes - 1);
                ((flipped << shift) as i64 >> shift) as u64 ^ SIGN
            }
            _ => bits,
        })
    }
}

fn part_with(key: &KeyLayout, column: usize) -> Option<&PartLayout> {
    let gives_back = |part: &&PartLayout| part.column == column && part.gives_back();
    key.parts.iter().find(gives_back)
}

impl ScalarPlace {
    /// The place of a column in records of `index`; `None` if they do not give it back.
    pub fn new(layout: &Layout, index: usize, column: usize) -> Option<ScalarPlace> {
        if !layout.covers(index, column) {
            return None;
        }
        let known = layout.columns.get(column)?;
        let form = ScalarForm::of(&known.column);
        let place = match KeyPlace::in_key(layout, index, column) {
            Some(place) => Place::Key(place),
            None if index == 0 && known.from_key.is_none() => {
                let default = known.column.default.as_value();
                Place::Row {
                    default: match (form.bits(default), default) {
                        (Some(bits), _) => Found::Bits(bits),
                        (None, Value::Null) => Found::Null,
                        (None, _) => Found::Unknown,
                    },
                }
            }
            None => Place::Anywhere,
        };
        Some(ScalarPlace {
            column,
            form,
            place,
        })
    }

    /// Whether [`ScalarPlace::read`] finds it in most records.
    pub fn is_known(&self) -> bool {
        !matches!(self.place, Place::Anywhere)
    }

    /// The column's value in a record with this payload; `key_byte` returns one byte of the key.
    #[inline]
    pub fn read(&self, payload: &[u8], key_len: usize, key_byte: impl Fn(usize) -> u8) -> Found {
        match self.place {
            Place::Row { default } => in_row(self.form, self.column, default, payload),
            Place::Key(place) => place.read(self.form, key_len, key_byte),
            Place::Anywhere => Found::Unknown,
        }
    }

    /// Whether the column is in the row rather than in the key.
    pub fn is_in_row(&self) -> bool {
        matches!(self.place, Place::Row { .. })
    }

    /// As [`ScalarPlace::read`], for a row in a mini-page that has these columns.
    #[inline]
    pub fn read_kept(
        &self,
        kept: &[u8],
        columns: ColumnSet,
        key_len: usize,
        key_byte: impl Fn(usize) -> u8,
    ) -> Found {
        match self.place {
            Place::Row { .. } => match projection::kept(kept, columns, self.column) {
                Some(Some(_)) if self.form == ScalarForm::Presence => Found::Bits(0),
                Some(Some(bytes)) if bytes.len() <= 8 => in_bytes(self.form, bytes),
                Some(None) => Found::Null,
                Some(Some(_)) | None => Found::Unknown,
            },
            Place::Key(place) => place.read(self.form, key_len, key_byte),
            Place::Anywhere => Found::Unknown,
        }
    }
}

/// The number encoded in up to 8 bytes of a row.
#[inline]
fn in_bytes(form: ScalarForm, bytes: &[u8]) -> Found {
    let number = bytes.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
    in_number(form, number, bytes.len())
}

/// The number encoded in `length` bytes of a row, which are given as a little-endian number.
#[inline]
fn in_number(form: ScalarForm, number: u64, length: usize) -> Found {
    match form {
        ScalarForm::Unsigned => Found::Bits(number),
        ScalarForm::Signed => Found::Bits((number >> 1 ^ (number & 1).wrapping_neg()) ^ SIGN),
        ScalarForm::Bytes(len) if usize::from(len) == length => {
            Found::Bits(number.swap_bytes() >> (64 - 8 * u32::from(len)))
        }
        ScalarForm::Bytes(_) | ScalarForm::Presence => Found::Unknown,
    }
}

/// Finds a column in a row's payload, if that is in the form of up to 127 columns.
#[inline]
fn in_row(form: ScalarForm, column: usize, default: Found, payload: &[u8]) -> Found {
    let [flags, columns, rest @ ..] = payload else {
        return Found::Unknown;
    };
    let columns = usize::from(*columns);
    let width = match flags & WIDTH_MASK {
        0 => return Found::Unknown,
        3 => 4,
        width => usize::from(width),
    };
    if columns >= 0x80 {
        return Found::Unknown;
    }
    if column >= columns {
        return default;
    }
    let bitmap = columns.div_ceil(8);
    let mut offsets = 0;
    let bit = |map: usize| {
        let byte = rest.get(map + column / 8);
        byte.map(|byte| byte >> (column % 8) & 1 != 0)
    };
    if flags & HAS_NULLS != 0 {
        match bit(0) {
            Some(false) => offsets += bitmap,
            Some(true) => return Found::Null,
            None => return Found::Unknown,
        }
    }
    if form == ScalarForm::Presence {
        return Found::Bits(0);
    }
    if flags & HAS_OUTSIDE != 0 {
        match bit(offsets) {
            Some(false) => offsets += bitmap,
            _ => return Found::Unknown,
        }
    }
    let ends = || -> Option<(usize, usize)> {
        if width == 1 {
            let before = match column.checked_sub(1) {
                None => 0,
                Some(before) => *rest.get(offsets + before)?,
            };
            return Some((before.into(), (*rest.get(offsets + column)?).into()));
        }
        let end = |n: usize| -> Option<usize> {
            let bytes = rest.get(offsets + n * width..)?.get(..width)?;
            Some(bytes.iter().rev().fold(0, |v, &b| v << 8 | usize::from(b)))
        };
        let before = match column.checked_sub(1) {
            None => 0,
            Some(before) => end(before)?,
        };
        Some((before, end(column)?))
    };
    let Some((begin, end)) = ends() else {
        return Found::Unknown;
    };
    let data = offsets + columns * width;
    let Some(bytes) = rest.get(data + begin..data + end) else {
        return Found::Unknown;
    };
    let length = bytes.len();
    if length > 8 {
        return Found::Unknown;
    }
    // Little-endian; if eight bytes follow, one load and a mask are enough.
    match rest[data + begin..].first_chunk::<8>() {
        Some(eight) => {
            let mask = u64::MAX.checked_shr(64 - 8 * length as u32).unwrap_or(0);
            in_number(form, u64::from_le_bytes(*eight) & mask, length)
        }
        None => in_bytes(form, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::payload::{RowEncoder, RowRef};
    use crate::row::{entry, Index, Key, KeyPart, TableSchema};
    use proptest::prelude::*;

    fn int(bytes: u8, signed: bool) -> ColumnType {
        ColumnType::Int { bytes, signed }
    }

    /// 0 and 1 the primary key; a signed and an unsigned number, fixed bytes and a string that
    /// take NULL; a float.
    fn schema() -> TableSchema {
        let descending = KeyPart {
            descending: true,
            ..KeyPart::new(3)
        };
        TableSchema {
            columns: vec![
                Column::new("a", int(4, false)),
                Column::new("b", int(3, true)),
                Column::new("c", int(8, true)).nullable(),
                Column::new("d", int(8, false)).nullable(),
                Column::new("e", ColumnType::Bytes { len: 5 }).nullable(),
                Column::new("f", ColumnType::VarBytes { max: 300 }).nullable(),
                Column::new("g", ColumnType::Double),
                Column::new("h", ColumnType::Bytes { len: 9 }),
            ],
            primary: Some(Key::new(&[0, 1])),
            indexes: vec![
                Index::new("c", &[2]),
                Index::new("unique", &[0, 4, 3]).unique(),
                Index::new("string", &[5, 2]),
                Index {
                    parts: vec![descending, KeyPart::new(2)],
                    ..Index::new("down", &[])
                },
            ],
            user: vec![],
        }
    }

    #[test]
    fn forms_and_their_limits() {
        let form = |ty| ScalarForm::of(&Column::new("x", ty));
        assert_eq!(form(int(1, true)), ScalarForm::Signed);
        assert_eq!(form(ColumnType::Bytes { len: 8 }), ScalarForm::Bytes(8));
        for ty in [
            ColumnType::Bytes { len: 0 },
            ColumnType::Bytes { len: 9 },
            ColumnType::VarBytes { max: 4 },
            ColumnType::Float,
            ColumnType::Double,
            ColumnType::Large { max: 4 },
        ] {
            assert!(!form(ty).is_ordered(), "{ty:?}");
        }
        let collated = Column::new("x", ColumnType::Bytes { len: 4 }).collation(1);
        assert!(!ScalarForm::of(&collated).is_ordered());
    }

    proptest! {
        #[test]
        fn numbers_order_as_values_do_and_give_them_back(a: i64, b: i64, len in 1u8..=8) {
            let signed = |v| ScalarForm::Signed.bits(Value::Int(v)).unwrap();
            prop_assert_eq!(signed(a).cmp(&signed(b)), a.cmp(&b));
            prop_assert_eq!(ScalarForm::Signed.value(signed(a)), OwnedValue::Int(a));
            prop_assert_eq!(ScalarForm::Signed.integer(signed(a)), i128::from(a));
            let n = usize::from(len);
            let (x, y) = (&a.to_be_bytes()[..n], &b.to_be_bytes()[..n]);
            let form = ScalarForm::Bytes(len);
            let bytes = |v| form.bits(Value::Bytes(v)).unwrap();
            prop_assert_eq!(bytes(x).cmp(&bytes(y)), x.cmp(y));
            prop_assert_eq!(form.value(bytes(x)), OwnedValue::Bytes(x.to_vec()));
        }

        /// Each value found is that of ordinary decoding, in every index; no damage makes it panic.
        #[test]
        fn scalars_are_what_ordinary_decoding_gives(
            a: u32, b in -(1i64 << 23)..1 << 23, c: Option<i64>, d: Option<u64>,
            e: Option<[u8; 5]>, f in prop::option::of(prop::collection::vec(any::<u8>(), 0..300)),
            cut: u16, broken: (u16, u8),
        ) {
            let layout = Layout::new(&schema()).unwrap();
            let row = [
                Value::UInt(a.into()),
                Value::Int(b),
                c.map_or(Value::Null, Value::Int),
                d.map_or(Value::Null, Value::UInt),
                e.as_ref().map_or(Value::Null, |e| Value::Bytes(e)),
                f.as_ref().map_or(Value::Null, |f| Value::Bytes(f)),
                Value::Double(1.5),
                Value::Bytes(b"ninebytes"),
            ];
            let mut clustered = Vec::new();
            layout.clustered.encode_row(&row, None, &mut clustered).unwrap();
            let mut encoder = RowEncoder::default();
            encoder.measure(&layout, &row).unwrap();
            let mut payload = Vec::new();
            encoder.write(&layout, &row, &mut payload).unwrap();
            let whole = RowRef::new(&layout, &clustered, &payload).unwrap();
            for column in 0..row.len() {
                let place = ScalarPlace::new(&layout, 0, column).unwrap();
                prop_assert!(place.is_known());
                let value = whole.get(column).unwrap();
                let want = place.form.bits(value).map_or(Found::Null, Found::Bits);
                let read = |payload: &[u8]| place.read(payload, clustered.len(), |i| clustered[i]);
                prop_assert_eq!(read(&payload), want, "column {}", column);
                read(&payload[..usize::from(cut) % payload.len()]);
                let mut damaged = payload.clone();
                damaged[usize::from(broken.0) % payload.len()] ^= broken.1;
                read(&damaged);
            }
            for index in 1..=4 {
                let (mut key, mut payload) = (Vec::new(), Vec::new());
                let keys = layout.key(index).unwrap();
                entry::encode(keys, &row, &clustered, None, &mut key, &mut payload).unwrap();
                for (column, &value) in row.iter().enumerate() {
                    let Some(place) = ScalarPlace::new(&layout, index, column) else {
                        prop_assert!(!layout.covers(index, column));
                        continue;
                    };
                    match place.read(&payload, key.len(), |i| key[i]) {
                        Found::Unknown => prop_assert!(!place.is_known()),
                        found => {
                            let want = place.form.bits(value).map_or(Found::Null, Found::Bits);
                            prop_assert_eq!(found, want, "column {} of {}", column, index);
                        }
                    }
                    let short = usize::from(cut) % key.len();
                    place.read(&payload, short, |i| key[..short][i]);
                }
            }
            let known = |index, column| {
                ScalarPlace::new(&layout, index, column).is_some_and(|place| place.is_known())
            };
            // Nullable first parts are found; parts behind them have no fixed place. The clustered key is found from
            // the end.
            prop_assert!(known(1, 2) && known(1, 0) && known(1, 1));
            prop_assert!(known(2, 0) && known(2, 4) && !known(2, 3));
            prop_assert!(!known(3, 5) && !known(3, 2) && known(3, 1));
            prop_assert!(!known(4, 3) && !known(4, 2));
        }
    }
}
