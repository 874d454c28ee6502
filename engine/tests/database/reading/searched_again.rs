//! A second search with a cursor: nothing of the first search has an effect.

use std::sync::Arc;

use peregrine::{
    Column, Cursor, CursorOptions, Database, Index, Isolation, Key, Seek, Table, TableSchema,
    Transaction, Value,
};

use crate::tables::schemas::{options, INT};

const ROWS: [(u32, u32); 7] = [(1, 1), (1, 2), (5, 1), (5, 2), (5, 3), (9, 1), (9, 2)];

/// Creates rows of two numbers, which are the primary key, and the key of a unique index.
fn open(dir: &std::path::Path) -> (Database, Arc<Table>) {
    let db = Database::open(dir, options()).unwrap();
    let schema = TableSchema {
        columns: vec![Column::new("a", INT), Column::new("b", INT)],
        primary: Some(Key::new(&[0, 1])),
        indexes: vec![Index::new("again", &[0, 1]).unique()],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for (a, b) in ROWS {
        txn.insert(&table, &[a.into(), b.into()]).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

/// Searches for an entry that begins with these values.
fn seek(cursor: &mut Cursor, txn: &mut Transaction, values: &[u32]) -> bool {
    let values: Vec<Value<'_>> = values.iter().map(|&value| value.into()).collect();
    let prefix = cursor.table().encode_key(cursor.index(), &values).unwrap();
    cursor.seek(txn, &prefix, Seek::Exact).unwrap()
}

fn row(cursor: &mut Cursor) -> (u32, u32) {
    let row = cursor.row().unwrap();
    let number = |column| match row.get(column).unwrap() {
        Value::UInt(number) => number as u32,
        other => panic!("{other:?}"),
    };
    (number(0), number(1))
}

const LEVELS: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

/// Runs `attempt` with each kind of cursor, at each level.
fn each(mut attempt: impl FnMut(&mut Cursor, &mut Transaction)) {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = open(dir.path());
    for isolation in LEVELS {
        for (index, index_only) in [(0, false), (1, true), (1, false)] {
            let options = CursorOptions {
                index_only,
                ..CursorOptions::default()
            };
            let mut cursor = Cursor::new(&table, index, options);
            let mut txn = db.begin(isolation);
            attempt(&mut cursor, &mut txn);
            txn.commit().unwrap();
        }
    }
}

/// Checks that no following entry has the prefix of the last search, but that the entries follow.
fn goes_on_from_5_1(cursor: &mut Cursor, txn: &mut Transaction) {
    assert!(cursor.next(txn).unwrap());
    assert_eq!(row(cursor), (5, 2));
    assert!(!cursor.next_same_prefix(txn).unwrap());
    assert!(cursor.next(txn).unwrap());
    assert_eq!(row(cursor), (5, 3));
}

/// After a search for a whole key, no entry has the same prefix, whatever prefix was searched for before.
#[test]
fn entries_behind_a_whole_key_have_another_prefix() {
    each(|cursor, txn| {
        assert!(seek(cursor, txn, &[9]));
        assert!(seek(cursor, txn, &[5, 1]));
        goes_on_from_5_1(cursor, txn);
    });
}

/// The same after steps to before the prefix.
#[test]
fn entries_before_a_prefix_have_another() {
    each(|cursor, txn| {
        assert!(seek(cursor, txn, &[9]));
        for expected in [(5, 3), (5, 2), (5, 1)] {
            assert!(cursor.prev(txn).unwrap());
            assert_eq!(row(cursor), expected);
        }
        goes_on_from_5_1(cursor, txn);
    });
}

/// One cursor is used by two transactions, of each pair of levels.
///
/// The first or the second searches for a prefix and a whole key; then all following entries are read.
#[test]
fn another_transaction_goes_beyond_the_prefix_of_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = open(dir.path());
    for (first, second) in LEVELS.iter().flat_map(|&a| LEVELS.map(|b| (a, b))) {
        for (index, index_only) in [(0, false), (1, true), (1, false)] {
            for (in_first, in_second) in [
                (&[1][..], None),
                (&[5], None),
                (&[1, 1], None),
                (&[1], Some(&[5][..])),
                (&[1], Some(&[5, 1])),
                (&[5, 1], Some(&[1])),
                (&[9], Some(&[1, 2])),
                (&[1], Some(&[5, 9])),
            ] {
                let options = CursorOptions {
                    index_only,
                    ..CursorOptions::default()
                };
                let told = format!("{first:?} {second:?} {index} {in_first:?} {in_second:?}");
                let mut cursor = Cursor::new(&table, index, options);
                let mut txn = db.begin(first);
                assert!(seek(&mut cursor, &mut txn, in_first), "{told}");
                let mut last = row(&mut cursor);
                while cursor.next_same_prefix(&mut txn).unwrap() {
                    last = row(&mut cursor);
                }
                txn.commit().unwrap();
                cursor.step_off();
                let mut txn = db.begin(second);
                if let Some(values) = in_second {
                    last = match seek(&mut cursor, &mut txn, values) {
                        true => row(&mut cursor),
                        false => (values[0], values[1]),
                    };
                }
                let mut found = vec![];
                while cursor.next(&mut txn).unwrap() {
                    found.push(row(&mut cursor));
                }
                let expected: Vec<_> = ROWS.into_iter().filter(|&row| row > last).collect();
                assert_eq!(found, expected, "{told}");
                txn.commit().unwrap();
            }
        }
    }
}

/// A step from the last entry of a prefix, by a transaction that locks ranges, after one that locked none.
#[test]
fn a_step_from_a_prefix_of_a_transaction_that_locked_nothing_goes_beyond_it() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = open(dir.path());
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    let mut txn = db.begin(Isolation::RepeatableRead);
    assert!(seek(&mut cursor, &mut txn, &[1]));
    assert!(cursor.next_same_prefix(&mut txn).unwrap());
    assert_eq!(row(&mut cursor), (1, 2));
    txn.commit().unwrap();
    cursor.step_off();
    let mut txn = db.begin(Isolation::Serializable);
    assert!(cursor.next(&mut txn).unwrap());
    assert_eq!(row(&mut cursor), (5, 1));
    txn.commit().unwrap();
}
