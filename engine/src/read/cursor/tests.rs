//! Look-ups, with another event between their steps.

use std::sync::Arc;

use crate::os::simulated::SimulatedOs;
use crate::sync::Moment;
use crate::{
    Column, ColumnType, Cursor, CursorOptions, Database, Index, Isolation, Key, Options, RowLock,
    Seek, Table, TableSchema, Value,
};

fn database() -> Arc<Database> {
    let options = Options {
        background: false,
        ..Options::default()
    };
    let os = Arc::new(SimulatedOs::new(1));
    Arc::new(Database::open_on(os, "/db", options).unwrap())
}

/// Rows of an id and a number, which has a unique index.
fn table(db: &Database) -> Arc<Table> {
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    let schema = TableSchema {
        columns: vec![Column::new("id", int), Column::new("number", int)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("number", &[1]).unique()],
        user: vec![],
    };
    db.create_table("t", &schema).unwrap()
}

fn row(id: u64, number: u64) -> [Value<'static>; 2] {
    [Value::UInt(id), Value::UInt(number)]
}

/// A look-up finds a number's row although the number passes to another row after its entry was read.
///
/// The look-up waits for no other transaction.
#[test]
fn a_number_that_passes_to_another_row_when_its_entry_was_read_is_found() {
    let db = database();
    let table = table(&db);
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.insert(&table, &row(1, 7)).unwrap();
    txn.insert(&table, &row(2, 1000)).unwrap();
    txn.commit().unwrap();

    let by_number = table.encode_key(1, &[Value::UInt(7)]).unwrap();
    for (from, to) in [(1, 2), (2, 1)] {
        let (writing, written) = (db.clone(), table.clone());
        db.transactions().moments.at(Moment::EntryFound, move || {
            let mut txn = writing.begin(Isolation::ReadCommitted);
            for (id, number) in [(from, 1000 + from), (to, 7)] {
                let key = written.encode_key(0, &[Value::UInt(id)]).unwrap();
                txn.update(&written, &key, &row(id, number)).unwrap();
            }
            txn.commit().unwrap();
        });
        let options = CursorOptions {
            lock: RowLock::Exclusive,
            ..CursorOptions::default()
        };
        let mut txn = db.begin(Isolation::ReadCommitted);
        let mut cursor = Cursor::new(&table, 1, options);
        assert!(cursor.seek(&mut txn, &by_number, Seek::Exact).unwrap());
        assert!(db.transactions().moments.passed());
        let found = cursor.row().unwrap().to_values().unwrap();
        assert_eq!(found, row(to, 7).map(|value| value.to_owned()));
    }
}

/// At SERIALIZABLE a scan locks the range of a leaf that it has found, and then reads the leaf.
///
/// If the leaf was split before the lock, the scan must read the other half in the new leaf.
#[test]
fn a_scan_that_locks_misses_no_row_of_a_leaf_that_is_split_before_it_is_locked() {
    let db = database();
    let table = table(&db);
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..50 {
        txn.insert(&table, &row(id * 1000, id)).unwrap();
    }
    txn.commit().unwrap();
    let (writing, written) = (db.clone(), table.clone());
    db.transactions().moments.at(Moment::RangeSeen, move || {
        let mut txn = writing.begin(Isolation::ReadCommitted);
        for id in 1..1000 {
            txn.insert(&written, &row(id, 1000 + id)).unwrap();
        }
        txn.commit().unwrap();
    });
    let mut txn = db.begin(Isolation::Serializable);
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    let mut found = Vec::new();
    let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    while more {
        found.push(cursor.row().unwrap().to_values().unwrap());
        more = cursor.next(&mut txn).unwrap();
    }
    assert!(db.transactions().moments.passed());
    assert_eq!(found.len(), 50 + 999);
}

/// A locking cursor has copied a leaf with an uncommitted change.
///
/// After its statement has ended, the change is rolled back, purge frees the version before, and another transaction
/// puts its own version there.
#[test]
fn a_locking_cursor_follows_no_version_that_its_last_statement_has_copied() {
    let db = database();
    let table = table(&db);
    let purge = || while db.transactions().purge_step().unwrap() {};
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 1..4 {
        txn.insert(&table, &row(id, id)).unwrap();
    }
    txn.commit().unwrap();
    purge();
    let second = table.encode_key(0, &[Value::UInt(2)]).unwrap();
    let mut undone = db.begin(Isolation::ReadCommitted);
    undone.update(&table, &second, &row(2, 1002)).unwrap();

    let options = CursorOptions {
        lock: RowLock::Exclusive,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(&table, 0, options);
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.start_statement();
    assert!(cursor.seek(&mut txn, &[], Seek::First).unwrap());
    txn.end_statement();
    undone.rollback().unwrap();
    purge();
    let mut other = db.begin(Isolation::ReadCommitted);
    other.insert(&table, &row(9, 9)).unwrap();

    txn.start_statement();
    assert!(cursor.next(&mut txn).unwrap());
    let found = cursor.row().unwrap().to_values().unwrap();
    assert_eq!(found, row(2, 2).map(|value| value.to_owned()));
}

/// Steps within a leaf lead to the same entries as other steps.
///
/// After a write of the transaction, and for cursors that return rows, there are none.
#[test]
fn steps_within_a_leaf_are_the_steps_of_a_cursor() {
    let db = database();
    let table = table(&db);
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..3_000 {
        txn.insert(&table, &row(id, 3 * id)).unwrap();
    }
    txn.commit().unwrap();
    for index_only in [true, false] {
        let options = CursorOptions {
            index_only,
            ..CursorOptions::default()
        };
        let mut cursor = Cursor::new(&table, 1, options);
        let (mut found, mut within) = (0, 0);
        let mut on = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        while on {
            let key = table.encode_key(1, &[Value::UInt(3 * found)]).unwrap();
            assert!(cursor.key().starts_with(&key), "number {found}");
            found += 1;
            on = cursor.is_in_leaf(&mut txn, false) && cursor.next_in_leaf().unwrap();
            within += u64::from(on);
            on = on || cursor.next(&mut txn).unwrap();
        }
        assert_eq!(found, 3_000);
        // Rows come in batches, without a copied leaf.
        assert_eq!(within > 2_000, index_only, "{within} within a leaf");
    }
    let options = CursorOptions {
        index_only: true,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(&table, 1, options);
    assert!(cursor.seek(&mut txn, &[], Seek::First).unwrap());
    assert!(cursor.is_in_leaf(&mut txn, false));
    assert!(!cursor.is_in_leaf(&mut txn, true), "no prefix was sought");
    txn.insert(&table, &row(5_000, 1)).unwrap();
    assert!(!cursor.is_in_leaf(&mut txn, false), "it has written since");
    assert!(cursor.next(&mut txn).unwrap());
    let own = table.encode_key(1, &[Value::UInt(1)]).unwrap();
    assert!(cursor.key().starts_with(&own));
}
