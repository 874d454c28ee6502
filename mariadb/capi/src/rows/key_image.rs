//! Key images: the server's form of a search key, decoded into the engine's values.
//!
//! An image holds for each part: a null byte if the column can be NULL, then the value. Variable columns and blobs have
//! two length bytes before the value; every part takes its full length.

use peregrine::Value;

use crate::failure::{Failure, Outcome};
use crate::rows::layout::{ColumnLayout, KeyLayout, Kind, Layout};
use crate::rows::record::{self, Values};

/// Returns the number of parts, from the first on, in a map of key parts.
///
/// The map must have no gaps.
pub fn part_count(map: u64) -> usize {
    (!map).trailing_zeros() as usize
}

/// Reads the first parts of a key image.
///
/// # Safety
/// `image` must be valid for the parts in `map`.
pub unsafe fn values<'a>(
    layout: &Layout,
    key: &KeyLayout,
    image: *const u8,
    map: u64,
    out: &mut Values<'a>,
) -> Outcome {
    let parts = key.parts.get(..part_count(map)).unwrap_or(&key.parts);
    if parts.is_empty() {
        return Ok(());
    }
    if image.is_null() {
        return Err(Failure::argument("a key that is not there"));
    }
    let length = parts
        .iter()
        .map(|part| part.image_length(&layout.columns[part.column]))
        .sum();
    // SAFETY: not null; the server's image has all bytes of its parts.
    let mut rest = unsafe { std::slice::from_raw_parts(image, length) };
    for part in parts {
        let column = &layout.columns[part.column];
        let (place, after) = rest.split_at(part.image_length(column));
        rest = after;
        out.push(value(column, part.length, place)?);
    }
    Ok(())
}

fn value<'a>(column: &ColumnLayout, length: usize, mut place: &'a [u8]) -> Outcome<Value<'a>> {
    if column.null_bit != 0 {
        if place[0] != 0 {
            return Ok(Value::Null);
        }
        place = &place[1..];
    }
    Ok(match column.kind {
        Kind::Variable | Kind::Blob => {
            let n = usize::from(u16::from_le_bytes([place[0], place[1]]));
            if n > length {
                return Err(Failure::argument("length of a string in a key"));
            }
            Value::Bytes(&place[2..2 + n])
        }
        Kind::Padded => Value::Bytes(record::trim(column, place)),
        // The engine cuts a row's value to the part's length.
        Kind::Fixed if length < column.length => Value::Bytes(&place[..length]),
        _ if place.len() < column.length => {
            return Err(Failure::argument("a prefix of a number in a key"))
        }
        // SAFETY: not a blob.
        _ => unsafe { record::value_at(column, place)? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::layout::KeyPartLayout;
    use peregrine::{ColumnType, Database, Index, KeyPart, Options, TableSchema};

    fn column(kind: Kind, length: usize, null_bit: u8) -> ColumnLayout {
        ColumnLayout {
            kind,
            offset: 0,
            length,
            length_bytes: 1,
            null_offset: 0,
            null_bit,
            pad: [b' ', 0, 0, 0],
            pad_length: 1,
            stored_as: Some(0),
        }
    }

    fn table() -> (Layout, KeyLayout) {
        let columns = vec![
            column(Kind::Unsigned, 2, 1),
            column(Kind::Variable, 10, 0),
            column(Kind::Padded, 4, 2),
        ];
        let parts = [(0, 2), (1, 5), (2, 4)].map(|(column, length)| KeyPartLayout {
            column,
            length,
            sort_length: 0,
        });
        let layout = Layout {
            columns,
            stored: vec![0, 1, 2],
            keys: vec![],
            key_of_index: vec![0],
            record_length: 32,
            nulls: vec![0; 32],
            bitmap_length: 1,
        };
        let key = KeyLayout {
            index: 1,
            parts: parts.to_vec(),
            own: 3,
            clustered: vec![],
        };
        (layout, key)
    }

    const IMAGE: &[u8] = &[
        0, 0x34, 0x12, 3, 0, b'a', b'b', b'c', 0, 0, 0, b'x', b' ', b' ', b' ',
    ];

    #[test]
    fn all_parts() {
        let (layout, key) = table();
        let mut out = Values::new();
        // SAFETY: the image has all parts.
        unsafe { values(&layout, &key, IMAGE.as_ptr(), 0b111, &mut out).unwrap() };
        let expected = [
            Value::UInt(0x1234),
            Value::Bytes(b"abc"),
            Value::Bytes(b"x"),
        ];
        assert_eq!(&out[..], &expected);
    }

    #[test]
    fn only_the_parts_of_the_map_are_read() {
        let (layout, key) = table();
        let image = [1u8, 9, 9];
        let mut out = Values::new();
        // SAFETY: the image has the one part of the map.
        unsafe { values(&layout, &key, image.as_ptr(), 1, &mut out).unwrap() };
        assert_eq!(&out[..], &[Value::Null]);
        // SAFETY: nothing is read.
        unsafe { values(&layout, &key, std::ptr::null(), 0, &mut Values::new()).unwrap() };
        // SAFETY: null is refused.
        assert!(unsafe { values(&layout, &key, std::ptr::null(), 1, &mut Values::new()) }.is_err());
    }

    /// The engine cuts a row's binary value to the bytes that the image has, including zeros at the end of the prefix.
    #[test]
    fn a_prefix_of_a_binary_value_is_what_a_row_with_it_has_in_the_key() {
        let (mut layout, mut key) = table();
        layout.columns[2] = column(Kind::Fixed, 5, 2);
        key.parts[2].length = 3;
        let schema = TableSchema {
            columns: vec![peregrine::Column::new("b", ColumnType::Bytes { len: 5 }).nullable()],
            primary: None,
            indexes: vec![Index {
                name: "k".into(),
                parts: vec![KeyPart {
                    column: 0,
                    prefix: Some(3),
                    descending: false,
                }],
                unique: true,
            }],
            user: vec![],
        };
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path(), Options::default()).unwrap();
        let engine = db.create_table("t", &schema).unwrap();
        for row in [b"a\0\0\0b", b"a\0\0\0\0", b"abcde", b"\0\0\0\0\0"] {
            let mut image = vec![1, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0];
            image.extend_from_slice(&row[..3]);
            let mut out = Values::new();
            // SAFETY: the image has all parts.
            unsafe { values(&layout, &key, image.as_ptr(), 0b111, &mut out).unwrap() };
            let sought = engine.encode_key(1, &out[2..]).unwrap();
            let stored = engine.encode_key(1, &[Value::Bytes(row)]).unwrap();
            assert_eq!(sought, stored, "{row:?}");
        }
    }

    #[test]
    fn a_length_beyond_the_part_is_refused() {
        let (layout, key) = table();
        let mut image = IMAGE.to_vec();
        image[3] = 6;
        // SAFETY: the image has all parts.
        let read = unsafe { values(&layout, &key, image.as_ptr(), 0b111, &mut Values::new()) };
        assert!(read.is_err());
    }
}
