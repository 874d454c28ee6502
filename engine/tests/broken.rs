//! Each isolation rule that a test build can leave out: without the rule its violation shows, with it it does not.
//!
//! `cargo test -p peregrine --features broken --test broken`

use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Isolation, IsolationFault, Key,
    Options, Result, RowLock, Seek, Table, TableSchema, Transaction, Value,
};

struct World {
    db: Database,
    table: Arc<Table>,
    _dir: tempfile::TempDir,
}

/// Creates rows 1 and 2, both 0; no transaction waits for locks.
fn world(broken: Option<IsolationFault>) -> World {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        broken,
        lock_wait_timeout: Duration::ZERO,
        ..Options::default()
    };
    let db = Database::open(dir.path().join("db"), options).unwrap();
    let int = |name| {
        let signed = false;
        Column::new(name, ColumnType::Int { bytes: 8, signed })
    };
    let schema = TableSchema {
        columns: vec![int("id"), int("value")],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 1..=2u64 {
        txn.insert(&table, &[id.into(), 0u64.into()]).unwrap();
    }
    txn.commit().unwrap();
    World {
        db,
        table,
        _dir: dir,
    }
}

impl World {
    fn read(&self, txn: &mut Transaction, id: u64, lock: RowLock) -> Result<u64> {
        let key = self.table.encode_key(0, &[Value::UInt(id)])?;
        let value = txn.get_locked(&self.table, &key, lock, |row| {
            row.get(1).map(|value| value.to_owned())
        })?;
        match value.unwrap()?.as_value() {
            Value::UInt(value) => Ok(value),
            other => panic!("{other:?}"),
        }
    }

    fn write(&self, txn: &mut Transaction, id: u64, value: u64) -> Result<()> {
        let key = self.table.encode_key(0, &[Value::UInt(id)])?;
        txn.update(&self.table, &key, &[id.into(), value.into()])
    }
}

/// Returns whether a read sees writes of running transactions.
fn reads_dirty(world: &World) -> bool {
    let mut writer = world.db.begin(Isolation::ReadCommitted);
    world.write(&mut writer, 1, 7).unwrap();
    let mut reader = world.db.begin(Isolation::ReadCommitted);
    world.read(&mut reader, 1, RowLock::None).unwrap() == 7
}

/// Returns whether a write replaces a write of a running transaction.
fn writes_dirty(world: &World) -> bool {
    let mut first = world.db.begin(Isolation::ReadCommitted);
    world.write(&mut first, 1, 7).unwrap();
    let mut second = world.db.begin(Isolation::ReadCommitted);
    match world.write(&mut second, 1, 8) {
        Ok(()) => {
            first.rollback().unwrap();
            second.commit().unwrap();
            let mut reader = world.db.begin(Isolation::ReadCommitted);
            assert_eq!(world.read(&mut reader, 1, RowLock::None).unwrap(), 8);
            true
        }
        Err(Error::LockNotAvailable) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Returns whether another transaction can write a locked row.
fn locks_nothing(world: &World) -> bool {
    let mut holder = world.db.begin(Isolation::ReadCommitted);
    world.read(&mut holder, 1, RowLock::Exclusive).unwrap();
    let mut writer = world.db.begin(Isolation::ReadCommitted);
    world.write(&mut writer, 1, 7).is_ok()
}

/// Returns whether an update between a snapshot and a write is lost.
fn loses_updates(world: &World) -> bool {
    let mut reader = world.db.begin(Isolation::RepeatableRead);
    let seen = world.read(&mut reader, 1, RowLock::None).unwrap();
    let mut writer = world.db.begin(Isolation::RepeatableRead);
    world.write(&mut writer, 1, seen + 10).unwrap();
    writer.commit().unwrap();
    match world.write(&mut reader, 1, seen + 1) {
        Ok(()) => true,
        Err(Error::WriteConflict) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Returns whether a snapshot misses an earlier commit, and the transaction's writes still succeed.
fn sees_the_past(world: &World) -> bool {
    let mut first = world.db.begin(Isolation::RepeatableRead);
    world.read(&mut first, 1, RowLock::None).unwrap();
    first.commit().unwrap();
    let mut writer = world.db.begin(Isolation::RepeatableRead);
    world.write(&mut writer, 1, 5).unwrap();
    writer.commit().unwrap();
    let mut reader = world.db.begin(Isolation::RepeatableRead);
    let seen = world.read(&mut reader, 1, RowLock::None).unwrap();
    world.write(&mut reader, 1, seen + 1).unwrap();
    reader.commit().unwrap();
    seen != 5
}

/// Returns whether a row can be inserted into a range that a serializable transaction has read.
fn rows_appear(world: &World) -> bool {
    let mut reader = world.db.begin(Isolation::Serializable);
    let mut cursor = Cursor::new(&world.table, 0, CursorOptions::default());
    let mut rows = 0;
    let mut more = cursor.seek(&mut reader, &[], Seek::First).unwrap();
    while more {
        rows += 1;
        more = cursor.next(&mut reader).unwrap();
    }
    assert_eq!(rows, 2);
    let mut writer = world.db.begin(Isolation::Serializable);
    match writer.insert(&world.table, &[3u64.into(), 0u64.into()]) {
        Ok(()) => true,
        Err(Error::LockNotAvailable) => false,
        Err(error) => panic!("{error}"),
    }
}

type Shows = fn(&World) -> bool;

#[test]
fn each_rule_left_out_shows_and_the_others_hold() {
    let shows: [(IsolationFault, Shows); 6] = [
        (IsolationFault::DirtyRead, reads_dirty),
        (IsolationFault::OverwriteUncommitted, writes_dirty),
        (IsolationFault::SkipRowLock, locks_nothing),
        (IsolationFault::SkipFirstCommitterCheck, loses_updates),
        (IsolationFault::StaleSnapshot, sees_the_past),
        (IsolationFault::SkipRangeLock, rows_appear),
    ];
    for (rule, show) in shows {
        assert!(!show(&world(None)), "{rule:?} shows in a whole engine");
        assert!(show(&world(Some(rule))), "{rule:?} does not show");
    }
}
