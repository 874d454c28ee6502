//! Tables that are dropped or truncated while a checkpoint still needs their pages, and can't get images of them.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

use crate::os::simulated::{FaultOn, Loss, SimulatedOs};
use crate::sync::Moment;
use crate::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options,
    Result, Seek, TableSchema, Value,
};

/// This many rows of this length have images that are written in several pieces.
const ROWS: u32 = 1_000;
const BODY: usize = 3_000;

fn open(os: &SimulatedOs) -> Database {
    try_open(os).unwrap()
}

fn try_open(os: &SimulatedOs) -> Result<Database> {
    try_open_and_drop(os, None)
}

fn try_open_and_drop(os: &SimulatedOs, name: Option<&str>) -> Result<Database> {
    let options = Options {
        pool_bytes: 8 << 20,
        background: false,
        drop_on_open: name.map(Into::into),
        ..Options::default()
    };
    Database::open_on(Arc::new(os.clone()), "/db", options)
}

fn schema() -> TableSchema {
    let id = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    let body = ColumnType::VarBytes { max: 4_000 };
    TableSchema {
        columns: vec![Column::new("id", id), Column::new("body", body)],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

fn fill(db: &Database) {
    fill_rows(db, ROWS);
}

fn fill_rows(db: &Database, rows: u32) {
    let table = db.create_table("goes", &schema()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    // Bytes that can't be compressed.
    let mut random = SmallRng::seed_from_u64(1);
    let mut body = vec![0; BODY];
    for id in 0..rows {
        random.fill_bytes(&mut body);
        let row = [Value::UInt(id.into()), Value::from(&body[..])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
}

fn rows(db: &Database) -> Option<u32> {
    let table = db.table("goes").ok()?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    let mut rows = 0;
    let mut found = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    while found {
        rows += 1;
        found = cursor.next(&mut txn).unwrap();
    }
    Some(rows)
}

/// Pages in the data file after all dropped space has been given back.
fn pages(db: &Database) -> usize {
    db.purge().unwrap();
    for _ in 0..2 {
        db.checkpoint().unwrap();
    }
    db.registry().pool().store().pages().count()
}

/// Each write fails in turn: the table is unchanged, or has gone with all its pages.
fn with_failing_writes(gone: Option<u32>, change: &dyn Fn(&Database) -> Result<()>) {
    let mut refused = 0;
    for write in 0.. {
        let os = SimulatedOs::new(write);
        let db = open(&os);
        fill(&db);
        db.drop_table("goes").unwrap();
        let few = pages(&db);
        fill(&db);
        // A checkpoint has begun, and has written nothing yet.
        let pool = db.registry().pool().clone();
        let epoch = pool.store().begin_checkpoint();
        pool.begin_checkpoint(epoch);
        os.fail_once(FaultOn::Write, write, ErrorKind::Other);
        let changed = change(&db);
        let unhurt = os.struck() == 0;
        os.heal();
        pool.store().abandon_checkpoint(epoch);
        let db = match &changed {
            // The log could not be written.
            Err(Error::Stopped(_)) => {
                drop((pool, db));
                open(&os.crash(write))
            }
            Err(error) => {
                refused += 1;
                assert!(matches!(error, Error::Io { .. }), "write {write}: {error}");
                assert_eq!(rows(&db), Some(ROWS), "write {write}");
                db
            }
            Ok(()) => {
                assert_eq!(rows(&db), gone, "write {write}");
                db
            }
        };
        if db.table("goes").is_ok() {
            db.drop_table("goes").unwrap();
        }
        assert!(pages(&db) <= few, "write {write}: pages of nothing");
        if unhurt {
            break;
        }
    }
    assert!(refused > 0, "no image was needed");
}

#[test]
fn a_table_whose_pages_can_not_be_saved_is_dropped_with_all_of_them_or_stays() {
    with_failing_writes(None, &|db| db.drop_table("goes"));
}

#[test]
fn a_table_whose_pages_can_not_be_saved_is_truncated_with_all_of_them_or_stays() {
    with_failing_writes(Some(0), &|db| db.truncate_table("goes"));
}

/// A table whose tree has inner nodes below the root: its keys differ only at their ends, so that separators are long.
fn fill_deep(db: &Database) {
    let key = ColumnType::VarBytes { max: 1_000 };
    let body = ColumnType::VarBytes { max: 4_000 };
    let schema = TableSchema {
        columns: vec![Column::new("id", key), Column::new("body", body)],
        ..schema()
    };
    let table = db.create_table("goes", &schema).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..ROWS {
        let mut key = vec![b'a'; 700];
        key[0] += (id / 50) as u8;
        key.extend_from_slice(&id.to_be_bytes());
        let row = [Value::from(&key[..]), Value::from(&[1u8; BODY][..])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
}

/// The disk of a process that was killed after it had dropped a table of three levels, and the number of pages in use
/// then.
fn dropped_deep() -> (SimulatedOs, usize) {
    let os = SimulatedOs::new(5);
    let db = open(&os);
    fill_deep(&db);
    db.drop_table("goes").unwrap();
    let few = pages(&db);
    fill_deep(&db);
    db.checkpoint().unwrap();
    db.drop_table("goes").unwrap();
    (os, few)
}

#[test]
fn a_read_that_fails_once_costs_no_pages_of_a_dropped_table() {
    let (os, few) = dropped_deep();
    for read in 0.. {
        let disk = os.crash_with(Loss::Nothing, 0);
        disk.fail_once(FaultOn::Read, read, ErrorKind::Other);
        let opened = try_open(&disk);
        let unhurt = disk.struck() == 0;
        disk.heal();
        let db = opened.unwrap_or_else(|_| open(&disk));
        assert!(pages(&db) <= few, "read {read}: pages of nothing");
        if unhurt {
            break;
        }
    }
}

/// Lost space is a smaller loss than the database.
#[test]
fn a_dropped_table_that_can_never_be_read_keeps_no_database_closed() {
    let (os, _) = dropped_deep();
    let mut passed = 0;
    for read in 0.. {
        let disk = os.crash_with(Loss::Nothing, 0);
        disk.fail(FaultOn::Read, read, ErrorKind::Other);
        let opened = try_open(&disk);
        if disk.struck() == 0 {
            break;
        }
        passed += u32::from(opened.is_ok());
    }
    assert!(passed > 0, "no inner node was read");
}

/// The log or the opening drops the table, or truncates it.
///
/// Before, it has a record to be purged, and a change in the log.
#[test]
fn a_dropped_table_whose_root_can_never_be_read_keeps_no_database_closed() {
    if crate::knobs::SHAKEN {
        // If little of the log is read at a time, the log's end comes after the root.
        return;
    }
    for (on_open, stays) in [(None, false), (Some("goes"), false), (None, true)] {
        let os = SimulatedOs::new(6);
        let db = open(&os);
        fill_rows(&db, 3);
        let table = db.table("goes").unwrap();
        let key = table.encode_key(0, &[Value::UInt(1)]).unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.delete(&table, &key).unwrap();
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        let row = [Value::UInt(7), Value::from(&[1u8; BODY][..])];
        txn.insert(&table, &row).unwrap();
        txn.commit().unwrap();
        match on_open {
            None if stays => db.truncate_table("goes").unwrap(),
            None => db.drop_table("goes").unwrap(),
            Some(_) => {}
        }
        let mut passed = 0;
        for read in 0.. {
            let disk = os.crash_with(Loss::Nothing, 0);
            disk.fail(FaultOn::Read, read, ErrorKind::Other);
            let opened = try_open_and_drop(&disk, on_open);
            if disk.struck() == 0 {
                break;
            }
            disk.heal();
            if let Ok(db) = opened {
                assert_eq!(rows(&db), stays.then_some(0));
                passed += 1;
            }
        }
        assert!(passed > 0, "{on_open:?} {stays}");
    }
}

/// It has more roots than the pool has frames, so that they must be read again.
#[test]
fn a_table_that_can_not_be_opened_is_not_created() {
    let columns = ["id", "other"].map(|name| {
        let int = ColumnType::Int {
            bytes: 4,
            signed: false,
        };
        Column::new(name, int)
    });
    let schema = TableSchema {
        columns: columns.into(),
        indexes: (0..100)
            .map(|n| Index::new(format!("i{n}"), &[1]))
            .collect(),
        ..schema()
    };
    let options = || Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let mut refused = 0;
    for read in 0.. {
        let os = SimulatedOs::new(read);
        let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
        db.create_table("goes", &schema).unwrap();
        db.drop_table("goes").unwrap();
        let few = pages(&db);
        os.fail_once(FaultOn::Read, read, ErrorKind::Other);
        let created = db.create_table("goes", &schema).map(drop);
        let unhurt = os.struck() == 0;
        os.heal();
        assert_eq!(created.is_ok(), db.table("goes").is_ok(), "read {read}");
        assert_eq!(created.is_ok(), db.table_names().len() == 1, "read {read}");
        if let Err(error) = &created {
            refused += 1;
            assert!(matches!(error, Error::Io { .. }), "read {read}: {error}");
            assert!(pages(&db) <= few, "read {read}: pages of nothing");
            db.create_table("goes", &schema).unwrap();
        }
        if unhurt {
            break;
        }
    }
    assert!(refused > 0, "no read was needed");
}

/// All pages in memory are newer than on disk, so that each new page needs a write; the catalog's leaf gets full at one
/// of the tables.
#[test]
fn a_table_for_which_the_catalog_has_no_room_is_not_created_and_stops_nothing() {
    refuse_tables(&|_, _| ());
}

/// The same, but the catalog's clean pages are evicted before the old definition is restored, and can't be read.
#[test]
fn a_definition_of_which_nothing_was_written_is_not_put_back() {
    let met = Arc::new(AtomicU32::new(0));
    refuse_tables(&|db, os| {
        let (pool, disk, met) = (db.registry().pool().clone(), os.clone(), met.clone());
        db.transactions()
            .moments
            .at(Moment::DefinitionRefused, move || {
                // The dirty pages can't be written.
                let _ = pool.buffer_pool().evict_some(64);
                disk.fail(FaultOn::Read, 0, ErrorKind::Other);
                met.fetch_add(1, Ordering::Relaxed);
            });
    });
    assert!(met.load(Ordering::Relaxed) > 0, "the catalog had room");
}

/// Makes writes fail, from each one on that the creation of a table needs, after `prepare`.
fn refuse_tables(prepare: &dyn Fn(&Database, &SimulatedOs)) {
    let options = || Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let long = TableSchema {
        user: vec![1; 2_500],
        ..schema()
    };
    let mut refused = 0;
    for before in 4..7 {
        for write in 0.. {
            let os = SimulatedOs::new(write);
            let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
            for n in 0..before {
                db.create_table(&format!("t{n}"), &long).unwrap();
            }
            fill_rows(&db, ROWS / 2);
            prepare(&db, &os);
            os.fail(FaultOn::Write, write, ErrorKind::Other);
            let created = db.create_table("new", &long).map(drop);
            let unhurt = created.is_ok() && os.struck() == 0;
            os.heal();
            let case = format!("{before} tables, write {write}");
            match created {
                Ok(()) => {}
                // The log could not be written.
                Err(Error::Stopped(reason)) => {
                    assert!(!reason.contains("definition"), "{case}: {reason}");
                }
                Err(error) => {
                    refused += 1;
                    assert!(db.table("new").is_err(), "{case}: {error}");
                    db.create_table("new", &long).unwrap();
                    let os = os.crash(write);
                    drop(db);
                    let db = open(&os);
                    assert_eq!(db.table_names().len(), before + 2, "{case}");
                }
            }
            if unhurt {
                break;
            }
        }
    }
    assert!(refused > 0, "no write was needed");
}

/// The disk fills up after the catalog has the definition; to restore the catalog would need pages that can't be read.
#[test]
fn a_definition_that_the_catalog_has_finds_room_in_the_log() {
    let os = SimulatedOs::new(8);
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        log_segment_bytes: Some(16 << 10),
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    // Longer than a segment.
    let long = TableSchema {
        user: vec![1; 20_000],
        ..schema()
    };
    db.create_table("old", &long).unwrap();
    let (pool, disk) = (db.registry().pool().clone(), os.clone());
    let moments = &db.transactions().moments;
    moments.at(Moment::DefinitionWritten, move || {
        while pool.buffer_pool().evict_some(64).unwrap() > 0 {}
        disk.set_capacity(Some(disk.used()));
        disk.fail(FaultOn::Read, 0, ErrorKind::Other);
    });
    let created = db.create_table("new", &long).map(drop);
    assert!(moments.passed());
    os.heal();
    os.set_capacity(None);
    created.unwrap();
    let os = os.crash_with(Loss::Nothing, 0);
    drop(db);
    assert_eq!(open(&os).table_names(), ["new", "old"]);
}

#[test]
fn a_name_for_which_the_catalog_has_no_room_is_refused() {
    let os = SimulatedOs::new(7);
    let db = open(&os);
    fill(&db);
    let renamed = db.rename_table("goes", &"n".repeat(256 << 20));
    assert!(matches!(renamed, Err(Error::TooLarge(_))), "{renamed:?}");
    db.rename_table("goes", "gone").unwrap();
    db.rename_table("gone", "goes").unwrap();
    let os = os.crash(1);
    drop(db);
    assert_eq!(rows(&open(&os)), Some(ROWS));
}
