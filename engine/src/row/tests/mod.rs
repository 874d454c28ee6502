//! Properties of rows, keys and entries, over random schemas and values.

use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;

use super::entry::{self, EntryBuffer, EntryRef};
use super::key_bytes::KeyBytes;
use super::layout::Layout;
use super::payload::{self, LargeRef, RowEncoder, RowRef};
use super::projection::{project, widen, ColumnSet};
use super::*;
use crate::error::Result;

/// Upper-cases ASCII; collation 1 with one byte per weight, 2 with two.
struct Ascii;

impl Collations for Ascii {
    fn sort_key(
        &self,
        collation: u32,
        value: &[u8],
        prefix_chars: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let n = prefix_chars.map_or(value.len(), |p| value.len().min(p as usize));
        for &b in &value[..n] {
            match (b, collation) {
                (0 | 1, 1) => out.extend_from_slice(&[1, b + 1]),
                (_, 1) => out.push(b.to_ascii_uppercase()),
                (0 | 1, _) => out.extend_from_slice(&[0, 1, 0, b + 1]),
                _ => out.extend_from_slice(&[0, b.to_ascii_uppercase()]),
            }
        }
        out.push(0);
        if collation == 2 {
            out.push(0);
        }
        Ok(())
    }
}

fn column_type() -> impl Strategy<Value = ColumnType> {
    prop_oneof![
        (
            prop_oneof![Just(1u8), Just(2), Just(3), Just(4), Just(8)],
            any::<bool>()
        )
            .prop_map(|(bytes, signed)| ColumnType::Int { bytes, signed }),
        Just(ColumnType::Float),
        Just(ColumnType::Double),
        (1u32..6).prop_map(|len| ColumnType::Bytes { len }),
        (1u32..40).prop_map(|max| ColumnType::VarBytes { max }),
        Just(ColumnType::Large { max: 1 << 20 }),
    ]
}

fn column() -> impl Strategy<Value = Column> {
    (column_type(), any::<bool>(), 0..3u32).prop_map(|(ty, nullable, collation)| {
        let bytes = matches!(
            ty,
            ColumnType::Bytes { .. } | ColumnType::VarBytes { .. } | ColumnType::Large { .. }
        );
        Column {
            nullable,
            collation: if bytes { collation } else { 0 },
            ..Column::new("c", ty)
        }
    })
}

fn value_of(column: &Column) -> BoxedStrategy<OwnedValue> {
    let bytes = |len: std::ops::RangeInclusive<usize>| {
        prop_oneof![
            vec(0u8..4, len.clone()),
            vec(
                prop_oneof![b'a'..=b'c', b'A'..=b'C', Just(b' ')],
                len.clone()
            ),
            vec(any::<u8>(), len)
        ]
        .prop_map(OwnedValue::Bytes)
        .boxed()
    };
    let value = match column.ty {
        ColumnType::Int { bytes, signed } => {
            let shift = 64 - 8 * u32::from(bytes);
            prop_oneof![any::<i64>(), -3i64..4, Just(i64::MIN), Just(i64::MAX)]
                .prop_map(move |v| {
                    let v = v << shift >> shift;
                    if signed {
                        OwnedValue::Int(v)
                    } else {
                        OwnedValue::UInt((v as u64) << shift >> shift)
                    }
                })
                .boxed()
        }
        ColumnType::Float => prop_oneof![
            any::<i16>().prop_map(f32::from),
            any::<f32>().prop_filter("no NaN", |f| !f.is_nan()),
            Just(-0.0),
            Just(0.0)
        ]
        .prop_map(OwnedValue::Float)
        .boxed(),
        ColumnType::Double => prop_oneof![
            any::<i16>().prop_map(f64::from),
            any::<f64>().prop_filter("no NaN", |f| !f.is_nan()),
            Just(-0.0),
            Just(0.0)
        ]
        .prop_map(OwnedValue::Double)
        .boxed(),
        ColumnType::Bytes { len } => bytes(len as usize..=len as usize),
        ColumnType::VarBytes { max } => bytes(0..=max as usize),
        ColumnType::Large { .. } => bytes(0..=60),
    };
    if column.nullable {
        prop_oneof![1 => Just(OwnedValue::Null), 4 => value].boxed()
    } else {
        value
    }
}

fn key_parts(columns: Vec<Column>, of_primary: bool) -> impl Strategy<Value = Vec<KeyPart>> {
    let n = columns.len();
    vec((0..n, any::<bool>(), 1u32..5), 1..4).prop_map(move |picks| {
        let mut parts: Vec<KeyPart> = Vec::new();
        for (column, cut, len) in picks {
            let c = &columns[column];
            if (of_primary && c.nullable) || parts.iter().any(|p| p.column == column) {
                continue;
            }
            let cuttable = matches!(
                c.ty,
                ColumnType::Bytes { .. } | ColumnType::VarBytes { .. } | ColumnType::Large { .. }
            );
            let must = matches!(c.ty, ColumnType::Large { .. });
            parts.push(KeyPart {
                column,
                prefix: (must || cuttable && cut).then_some(len),
                descending: column % 3 == 2,
            });
        }
        parts
    })
}

fn schema() -> impl Strategy<Value = TableSchema> {
    vec(column(), 1..7)
        .prop_flat_map(|columns| {
            (
                Just(columns.clone()),
                key_parts(columns.clone(), true),
                key_parts(columns, false),
                any::<bool>(),
            )
        })
        .prop_map(|(columns, primary, index, unique)| TableSchema {
            columns,
            primary: (!primary.is_empty()).then_some(Key { parts: primary }),
            indexes: if index.is_empty() {
                vec![]
            } else {
                vec![Index {
                    name: "i".into(),
                    parts: index,
                    unique,
                }]
            },
            user: vec![],
        })
}

fn rows(n: usize) -> impl Strategy<Value = (TableSchema, Vec<Vec<OwnedValue>>)> {
    schema().prop_flat_map(move |schema| {
        let row: Vec<_> = schema.columns.iter().map(value_of).collect();
        (Just(schema), vec(row, n))
    })
}

fn borrow(row: &[OwnedValue]) -> Vec<Value<'_>> {
    row.iter().map(OwnedValue::as_value).collect()
}

/// The order that a key part must give two values.
fn part_order(column: &Column, prefix: Option<u32>, a: Value<'_>, b: Value<'_>) -> Ordering {
    let cut = |v: &[u8]| -> Vec<u8> {
        let n = prefix.map_or(v.len(), |p| v.len().min(p as usize));
        let v = &v[..n];
        if column.collation == 0 {
            v.to_vec()
        } else {
            v.to_ascii_uppercase()
        }
    };
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(&b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(&b).unwrap(),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(&b).unwrap(),
        (Value::Bytes(a), Value::Bytes(b)) => cut(a).cmp(&cut(b)),
        _ => panic!("values of different types"),
    }
}

/// Whether two values have the same bits.
fn same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Double(a), Value::Double(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

fn clustered_key(layout: &Layout, row: &[Value<'_>], n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    if layout.hidden {
        key::put_row_id(n, &mut out);
        assert_eq!(key::row_id(&out), Some(n));
    } else {
        layout
            .clustered
            .encode_row(row, Some(&Ascii), &mut out)
            .unwrap();
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn keys_are_ordered_as_values((schema, rows) in rows(2)) {
        let layout = Layout::new(&schema).unwrap();
        let (a, b) = (borrow(&rows[0]), borrow(&rows[1]));
        let mut keys: Vec<(&super::layout::KeyLayout, &[KeyPart])> = vec![];
        if let Some(primary) = &schema.primary {
            keys.push((&layout.clustered, &primary.parts));
        }
        for (n, index) in schema.indexes.iter().enumerate() {
            keys.push((&layout.indexes[n], &index.parts));
        }
        for (key, parts) in keys {
            let (mut ka, mut kb) = (Vec::new(), Vec::new());
            key.encode_row(&a, Some(&Ascii), &mut ka).unwrap();
            key.encode_row(&b, Some(&Ascii), &mut kb).unwrap();
            let want = parts.iter().fold(Ordering::Equal, |o, p| {
                o.then_with(|| {
                    let order = part_order(&schema.columns[p.column], p.prefix, a[p.column], b[p.column]);
                    if p.descending { order.reverse() } else { order }
                })
            });
            prop_assert_eq!(ka.cmp(&kb), want);
            prop_assert!(ka == kb || !kb.starts_with(&ka), "no key is a prefix of another");
            let values: Vec<Value> = parts.iter().map(|p| a[p.column]).collect();
            for n in 0..=values.len() {
                let mut prefix = Vec::new();
                key.encode_prefix(&values[..n], Some(&Ascii), &mut prefix).unwrap();
                prop_assert!(ka.starts_with(&prefix));
            }
        }
    }

    #[test]
    fn rows_round_trip(
        (schema, rows) in rows(1), outside in any::<u8>(), id in any::<u64>(), asked in any::<u64>()
    ) {
        let layout = Layout::new(&schema).unwrap();
        let row = borrow(&rows[0]);
        let key = clustered_key(&layout, &row, 77);
        let mut encoder = RowEncoder::default();
        encoder.measure(&layout, &row).unwrap();
        let mut moved = vec![];
        for (i, v) in row.iter().enumerate() {
            if let (Value::Bytes(b), true) = (v, outside >> (i % 8) & 1 == 1 && layout.columns[i].from_key.is_none()) {
                encoder.outside[i] = Some(LargeRef { id, len: b.len() as u64 });
                moved.push(i);
            }
        }
        encoder.lay_out(&layout, &row).unwrap();
        let mut bytes = Vec::new();
        encoder.write(&layout, &row, &mut bytes).unwrap();
        prop_assert_eq!(bytes.len(), encoder.encoded_len());
        prop_assert_eq!(payload::outside_row(&bytes), None);
        let read = RowRef::new(&layout, &key, &bytes).unwrap();
        for (i, &v) in row.iter().enumerate() {
            match v {
                Value::Bytes(b) if moved.contains(&i) => {
                    prop_assert_eq!(read.field(i).unwrap(), payload::Field::Outside(LargeRef { id, len: b.len() as u64 }));
                }
                _ => prop_assert!(same(read.get(i).unwrap(), v), "{:?} came back as {:?}", v, read.get(i)),
            }
        }
        prop_assert!(read.get(row.len()).is_err());

        let columns = ColumnSet(asked);
        let here = |i: usize| asked >> i & 1 == 1;
        let mut few = b"before".to_vec();
        let fits = project(&layout, &bytes, columns, &mut few).unwrap();
        prop_assert_eq!(fits, !moved.iter().any(|i| here(*i)));
        if fits {
            let mut wide = Vec::new();
            prop_assert_eq!(widen(row.len(), &few[6..], columns, &mut wide), Some(()));
            let again = RowRef::new(&layout, &key, &wide).unwrap();
            for (i, &v) in row.iter().enumerate() {
                match again.get(i) {
                    Ok(value) => prop_assert!(here(i) && same(value, v)),
                    Err(error) => prop_assert!(!here(i), "{}", error),
                }
            }
            for cut in 0..few.len() - 6 {
                prop_assert_eq!(widen(row.len(), &few[6..6 + cut], columns, &mut Vec::new()), None);
            }
        }
        let found: Vec<usize> = read.references().map(|r| r.unwrap().0).collect();
        prop_assert_eq!(found, moved);
    }

    #[test]
    fn added_columns_read_their_default((schema, rows) in rows(1), default in any::<i64>()) {
        let layout = Layout::new(&schema).unwrap();
        let row = borrow(&rows[0]);
        let key = clustered_key(&layout, &row, 77);
        let mut encoder = RowEncoder::default();
        encoder.measure(&layout, &row).unwrap();
        let mut bytes = Vec::new();
        encoder.write(&layout, &row, &mut bytes).unwrap();
        let mut wider = schema.clone();
        wider.columns.push(Column {
            default: OwnedValue::Int(default),
            ..Column::new("added", ColumnType::Int { bytes: 8, signed: true })
        });
        let wider = Layout::new(&wider).unwrap();
        let read = RowRef::new(&wider, &key, &bytes).unwrap();
        prop_assert_eq!(read.get(row.len()).unwrap(), Value::Int(default));
        for (i, &v) in row.iter().enumerate() {
            prop_assert!(same(read.get(i).unwrap(), v));
        }
    }

    #[test]
    fn entries_give_back_what_they_cover((schema, rows) in rows(1)) {
        let layout = Layout::new(&schema).unwrap();
        let row = borrow(&rows[0]);
        let ck = clustered_key(&layout, &row, 0xfedc_ba98_7654);
        for (n, index) in layout.indexes.iter().enumerate() {
            let (mut key, mut payload) = (Vec::new(), Vec::new());
            entry::encode(index, &row, &ck, Some(&Ascii), &mut key, &mut payload).unwrap();
            prop_assert_eq!(entry::clustered_key(&key, &payload).unwrap(), &ck[..]);
            let mut buffer = EntryBuffer::default();
            buffer.decode(index, usize::MAX, KeyBytes::Here(&key), &payload).unwrap();
            let entry = EntryRef::new(&layout, index, KeyBytes::Here(&key), &payload, &buffer);
            for (i, &v) in row.iter().enumerate() {
                if let Some(place) = layout.text_place(n + 1, i) {
                    let mut out = [0xEE; 300];
                    match (place.read(&&key[..], &payload, &mut out), v) {
                        (Some(Text::Null), Value::Null) => {}
                        (Some(Text::Bytes(n)), Value::Bytes(v)) => {
                            prop_assert_eq!(&out[..n], v);
                            prop_assert!(n == 0 || place.read(&&key[..], &payload, &mut out[..n - 1]).is_none());
                        }
                        (read, _) => prop_assert!(false, "{:?} came back as {:?}", v, read),
                    }
                }
                if layout.covers(n + 1, i) {
                    prop_assert!(same(entry.get(i).unwrap(), v), "{:?} came back as {:?}", v, entry.get(i));
                } else {
                    prop_assert!(entry.get(i).is_err());
                }
            }
            let has_null = index.parts.iter().any(|p| row[p.column].is_null());
            prop_assert_eq!(key.ends_with(&ck) , !index.unique || has_null || key.ends_with(&ck));
            if !index.unique || has_null {
                prop_assert!(key.ends_with(&ck));
            }
        }
    }

    #[test]
    fn decoding_anything_never_panics((schema, _) in rows(1), key in any::<Vec<u8>>(), mut bytes in any::<Vec<u8>>(), plausible in any::<bool>()) {
        let layout = Layout::new(&schema).unwrap();
        if plausible && bytes.len() > 2 {
            bytes[0] &= 15;
            bytes[1] = schema.columns.len() as u8;
        }
        let _ = payload::outside_row(&bytes);
        if let Ok(row) = RowRef::new(&layout, &key, &bytes) {
            for i in 0..schema.columns.len() {
                let _ = row.get(i);
            }
            let _ = row.references().count();
        }
        for (n, index) in layout.indexes.iter().enumerate() {
            for i in 0..schema.columns.len() {
                if let Some(place) = layout.text_place(n + 1, i) {
                    let _ = place.read(&&key[..], &bytes, &mut [0; 20]);
                }
            }
            let mut buffer = EntryBuffer::default();
            let _ = buffer.decode(index, usize::MAX, KeyBytes::Here(&key), &bytes);
            let entry = EntryRef::new(&layout, index, KeyBytes::Here(&key), &bytes, &buffer);
            for i in 0..schema.columns.len() {
                let _ = entry.get(i);
            }
        }
    }
}

/// A NaN from a key may differ from the value: the processor sets a bit of it.
#[test]
fn no_bit_of_a_key_column_changes() {
    let schema = TableSchema {
        columns: vec![
            Column::new("f", ColumnType::Float),
            Column::new("d", ColumnType::Double),
        ],
        primary: Some(Key::new(&[0, 1])),
        ..TableSchema::default()
    };
    let layout = Layout::new(&schema).unwrap();
    let row = [
        Value::Float(f32::from_bits(0x7fa0_0001)),
        Value::Double(f64::from_bits(0xfff4_0000_0000_0001)),
    ];
    let key = clustered_key(&layout, &row, 0);
    let mut encoder = RowEncoder::default();
    encoder.measure(&layout, &row).unwrap();
    let mut bytes = Vec::new();
    encoder.write(&layout, &row, &mut bytes).unwrap();
    let read = RowRef::new(&layout, &key, &bytes).unwrap();
    for (n, value) in row.into_iter().enumerate() {
        let found = read.get(n).unwrap();
        assert!(same(found, value), "{n}: {found:?}");
    }
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let schema = TableSchema {
        columns: vec![
            Column::new(
                "t",
                ColumnType::Int {
                    bytes: 1,
                    signed: true,
                },
            ),
            Column::new(
                "u",
                ColumnType::Int {
                    bytes: 3,
                    signed: false,
                },
            ),
            Column::new("f", ColumnType::Bytes { len: 2 }),
            Column::new("v", ColumnType::VarBytes { max: 2 }),
        ],
        ..TableSchema::default()
    };
    let layout = Layout::new(&schema).unwrap();
    let good = [
        Value::Int(-128),
        Value::UInt(0xff_ffff),
        Value::Bytes(b"ab"),
        Value::Bytes(b""),
    ];
    let mut encoder = RowEncoder::default();
    encoder.measure(&layout, &good).unwrap();
    encoder
        .measure(
            &layout,
            &[Value::UInt(127), Value::Int(5), good[2], good[3]],
        )
        .unwrap();
    for (i, bad) in [
        (0, Value::Int(128)),
        (0, Value::Int(-129)),
        (0, Value::UInt(128)),
        (0, Value::Null),
        (0, Value::Double(1.0)),
        (1, Value::UInt(0x100_0000)),
        (1, Value::Int(-1)),
        (2, Value::Bytes(b"a")),
        (2, Value::Bytes(b"abc")),
        (3, Value::Bytes(b"abc")),
        (3, Value::Int(1)),
        (3, Value::OutOfRow(1)),
    ] {
        let mut row = good;
        row[i] = bad;
        let error = encoder.measure(&layout, &row).unwrap_err();
        assert!(matches!(error, crate::Error::Invalid(_)), "{bad:?}");
    }
    assert!(encoder.measure(&layout, &good[..3]).is_err());
}

#[test]
fn schemas_that_cannot_be_are_refused() {
    let columns = vec![
        Column::new(
            "a",
            ColumnType::Int {
                bytes: 4,
                signed: true,
            },
        ),
        Column::new("b", ColumnType::Large { max: 100 }).nullable(),
    ];
    let with = |parts: Vec<KeyPart>| TableSchema {
        columns: columns.clone(),
        primary: Some(Key { parts }),
        ..TableSchema::default()
    };
    assert!(Layout::new(&TableSchema::default()).is_err());
    assert!(Layout::new(&with(vec![])).is_err());
    assert!(Layout::new(&with(vec![KeyPart::new(2)])).is_err());
    assert!(Layout::new(&with(vec![KeyPart::new(1)])).is_err());
    assert!(Layout::new(&with(vec![KeyPart {
        column: 1,
        prefix: Some(5),
        descending: false
    }]))
    .is_err());
    assert!(Layout::new(&with(vec![KeyPart {
        column: 0,
        prefix: Some(5),
        descending: false
    }]))
    .is_err());
    assert!(Layout::new(&with(vec![KeyPart::new(0)])).is_ok());
    let five = Column::new(
        "a",
        ColumnType::Int {
            bytes: 5,
            signed: true,
        },
    );
    assert!(Layout::new(&TableSchema {
        columns: vec![five],
        ..TableSchema::default()
    })
    .is_err());
}
