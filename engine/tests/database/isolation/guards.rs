//! Rules of the caller about all rows: of two transactions that guard the values they look for, and read the newest
//! rows, at least one finds the other's row.

use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Result, RowLock, Seek,
    Table, TableOptions, TableSchema, Transaction,
};

use crate::tables::schemas::{options, INT};

const LEVELS: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];

/// Rows (id, number); the tests keep the number unique, by an index that is not unique.
fn schema() -> TableSchema {
    TableSchema {
        columns: vec![Column::new("id", INT), Column::new("number", INT)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("number", &[1])],
        user: vec![],
    }
}

fn table(db: &Database, name: &str) -> Arc<Table> {
    db.create_table(name, &schema()).unwrap()
}

fn number(table: &Table, number: u32) -> Vec<u8> {
    table.encode_key(1, &[number.into()]).unwrap()
}

fn guard(txn: &mut Transaction, table: &Table, wanted: u32) -> Result<()> {
    txn.guard(table, 1, &number(table, wanted))
}

/// Returns whether there is a row with a number.
fn is_there(txn: &mut Transaction, table: &Arc<Table>, wanted: u32) -> Result<bool> {
    let options = CursorOptions {
        lock: RowLock::Exclusive,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(table, 1, options);
    cursor.read_newest();
    cursor.seek(txn, &number(table, wanted), Seek::Exact)
}

fn insert(txn: &mut Transaction, table: &Table, id: u32, number: u32) {
    txn.insert(table, &[id.into(), number.into()]).unwrap();
}

/// Begins a transaction that does not wait.
fn hasty(db: &Database, level: Isolation) -> Transaction {
    let mut txn = db.begin(level);
    txn.set_lock_wait_timeout(Duration::ZERO);
    txn
}

fn would_wait<T: std::fmt::Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::LockNotAvailable)), "{result:?}");
}

#[test]
fn of_two_who_look_for_the_same_value_the_second_waits_until_the_firsts_row_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    for (n, level) in LEVELS.into_iter().enumerate() {
        let table = table(&db, &format!("t{n}"));
        let mut first = hasty(&db, level);
        guard(&mut first, &table, 7).unwrap();
        assert!(!is_there(&mut first, &table, 7).unwrap());

        let mut second = hasty(&db, level);
        would_wait(guard(&mut second, &table, 7));
        guard(&mut second, &table, 8).unwrap();
        insert(&mut second, &table, 2, 8);

        insert(&mut first, &table, 1, 7);
        guard(&mut second, &table, 7).unwrap();
        would_wait(is_there(&mut second, &table, 7));

        first.commit().unwrap();
        assert!(is_there(&mut second, &table, 7).unwrap());
        second.commit().unwrap();
    }
}

#[test]
fn a_look_for_a_rule_finds_what_was_committed_after_the_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, "t");
    let mut old = hasty(&db, Isolation::RepeatableRead);
    old.take_snapshot();
    let mut other = hasty(&db, Isolation::ReadCommitted);
    insert(&mut other, &table, 1, 7);
    other.commit().unwrap();
    guard(&mut old, &table, 7).unwrap();
    assert!(is_there(&mut old, &table, 7).unwrap());
    guard(&mut old, &table, 8).unwrap();
    assert!(!is_there(&mut old, &table, 8).unwrap());
}

#[test]
fn a_row_that_another_takes_away_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    for (n, level) in LEVELS.into_iter().enumerate() {
        let table = table(&db, &format!("t{n}"));
        let mut other = hasty(&db, level);
        insert(&mut other, &table, 1, 7);
        other.commit().unwrap();
        let key = table.encode_key(0, &[1u32.into()]).unwrap();
        other.delete(&table, &key).unwrap();

        let mut looks = hasty(&db, level);
        guard(&mut looks, &table, 7).unwrap();
        would_wait(is_there(&mut looks, &table, 7));
        other.rollback().unwrap();
        assert!(is_there(&mut looks, &table, 7).unwrap());
        looks.rollback().unwrap();

        other.delete(&table, &key).unwrap();
        other.commit().unwrap();
        guard(&mut looks, &table, 7).unwrap();
        assert!(!is_there(&mut looks, &table, 7).unwrap());
    }
}

/// The searching transaction has written before the holder of the row that it waits for: the state that the holder
/// leaves must still be newer than its view.
#[test]
fn a_row_that_was_waited_for_and_is_gone_is_passed_by() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    // At SERIALIZABLE the range is locked, and this would be a deadlock.
    for (n, level) in LEVELS.into_iter().take(2).enumerate() {
        for is_moved in [false, true] {
            let table = table(&db, &format!("t{n}{is_moved}"));
            let mut other = db.begin(level);
            insert(&mut other, &table, 5, 7);
            other.commit().unwrap();
            let mut looks = db.begin(level);
            insert(&mut looks, &table, 100, 1_000);
            let key = table.encode_key(0, &[5u32.into()]).unwrap();
            let held = other.get_locked(&table, &key, RowLock::Exclusive, |_| ());
            assert!(held.unwrap().is_some());
            let found = std::thread::scope(|scope| {
                let looks = scope.spawn(|| {
                    guard(&mut looks, &table, 7).unwrap();
                    is_there(&mut looks, &table, 7)
                });
                while db.status().lock_waits_now == 0 {
                    assert!(!looks.is_finished());
                    std::thread::yield_now();
                }
                match is_moved {
                    true => other.update(&table, &key, &[5u32.into(), 8u32.into()]),
                    false => other.delete(&table, &key),
                }
                .unwrap();
                other.commit().unwrap();
                looks.join().unwrap()
            });
            assert!(!found.unwrap(), "{level:?}, moved: {is_moved}");
        }
    }
}

#[test]
fn values_beyond_what_is_looked_for_are_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    for (n, level) in LEVELS.into_iter().enumerate() {
        let table = table(&db, &format!("t{n}"));
        let mut looks = hasty(&db, level);
        insert(&mut looks, &table, 100, 1_000);
        let mut other = hasty(&db, level);
        insert(&mut other, &table, 1, 9);
        guard(&mut looks, &table, 7).unwrap();
        assert!(!is_there(&mut looks, &table, 7).unwrap());
    }
}

#[test]
fn guards_of_rows_that_stand_are_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, "t");
    let mut txn = hasty(&db, Isolation::RepeatableRead);
    for n in 0..1000 {
        guard(&mut txn, &table, n).unwrap();
        assert!(!is_there(&mut txn, &table, n).unwrap());
        insert(&mut txn, &table, n, n);
    }
    assert!(db.inspect().locks.is_empty());
    txn.commit().unwrap();
}

#[test]
fn a_row_of_another_table_gives_no_guard_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let [table, another] = ["t", "u"].map(|name| table(&db, name));
    let mut txn = hasty(&db, Isolation::ReadCommitted);
    let mut other = hasty(&db, Isolation::ReadCommitted);
    guard(&mut txn, &table, 7).unwrap();
    guard(&mut txn, &another, 7).unwrap();
    insert(&mut txn, &another, 1, 7);
    guard(&mut other, &another, 7).unwrap();
    would_wait(guard(&mut other, &table, 7));
    insert(&mut txn, &table, 1, 7);
    guard(&mut other, &table, 7).unwrap();
    txn.commit().unwrap();
}

#[test]
fn guards_of_rows_with_which_a_table_is_filled_are_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let own = TableOptions {
        of_one_session: true,
        ..TableOptions::default()
    };
    let table = db.create_table_with("own", &schema(), &own).unwrap();
    let mut txn = hasty(&db, Isolation::RepeatableRead);
    txn.begin_fill(&table).unwrap();
    for n in 0..1000 {
        guard(&mut txn, &table, n).unwrap();
        assert!(!is_there(&mut txn, &table, n).unwrap());
        insert(&mut txn, &table, n, n);
    }
    assert!(db.inspect().locks.is_empty());
    txn.end_fill();
    assert!(is_there(&mut txn, &table, 7).unwrap());
    txn.commit().unwrap();
}

#[test]
fn a_locked_row_stays_locked_when_a_guard_of_its_key_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, "t");
    let mut txn = hasty(&db, Isolation::ReadCommitted);
    insert(&mut txn, &table, 1, 7);
    txn.commit().unwrap();
    let key = table.encode_key(0, &[1u32.into()]).unwrap();
    let both = LEVELS.map(|level| [(level, true), (level, false)]);
    for (level, guards_first) in both.into_iter().flatten() {
        let mut txn = hasty(&db, level);
        if guards_first {
            txn.guard(&table, 0, &key).unwrap();
        }
        let row = txn.get_locked(&table, &key, RowLock::Exclusive, |_| ());
        assert!(row.unwrap().is_some());
        if !guards_first {
            txn.guard(&table, 0, &key).unwrap();
        }
        insert(&mut txn, &table, 2, 8);
        would_wait(hasty(&db, level).delete(&table, &key));
        txn.rollback().unwrap();
    }
}
