//! Tables whose locking is optimistic: a conflict fails at once, and no transaction ever waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, ColumnType, Database, Error, Index, Isolation, Key, Locking, RowLock, Table,
    TableOptions, TableSchema, Transaction, Value,
};
use proptest::prelude::*;

use crate::tables::schemas::options;

fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 8,
        signed: true,
    };
    TableSchema {
        columns: vec![Column::new("id", int), Column::new("v", int)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("v", &[1]).unique()],
        user: vec![],
    }
}

fn optimistic() -> TableOptions {
    TableOptions {
        locking: Locking::Optimistic,
        ..TableOptions::default()
    }
}

fn row(id: i64, v: i64) -> [Value<'static>; 2] {
    [Value::Int(id), Value::Int(v)]
}

fn key(table: &Table, id: i64) -> Vec<u8> {
    table.encode_key(0, &[Value::Int(id)]).unwrap()
}

/// Begins a transaction whose waits would be very long.
fn begin(db: &Database, isolation: Isolation) -> Transaction {
    let mut txn = db.begin(isolation);
    txn.set_lock_wait_timeout(Duration::from_secs(1_000_000));
    txn
}

fn filled(db: &Database) -> Arc<Table> {
    let table = db.create_table_with("t", &schema(), &optimistic()).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..5 {
        txn.insert(&table, &row(id, id * 10)).unwrap();
    }
    txn.commit().unwrap();
    table
}

fn assert_changed<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::RowChanged)), "{result:?}");
}

#[test]
fn every_conflict_fails_at_once_and_the_transaction_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = filled(&db);
    for isolation in [
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Serializable,
    ] {
        let mut first = begin(&db, isolation);
        first.update(&table, &key(&table, 1), &row(1, 11)).unwrap();
        first.delete(&table, &key(&table, 2)).unwrap();
        first.insert(&table, &row(7, 70)).unwrap();
        first
            .get_locked(&table, &key(&table, 3), RowLock::Exclusive, |_| ())
            .unwrap();

        let mut second = begin(&db, isolation);
        second.insert(&table, &row(8, 80)).unwrap();
        assert_changed(second.update(&table, &key(&table, 1), &row(1, 12)));
        assert_changed(second.delete(&table, &key(&table, 2)));
        // Keys in use by another transaction, in the clustered and in a unique index.
        assert_changed(second.insert(&table, &row(7, 71)));
        assert_changed(second.insert(&table, &row(9, 70)));
        assert_changed(second.insert(&table, &row(9, 20)));
        assert_changed(second.update(&table, &key(&table, 3), &row(3, 31)));
        for lock in [RowLock::Shared, RowLock::Exclusive] {
            assert_changed(second.get_locked(&table, &key(&table, 1), lock, |_| ()));
        }
        // Keys that no other transaction uses can be changed.
        second.update(&table, &key(&table, 4), &row(4, 41)).unwrap();
        second.commit().unwrap();
        first.rollback().unwrap();

        let mut check = db.begin(Isolation::ReadCommitted);
        let v = |check: &mut Transaction, id| {
            let got = check.get(&table, &key(&table, id), |r| r.get(1).map(|v| v.to_owned()));
            got.unwrap().map(|v| v.unwrap())
        };
        assert_eq!(v(&mut check, 8).unwrap().as_value(), Value::Int(80));
        assert_eq!(v(&mut check, 4).unwrap().as_value(), Value::Int(41));
        assert_eq!(v(&mut check, 9), None);
        check.delete(&table, &key(&table, 8)).unwrap();
        check.update(&table, &key(&table, 4), &row(4, 40)).unwrap();
        check.commit().unwrap();
    }
    assert_eq!(db.status().lock_waits, 0);
}

#[test]
fn a_row_changed_since_the_snapshot_is_the_same_error() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = filled(&db);
    let mut old = begin(&db, Isolation::RepeatableRead);
    old.take_snapshot();
    let mut new = begin(&db, Isolation::RepeatableRead);
    new.update(&table, &key(&table, 1), &row(1, 11)).unwrap();
    new.commit().unwrap();
    assert_changed(old.update(&table, &key(&table, 1), &row(1, 12)));
    assert_changed(old.get_locked(&table, &key(&table, 1), RowLock::Shared, |_| ()));
    old.update(&table, &key(&table, 2), &row(2, 22)).unwrap();
    old.commit().unwrap();
}

#[test]
fn locking_is_changed_at_once_and_stays_over_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Database::open(&path, options()).unwrap();
    let table = filled(&db);
    assert_eq!(db.locking("t").unwrap(), Locking::Optimistic);
    db.set_locking("t", Locking::Pessimistic).unwrap();
    let mut first = db.begin(Isolation::ReadCommitted);
    first.delete(&table, &key(&table, 1)).unwrap();
    let mut second = db.begin(Isolation::ReadCommitted);
    second.set_lock_wait_timeout(Duration::ZERO);
    let refused = second.delete(&table, &key(&table, 1));
    assert!(
        matches!(refused, Err(Error::LockNotAvailable)),
        "{refused:?}"
    );
    // Also while transactions use the table.
    db.set_locking("t", Locking::Optimistic).unwrap();
    assert_changed(second.delete(&table, &key(&table, 1)));
    drop((first, second));
    db.create_table("u", &schema()).unwrap();
    db.rename_table("t", "renamed").unwrap();
    db.truncate_table("renamed").unwrap();
    drop((table, db));

    // From the log.
    let db = Database::open(&path, options()).unwrap();
    assert_eq!(db.locking("renamed").unwrap(), Locking::Optimistic);
    assert_eq!(db.locking("u").unwrap(), Locking::Pessimistic);
    db.close().unwrap();
    // From the checkpoint.
    let db = Database::open(&path, options()).unwrap();
    assert_eq!(db.locking("renamed").unwrap(), Locking::Optimistic);
    let gone = db.set_locking("t", Locking::Optimistic);
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, i64),
    Delete(usize, i64),
    Lock(usize, i64, bool),
    Commit(usize),
    Rollback(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..3usize;
    let id = 0..4i64;
    prop_oneof![
        4 => (session.clone(), id.clone()).prop_map(|(s, id)| Step::Put(s, id)),
        2 => (session.clone(), id.clone()).prop_map(|(s, id)| Step::Delete(s, id)),
        2 => (session.clone(), id, any::<bool>()).prop_map(|(s, id, x)| Step::Lock(s, id, x)),
        1 => session.clone().prop_map(Step::Commit),
        1 => session.prop_map(Step::Rollback),
    ]
}

/// The rows that one session holds: changed ones with their new value, and locked ones (`None`: not written).
#[derive(Default)]
struct Held {
    shared: Vec<i64>,
    exclusive: Vec<i64>,
    written: BTreeMap<i64, Option<i64>>,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// One thread runs three sessions, so any wait would never end.
    ///
    /// An operation must fail exactly when a model of row locks says that another session has the row.
    #[test]
    fn a_conflict_fails_and_nothing_else_does(steps in prop::collection::vec(step(), 1..80)) {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        let table = db.create_table_with("t", &schema(), &optimistic()).unwrap();
        let mut sessions: Vec<_> = (0..3).map(|_| begin(&db, Isolation::ReadCommitted)).collect();
        let mut held: Vec<Held> = (0..3).map(|_| Held::default()).collect();
        let mut committed: BTreeMap<i64, i64> = BTreeMap::new();
        let mut next = 1000;
        for step in steps {
            let in_the_way = |held: &[Held], s: usize, id: i64, exclusive: bool| {
                held.iter().enumerate().any(|(n, h)| {
                    n != s && (h.exclusive.contains(&id) || exclusive && h.shared.contains(&id))
                })
            };
            match step {
                Step::Put(s, id) => {
                    next += 1;
                    let now = held[s].written.get(&id).copied();
                    let there = now.unwrap_or_else(|| committed.get(&id).copied()).is_some();
                    let result = if there {
                        sessions[s].update(&table, &key(&table, id), &row(id, next))
                    } else {
                        sessions[s].insert(&table, &row(id, next))
                    };
                    if in_the_way(&held, s, id, true) {
                        prop_assert!(matches!(result, Err(Error::RowChanged)), "{:?}", result);
                    } else {
                        prop_assert!(result.is_ok(), "{:?}", result);
                        held[s].exclusive.push(id);
                        held[s].written.insert(id, Some(next));
                    }
                }
                Step::Delete(s, id) => {
                    let now = held[s].written.get(&id).copied();
                    let there = now.unwrap_or_else(|| committed.get(&id).copied()).is_some();
                    let result = sessions[s].delete(&table, &key(&table, id));
                    if in_the_way(&held, s, id, true) {
                        let refused = matches!(
                            result,
                            Err(Error::RowChanged | Error::NotFound { what: "row", .. })
                        );
                        prop_assert!(refused, "{:?}", result);
                    } else if there {
                        prop_assert!(result.is_ok(), "{:?}", result);
                        held[s].exclusive.push(id);
                        held[s].written.insert(id, None);
                    } else {
                        let missing = matches!(result, Err(Error::NotFound { what: "row", .. }));
                        prop_assert!(missing, "{:?}", result);
                    }
                }
                Step::Lock(s, id, exclusive) => {
                    let lock = if exclusive { RowLock::Exclusive } else { RowLock::Shared };
                    let result = sessions[s].get_locked(&table, &key(&table, id), lock, |_| ());
                    if in_the_way(&held, s, id, exclusive) {
                        prop_assert!(matches!(result, Err(Error::RowChanged)), "{:?}", result);
                    } else {
                        prop_assert!(result.is_ok(), "{:?}", result);
                        let list = if exclusive { &mut held[s].exclusive } else { &mut held[s].shared };
                        list.push(id);
                    }
                }
                Step::Commit(s) => {
                    sessions[s].commit().unwrap();
                    for (id, v) in std::mem::take(&mut held[s]).written {
                        match v {
                            Some(v) => committed.insert(id, v),
                            None => committed.remove(&id),
                        };
                    }
                }
                Step::Rollback(s) => {
                    sessions[s].rollback().unwrap();
                    held[s] = Held::default();
                }
            }
        }
        prop_assert_eq!(db.status().lock_waits, 0);
        drop(sessions);
        let mut reader = db.begin(Isolation::RepeatableRead);
        for id in 0..4 {
            let got = reader.get(&table, &key(&table, id), |r| r.get(1).map(|v| v.to_owned()));
            let got = got.unwrap().map(|v| v.unwrap().as_value().clone().to_owned());
            let expected = committed.get(&id).map(|&v| Value::Int(v).to_owned());
            prop_assert_eq!(got, expected);
        }
    }
}
