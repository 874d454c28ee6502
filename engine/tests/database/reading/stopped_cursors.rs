//! Cursors that an error has stopped: they continue from their place at the next call.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options,
    RowLock, Seek, Table, TableSchema, Value,
};

use crate::tables::schemas::{grouped, noise, numbered, options, INT};

const ROWS: u32 = 400;
/// So many values of this length exceed the row length in a leaf, and none of them can be stored outside by itself.
const SHORTS: usize = 62;
const SHORT: u32 = 63;

/// Rows that are stored outside as a whole.
fn schema() -> TableSchema {
    let mut columns = vec![Column::new("id", INT)];
    for n in 0..SHORTS {
        let ty = ColumnType::VarBytes { max: SHORT };
        columns.push(Column::new(format!("short {n}"), ty));
    }
    TableSchema {
        columns,
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("again", &[0])],
        user: vec![],
    }
}

fn database() -> (SimulatedOs, Database, Arc<Table>) {
    let os = SimulatedOs::new(5);
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..ROWS {
        let shorts: Vec<_> = (0..SHORTS)
            .map(|n| noise(id * 100 + n as u32, SHORT as usize))
            .collect();
        let mut row = vec![Value::from(id)];
        row.extend(shorts.iter().map(|bytes| Value::Bytes(bytes)));
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    (os, db, table)
}

/// Returns all ids that a cursor finds when it is called again after each error.
fn ids(
    db: &Database,
    table: &Arc<Table>,
    isolation: Isolation,
    index: usize,
    options: CursorOptions,
    forward: bool,
) -> (Vec<u64>, usize) {
    let mut txn = db.begin(isolation);
    let mut cursor = Cursor::new(table, index, options);
    let (mut found, mut errors) = (Vec::new(), 0);
    let mut sought = false;
    loop {
        let on = match (sought, forward) {
            (false, true) => cursor.seek(&mut txn, &[], Seek::First),
            (false, false) => cursor.seek(&mut txn, &[], Seek::Last),
            (true, true) => cursor.next(&mut txn),
            (true, false) => cursor.prev(&mut txn),
        };
        match on {
            Ok(true) => match cursor.row().unwrap().get(0).unwrap() {
                Value::UInt(id) => found.push(id),
                other => panic!("{other:?}"),
            },
            Ok(false) => return (found, errors),
            Err(Error::Io { .. }) => {
                errors += 1;
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        sought = true;
    }
}

#[test]
fn a_cursor_that_an_error_has_stopped_goes_on_where_it_stood() {
    let (os, db, table) = database();
    let levels = [Isolation::ReadCommitted, Isolation::Serializable];
    let mut met = 0;
    for isolation in levels {
        for (index, lock, index_only) in [
            (0, RowLock::None, false),
            (0, RowLock::Exclusive, false),
            (1, RowLock::None, false),
            (1, RowLock::None, true),
            (1, RowLock::Exclusive, false),
        ] {
            let options = CursorOptions {
                lock,
                index_only,
                ..CursorOptions::default()
            };
            for forward in [true, false] {
                let mut expected: Vec<u64> = (0..u64::from(ROWS)).collect();
                if !forward {
                    expected.reverse();
                }
                for fault in 0..12 {
                    os.fail_once(FaultOn::Read, fault * 5, ErrorKind::Other);
                    let (found, errors) = ids(&db, &table, isolation, index, options, forward);
                    os.heal();
                    assert!(
                        found == expected,
                        "{isolation:?} {index} {options:?} {forward} {fault}: {found:?}"
                    );
                    met += errors;
                }
            }
        }
    }
    assert!(peregrine::knobs::SHAKEN || met > 40, "{met} errors");
}

/// A wait that timed out is not an end: the cursor reaches the row again.
#[test]
fn a_cursor_that_has_waited_in_vain_comes_to_the_row_again() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let table = db.create_table("t", &grouped()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..20u32 {
        let row = [id.into(), (id / 4).into(), Value::Bytes(b"body")];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    for isolation in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ] {
        for index in [0, 1] {
            for id in [0u32, 7, 19] {
                let mut holder = db.begin(Isolation::ReadCommitted);
                let key = table.encode_key(0, &[id.into()]).unwrap();
                holder
                    .get_locked(&table, &key, RowLock::Exclusive, |_| ())
                    .unwrap();
                let mut txn = db.begin(isolation);
                txn.set_lock_wait_timeout(Duration::ZERO);
                let options = CursorOptions {
                    lock: RowLock::Exclusive,
                    ..CursorOptions::default()
                };
                let mut cursor = Cursor::new(&table, index, options);
                let (mut found, mut refused) = (Vec::new(), 0);
                loop {
                    let on = match (found.is_empty(), refused) {
                        (true, _) => cursor.seek(&mut txn, &[], Seek::First),
                        _ => cursor.next(&mut txn),
                    };
                    match on {
                        Ok(true) => match cursor.row().unwrap().get(0).unwrap() {
                            Value::UInt(id) => found.push(id),
                            other => panic!("{other:?}"),
                        },
                        Ok(false) => break,
                        Err(Error::LockNotAvailable | Error::LockWaitTimeout) => {
                            refused += 1;
                            if refused == 3 {
                                holder.rollback().unwrap();
                            }
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                let all: Vec<u64> = (0..20).collect();
                assert_eq!((found, refused), (all, 3), "{isolation:?} {index} {id}");
            }
        }
    }
}

/// The caller could not use the row, and steps back.
#[test]
fn a_cursor_that_steps_back_comes_to_the_same_row_again() {
    let (_os, db, table) = database();
    let all: Vec<u64> = (0..u64::from(ROWS)).collect();
    for (index, lock, index_only) in [
        (0, RowLock::None, false),
        (0, RowLock::Exclusive, false),
        (1, RowLock::None, false),
        (1, RowLock::None, true),
    ] {
        let options = CursorOptions {
            lock,
            index_only,
            ..CursorOptions::default()
        };
        for forward in [true, false] {
            let mut txn = db.begin(Isolation::RepeatableRead);
            let mut cursor = Cursor::new(&table, index, options);
            let seek = if forward { Seek::First } else { Seek::Last };
            let mut on = cursor.seek(&mut txn, &[], seek).unwrap();
            let (mut found, mut again) = (Vec::new(), false);
            while on {
                match cursor.row().unwrap().get(0).unwrap() {
                    Value::UInt(id) if again => assert_eq!(found.last(), Some(&id)),
                    Value::UInt(id) => found.push(id),
                    other => panic!("{other:?}"),
                }
                again = !again && found.len() % 3 == 1;
                if again {
                    cursor.step_back();
                }
                on = match forward {
                    true => cursor.next(&mut txn).unwrap(),
                    false => cursor.prev(&mut txn).unwrap(),
                };
            }
            if !forward {
                found.reverse();
            }
            assert_eq!(found, all, "{index} {options:?} {forward}");
        }
    }
}

/// The rows of a running transaction, which no other sees: a cursor skips all of them in one call.
#[test]
fn who_passes_over_many_records_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = db.create_table("t", &numbered()).unwrap();
    let mut writer = db.begin(Isolation::ReadCommitted);
    for id in 0..5_000u32 {
        let row: [Value<'_>; 3] = [id.into(), id.into(), id.into()];
        writer.insert(&table, &row).unwrap();
    }
    let mut txn = db.begin(Isolation::RepeatableRead);
    let kill = txn.kill_handle();
    for index in [0, 1] {
        let mut cursor = Cursor::new(&table, index, CursorOptions::default());
        for to in [Seek::Last, Seek::First] {
            kill.kill();
            let stopped = cursor.seek(&mut txn, &[], to);
            assert!(matches!(stopped, Err(Error::Interrupted)), "{stopped:?}");
            kill.clear();
        }
        // The cursor continues from its place.
        assert!(!cursor.next(&mut txn).unwrap());
    }
}
