//! Semi-consistent reads: a search for rows to change does not wait for rows that do not match.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, RowLock,
    Seek, Table, TableSchema, Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::{noise, options, INT};

const ROWS: u32 = 6;

/// Creates rows 1 to 6: (id, number, count); the number, with an index, is ten times the id, the count is 0.
fn rows(dir: &std::path::Path) -> (Database, Arc<Table>) {
    let db = Database::open(dir.join("db"), options()).unwrap();
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("number", INT),
            Column::new("count", INT),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("number", &[1])],
        user: vec![],
    };
    let table = db.create_table("rows", &schema).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 1..=ROWS {
        let row = [id.into(), (10 * id).into(), 0u32.into()];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

fn key(table: &Table, id: u32) -> Vec<u8> {
    table.encode_key(0, &[id.into()]).unwrap()
}

fn locking(table: &Arc<Table>, index: usize) -> Cursor {
    let options = CursorOptions {
        lock: RowLock::Exclusive,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(table, index, options);
    cursor.set_semi_consistent(true);
    cursor
}

fn row(cursor: &mut Cursor) -> [u32; 3] {
    let row = cursor.row().unwrap();
    [0, 1, 2].map(|column| match row.get(column).unwrap() {
        Value::UInt(n) => n as u32,
        other => panic!("{other:?}"),
    })
}

/// The direction of a scan.
#[derive(Clone, Copy, Debug)]
enum Way {
    Up,
    Down,
}

/// Adds one to the count of all rows with a wanted number, as a server's UPDATE does.
///
/// Returns the changed rows with their old values.
fn count_up(
    txn: &mut Transaction,
    cursor: &mut Cursor,
    way: Way,
    wanted: impl Fn(u32) -> bool,
) -> Result<Vec<[u32; 3]>, Error> {
    let table = cursor.table().clone();
    let mut changed = Vec::new();
    let mut more = match way {
        Way::Up => cursor.seek(txn, &[], Seek::First)?,
        Way::Down => cursor.seek(txn, &[], Seek::Last)?,
    };
    while more {
        let [id, number, count] = row(cursor);
        if !wanted(number) {
            cursor.unlock_row(txn);
            assert!(!cursor.was_semi_consistent());
        } else if !cursor.was_semi_consistent() {
            let after = [id.into(), number.into(), (count + 1).into()];
            txn.update(&table, &key(&table, id), &after)?;
            changed.push([id, number, count]);
        }
        more = match way {
            Way::Up => cursor.next(txn)?,
            Way::Down => cursor.prev(txn)?,
        };
    }
    Ok(changed)
}

/// Changes by another transaction of row 3, or near it, before the scan comes there.
const CHANGES: [&str; 7] = [
    "locked", "shared", "changed", "again", "deleted", "moved", "inserted",
];

fn change(txn: &mut Transaction, table: &Table, what: &str) {
    let third = key(table, 3);
    let row = |id: u32, number: u32| [id.into(), number.into(), 0u32.into()];
    let lock = match what {
        "shared" => RowLock::Shared,
        _ => RowLock::Exclusive,
    };
    txn.get_locked(table, &third, lock, |_| ()).unwrap();
    match what {
        "locked" | "shared" => {}
        "changed" => txn.update(table, &third, &row(3, 77)).unwrap(),
        "again" => {
            txn.update(table, &third, &row(3, 66)).unwrap();
            txn.update(table, &third, &row(3, 77)).unwrap();
        }
        "deleted" => txn.delete(table, &third).unwrap(),
        "moved" => txn.update(table, &third, &row(7, 30)).unwrap(),
        "inserted" => txn.insert(table, &row(8, 80)).unwrap(),
        other => panic!("{other}"),
    }
}

/// A scan that would wait gets an error, so the errors show which scans wait: only those that want the last committed
/// version of the locked row.
#[test]
fn a_scan_waits_for_a_locked_row_only_if_what_is_committed_of_it_matches() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = rows(dir.path());
    for (what, way) in CHANGES
        .iter()
        .flat_map(|what| [(what, Way::Up), (what, Way::Down)])
    {
        let mut other = db.begin(Isolation::ReadCommitted);
        change(&mut other, &table, what);
        for wanted in [10, 20, 30, 40, 66, 77, 80] {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.set_lock_wait_timeout(Duration::ZERO);
            let mut cursor = locking(&table, 0);
            let found = count_up(&mut txn, &mut cursor, way, |number| number == wanted);
            match (wanted, found) {
                (30, Err(Error::LockNotAvailable)) => {}
                (10 | 20 | 40, Ok(rows)) => {
                    assert_eq!(rows, [[wanted / 10, wanted, 0]], "{what} {way:?}")
                }
                (66 | 77 | 80, Ok(rows)) => assert!(rows.is_empty(), "{what} {way:?}: {rows:?}"),
                (_, found) => panic!("{what} {way:?} {wanted}: {found:?}"),
            }
            txn.rollback().unwrap();
        }
        other.rollback().unwrap();
    }
}

/// The row's version at the start of the scan is replaced by committed ones, and another transaction is changing the
/// row.
#[test]
fn the_newest_committed_version_counts() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = rows(dir.path());
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut cursor = locking(&table, 0);
    assert!(cursor.seek(&mut txn, &[], Seek::First).unwrap());
    let third = key(&table, 3);
    let mut other = db.begin(Isolation::ReadCommitted);
    let row_of = |number: u32| [3u32.into(), number.into(), 0u32.into()];
    for number in [301, 302, 303] {
        other.update(&table, &third, &row_of(number)).unwrap();
        other.commit().unwrap();
        db.purge().unwrap();
    }
    other.update(&table, &third, &row_of(304)).unwrap();
    assert!(cursor.next(&mut txn).unwrap());
    assert!(cursor.next(&mut txn).unwrap());
    assert_eq!(row(&mut cursor), [3, 303, 0]);
    assert!(cursor.was_semi_consistent());
    cursor.unlock_row(&mut txn);
    assert!(cursor.next(&mut txn).unwrap());
    assert_eq!(row(&mut cursor), [4, 40, 0]);
    assert!(!cursor.was_semi_consistent());
    // Only the transaction that changes row 3 has locked it.
    other.commit().unwrap();
    other.update(&table, &third, &row_of(305)).unwrap();
    other.rollback().unwrap();
}

/// A scan that seeks the wanted row again, instead of stepping, does not get it without a lock a second time.
#[test]
fn a_search_for_a_row_that_is_wanted_waits() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = rows(dir.path());
    let mut other = db.begin(Isolation::ReadCommitted);
    change(&mut other, &table, "changed");
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.set_lock_wait_timeout(Duration::ZERO);
    let mut cursor = locking(&table, 0);
    let third = key(&table, 3);
    let mut seek = |cursor: &mut Cursor| cursor.seek(&mut txn, &third, Seek::AtOrAfter);
    assert!(seek(&mut cursor).unwrap());
    assert!(cursor.was_semi_consistent());
    let found = seek(&mut cursor);
    assert!(matches!(found, Err(Error::LockNotAvailable)), "{found:?}");
    assert!(seek(&mut cursor).unwrap());
    assert!(cursor.was_semi_consistent());
    other.commit().unwrap();
    assert!(seek(&mut cursor).unwrap());
    assert!(!cursor.was_semi_consistent());
    assert_eq!(row(&mut cursor), [3, 77, 0]);
}

/// The other transaction has row 3, waits until the scan waits for it, and then commits or rolls back.
#[test]
fn a_row_that_matched_is_waited_for_and_judged_again() {
    for (what, commits, way) in CHANGES.iter().flat_map(|what| {
        [true, false]
            .into_iter()
            .flat_map(move |commits| [(what, commits, Way::Up), (what, commits, Way::Down)])
    }) {
        let dir = tempfile::tempdir().unwrap();
        let (db, table) = rows(dir.path());
        let mut other = db.begin(Isolation::ReadCommitted);
        change(&mut other, &table, what);
        let wanted = |number| number == 30 || number == 50;
        let changed = std::thread::scope(|scope| {
            let scan = scope.spawn(|| {
                let mut txn = db.begin(Isolation::ReadCommitted);
                txn.set_lock_wait_timeout(Duration::from_secs(20));
                let mut cursor = locking(&table, 0);
                let mut changed = count_up(&mut txn, &mut cursor, way, wanted).unwrap();
                txn.commit().unwrap();
                changed.sort_unstable();
                changed
            });
            while db.status().lock_waits_now == 0 && !scan.is_finished() {
                std::thread::yield_now();
            }
            match commits {
                true => other.commit().unwrap(),
                false => other.rollback().unwrap(),
            }
            scan.join().unwrap()
        });
        let expected: &[[u32; 3]] = match (*what, commits, way) {
            ("changed" | "again" | "deleted", true, _) => &[[5, 50, 0]],
            // The row's new place is ahead of the scan.
            ("moved", true, Way::Up) => &[[5, 50, 0], [7, 30, 0]],
            // The row's new place is behind the scan.
            ("moved", true, Way::Down) => &[[5, 50, 0]],
            _ => &[[3, 30, 0], [5, 50, 0]],
        };
        assert_eq!(changed, expected, "{what} {commits} {way:?}");
    }
}

/// A step within a prefix also reaches the same row again.
///
/// When the row is gone, that step ends.
#[test]
fn the_row_that_is_read_again_is_within_what_was_sought() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let schema = TableSchema {
        columns: vec![Column::new("group", INT), Column::new("id", INT)],
        primary: Some(Key::new(&[0, 1])),
        indexes: vec![],
        user: vec![],
    };
    let table = db.create_table("pairs", &schema).unwrap();
    let pair = |group: u32, id: u32| [Value::UInt(group.into()), Value::UInt(id.into())];
    let mut txn = db.begin(Isolation::ReadCommitted);
    for (group, id) in [(1, 1), (1, 2), (2, 1)] {
        txn.insert(&table, &pair(group, id)).unwrap();
    }
    txn.commit().unwrap();
    let last = table.encode_key(0, &pair(1, 2)).unwrap();
    let first_group = table.encode_key(0, &pair(1, 0)[..1]).unwrap();
    for deletes in [false, true] {
        let mut other = db.begin(Isolation::ReadCommitted);
        other
            .get_locked(&table, &last, RowLock::Exclusive, |_| ())
            .unwrap();
        let mut cursor = locking(&table, 0);
        assert!(cursor.seek(&mut txn, &first_group, Seek::Exact).unwrap());
        assert!(!cursor.was_semi_consistent());
        assert!(cursor.next_same_prefix(&mut txn).unwrap());
        assert!(cursor.was_semi_consistent());
        assert_eq!(cursor.clustered_key(), last);
        if deletes {
            other.delete(&table, &last).unwrap();
        }
        other.commit().unwrap();
        assert_eq!(cursor.next_same_prefix(&mut txn).unwrap(), !deletes);
        assert!(!cursor.was_semi_consistent());
        if !deletes {
            assert_eq!(cursor.clustered_key(), last);
            assert!(!cursor.next_same_prefix(&mut txn).unwrap());
        }
        txn.commit().unwrap();
    }
}

#[test]
fn other_levels_points_and_secondary_indexes_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = rows(dir.path());
    let mut other = db.begin(Isolation::ReadCommitted);
    change(&mut other, &table, "changed");
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.set_lock_wait_timeout(Duration::ZERO);
    let mut cursor = locking(&table, 0);
    let found = cursor.seek(&mut txn, &key(&table, 3), Seek::Exact);
    assert!(
        matches!(found, Err(Error::LockNotAvailable)),
        "a point: {found:?}"
    );
    let levels = [Isolation::RepeatableRead, Isolation::Serializable];
    let scans = levels.map(|level| (level, 0));
    for (level, index) in scans.into_iter().chain([(Isolation::ReadCommitted, 1)]) {
        let mut txn = db.begin(level);
        txn.set_lock_wait_timeout(Duration::ZERO);
        let mut cursor = locking(&table, index);
        let found = count_up(&mut txn, &mut cursor, Way::Up, |_| false);
        assert!(
            matches!(found, Err(Error::LockNotAvailable)),
            "{level:?} by index {index}: {found:?}"
        );
        txn.rollback().unwrap();
    }
    // Also when semi-consistent reads are not switched on.
    let mut cursor = locking(&table, 0);
    cursor.set_semi_consistent(false);
    let found = count_up(&mut txn, &mut cursor, Way::Up, |_| false);
    assert!(matches!(found, Err(Error::LockNotAvailable)), "{found:?}");
}

/// The transaction's own rows are not locked by another, and a lock held before a row was skipped stays.
#[test]
fn rows_that_are_passed_over_leave_locks_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = rows(dir.path());
    let mut other = db.begin(Isolation::ReadCommitted);
    change(&mut other, &table, "changed");
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.set_lock_wait_timeout(Duration::ZERO);
    let row = |id: u32| [id.into(), (10 * id).into(), 5u32.into()];
    txn.update(&table, &key(&table, 2), &row(2)).unwrap();
    let savepoint = txn.savepoint();
    txn.update(&table, &key(&table, 4), &row(4)).unwrap();
    txn.rollback_to(&savepoint).unwrap();
    let mut cursor = locking(&table, 0);
    assert!(count_up(&mut txn, &mut cursor, Way::Up, |_| false)
        .unwrap()
        .is_empty());
    let is_locked = |id: u32| {
        let mut third = db.begin(Isolation::ReadCommitted);
        third.set_lock_wait_timeout(Duration::ZERO);
        let found = third.get_locked(&table, &key(&table, id), RowLock::Exclusive, |_| ());
        found.is_err()
    };
    let locked: Vec<u32> = (1..=ROWS).filter(|&id| is_locked(id)).collect();
    assert_eq!(locked, [2, 3, 4]);
    other.commit().unwrap();
    assert!(!is_locked(3));
    txn.rollback().unwrap();
}

/// A large value stays readable while the cursor is at its row, even when no other transaction can see that version.
#[test]
fn large_values_of_a_row_not_waited_for_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("body", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    let table = db.create_table("large", &schema).unwrap();
    let body = |seed: u32| noise(seed, 20_000);
    let mut other = db.begin(Isolation::ReadCommitted);
    for id in [1u32, 2] {
        other
            .insert(&table, &[id.into(), Value::Bytes(&body(id))])
            .unwrap();
    }
    other.commit().unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut cursor = locking(&table, 0);
    assert!(cursor.seek(&mut txn, &[], Seek::First).unwrap());
    let second = table.encode_key(0, &[2u32.into()]).unwrap();
    for seed in 10..20 {
        let new = body(seed);
        other
            .update(&table, &second, &[2u32.into(), Value::Bytes(&new)])
            .unwrap();
        if seed < 19 {
            other.commit().unwrap();
        }
    }
    assert!(cursor.next(&mut txn).unwrap());
    assert!(cursor.was_semi_consistent());
    // The version at the cursor was both made and replaced after the transaction began.
    other.commit().unwrap();
    db.purge().unwrap();
    let mut found = Vec::new();
    cursor.row().unwrap().get_large(1, &mut found).unwrap();
    assert!(found == body(18));
    assert!(cursor.next(&mut txn).unwrap());
    found.clear();
    cursor.row().unwrap().get_large(1, &mut found).unwrap();
    assert!(found == body(19));
}

/// Only a row's number decides whether it matches; other threads change numbers and move rows all the time.
#[test]
fn no_change_is_lost_where_rows_that_match_are_moved() {
    const NUMBERS: u32 = 4;
    const IDS: u32 = 40;
    let dir = tempfile::tempdir().unwrap();
    let (db, table) = rows(dir.path());
    let acknowledged = AtomicU64::new(0);
    let ended = |error: &Error| {
        matches!(
            error,
            Error::Deadlock | Error::LockWaitTimeout | Error::Duplicate { .. }
        )
    };
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (db, table, acknowledged) = (&db, &table, &acknowledged);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed);
                let mut txn = db.begin(Isolation::ReadCommitted);
                let mut cursor = locking(table, 0);
                for _ in 0..400 {
                    let wanted = rng.random_range(0..NUMBERS);
                    let way = match rng.random() {
                        true => Way::Up,
                        false => Way::Down,
                    };
                    txn.start_statement();
                    let found = count_up(&mut txn, &mut cursor, way, |n| n % NUMBERS == wanted);
                    txn.end_statement();
                    for _ in 0..rng.random_range(0..30) {
                        std::thread::yield_now();
                    }
                    match found {
                        Ok(rows) if rng.random_bool(0.8) => {
                            txn.commit().unwrap();
                            acknowledged.fetch_add(rows.len() as u64, Ordering::Relaxed);
                        }
                        Ok(_) => txn.rollback().unwrap(),
                        Err(error) if ended(&error) => txn.rollback().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        for seed in 10..13 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed);
                let mut txn = db.begin(Isolation::ReadCommitted);
                for _ in 0..1500 {
                    let id = key(table, rng.random_range(1..IDS));
                    let mut count = None;
                    let lock = RowLock::Exclusive;
                    let found = txn.get_locked(table, &id, lock, |row| {
                        count = [0, 2]
                            .map(|n| row.get(n).ok().map(|value| value.to_owned()))
                            .into();
                    });
                    let moved = found.and_then(|_| {
                        let Some([Some(id_before), Some(count)]) = &count else {
                            return Ok(());
                        };
                        let number: u32 = rng.random_range(0..100);
                        let to: Value<'_> = match rng.random_bool(0.3) {
                            true => rng.random_range(1..IDS).into(),
                            false => id_before.as_value(),
                        };
                        txn.update(table, &id, &[to, number.into(), count.as_value()])
                    });
                    for _ in 0..rng.random_range(0..30) {
                        std::thread::yield_now();
                    }
                    match moved {
                        Ok(()) if rng.random_bool(0.8) => txn.commit().unwrap(),
                        Ok(()) => txn.rollback().unwrap(),
                        Err(error) if ended(&error) => txn.rollback().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    let (mut counted, mut sum) = (0, 0);
    while more {
        counted += 1;
        sum += u64::from(row(&mut cursor)[2]);
        more = cursor.next(&mut txn).unwrap();
    }
    assert_eq!(counted, ROWS);
    assert_eq!(sum, acknowledged.into_inner());
}
