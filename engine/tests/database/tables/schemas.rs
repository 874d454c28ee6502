//! Random schemas, and rows from small domains so that keys collide; and the order of values.

use std::cmp::Ordering;
use std::sync::Arc;

use peregrine::{
    Column, ColumnType, Durability, Index, Key, KeyPart, Options, OwnedValue, TableSchema, Value,
};
use rand::rngs::StdRng;
use rand::Rng;

use crate::reading::ascii::{Ascii, NO_CASE};

pub type Row = Vec<OwnedValue>;

/// The type of most tables' keys.
pub const INT: ColumnType = ColumnType::Int {
    bytes: 4,
    signed: false,
};

pub fn options() -> Options {
    Options {
        pool_bytes: 1 << 20,
        durability: Durability::Later,
        collations: Some(Arc::new(Ascii)),
        ..Options::default()
    }
}

/// Returns bytes that don't compress.
pub fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Columns (id, number, content); the number has a unique index.
pub fn numbered() -> TableSchema {
    TableSchema {
        columns: ["id", "number", "content"]
            .map(|name| Column::new(name, INT))
            .into(),
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("number", &[1]).unique()],
        user: vec![],
    }
}

/// Columns (id, body), with bodies of up to `max` bytes.
pub fn bodies(max: u32) -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("body", ColumnType::VarBytes { max }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

/// Rows of which few fit into a page, with an index over few values.
pub fn grouped() -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("group", INT),
            Column::new("body", ColumnType::VarBytes { max: 4000 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("group", &[1])],
        user: vec![],
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("id", INT),
        Column::new(
            "small",
            ColumnType::Int {
                bytes: 2,
                signed: true,
            },
        )
        .nullable(),
        Column::new("name", ColumnType::VarBytes { max: 40 }).collation(NO_CASE),
        Column::new("code", ColumnType::Bytes { len: 3 }),
        Column::new("weight", ColumnType::Double).nullable(),
        Column::new("note", ColumnType::VarBytes { max: 9000 }).nullable(),
        Column::new("blob", ColumnType::Large { max: 1 << 20 }).nullable(),
    ]
}

pub fn schema(rng: &mut StdRng) -> TableSchema {
    let mut columns = columns();
    // Some tables have no values that can be stored outside rows.
    if rng.random_bool(0.4) {
        columns[5].ty = ColumnType::VarBytes { max: 30 };
        columns.truncate(6);
    }
    let primary = match rng.random_range(0..5) {
        0 => None,
        1 => Some(Key::new(&[2, 0])),
        2 => Some(Key::new(&[3, 0])),
        _ => Some(Key::new(&[0])),
    };
    let mut indexes = vec![];
    for n in 0..rng.random_range(0..5) {
        let mut parts: Vec<KeyPart> = vec![];
        for _ in 0..rng.random_range(1..4) {
            let column = rng.random_range(0..columns.len());
            if parts.iter().any(|p| p.column == column) {
                continue;
            }
            let prefix = match columns[column].ty {
                ColumnType::Large { .. } => Some(rng.random_range(1..20)),
                ColumnType::VarBytes { max } if max > 100 => Some(rng.random_range(1..300)),
                ColumnType::VarBytes { .. } if rng.random_bool(0.3) => Some(2),
                _ => None,
            };
            parts.push(KeyPart {
                column,
                prefix,
                descending: rng.random_bool(0.25),
            });
        }
        indexes.push(Index {
            name: format!("index{n}"),
            parts,
            unique: rng.random_bool(0.3),
        });
    }
    TableSchema {
        columns,
        primary,
        indexes,
        user: vec![n_bytes(rng); 10],
    }
}

fn n_bytes(rng: &mut StdRng) -> u8 {
    rng.random()
}

fn bytes(rng: &mut StdRng, len: usize) -> Vec<u8> {
    let fill: u8 = rng.random();
    (0..len)
        .map(|i| {
            if i < 8 {
                rng.random()
            } else {
                fill.wrapping_add(i as u8)
            }
        })
        .collect()
}

pub fn value(rng: &mut StdRng, schema: &TableSchema, column: usize) -> OwnedValue {
    let c = &schema.columns[column];
    if c.nullable && rng.random_bool(0.2) {
        return OwnedValue::Null;
    }
    match c.ty {
        ColumnType::Int { signed: false, .. } => OwnedValue::UInt(rng.random_range(0..300)),
        ColumnType::Int { .. } => OwnedValue::Int(rng.random_range(-6..6)),
        ColumnType::Double => OwnedValue::Double(f64::from(rng.random_range(-3i32..4)) / 2.0),
        ColumnType::Float => OwnedValue::Float(rng.random_range(-3i16..4).into()),
        ColumnType::Bytes { len } => {
            OwnedValue::Bytes((0..len).map(|_| rng.random_range(0..3)).collect())
        }
        ColumnType::VarBytes { max } if max > 100 => {
            let len = *[0, 5, 200, 3600, 8999]
                .get(rng.random_range(0..5usize))
                .unwrap();
            OwnedValue::Bytes(bytes(rng, len))
        }
        ColumnType::VarBytes { .. } => {
            let len = rng.random_range(0..5);
            let letters = b"aAbB\0z";
            OwnedValue::Bytes(
                (0..len)
                    .map(|_| letters[rng.random_range(0..letters.len())])
                    .collect(),
            )
        }
        ColumnType::Large { .. } => {
            let len = *[0, 10, 4000, 12_000]
                .get(rng.random_range(0..4usize))
                .unwrap();
            OwnedValue::Bytes(bytes(rng, len))
        }
    }
}

pub fn row(rng: &mut StdRng, schema: &TableSchema) -> Row {
    (0..schema.columns.len())
        .map(|column| value(rng, schema, column))
        .collect()
}

pub fn borrow(row: &[OwnedValue]) -> Vec<Value<'_>> {
    row.iter().map(OwnedValue::as_value).collect()
}

/// Returns the order of two values of a key part, without the bytes that the part cuts off.
pub fn part_order(
    schema: &TableSchema,
    part: &KeyPart,
    a: &OwnedValue,
    b: &OwnedValue,
) -> Ordering {
    use OwnedValue::*;
    match (a, b) {
        (Null, Null) => Ordering::Equal,
        (Null, _) => Ordering::Less,
        (_, Null) => Ordering::Greater,
        (Int(a), Int(b)) => a.cmp(b),
        (UInt(a), UInt(b)) => a.cmp(b),
        (Double(a), Double(b)) => a.total_cmp(b),
        (Float(a), Float(b)) => a.total_cmp(b),
        (Bytes(a), Bytes(b)) => {
            let cut = |v: &[u8]| {
                let v = &v[..part.prefix.map_or(v.len(), |p| v.len().min(p as usize))];
                if schema.columns[part.column].collation == NO_CASE {
                    v.to_ascii_uppercase()
                } else {
                    v.to_vec()
                }
            };
            cut(a).cmp(&cut(b))
        }
        _ => panic!("values of different types"),
    }
}

/// Returns the order of two rows by the parts of a key.
pub fn key_order(schema: &TableSchema, parts: &[KeyPart], a: &Row, b: &Row) -> Ordering {
    parts.iter().fold(Ordering::Equal, |order, part| {
        order.then_with(|| {
            let order = part_order(schema, part, &a[part.column], &b[part.column]);
            if part.descending {
                order.reverse()
            } else {
                order
            }
        })
    })
}

/// Returns whether a unique index forbids both rows together.
pub fn collide(schema: &TableSchema, index: &Index, a: &Row, b: &Row) -> bool {
    index.unique
        && index.parts.iter().all(|p| a[p.column] != OwnedValue::Null)
        && key_order(schema, &index.parts, a, b) == Ordering::Equal
}
