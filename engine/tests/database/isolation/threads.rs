//! Transactions' promises to each other, with many threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, RowLock,
    RowView, Seek, Table, TableSchema, Transaction, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::options;

const ACCOUNTS: u64 = 60;
const START: u64 = 1000;

/// Creates rows (id, balance, filler), with an index on the balance.
fn accounts(db: &Database) -> Arc<Table> {
    let int = ColumnType::Int {
        bytes: 8,
        signed: false,
    };
    let schema = TableSchema {
        columns: vec![
            Column::new("id", int),
            Column::new("balance", int),
            Column::new("filler", ColumnType::VarBytes { max: 200 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("balance", &[1])],
        user: vec![],
    };
    let table = db.create_table("accounts", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..ACCOUNTS {
        txn.insert(&table, &account(id, START)).unwrap();
    }
    txn.commit().unwrap();
    table
}

fn account(id: u64, balance: u64) -> [Value<'static>; 3] {
    [
        Value::UInt(id),
        Value::UInt(balance),
        Value::Bytes(&[b'f'; 150]),
    ]
}

fn key(table: &Table, id: u64) -> Vec<u8> {
    table.encode_key(0, &[Value::UInt(id)]).unwrap()
}

fn balance(txn: &mut Transaction, table: &Table, id: u64, lock: RowLock) -> Result<u64, Error> {
    let got = txn.get_locked(table, &key(table, id), lock, |row| {
        row.get(1).map(|v| v.to_owned())
    })?;
    match got.unwrap()?.as_value() {
        Value::UInt(v) => Ok(v),
        other => panic!("{other:?}"),
    }
}

/// Returns the sum of balances, through an index.
fn total(txn: &mut Transaction, table: &Arc<Table>, index: usize) -> (u64, u64) {
    let options = CursorOptions {
        index_only: index == 1,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(table, index, options);
    let (mut sum, mut n) = (0, 0);
    let mut more = cursor.seek(txn, b"", Seek::First).unwrap();
    while more {
        let Value::UInt(v) = cursor.row().unwrap().get(1).unwrap() else {
            panic!("no balance");
        };
        sum += v;
        n += 1;
        more = cursor.next(txn).unwrap();
    }
    (sum, n)
}

/// The same by `Transaction::rows`: one after the other, copied, in place, in one scan, and by a column of each.
fn total_of_rows(txn: &mut Transaction, table: &Arc<Table>) -> [(u64, u64); 4] {
    let of_value = |value: Value<'_>| match value {
        Value::UInt(v) => v,
        other => panic!("{other:?}"),
    };
    let number = |row: &RowView<'_>| of_value(row.get(1).unwrap());
    let mut rows = txn.rows(table).unwrap();
    let mut totals = [(0, 0); 4];
    let mut add = |n: usize, v| {
        totals[n].0 += v;
        totals[n].1 += 1;
    };
    for id in 0..ACCOUNTS {
        let key = key(table, id);
        add(0, rows.get(&key).unwrap().map_or(0, |row| number(&row)));
        let in_place = rows.get_in_place(&key, |row| number(&row)).unwrap();
        add(1, in_place.unwrap_or(0));
        let some = rows.columns(&key, [1]).unwrap();
        add(3, some.map_or(0, |[balance]| of_value(balance)));
    }
    rows.each(&[], |row| {
        add(2, number(&row));
        ControlFlow::<()>::Continue(())
    })
    .unwrap();
    totals
}

fn transfer(
    txn: &mut Transaction,
    table: &Table,
    rng: &mut StdRng,
    isolation: Isolation,
) -> Result<(), Error> {
    let from = rng.random_range(0..ACCOUNTS);
    let to = (from + rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
    // Under READ COMMITTED only a lock prevents a lost update.
    let lock = match isolation {
        Isolation::ReadCommitted => RowLock::Exclusive,
        _ => RowLock::None,
    };
    let (a, b) = (
        balance(txn, table, from, lock)?,
        balance(txn, table, to, lock)?,
    );
    let amount = rng.random_range(0..=a.min(50));
    txn.update(table, &key(table, from), &account(from, a - amount))?;
    if rng.random_bool(0.1) {
        // Closes an account and opens it again.
        txn.delete(table, &key(table, to))?;
        txn.insert(table, &account(to, b + amount))?;
    } else {
        txn.update(table, &key(table, to), &account(to, b + amount))?;
    }
    if rng.random_bool(0.1) {
        return Err(Error::Interrupted);
    }
    Ok(())
}

#[test]
fn money_is_neither_made_nor_lost() {
    for isolation in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path(), options()).unwrap();
        let table = accounts(&db);
        let stop = AtomicBool::new(false);
        let (done, failed) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|n| {
                    let (db, table, done, failed) = (&db, &table, &done, &failed);
                    scope.spawn(move || {
                        let mut rng = StdRng::seed_from_u64(n);
                        let mut txn = db.begin(isolation);
                        for _ in 0..400 {
                            txn.start_statement();
                            match transfer(&mut txn, table, &mut rng, isolation) {
                                Ok(()) => {
                                    txn.commit().unwrap();
                                    done.fetch_add(1, Ordering::Relaxed);
                                }
                                Err(
                                    Error::Deadlock | Error::WriteConflict | Error::Interrupted,
                                ) => {
                                    txn.rollback().unwrap();
                                    failed.fetch_add(1, Ordering::Relaxed);
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    })
                })
                .collect();
            let (db, table, stop) = (&db, &table, &stop);
            scope.spawn(move || {
                let mut index = 0;
                while !stop.load(Ordering::Relaxed) {
                    let mut txn = db.begin(Isolation::RepeatableRead);
                    assert_eq!(total(&mut txn, table, index), (ACCOUNTS * START, ACCOUNTS));
                    index = 1 - index;
                    assert_eq!(total(&mut txn, table, index), (ACCOUNTS * START, ACCOUNTS));
                    let all = (ACCOUNTS * START, ACCOUNTS);
                    assert_eq!(total_of_rows(&mut txn, table), [all; 4]);
                }
            });
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    db.checkpoint().unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            });
            let ended: Vec<_> = writers.into_iter().map(|w| w.join()).collect();
            stop.store(true, Ordering::Relaxed);
            ended.into_iter().for_each(|e| e.unwrap());
        });
        assert!(done.load(Ordering::Relaxed) > 0);
        drop(table);
        db.close().unwrap();
        let mut report = peregrine::check::Report::default();
        peregrine::check::check(dir.path(), &mut report).unwrap();
        assert!(report.is_sound(), "{isolation:?}: {:?}", report.problems);
        assert_eq!(report.tables[0].rows, ACCOUNTS);
    }
}

#[test]
fn no_increment_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let table = accounts(&db);
    const EACH: u64 = 300;
    std::thread::scope(|scope| {
        for n in 0..4u64 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let isolation = match n % 2 {
                    0 => Isolation::ReadCommitted,
                    _ => Isolation::RepeatableRead,
                };
                let mut txn = db.begin(isolation);
                let mut done = 0;
                while done < EACH {
                    txn.start_statement();
                    let step = balance(&mut txn, table, 0, RowLock::Exclusive)
                        .and_then(|b| txn.update(table, &key(table, 0), &account(0, b + 1)));
                    match step {
                        Ok(()) => {
                            txn.commit().unwrap();
                            done += 1;
                        }
                        Err(Error::WriteConflict | Error::Deadlock) => txn.rollback().unwrap(),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let mut txn = db.begin(Isolation::RepeatableRead);
    let got = balance(&mut txn, &table, 0, RowLock::None).unwrap();
    assert_eq!(got, START + 4 * EACH);
}

#[test]
fn one_of_many_gets_a_unique_value() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let int = ColumnType::Int {
        bytes: 8,
        signed: false,
    };
    let schema = TableSchema {
        columns: vec![Column::new("value", int), Column::new("by", int)],
        primary: None,
        indexes: vec![Index::new("value", &[0]).unique()],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    const VALUES: u64 = 300;
    let won = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for n in 0..4u64 {
            let (db, table, won) = (&db, &table, &won);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(n);
                for value in 0..VALUES {
                    loop {
                        let mut txn = db.begin(Isolation::ReadCommitted);
                        match txn.insert(table, &[Value::UInt(value), Value::UInt(n)]) {
                            Ok(()) if rng.random_bool(0.3) => {
                                // Rolls back: the value is free again, for a waiter, too.
                                txn.rollback().unwrap();
                            }
                            Ok(()) => {
                                txn.commit().unwrap();
                                won.fetch_add(1, Ordering::Relaxed);
                                break;
                            }
                            Err(Error::Duplicate { index: 1 }) => break,
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            });
        }
    });
    assert_eq!(won.load(Ordering::Relaxed), VALUES);
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(&table, 1, CursorOptions::default());
    let mut more = cursor.seek(&mut txn, b"", Seek::First).unwrap();
    for value in 0..VALUES {
        assert!(more);
        assert_eq!(cursor.row().unwrap().get(0).unwrap(), Value::UInt(value));
        more = cursor.next(&mut txn).unwrap();
    }
    assert!(!more);
}
