//! Integers at a fixed place in every key of an index: they are read without decoding the parts around them.

use super::layout::{KeyLayout, Layout, PartForm, PartLayout};

/// The place of an integer column in the keys of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberPlace {
    /// Bytes from the key's front, or from its end.
    at: usize,
    from_end: bool,
    bytes: u8,
    /// The bits that the encoding flips: the sign bit of a signed column.
    flip: u64,
}

impl NumberPlace {
    fn new(part: &PartLayout, at: usize, from_end: bool) -> Option<Self> {
        match part.form {
            PartForm::Int { bytes, signed } if part.gives_back() && !part.nullable => {
                Some(NumberPlace {
                    at,
                    from_end,
                    bytes,
                    flip: u64::from(signed) << (8 * bytes - 1),
                })
            }
            _ => None,
        }
    }

    /// Bytes of the column, 1 to 8.
    pub fn bytes(&self) -> usize {
        self.bytes.into()
    }

    /// The number in a key.
    ///
    /// `word(from, n)` returns `n` bytes of the key from byte `from` on, as a big-endian number.
    ///
    /// `None` if `word` returns none, or if the place counts from the key's end.
    #[inline]
    pub(crate) fn read_word(&self, word: impl Fn(usize, usize) -> Option<u64>) -> Option<u64> {
        if self.from_end {
            return None;
        }
        Some(word(self.at, self.bytes.into())? ^ self.flip)
    }

    /// The number in a key of `length` bytes; `byte` returns one of them.
    ///
    /// In two's complement, in the low bytes; the bytes above are zero. `None` if the key is too short.
    #[inline]
    pub(crate) fn read(&self, length: usize, byte: impl Fn(usize) -> u8) -> Option<u64> {
        let begin = if self.from_end {
            length.checked_sub(self.at)?
        } else {
            self.at
        };
        let end = begin + usize::from(self.bytes);
        if end > length {
            return None;
        }
        let bits = (begin..end).fold(0, |bits, i| bits << 8 | u64::from(byte(i)));
        Some(bits ^ self.flip)
    }
}

impl KeyLayout {
    /// Bytes of every key, if all have the same length.
    pub(super) fn fixed_len(&self) -> Option<usize> {
        let last = self.parts.last().filter(|part| !part.nullable)?;
        Some(last.fixed_at? + last.form.fixed_len()?)
    }

    fn part_with(&self, column: usize) -> Option<&PartLayout> {
        let gives_back = |part: &&PartLayout| part.column == column && part.gives_back();
        self.parts.iter().find(gives_back)
    }
}

impl Layout {
    /// The place of an integer column in the keys of an index; `None` if it is not the same in all keys.
    pub fn number_place(&self, index: usize, column: usize) -> Option<NumberPlace> {
        let key = self.key(index)?;
        let front = key.part_with(column);
        if let Some(part) = front {
            return NumberPlace::new(part, part.stands_at()?, false);
        }
        // Keys of a non-unique index end with the clustered key.
        if index == 0 || key.unique {
            return None;
        }
        let part = self.clustered.part_with(column)?;
        let from_end = self.clustered.fixed_len()?.checked_sub(part.stands_at()?)?;
        NumberPlace::new(part, from_end, true)
    }
}

#[cfg(test)]
mod tests {
    use crate::row::layout::Layout;
    use crate::row::{entry, Column, ColumnType, Index, Key, KeyPart, TableSchema, Value};
    use proptest::prelude::*;

    fn column(name: &str, ty: ColumnType, nullable: bool) -> Column {
        Column {
            nullable,
            ..Column::new(name, ty)
        }
    }

    fn int(bytes: u8, signed: bool) -> ColumnType {
        ColumnType::Int { bytes, signed }
    }

    fn parts(columns: &[usize]) -> Vec<KeyPart> {
        columns.iter().map(|&c| KeyPart::new(c)).collect()
    }

    /// Columns: 0 and 1 the primary key; 2 to 4 numbers, 3 with NULLs; 5 a string.
    fn schema() -> TableSchema {
        TableSchema {
            columns: vec![
                column("a", int(4, false), false),
                column("b", int(3, true), false),
                column("c", int(8, true), false),
                column("d", int(2, false), true),
                column("e", int(1, true), false),
                column("f", ColumnType::VarBytes { max: 20 }, false),
            ],
            primary: Some(Key {
                parts: parts(&[0, 1]),
            }),
            indexes: [vec![2, 4, 5], vec![3, 2], vec![5, 2]]
                .iter()
                .map(|columns| Index {
                    name: format!("{columns:?}"),
                    parts: parts(columns),
                    unique: false,
                })
                .collect(),
            user: Vec::new(),
        }
    }

    #[test]
    fn only_fixed_places_are_given() {
        let layout = Layout::new(&schema()).unwrap();
        let given = |index: usize| -> Vec<usize> {
            (0..6)
                .filter(|&c| layout.number_place(index, c).is_some())
                .collect()
        };
        assert_eq!(given(0), [0, 1]);
        assert_eq!(given(1), [0, 1, 2, 4]);
        assert_eq!(
            given(2),
            [0, 1],
            "a part with NULLs, and those behind it, move"
        );
        assert_eq!(given(3), [0, 1], "a string's end moves what follows");
        assert_eq!(given(4), [0; 0], "no such index");
    }

    proptest! {
        #[test]
        fn numbers_are_read_where_they_stand(
            a: u32, b in -(1i64 << 23)..1 << 23, c: i64, d: Option<u16>, e: i8,
            f in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let layout = Layout::new(&schema()).unwrap();
            let row = [
                Value::UInt(a.into()),
                Value::Int(b),
                Value::Int(c),
                d.map_or(Value::Null, |d| Value::UInt(d.into())),
                Value::Int(e.into()),
                Value::Bytes(&f),
            ];
            let mut clustered = Vec::new();
            layout.clustered.encode_row(&row, None, &mut clustered).unwrap();
            for index in 0..=3 {
                let mut key = Vec::new();
                if index == 0 {
                    key.clone_from(&clustered);
                } else {
                    let layout = layout.key(index).unwrap();
                    entry::encode(layout, &row, &clustered, None, &mut key, &mut Vec::new())
                        .unwrap();
                }
                for (n, bits) in [(0, a.into()), (1, b as u64), (2, c as u64), (4, e as u64)] {
                    let Some(place) = layout.number_place(index, n) else { continue };
                    let mask = u64::MAX >> (64 - 8 * place.bytes());
                    prop_assert_eq!(place.read(key.len(), |i| key[i]), Some(bits & mask));
                    let number = |from: usize, n: usize| {
                        let all = key.get(from..from + n)?;
                        Some(all.iter().fold(0, |number, &b| number << 8 | u64::from(b)))
                    };
                    let read = place.read_word(number);
                    prop_assert!(read.is_none_or(|read| read == bits & mask), "{:?}", read);
                    for short in 0..place.bytes() {
                        prop_assert_eq!(place.read(short, |i| key[i]), None);
                    }
                }
            }
        }
    }
}
