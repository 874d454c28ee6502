//! Inserts that change a duplicate row instead: the engine locks the row before it reports the duplicate, and the row
//! is then still the duplicate.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, RowLock, Seek, Table, Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::{numbered, options};

/// Creates a table with these rows: id, number, content.
fn table(db: &Database, rows: &[[u32; 3]]) -> Arc<Table> {
    let table = db.create_table("t", &numbered()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for row in rows {
        txn.insert(&table, &values(*row)).unwrap();
    }
    txn.commit().unwrap();
    table
}

fn values(row: [u32; 3]) -> [Value<'static>; 3] {
    row.map(|number| number.into())
}

fn key(table: &Table, id: u32) -> Vec<u8> {
    table.encode_key(0, &[id.into()]).unwrap()
}

fn rows(txn: &mut Transaction, table: &Arc<Table>) -> Vec<[u32; 3]> {
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut rows = Vec::new();
    let mut more = cursor.seek(txn, &[], Seek::First).unwrap();
    while more {
        let row = cursor.row().unwrap();
        rows.push([0, 1, 2].map(|column| match row.get(column).unwrap() {
            Value::UInt(number) => number as u32,
            other => panic!("{other:?}"),
        }));
        more = cursor.next(txn).unwrap();
    }
    rows
}

/// Inserts a row, and deletes each row that it duplicates; returns their ids.
fn replace(txn: &mut Transaction, table: &Table, row: [u32; 3]) -> Result<Vec<u32>, Error> {
    let mut gone = Vec::new();
    loop {
        match txn.insert_or_lock(table, &values(row), RowLock::Exclusive) {
            Ok(()) => return Ok(gone),
            Err(Error::Duplicate { index }) => {
                let at = txn.duplicate_key().to_vec();
                let found = txn.get_locked(table, &at, RowLock::Exclusive, |found| {
                    [0, 1].map(|column| match found.get(column).unwrap() {
                        Value::UInt(number) => number as u32,
                        other => panic!("{other:?}"),
                    })
                })?;
                let found = found.expect("a row that is in the way is there");
                assert_eq!(
                    found[index], row[index],
                    "{row:?} finds {found:?} in its way"
                );
                txn.delete(table, &at)?;
                gone.push(found[0]);
            }
            Err(error) => return Err(error),
        }
    }
}

/// The changes of the other transaction before the insert, and while the insert waits for it; the inserted row; and the
/// rows at the end.
type Meeting = (
    fn(&mut Transaction, &Table),
    fn(&mut Transaction, &Table),
    [u32; 3],
    &'static [[u32; 3]],
);

fn locks(txn: &mut Transaction, table: &Table) {
    let row = key(table, 1);
    txn.get_locked(table, &row, RowLock::Exclusive, |_| ())
        .unwrap();
}

fn changes_content(txn: &mut Transaction, table: &Table) {
    txn.update(table, &key(table, 1), &values([1, 5, 7]))
        .unwrap();
}

fn changes_number(txn: &mut Transaction, table: &Table) {
    txn.update(table, &key(table, 1), &values([1, 99, 7]))
        .unwrap();
}

fn deletes(txn: &mut Transaction, table: &Table) {
    txn.delete(table, &key(table, 1)).unwrap();
}

fn moves(txn: &mut Transaction, table: &Table) {
    txn.update(table, &key(table, 1), &values([3, 5, 7]))
        .unwrap();
}

fn does_nothing(_: &mut Transaction, _: &Table) {}

#[test]
fn a_row_that_is_to_be_changed_instead_is_locked_and_still_in_the_way() {
    let meetings: [Meeting; 8] = [
        (locks, deletes, [1, 8, 100], &[[1, 8, 100], [2, 6, 0]]),
        (locks, deletes, [4, 5, 100], &[[2, 6, 0], [4, 5, 100]]),
        (
            locks,
            moves,
            [1, 8, 100],
            &[[1, 8, 100], [2, 6, 0], [3, 5, 7]],
        ),
        (locks, moves, [4, 5, 100], &[[2, 6, 0], [4, 5, 100]]),
        (
            changes_content,
            does_nothing,
            [4, 5, 100],
            &[[2, 6, 0], [4, 5, 100]],
        ),
        (
            changes_content,
            changes_number,
            [4, 5, 100],
            &[[1, 99, 7], [2, 6, 0], [4, 5, 100]],
        ),
        (
            locks,
            changes_number,
            [2, 5, 100],
            &[[1, 99, 7], [2, 5, 100]],
        ),
        (
            locks,
            changes_number,
            [1, 8, 100],
            &[[1, 8, 100], [2, 6, 0]],
        ),
    ];
    for (level, (before, after, row, expected)) in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ]
    .into_iter()
    .flat_map(|level| meetings.map(|meeting| (level, meeting)))
    {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        let table = table(&db, &[[1, 5, 0], [2, 6, 0]]);
        let mut other = db.begin(Isolation::ReadCommitted);
        before(&mut other, &table);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut txn = db.begin(level);
                txn.set_lock_wait_timeout(Duration::from_secs(20));
                replace(&mut txn, &table, row).unwrap();
                txn.commit().unwrap();
            });
            while db.status().lock_waits_now == 0 && !waiter.is_finished() {
                std::thread::yield_now();
            }
            after(&mut other, &table);
            other.commit().unwrap();
            waiter.join().unwrap();
        });
        let mut txn = db.begin(Isolation::ReadCommitted);
        assert_eq!(rows(&mut txn, &table), expected, "{level:?} {row:?}");
    }
}

/// Each thread replaces rows, or moves them; each number and each id may duplicate others'.
///
/// The number of rows left must equal those inserted less those deleted as duplicates.
#[test]
fn many_put_rows_in_each_others_place() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, &[]);
    let (came, went) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, table, came, went) = (&db, &table, &came, &went);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(thread);
                let mut txn = db.begin(Isolation::ReadCommitted);
                for step in 0..1500 {
                    let row = [rng.random_range(0..6), rng.random_range(0..6), step];
                    let done = if rng.random_bool(0.5) {
                        replace(&mut txn, table, row).map(|gone| (1, gone.len() as u64))
                    } else {
                        match txn.update(table, &key(table, rng.random_range(0..6)), &values(row)) {
                            Err(Error::Duplicate { .. } | Error::NotFound { .. }) => Ok((0, 0)),
                            result => result.map(|()| (0, 0)),
                        }
                    };
                    match done {
                        Ok((comes, goes)) => {
                            txn.commit().unwrap();
                            came.fetch_add(comes, Ordering::Relaxed);
                            went.fetch_add(goes, Ordering::Relaxed);
                        }
                        Err(Error::Deadlock) => txn.rollback().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let mut txn = db.begin(Isolation::ReadCommitted);
    let left = rows(&mut txn, &table).len() as u64;
    assert_eq!(came.into_inner() - went.into_inner(), left);
}

/// An insert that does not change the duplicate row locks nothing, and does not wait.
#[test]
fn who_only_wants_to_know_does_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, &[[1, 5, 0]]);
    let mut other = db.begin(Isolation::ReadCommitted);
    locks(&mut other, &table);
    let mut txn = db.begin(Isolation::RepeatableRead);
    txn.set_lock_wait_timeout(Duration::ZERO);
    for row in [[1, 6, 0], [2, 5, 0]] {
        let refused = txn.insert(&table, &values(row));
        assert!(matches!(refused, Err(Error::Duplicate { .. })));
        let refused = txn.insert_or_lock(&table, &values(row), RowLock::Exclusive);
        assert!(matches!(refused, Err(Error::LockNotAvailable)));
    }
}

/// At REPEATABLE READ, a row that was changed or inserted since the snapshot can't be changed.
#[test]
fn a_row_in_the_way_that_is_newer_than_the_snapshot_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, &[[1, 5, 0]]);
    for row in [[1, 8, 100], [4, 5, 100], [2, 8, 100], [4, 6, 100]] {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.get(&table, &key(&table, 1), |_| ()).unwrap();
        let mut other = db.begin(Isolation::ReadCommitted);
        changes_content(&mut other, &table);
        other.insert(&table, &values([2, 6, 0])).unwrap();
        other.commit().unwrap();
        let refused = txn.insert_or_lock(&table, &values(row), RowLock::Exclusive);
        assert!(matches!(refused, Err(Error::WriteConflict)), "{row:?}");
        txn.rollback().unwrap();
        other.delete(&table, &key(&table, 2)).unwrap();
        other.commit().unwrap();
    }
}
