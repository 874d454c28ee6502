//! Reads that skip rows which other transactions have locked.

use std::sync::Arc;

use peregrine::{
    Cursor, CursorOptions, Index, Isolation, RowLock, Seek, Table, Transaction, Value,
};

use crate::isolation::six_rows::six_rows;

/// Returns the first rows that are free.
fn take(txn: &mut Transaction, table: &Arc<Table>, index: usize, most: usize) -> Vec<u64> {
    let options = CursorOptions {
        lock: RowLock::Exclusive,
        skip_locked: true,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(table, index, options);
    let mut rows = Vec::new();
    let mut more = cursor.seek(txn, &[], Seek::First).unwrap();
    while more {
        match cursor.row().unwrap().get(0).unwrap() {
            Value::UInt(id) => rows.push(id),
            other => panic!("{other:?}"),
        }
        if rows.len() == most {
            break;
        }
        more = cursor.next(txn).unwrap();
    }
    rows
}

/// No transaction waits in this test: a wait would last until the limit, and then be an error.
#[test]
fn locked_rows_are_passed_over_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1]).unique()]);
    let key = |id: u32| table.encode_key(0, &[id.into()]).unwrap();
    for level in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ] {
        for index in [0, 1] {
            let mut writer = db.begin(Isolation::ReadCommitted);
            writer.delete(&table, &key(2)).unwrap();
            writer
                .update(&table, &key(4), &[4u32.into(), 41u32.into()])
                .unwrap();
            let mut first = db.begin(level);
            assert_eq!(take(&mut first, &table, index, 2), [1, 3]);
            let mut second = db.begin(level);
            assert_eq!(take(&mut second, &table, index, 9), [5, 6]);
            writer.rollback().unwrap();
            assert_eq!(take(&mut first, &table, index, 9), [1, 2, 3, 4]);
            first.rollback().unwrap();
            second.commit().unwrap();
        }
    }
}

/// A row that another transaction has locked and changed in the meantime is skipped without an error.
#[test]
fn rows_changed_since_the_snapshot_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1]).unique()]);
    let key = |id: u32| table.encode_key(0, &[id.into()]).unwrap();
    for index in [0, 1] {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.take_snapshot();
        let mut other = db.begin(Isolation::RepeatableRead);
        other.delete(&table, &key(1)).unwrap();
        let row = [2u32.into(), 20u32.into()];
        other.update(&table, &key(2), &row).unwrap();
        let row = [4u32.into(), (45 + index as u32).into()];
        other.update(&table, &key(4), &row).unwrap();
        other.insert(&table, &[0u32.into(), 5u32.into()]).unwrap();
        other.commit().unwrap();
        assert_eq!(take(&mut txn, &table, index, 9), [3, 5, 6]);
        // Without skipping, the read is a conflict.
        let read = txn.get_locked(&table, &key(2), RowLock::Exclusive, |_| ());
        assert!(matches!(read, Err(peregrine::Error::WriteConflict)));
        txn.rollback().unwrap();
        let mut restored = db.begin(Isolation::RepeatableRead);
        restored.delete(&table, &key(0)).unwrap();
        restored
            .insert(&table, &[1u32.into(), 10u32.into()])
            .unwrap();
        restored.commit().unwrap();
    }
}
