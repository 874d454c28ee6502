//! Scans within bounds: they read no leaves beyond them, and continue when the bounds are moved.

use std::sync::Arc;

use peregrine::os::simulated::SimulatedOs;
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Index, Isolation, Key, Options, Seek,
    Table, TableSchema, Transaction, Value,
};

use crate::tables::schemas::{noise, INT};

type Id = (u64, u64);

/// Creates rows (group, id, body), which both indexes order by group.
fn table(max: u32) -> (Database, Arc<Table>) {
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(SimulatedOs::new(3)), "/db", options).unwrap();
    let columns = vec![
        Column::new("group", INT),
        Column::new("id", INT),
        Column::new("body", ColumnType::VarBytes { max }),
    ];
    let indexes = match max {
        0..=200 => vec![Index::new("bodies", &[0, 2])],
        _ => vec![],
    };
    let schema = TableSchema {
        columns,
        primary: Some(Key::new(&[0, 1])),
        indexes,
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    (db, table)
}

fn fill(db: &Database, table: &Arc<Table>, group: u32, rows: u32, len: usize) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..rows {
        let body = noise(group * 1_000 + id, len);
        txn.insert(table, &[group.into(), id.into(), Value::Bytes(&body)])
            .unwrap();
    }
    txn.commit().unwrap();
}

fn empty(db: &Database, table: &Arc<Table>, group: u32, rows: u32) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..rows {
        let key = table.encode_key(0, &[group.into(), id.into()]).unwrap();
        txn.delete(table, &key).unwrap();
    }
    txn.commit().unwrap();
}

/// Takes a snapshot that keeps rows deleted from now on.
fn snapshot(db: &Database, table: &Arc<Table>) -> Transaction {
    let mut old = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    assert!(cursor.seek(&mut old, &[], Seek::First).unwrap());
    old
}

fn number(cursor: &mut Cursor, column: usize) -> u64 {
    match cursor.row().unwrap().get(column).unwrap() {
        Value::UInt(number) => number,
        other => panic!("{other:?}"),
    }
}

/// Reads rows from the cursor's current one (`on`) on, at most `most`.
fn take(
    txn: &mut Transaction,
    cursor: &mut Cursor,
    mut on: bool,
    to: Seek,
    most: usize,
) -> Vec<Id> {
    let mut found = Vec::new();
    while on {
        found.push((number(cursor, 0), number(cursor, 1)));
        if found.len() == most {
            break;
        }
        on = match to {
            Seek::Last | Seek::ExactLast => cursor.prev(txn).unwrap(),
            _ => cursor.next(txn).unwrap(),
        };
    }
    found
}

/// Groups 1 and 3 have about 60 leaves each, with rows that only an old snapshot sees, and there are five rows between.
#[test]
fn leaves_behind_the_end_of_a_scan_are_not_looked_at() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    const ROWS: u32 = 300;
    let (db, table) = table(4_000);
    for (group, rows) in [(1, ROWS), (2, 5), (3, ROWS)] {
        fill(&db, &table, group, rows, 3_000);
    }
    let old = snapshot(&db, &table);
    empty(&db, &table, 1, ROWS);
    empty(&db, &table, 3, ROWS);
    db.checkpoint().unwrap();
    let of = |group: u32| table.encode_key(0, &[group.into()]).unwrap();
    let all: Vec<Id> = (0..5).map(|id| (2, id)).collect();
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        for way in 0..3 {
            let mut txn = db.begin(isolation);
            let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
            let before = db.status().pages_read;
            match way {
                0 => {
                    cursor.set_end(&of(2), true);
                    let on = cursor.seek(&mut txn, &of(2), Seek::AtOrAfter).unwrap();
                    assert_eq!(take(&mut txn, &mut cursor, on, Seek::AtOrAfter, 9), all);
                }
                1 => {
                    let mut on = cursor.seek(&mut txn, &of(2), Seek::Exact).unwrap();
                    let mut count = 0;
                    while on {
                        count += 1;
                        on = cursor.next_same_prefix(&mut txn).unwrap();
                    }
                    assert_eq!(count, 5);
                }
                _ => assert!(!cursor.seek(&mut txn, &of(4), Seek::ExactLast).unwrap()),
            }
            let read = db.status().pages_read - before;
            assert!(read <= 12, "{isolation:?} {way}: {read} pages read");
            if way == 2 {
                let on = cursor.prev(&mut txn).unwrap();
                let mut found = take(&mut txn, &mut cursor, on, Seek::Last, 9);
                found.reverse();
                assert_eq!(found, all);
            }
        }
    }
    drop(old);
}

/// Every second group is deleted, and has more rows than a leaf.
#[test]
fn a_scan_whose_bounds_are_moved_goes_on_behind_them() {
    let (db, table) = table(200);
    let rows = |group: u32| if group % 2 == 0 { 30 } else { 150 };
    for group in 0..8 {
        fill(&db, &table, group, rows(group), 200);
    }
    let old = snapshot(&db, &table);
    for group in [1, 3, 5, 7] {
        empty(&db, &table, group, rows(group));
    }
    for (isolation, index, index_only) in [
        (Isolation::RepeatableRead, 0, false),
        (Isolation::RepeatableRead, 1, false),
        (Isolation::RepeatableRead, 1, true),
        (Isolation::Serializable, 0, false),
        (Isolation::Serializable, 1, false),
    ] {
        let case = format!("{isolation:?} {index} {index_only}");
        let of = |group: u32| table.encode_key(index, &[group.into()]).unwrap();
        let options = CursorOptions {
            index_only,
            ..CursorOptions::default()
        };
        let mut txn = db.begin(isolation);
        let mut cursor = Cursor::new(&table, index, options);
        let on = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        let all = take(&mut txn, &mut cursor, on, Seek::First, 1_000);
        assert_eq!(all.len(), 120, "{case}");
        let within = |from: u64, to: u64| -> Vec<Id> {
            let is_within = |id: &&Id| (from..=to).contains(&id.0);
            all.iter().filter(is_within).copied().collect()
        };

        // After the rows of a prefix come others.
        for group in [2, 3, 4, 7] {
            let on = cursor.seek(&mut txn, &of(group), Seek::Exact).unwrap();
            assert_eq!(on, group % 2 == 0, "{case} {group}");
            let on = on || cursor.next(&mut txn).unwrap();
            let found = take(&mut txn, &mut cursor, on, Seek::Exact, 1_000);
            assert_eq!(found, within(group.into(), 9), "{case} {group}");

            let on = cursor.seek(&mut txn, &of(group), Seek::ExactLast).unwrap();
            assert_eq!(on, group % 2 == 0, "{case} {group}");
            let on = on || cursor.prev(&mut txn).unwrap();
            let mut found = take(&mut txn, &mut cursor, on, Seek::ExactLast, 1_000);
            found.reverse();
            assert_eq!(found, within(0, group.into()), "{case} {group}");
        }

        // The end is moved or removed after a number of rows.
        for most in [1, 2, 7, 29, 30, 31, 45, 58, 59, 60] {
            for to in [Some(4), None] {
                cursor.set_end(&of(2), true);
                let on = cursor.seek(&mut txn, &[], Seek::First).unwrap();
                let mut found = take(&mut txn, &mut cursor, on, Seek::First, most);
                match to {
                    Some(group) => cursor.set_end(&of(group), true),
                    None => cursor.clear_end(),
                }
                let on = cursor.next(&mut txn).unwrap();
                found.extend(take(&mut txn, &mut cursor, on, Seek::First, 1_000));
                let expected = within(0, to.map_or(9, u64::from));
                assert_eq!(found, expected, "{case} {most} {to:?}");
                cursor.clear_end();
            }
        }
    }
    drop(old);
}
