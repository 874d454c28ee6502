//! More tables than the buffer pool has frames.

use std::path::Path;
use std::sync::Arc;

use peregrine::{Database, Isolation, Options, Table, Value};

use crate::tables::schemas::{grouped, options};

/// Each has two trees; the pool has 64 frames.
const TABLES: u32 = 200;

fn name(n: u32) -> String {
    format!("t{n}")
}

fn open(dir: &Path) -> Database {
    let options = Options {
        pool_bytes: 1 << 20,
        ..options()
    };
    Database::open(dir, options).unwrap()
}

fn group(table: &Table, db: &Database, id: u32) -> Option<Value<'static>> {
    let key = table.encode_key(0, &[Value::UInt(id.into())]).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.get(table, &key, |row| match row.get(1).unwrap() {
        Value::UInt(group) => Value::UInt(group),
        other => panic!("{other:?}"),
    })
    .unwrap()
}

fn write(table: &Table, db: &Database, id: u32, group: u32) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let values: [Value<'_>; 3] = [
        Value::UInt(id.into()),
        Value::UInt(group.into()),
        Value::Bytes(b"body"),
    ];
    txn.insert(table, &values).unwrap();
    txn.commit().unwrap();
}

/// All tables stay open at the same time; they are written, read, checkpointed, recovered and dropped.
#[test]
fn more_open_tables_than_frames_are_read_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let tables: Vec<Arc<Table>> = (0..TABLES)
        .map(|n| db.create_table(&name(n), &grouped()).unwrap())
        .collect();
    for round in 0..3 {
        for (n, table) in (0..TABLES).zip(&tables) {
            write(table, &db, round, n);
        }
        for (n, table) in (0..TABLES).zip(&tables) {
            assert_eq!(group(table, &db, round), Some(Value::UInt(n.into())));
        }
        db.checkpoint().unwrap();
    }
    // Recovery replays changes that only the log has into all tables.
    for (n, table) in (0..TABLES).zip(&tables) {
        write(table, &db, 3, n);
    }
    drop(tables);
    drop(db);

    let db = open(dir.path());
    for n in 0..TABLES {
        let table = db.table(&name(n)).unwrap();
        assert_eq!(table.estimate_rows(), 4);
        for id in 0..4 {
            assert_eq!(group(&table, &db, id), Some(Value::UInt(n.into())));
        }
    }
    for n in 0..TABLES {
        db.drop_table(&name(n)).unwrap();
    }
    assert!(db.table_names().is_empty());
}
