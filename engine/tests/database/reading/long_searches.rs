//! Searches for values longer than any key: no row has them, and all keys are on the correct side of them.

use std::ops::Bound;
use std::sync::Arc;

use peregrine::{
    Aggregate, Aggregated, Column, ColumnType, Cursor, CursorOptions, Database, Error, Index,
    IndexRange, Isolation, Key, KeyPart, MultiGet, RowLock, Seek, Table, TableSchema, Transaction,
    Value,
};

use crate::reading::ascii::NO_CASE;
use crate::tables::schemas::{options, INT};

/// Lengths that exceed any key: by as few bytes as possible, and by more.
const LONG: [usize; 3] = [1951, 3900, 6000];

fn part(column: usize, prefix: Option<u32>, descending: bool) -> KeyPart {
    KeyPart {
        column,
        prefix,
        descending,
    }
}

/// Columns: a number, and a value with every kind of index.
fn schema() -> TableSchema {
    let index = |name: &str, parts: &[KeyPart]| Index {
        name: name.into(),
        parts: parts.to_vec(),
        unique: false,
    };
    let value = part(1, None, false);
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("value", ColumnType::VarBytes { max: 9000 }),
            Column::new("text", ColumnType::VarBytes { max: 9000 }).collation(NO_CASE),
        ],
        primary: Some(Key {
            parts: vec![value, part(0, None, false)],
        }),
        indexes: vec![
            index("plain", &[value]),
            index("unique", &[value, part(0, None, false)]).unique(),
            index("descending", &[part(1, None, true)]),
            index("text", &[part(2, None, false)]),
            index("prefix", &[part(1, Some(4000), false)]),
        ],
        user: vec![],
    }
}

/// Returns the values of rows, in order: near the values searched for, and of the greatest length.
fn values() -> Vec<Vec<u8>> {
    let mut values = vec![
        vec![],
        b"a".to_vec(),
        b"b".to_vec(),
        vec![0],
        vec![1],
        vec![255],
    ];
    for byte in [0, 1, 2, b'b', 254, 255] {
        // Bytes 0 and 1 take twice the space in a key; the clustered key contains the value and its suffix.
        let most = if byte < 2 { 960 } else { 1900 };
        let longest = vec![byte; most];
        let with = |last: u8| [&longest[1..], &[last]].concat();
        values.extend([longest.clone(), with(3), with(b'c')]);
    }
    values.sort();
    values.dedup();
    values
}

/// Returns values that are too long for a key.
fn sought() -> Vec<Vec<u8>> {
    let mut sought = vec![];
    for byte in [0, 1, 2, b'b', 254, 255] {
        for n in LONG.into_iter().filter(|&n| byte < 2 || n > 3000) {
            sought.push(vec![byte; n]);
            sought.push([&vec![byte; n - 1][..], b"c"].concat());
        }
    }
    sought
}

fn open(dir: &std::path::Path) -> (Database, Arc<Table>) {
    let db = Database::open(dir, options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for (id, value) in (0u32..).zip(values()) {
        let row = [id.into(), Value::Bytes(&value), Value::Bytes(&value)];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

fn id(cursor: &mut Cursor) -> u64 {
    match cursor.row().unwrap().get(0).unwrap() {
        Value::UInt(id) => id,
        other => panic!("{other:?}"),
    }
}

/// Returns the row that a search finds.
fn found(cursor: &mut Cursor, txn: &mut Transaction, key: &[u8], to: Seek) -> Option<u64> {
    cursor.seek(txn, key, to).unwrap().then(|| id(cursor))
}

#[test]
fn every_search_compares_with_the_whole_of_a_value_that_no_key_has() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = open(dir.path());
    let rows = values();
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        let mut txn = db.begin(isolation);
        for index in 0..=5 {
            let mut cursor = Cursor::new(&table, index, CursorOptions::default());
            // The order of the index is that of its column.
            let of_case = |value: &[u8]| match index {
                4 => value.to_ascii_uppercase(),
                _ => value.to_vec(),
            };
            let mut order: Vec<(Vec<u8>, u64)> =
                rows.iter().map(|row| of_case(row)).zip(0..).collect();
            order.sort();
            if index == 3 {
                order.reverse();
            }
            for value in sought() {
                let key = table.encode_key(index, &[Value::Bytes(&value)]).unwrap();
                let value = of_case(&value);
                let less = |row: &&(Vec<u8>, u64)| match index {
                    3 => row.0 > value,
                    _ => row.0 < value,
                };
                let count = order.iter().take_while(less).count();
                let after = order.get(count).map(|row| row.1);
                let before = count.checked_sub(1).map(|last| order[last].1);
                let told = format!("index {index}, {} times {}", value.len(), value[0]);
                for (to, expected) in [
                    (Seek::Exact, None),
                    (Seek::ExactLast, None),
                    (Seek::AtOrAfter, after),
                    (Seek::After, after),
                    (Seek::AtOrBefore, before),
                    (Seek::Before, before),
                ] {
                    let row = found(&mut cursor, &mut txn, &key, to);
                    assert_eq!(row, expected, "{told}, {to:?}");
                }
                for inclusive in [true, false] {
                    cursor.set_end(&key, inclusive);
                    let mut within = Vec::new();
                    let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
                    while more {
                        within.push(id(&mut cursor));
                        more = cursor.next(&mut txn).unwrap();
                    }
                    let expected: Vec<u64> = order[..count].iter().map(|row| row.1).collect();
                    assert_eq!(within, expected, "{told}, as the end");
                    cursor.clear_end();
                }
                let (whole, behind) = (Bound::Unbounded, order.len() - count);
                for (start, end, expected) in [
                    (whole, Bound::Included(&key[..]), count),
                    (whole, Bound::Excluded(&key[..]), count),
                    (Bound::Included(&key[..]), whole, behind),
                    (Bound::Excluded(&key[..]), whole, behind),
                ] {
                    let range = IndexRange { index, start, end };
                    let rows = txn.aggregate(&table, &range, &[], &[Aggregate::Rows]);
                    let expected = Aggregated::Count(expected as u64);
                    assert_eq!(rows.unwrap(), [expected], "{told}");
                }
                table.estimate_range(index, Some(&key), None).unwrap();
                table.estimate_range(index, None, Some(&key)).unwrap();
            }
        }
        txn.commit().unwrap();
    }
}

#[test]
fn nothing_is_found_read_or_changed_by_a_key_that_is_too_long() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = open(dir.path());
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        for value in sought() {
            let mut txn = db.begin(isolation);
            let whole = [Value::Bytes(&value), Value::UInt(7)];
            let key = table.encode_key(0, &whole).unwrap();
            assert_eq!(txn.get(&table, &key, |_| ()).unwrap(), None);
            for lock in [RowLock::Shared, RowLock::Exclusive] {
                let row = txn.get_locked(&table, &key, lock, |_| ());
                assert_eq!(row.unwrap(), None);
            }
            for index in [0, 2] {
                let key = table.encode_key(index, &whole).unwrap();
                for lock in [RowLock::None, RowLock::Exclusive] {
                    let options = CursorOptions {
                        lock,
                        ..CursorOptions::default()
                    };
                    let mut cursor = Cursor::new(&table, index, options);
                    assert!(!cursor.seek(&mut txn, &key, Seek::Exact).unwrap());
                }
            }
            let there = table
                .encode_key(0, &[Value::Bytes(b""), Value::UInt(0)])
                .unwrap();
            let mut rows = MultiGet::new(&table);
            rows.add(&key).unwrap();
            rows.add(&there).unwrap();
            txn.multi_get(&mut rows).unwrap();
            assert!(rows.row(0).unwrap().is_none());
            assert!(rows.row(1).unwrap().is_some());
            assert!(matches!(
                txn.delete(&table, &key),
                Err(Error::NotFound { .. })
            ));
            let short = [Value::UInt(7), Value::Bytes(b"x"), Value::Bytes(b"x")];
            assert!(matches!(
                txn.update(&table, &key, &short),
                Err(Error::NotFound { .. })
            ));
            // The limit for stored values still holds.
            let long = [Value::UInt(7), Value::Bytes(&value), Value::Bytes(b"x")];
            assert!(matches!(txn.insert(&table, &long), Err(Error::TooLarge(_))));
            assert!(matches!(
                txn.update(&table, &there, &long),
                Err(Error::TooLarge(_))
            ));
            txn.guard(&table, 1, &key).unwrap();
            txn.commit().unwrap();
        }
    }
}
