//! Scans of a secondary index after rows have moved in it.

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, EntryFilter, Index, Isolation, Key,
    RowView, Seek, TableSchema, Transaction, Value, Verdict,
};
use rand::{Rng, SeedableRng};

use crate::tables::schemas::{options, INT};

const GROUPS: u32 = 3;
const ROWS: u32 = 12;

/// Rows are inserted, deleted and moved between groups, some of them more than once in a transaction.
///
/// After every change each group is read through the index, by every kind of seek.
#[test]
fn rows_that_move_in_an_index_are_seen_once_and_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("group", INT),
            Column::new("version", INT),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_group", &[1])],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut rng = rand::rngs::StdRng::seed_from_u64(1);
    let mut there = vec![None; ROWS as usize];
    for version in 1..4_000_u32 {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let before = there.clone();
        for _ in 0..rng.random_range(1..4) {
            let id = rng.random_range(0..ROWS);
            let group = rng.random_range(0..=GROUPS);
            let key = table.encode_key(0, &[id.into()]).unwrap();
            let row = [id.into(), group.into(), version.into()];
            match (there[id as usize], group < GROUPS) {
                (None, true) => txn.insert(&table, &row).unwrap(),
                (Some(_), true) => txn.update(&table, &key, &row).unwrap(),
                (Some(_), false) => txn.delete(&table, &key).unwrap(),
                (None, false) => {}
            }
            there[id as usize] = (group < GROUPS).then_some((group, version));
        }
        if rng.random_bool(0.2) {
            txn.rollback().unwrap();
            there = before;
        } else {
            txn.commit().unwrap();
        }
        let mut txn = db.begin(Isolation::ReadCommitted);
        for group in 0..GROUPS {
            let expected: Vec<(u64, u64)> = (0_u64..)
                .zip(&there)
                .filter_map(|(id, at)| at.filter(|at| at.0 == group).map(|at| (id, at.1.into())))
                .collect();
            for to in [Seek::Exact, Seek::AtOrAfter] {
                let prefix = table.encode_key(1, &[group.into()]).unwrap();
                let mut cursor = Cursor::new(&table, 1, CursorOptions::default());
                cursor.set_end(&prefix, true);
                let mut found = Vec::new();
                let mut more = cursor.seek(&mut txn, &prefix, to).unwrap();
                while more {
                    let row = cursor.row().unwrap();
                    let number = |column| match row.get(column).unwrap() {
                        Value::UInt(number) => number,
                        other => panic!("{other:?}"),
                    };
                    assert_eq!(number(1), u64::from(group), "change {version}, {to:?}");
                    found.push((number(0), number(2)));
                    more = cursor.next(&mut txn).unwrap();
                }
                assert_eq!(found, expected, "change {version}, group {group}, {to:?}");
            }
        }
        txn.commit().unwrap();
    }
}

/// Skips entries whose group is odd.
struct EvenGroups;

impl EntryFilter for EvenGroups {
    fn look(&mut self, entry: &RowView<'_>) -> peregrine::Result<Verdict> {
        let even = matches!(entry.get(1)?, Value::UInt(group) if group % 2 == 0);
        Ok(if even { Verdict::Keep } else { Verdict::Skip })
    }
}

/// The filter has skipped the last visible entries, and leaves of invisible entries follow.
#[test]
fn a_filtered_scan_ends_before_what_it_does_not_see() {
    const SEEN: u32 = 400;
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("group", INT).nullable(),
            Column::new("name", ColumnType::VarBytes { max: 200 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_name", &[2, 1])],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let insert = |txn: &mut Transaction, ids: std::ops::Range<u32>, group: u32| {
        for id in ids {
            let name = format!("{id:0150}");
            let row = [id.into(), group.into(), Value::Bytes(name.as_bytes())];
            txn.insert(&table, &row).unwrap();
        }
    };
    for kept in [1, 2, 20, 63, 64, 65] {
        let mut txn = db.begin(Isolation::ReadCommitted);
        insert(&mut txn, 0..kept, 2);
        insert(&mut txn, kept..SEEN, 1);
        txn.commit().unwrap();
        let mut unseen = db.begin(Isolation::ReadCommitted);
        insert(&mut unseen, SEEN..2 * SEEN, 2);

        let mut txn = db.begin(Isolation::RepeatableRead);
        let mut cursor = Cursor::new(&table, 1, CursorOptions::default());
        cursor.set_filter(Some(Box::new(EvenGroups)));
        let mut found = Vec::new();
        let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        while more {
            match cursor.row().unwrap().get(0).unwrap() {
                Value::UInt(id) => found.push(id as u32),
                other => panic!("{other:?}"),
            }
            more = cursor.next(&mut txn).unwrap();
        }
        assert_eq!(found, (0..kept).collect::<Vec<_>>(), "{kept} are kept");
        drop(txn);

        unseen.rollback().unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..SEEN {
            let key = table.encode_key(0, &[id.into()]).unwrap();
            txn.delete(&table, &key).unwrap();
        }
        txn.commit().unwrap();
    }
}

/// A cursor that finds nothing, reaches an end, or steps off its row for another transaction, continues from there,
/// forward and backward.
#[test]
fn a_cursor_that_stands_on_no_entry_keeps_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let schema = TableSchema {
        columns: vec![Column::new("id", INT), Column::new("group", INT)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_group", &[1])],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 1..=100_u32 {
        txn.insert(&table, &[(10 * id).into(), (10 * id).into()])
            .unwrap();
    }
    txn.commit().unwrap();
    for isolation in [Isolation::RepeatableRead, Isolation::Serializable] {
        for (index, index_only) in [(0, false), (1, false), (1, true)] {
            let how = CursorOptions {
                index_only,
                ..CursorOptions::default()
            };
            let key = |n: u32| table.encode_key(index, &[n.into()]).unwrap();
            let read = |cursor: &mut Cursor, more: bool| {
                more.then(|| match cursor.row().unwrap().get(index).unwrap() {
                    Value::UInt(number) => number,
                    other => panic!("{other:?}"),
                })
            };
            let mut cursor = Cursor::new(&table, index, how);
            let mut txn = db.begin(isolation);
            assert!(!cursor.next(&mut txn).unwrap() && !cursor.prev(&mut txn).unwrap());
            for (to, from, next, previous) in [
                (Seek::Exact, 555, Some(560), Some(550)),
                (Seek::ExactLast, 555, Some(560), Some(550)),
                (Seek::Exact, 5, Some(10), None),
                (Seek::AtOrAfter, 1001, None, Some(1000)),
                (Seek::After, 1000, None, Some(1000)),
                (Seek::AtOrBefore, 9, Some(10), None),
                (Seek::Before, 10, Some(10), None),
            ] {
                for (forward, want) in [(true, next), (false, previous)] {
                    assert!(!cursor.seek(&mut txn, &key(from), to).unwrap());
                    let more = if forward {
                        cursor.next(&mut txn).unwrap()
                    } else {
                        cursor.prev(&mut txn).unwrap()
                    };
                    let found = read(&mut cursor, more);
                    assert_eq!(found, want, "{to:?} of {from} in index {index}");
                }
            }
            // The ends of the tree, of a range, and of a prefix.
            assert!(cursor.seek(&mut txn, &[], Seek::Last).unwrap());
            assert!(!cursor.next(&mut txn).unwrap() && !cursor.next(&mut txn).unwrap());
            let more = cursor.prev(&mut txn).unwrap();
            assert_eq!(read(&mut cursor, more), Some(1000));
            assert!(cursor.seek(&mut txn, &[], Seek::First).unwrap());
            assert!(!cursor.prev(&mut txn).unwrap() && !cursor.prev(&mut txn).unwrap());
            let more = cursor.next(&mut txn).unwrap();
            assert_eq!(read(&mut cursor, more), Some(10));
            cursor.set_end(&key(40), false);
            assert!(cursor.seek(&mut txn, &key(30), Seek::AtOrAfter).unwrap());
            assert!(!cursor.next(&mut txn).unwrap());
            cursor.clear_end();
            let more = cursor.next(&mut txn).unwrap();
            assert_eq!(read(&mut cursor, more), Some(40));
            assert!(cursor.seek(&mut txn, &key(50), Seek::Exact).unwrap());
            assert!(!cursor.next_same_prefix(&mut txn).unwrap());
            assert!(!cursor.next_same_prefix(&mut txn).unwrap());
            let more = cursor.next(&mut txn).unwrap();
            assert_eq!(read(&mut cursor, more), Some(60));
            // Another transaction.
            cursor.step_off();
            txn.commit().unwrap();
            txn = db.begin(isolation);
            let more = cursor.prev(&mut txn).unwrap();
            assert_eq!(read(&mut cursor, more), Some(50));
            cursor.step_off();
            txn.commit().unwrap();
            txn = db.begin(isolation);
            let more = cursor.next(&mut txn).unwrap();
            assert_eq!(read(&mut cursor, more), Some(60));
            txn.commit().unwrap();
        }
    }
}
