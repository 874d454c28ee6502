//! The changes that a dump takes from the log, even if the log is damaged from some record on.

use std::path::Path;
use std::sync::Arc;

use super::Dump;
use crate::catalog::KIND_DDL;
use crate::ids::Lsn;
use crate::log::{Log, LogOptions};
use crate::os::simulated::{Loss, SimulatedOs};
use crate::os::StopFlag;
use crate::recovery::Meta;
use crate::store::Store;
use crate::txn::{Change, ChangeReader, KIND_COMMIT};
use crate::{
    Column, ColumnType, Database, Durability, Isolation, Key, Locking, Options, OwnedValue,
    TableOptions, TableSchema, Value,
};

fn open(os: &SimulatedOs) -> Database {
    let options = Options {
        background: false,
        ..Options::default()
    };
    Database::open_on(Arc::new(os.clone()), "/db", options).unwrap()
}

/// Rows of one number.
fn ids() -> TableSchema {
    let signed = false;
    TableSchema {
        columns: vec![Column::new("id", ColumnType::Int { bytes: 4, signed })],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

/// The disk of a killed process, which had committed the rows 1 and 2 since the last checkpoint.
fn killed() -> SimulatedOs {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let table = db.create_table("t", &ids()).unwrap();
    db.checkpoint().unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in [1, 2] {
        txn.insert(&table, &[Value::UInt(id)]).unwrap();
        txn.commit().unwrap();
    }
    os.crash_with(Loss::Nothing, 0)
}

/// The log, and where a reader of it begins.
fn log_of(os: &SimulatedOs) -> (Log, Lsn) {
    let os = Arc::new(os.clone());
    let dir = Path::new("/db");
    let (store, meta) = Store::open_damaged(os.clone(), dir, &mut Vec::new()).unwrap();
    let options = LogOptions {
        background: false,
        ..LogOptions::new(store.database_id(), Arc::new(StopFlag::new()))
    };
    let from = Meta::decode(&meta, dir).unwrap().log_from();
    let log = Log::open(os, &dir.join("log"), options, from).unwrap();
    (log, from)
}

/// The commit of a transaction that puts one row, and then makes the changes in `rest`.
fn commit_of((log, from): &(Log, Lsn), id: u8, rest: &[u8]) -> Vec<u8> {
    let records = log.read_from(*from).unwrap().map(Result::unwrap);
    let commits = records.filter(|record| record.kind == KIND_COMMIT);
    let last = commits.last().unwrap().payload;
    let (_, mut changes) = ChangeReader::new(&last).unwrap();
    let change = changes.next().unwrap().unwrap();
    let Change::Put(row) = change.change else {
        panic!("{change:?}");
    };
    let length = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let mut commit = vec![100 + id, 1, u8::try_from(change.table.0).unwrap()];
    commit.push(length(change.key));
    commit.extend_from_slice(change.key);
    *commit.last_mut().unwrap() = id;
    commit.push(length(row));
    commit.extend_from_slice(row);
    commit.extend_from_slice(rest);
    commit
}

fn dumped(os: &SimulatedOs) -> (Vec<OwnedValue>, Vec<String>) {
    let dump = Dump::open_on(Arc::new(os.clone()), "/db").unwrap();
    let mut told: Vec<String> = dump.missing().iter().map(ToString::to_string).collect();
    let mut ids = Vec::new();
    dump.rows(
        "t",
        &mut |row| {
            ids.push(row[0].clone());
            Ok(())
        },
        &mut |missing| told.push(missing.to_string()),
    )
    .unwrap();
    (ids, told)
}

#[test]
fn what_was_committed_before_a_log_record_that_makes_no_sense_is_dumped() {
    let ids = |ids: &[u64]| -> Vec<OwnedValue> {
        let values = ids.iter().map(|&id| OwnedValue::UInt(id));
        values.collect()
    };
    for what in ["nothing", "a newer definition", "half a commit"] {
        let os = killed();
        let log = log_of(&os);
        let half = commit_of(&log, 3, &[7]);
        let later = commit_of(&log, 4, &[]);
        let (log, _) = log;
        match what {
            "a newer definition" => log.append(KIND_DDL, &[&[9]]).unwrap(),
            "half a commit" => log.append(KIND_COMMIT, &[&half]).unwrap(),
            _ => log.end(),
        };
        let end = log.append(KIND_COMMIT, &[&later]).unwrap();
        log.durable(end, Durability::SyncAtCommit).unwrap();
        drop(log);

        let (found, told) = dumped(&os);
        if what == "nothing" {
            assert_eq!(found, ids(&[1, 2, 4]));
            assert!(told.is_empty(), "{told:?}");
        } else {
            assert_eq!(found, ids(&[1, 2]), "{what}");
            assert_eq!(told.len(), 1, "{what}: {told:?}");
            assert!(told[0].contains("the log's record at"), "{told:?}");
        }
    }
}

#[test]
fn a_dump_has_counters_and_lockings_as_the_log_leaves_them() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let at = |auto_increment| TableOptions {
        auto_increment,
        locking: Locking::Optimistic,
        ..TableOptions::default()
    };
    for name in ["kept", "raised", "emptied"] {
        db.create_table_with(name, &ids(), &at(7)).unwrap();
    }
    db.checkpoint().unwrap();
    db.set_auto_increment("raised", 70).unwrap();
    db.set_locking("raised", Locking::Pessimistic).unwrap();
    db.truncate_table("emptied").unwrap();
    db.create_table_with("younger", &ids(), &at(8)).unwrap();

    let killed = os.crash_with(Loss::Nothing, 0);
    let dump = Dump::open_on(Arc::new(killed), "/db").unwrap();
    for (name, auto_increment, locking) in [
        ("kept", 7, Locking::Optimistic),
        ("raised", 70, Locking::Pessimistic),
        ("emptied", 1, Locking::Optimistic),
        ("younger", 8, Locking::Optimistic),
    ] {
        let options = dump.options(name).unwrap();
        assert_eq!(options.auto_increment, auto_increment, "{name}");
        assert_eq!(options.locking, locking, "{name}");
    }
}
