//! Locks of rows that a read locked and then skipped.

use std::sync::Arc;

use std::time::Duration;

use peregrine::{
    Cursor, CursorOptions, Database, Index, Isolation, RowLock, Seek, Table, Transaction, Value,
};

use crate::isolation::six_rows::{locked, six_rows};
use crate::tables::schemas::{numbered, options};

fn locking(table: &Arc<Table>, index: usize, lock: RowLock) -> Cursor {
    let options = CursorOptions {
        lock,
        ..CursorOptions::default()
    };
    Cursor::new(table, index, options)
}

fn id(cursor: &mut Cursor) -> u64 {
    match cursor.row().unwrap().get(0).unwrap() {
        Value::UInt(id) => id,
        other => panic!("{other:?}"),
    }
}

/// Reads all rows and skips all but `wanted`.
fn look_for(txn: &mut Transaction, table: &Arc<Table>, index: usize, wanted: u64) {
    let mut cursor = locking(table, index, RowLock::Exclusive);
    let mut more = cursor.seek(txn, &[], Seek::First).unwrap();
    while more {
        if id(&mut cursor) != wanted {
            cursor.unlock_row(txn);
        }
        more = cursor.next(txn).unwrap();
    }
}

#[test]
fn rows_that_are_passed_over_are_free_under_read_committed_and_only_there() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1])]);
    for index in [0, 1] {
        let mut txn = db.begin(Isolation::ReadCommitted);
        look_for(&mut txn, &table, index, 3);
        assert_eq!(locked(&db, &table), [3]);
        // No lock is left until the end.
        look_for(&mut txn, &table, index, 5);
        assert_eq!(locked(&db, &table), [3, 5]);
        txn.rollback().unwrap();
        for level in [Isolation::RepeatableRead, Isolation::Serializable] {
            let mut txn = db.begin(level);
            look_for(&mut txn, &table, index, 3);
            assert_eq!(locked(&db, &table), [1, 2, 3, 4, 5, 6]);
            txn.rollback().unwrap();
        }
    }
    assert_eq!(locked(&db, &table), []);
}

#[test]
fn a_lock_that_was_there_before_the_row_was_passed_over_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1])]);
    let key = |id: u32| table.encode_key(0, &[id.into()]).unwrap();
    for index in [0, 1] {
        let mut txn = db.begin(Isolation::ReadCommitted);
        // A row that was written; one read to be written; one locked in shared mode; and one whose change was undone.
        txn.update(&table, &key(1), &[1u32.into(), 11u32.into()])
            .unwrap();
        txn.get_locked(&table, &key(2), RowLock::Exclusive, |_| ())
            .unwrap();
        txn.get_locked(&table, &key(3), RowLock::Shared, |_| ())
            .unwrap();
        let savepoint = txn.savepoint();
        txn.update(&table, &key(4), &[4u32.into(), 41u32.into()])
            .unwrap();
        txn.rollback_to(&savepoint).unwrap();
        look_for(&mut txn, &table, index, 0);
        assert_eq!(locked(&db, &table), [1, 2, 3, 4]);
        txn.rollback().unwrap();
    }
}

#[test]
fn a_row_that_was_written_or_locked_again_since_it_was_read_stays_locked() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1])]);
    let key = |id: u32| table.encode_key(0, &[id.into()]).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut cursor = locking(&table, 0, RowLock::Exclusive);
    // The row was written, and the change undone.
    assert!(cursor.seek(&mut txn, &key(1), Seek::Exact).unwrap());
    let savepoint = txn.savepoint();
    txn.update(&table, &key(1), &[1u32.into(), 11u32.into()])
        .unwrap();
    txn.rollback_to(&savepoint).unwrap();
    cursor.unlock_row(&mut txn);
    // Another cursor has read the row, and is still at it.
    assert!(cursor.seek(&mut txn, &key(2), Seek::Exact).unwrap());
    let mut second = locking(&table, 0, RowLock::Shared);
    assert!(second.seek(&mut txn, &key(2), Seek::Exact).unwrap());
    cursor.unlock_row(&mut txn);
    second.unlock_row(&mut txn);
    // Only this cursor has read the row, and skips it twice.
    assert!(cursor.seek(&mut txn, &key(3), Seek::Exact).unwrap());
    cursor.unlock_row(&mut txn);
    cursor.unlock_row(&mut txn);
    // The cursor leaves the row without skipping it.
    assert!(cursor.seek(&mut txn, &key(6), Seek::Exact).unwrap());
    assert!(!cursor.next(&mut txn).unwrap());
    cursor.unlock_row(&mut txn);
    assert_eq!(locked(&db, &table), [1, 2, 6]);
}

/// A waiter gets the row when it is skipped, not at the end of the transaction that read it.
#[test]
fn who_waits_for_a_row_gets_it_when_it_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1])]);
    let key = table.encode_key(0, &[4u32.into()]).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut cursor = locking(&table, 0, RowLock::Exclusive);
    assert!(cursor.seek(&mut txn, &key, Seek::Exact).unwrap());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut waiter = db.begin(Isolation::ReadCommitted);
            waiter.set_lock_wait_timeout(Duration::from_secs(20));
            // The waiter then skips the row, too.
            let mut cursor = locking(&table, 0, RowLock::Exclusive);
            let found = cursor.seek(&mut waiter, &key, Seek::AtOrAfter);
            cursor.unlock_row(&mut waiter);
            (found, locked(&db, &table))
        });
        while db.status().lock_waits_now == 0 && !waiter.is_finished() {
            std::thread::yield_now();
        }
        cursor.unlock_row(&mut txn);
        let (found, locked) = waiter.join().unwrap();
        assert!(found.unwrap());
        assert_eq!(locked, []);
    });
    txn.commit().unwrap();
}

/// A cursor has waited for a row that no longer matches.
///
/// It continues, and its caller does not see the row.
#[test]
fn a_row_that_is_another_once_it_is_locked_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1])]);
    let key = table.encode_key(0, &[3u32.into()]).unwrap();
    let number = table.encode_key(1, &[30u32.into()]).unwrap();
    let mut writer = db.begin(Isolation::ReadCommitted);
    writer
        .update(&table, &key, &[3u32.into(), 99u32.into()])
        .unwrap();
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.set_lock_wait_timeout(Duration::from_secs(20));
            let mut cursor = locking(&table, 1, RowLock::Exclusive);
            assert!(cursor.seek(&mut txn, &number, Seek::AtOrAfter).unwrap());
            (id(&mut cursor), locked(&db, &table))
        });
        while db.status().lock_waits_now == 0 && !looks.is_finished() {
            std::thread::yield_now();
        }
        writer.commit().unwrap();
        assert_eq!(looks.join().unwrap(), (4, vec![4]));
    });
}

/// The same for a row that a unique key leads to.
#[test]
fn a_row_that_its_number_has_left_once_it_is_locked_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = db.create_table("t", &numbered()).unwrap();
    let row = |id: u32, number: u32| -> [Value<'static>; 3] { [id, number, 0].map(Value::from) };
    let mut writer = db.begin(Isolation::ReadCommitted);
    for id in 1..=6 {
        writer.insert(&table, &row(id, 100 * id)).unwrap();
    }
    writer.commit().unwrap();
    let number = table.encode_key(1, &[100u32.into()]).unwrap();
    for (id, gets) in [(1u32, 700), (2, 100)] {
        let key = table.encode_key(0, &[Value::from(id)]).unwrap();
        writer.update(&table, &key, &row(id, gets)).unwrap();
    }
    std::thread::scope(|scope| {
        let looks = scope.spawn(|| {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.set_lock_wait_timeout(Duration::from_secs(20));
            let mut cursor = locking(&table, 1, RowLock::Exclusive);
            assert!(cursor.seek(&mut txn, &number, Seek::Exact).unwrap());
            (id(&mut cursor), locked(&db, &table))
        });
        while db.status().lock_waits_now == 0 && !looks.is_finished() {
            std::thread::yield_now();
        }
        writer.commit().unwrap();
        assert_eq!(looks.join().unwrap(), (2, vec![2]));
    });
}

/// Returns whether no transaction has locked the row's key; the row need not exist.
fn is_free(db: &Database, table: &Table, id: u32) -> bool {
    let mut other = db.begin(Isolation::ReadCommitted);
    other.set_lock_wait_timeout(Duration::ZERO);
    let key = table.encode_key(0, &[id.into()]).unwrap();
    other
        .get_locked(table, &key, RowLock::Exclusive, |_| ())
        .is_ok()
}

#[test]
fn a_row_that_is_not_there_is_free_under_read_committed_and_only_there() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = six_rows(dir.path(), vec![Index::new("number", &[1])]);
    let key = table.encode_key(0, &[7u32.into()]).unwrap();
    for (level, lock) in [
        (Isolation::ReadCommitted, RowLock::Exclusive),
        (Isolation::ReadCommitted, RowLock::Shared),
        (Isolation::RepeatableRead, RowLock::Exclusive),
        (Isolation::Serializable, RowLock::None),
    ] {
        let mut txn = db.begin(level);
        let mut cursor = locking(&table, 0, lock);
        assert!(!cursor.seek(&mut txn, &key, Seek::Exact).unwrap());
        let free = is_free(&db, &table, 7);
        assert_eq!(free, level == Isolation::ReadCommitted, "{level:?}");
        txn.rollback().unwrap();
        // A lock that the transaction had before stays.
        let mut txn = db.begin(level);
        let found = txn.get_locked(&table, &key, RowLock::Exclusive, |_| ());
        assert!(found.unwrap().is_none());
        assert!(!cursor.seek(&mut txn, &key, Seek::Exact).unwrap());
        assert!(!is_free(&db, &table, 7), "{level:?}");
        txn.rollback().unwrap();
    }
}
