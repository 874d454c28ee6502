//! Transactions that can only be rolled back after an error, whatever their caller does with the error.

use std::fmt::Debug;
use std::time::Duration;

use peregrine::{
    Cursor, CursorOptions, Error, Isolation, Result, RowLock, Savepoint, Seek, Transaction, Value,
    Xid,
};

use crate::tables::one_table::OneTable;
use crate::tables::schemas::numbered;

const ROWS: u32 = 10;

fn row(id: u32, content: u32) -> [Value<'static>; 3] {
    [id.into(), (100 + id).into(), content.into()]
}

fn filled() -> OneTable {
    let world = OneTable::new(&numbered());
    let mut txn = world.begin();
    for id in 0..ROWS {
        txn.insert(&world.table, &row(id, 0)).unwrap();
    }
    txn.commit().unwrap();
    world
}

fn change(world: &OneTable, txn: &mut Transaction, id: u32, content: u32) -> Result<()> {
    let key = world.table.encode_key(0, &[id.into()])?;
    txn.update(&world.table, &key, &row(id, content))
}

/// Returns the content of each committed row.
fn contents(world: &OneTable) -> Vec<u64> {
    let mut txn = world.begin();
    let mut cursor = Cursor::new(&world.table, 0, CursorOptions::default());
    let mut found = Vec::new();
    let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    while more {
        match cursor.row().unwrap().get(2).unwrap() {
            Value::UInt(content) => found.push(content),
            other => panic!("{other:?}"),
        }
        more = cursor.next(&mut txn).unwrap();
    }
    found
}

fn is_conflict<T: Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::WriteConflict)), "{result:?}");
}

fn is_deadlock<T: Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::Deadlock)), "{result:?}");
}

/// Begins a transaction that inserts a row and is refused a change of row 1, which has changed since its snapshot.
///
/// Returns it with a savepoint between the two.
fn refused(world: &OneTable) -> (Transaction, Savepoint) {
    let mut txn = world.db.begin(Isolation::RepeatableRead);
    txn.take_snapshot();
    let mut other = world.begin();
    change(world, &mut other, 1, 7).unwrap();
    other.commit().unwrap();
    txn.insert(&world.table, &row(ROWS, 1)).unwrap();
    let mark = txn.savepoint();
    is_conflict(change(world, &mut txn, 1, 8));
    (txn, mark)
}

#[test]
fn nothing_but_a_rollback_follows_a_conflict() {
    let world = filled();
    let (mut txn, mark) = refused(&world);
    let key = world.table.encode_key(0, &[3u32.into()]).unwrap();
    is_conflict(txn.insert(&world.table, &row(ROWS + 1, 1)));
    is_conflict(change(&world, &mut txn, 3, 1));
    is_conflict(txn.delete(&world.table, &key));
    is_conflict(txn.get(&world.table, &key, |_| ()));
    let locked = txn.get_locked(&world.table, &key, RowLock::Exclusive, |_| ());
    is_conflict(locked);
    let mut cursor = Cursor::new(&world.table, 0, CursorOptions::default());
    is_conflict(cursor.seek(&mut txn, &[], Seek::First));
    is_conflict(txn.lock_auto_increment(&world.table));
    is_conflict(txn.end_bulk_insert());
    is_conflict(txn.rollback_to(&mark));
    let later = txn.savepoint();
    is_conflict(txn.rollback_to(&later));
    let name = Xid::new(1, b"doomed", b"").unwrap();
    is_conflict(txn.prepare(&name));
    let error = txn.must_roll_back();
    assert!(matches!(error, Some(Error::WriteConflict)), "{error:?}");

    txn.rollback().unwrap();
    assert!(txn.must_roll_back().is_none());
    assert_eq!(contents(&world), [0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    // The object's next transaction is not affected.
    change(&world, &mut txn, 1, 9).unwrap();
    txn.prepare(&name).unwrap();
    txn.commit().unwrap();
    assert_eq!(contents(&world), [0, 9, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_commit_after_a_conflict_is_refused_and_nothing_is_left() {
    let world = filled();
    let (mut txn, _) = refused(&world);
    is_conflict(txn.commit());
    // A refused read also leaves nothing to commit.
    let key = world.table.encode_key(0, &[1u32.into()]).unwrap();
    let mut reader = world.db.begin(Isolation::RepeatableRead);
    reader.take_snapshot();
    change(&world, &mut txn, 1, 8).unwrap();
    txn.commit().unwrap();
    let locked = reader.get_locked(&world.table, &key, RowLock::Shared, |_| ());
    is_conflict(locked);
    is_conflict(reader.commit());
    // No row is locked.
    let mut other = world.begin();
    for id in 0..ROWS {
        change(&world, &mut other, id, 5).unwrap();
    }
    other.insert(&world.table, &row(ROWS, 5)).unwrap();
    other.commit().unwrap();
    assert_eq!(contents(&world), [5; ROWS as usize + 1]);
    assert_eq!(contents(&world.after_a_crash()), [5; ROWS as usize + 1]);
}

#[test]
fn the_victim_of_a_deadlock_does_not_go_on() {
    let world = filled();
    let mut first = world.db.begin(Isolation::ReadCommitted);
    for id in [1, 3, 4] {
        change(&world, &mut first, id, 1).unwrap();
    }
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = world.db.begin(Isolation::ReadCommitted);
            change(&world, &mut second, 2, 2).unwrap();
            is_deadlock(change(&world, &mut second, 1, 2));
            is_deadlock(change(&world, &mut second, 5, 2));
            is_deadlock(second.commit());
        });
        let waits = || {
            let transactions = world.db.inspect().transactions;
            transactions.iter().any(|t| t.waits_for.is_some())
        };
        while !waits() {
            assert!(!second.is_finished());
            std::thread::sleep(Duration::from_millis(1));
        }
        change(&world, &mut first, 2, 1).unwrap();
        second.join().unwrap();
    });
    first.commit().unwrap();
    assert_eq!(contents(&world), [0, 1, 1, 1, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn what_can_be_tried_again_ends_no_transaction() {
    let world = filled();
    let mut holder = world.begin();
    change(&world, &mut holder, 1, 1).unwrap();
    let mut txn = world.begin();
    let at_once = change(&world, &mut txn, 1, 2);
    assert!(
        matches!(at_once, Err(Error::LockNotAvailable)),
        "{at_once:?}"
    );
    txn.set_lock_wait_timeout(Duration::from_millis(10));
    let late = change(&world, &mut txn, 1, 2);
    assert!(matches!(late, Err(Error::LockWaitTimeout)), "{late:?}");
    let twice = txn.insert(&world.table, &row(3, 2));
    assert!(matches!(twice, Err(Error::Duplicate { .. })), "{twice:?}");
    assert!(txn.must_roll_back().is_none());
    change(&world, &mut txn, 2, 2).unwrap();
    txn.commit().unwrap();
    drop(holder);
    assert_eq!(contents(&world), [0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
}

/// Like a statement that fills a new table from a query, and is refused a row of the query.
#[test]
fn a_table_that_it_was_filling_can_be_dropped() {
    let world = filled();
    let made = world.db.create_table("made", &numbered()).unwrap();
    let mut txn = world.db.begin(Isolation::RepeatableRead);
    txn.take_snapshot();
    let mut other = world.begin();
    change(&world, &mut other, 1, 7).unwrap();
    other.commit().unwrap();
    for id in 0..20 {
        txn.insert(&made, &row(id, 1)).unwrap();
    }
    is_conflict(change(&world, &mut txn, 1, 8));
    world.db.drop_table_used_by(&mut txn, "made").unwrap();
    is_conflict(txn.commit());
    for world in [&world, &world.after_a_crash()] {
        assert_eq!(contents(world), [0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        let gone = world.db.table("made");
        assert!(matches!(gone, Err(Error::NotFound { .. })));
    }
}
