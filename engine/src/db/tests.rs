//! Checkpoints that programs request, and openings, with another event between their steps.

mod damage;
mod long_transactions;
mod standing;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{KIND_COUNTER, KIND_DDL};
use crate::check::{check_on, Report};
use crate::ids::{TableId, TreeId};
use crate::os::simulated::{Loss, SimulatedOs};
use crate::os::Os;
use crate::recovery::{QuarantineFiles, QuarantinedTable};
use crate::settings::Locking;
use crate::store::{Part, PartKind};
use crate::sync::Moment;
use crate::tree::RecordEdit;
use crate::txn::KIND_COMMIT;
use crate::{
    knobs, Column, ColumnType, Cursor, CursorOptions, Database, Durability, Error, Isolation, Key,
    Options, Result, SchemaNames, Seek, TableSchema, Transaction, Value, Xid,
};

fn open(os: &SimulatedOs) -> Arc<Database> {
    Arc::new(try_open(os).unwrap())
}

fn try_open(os: &SimulatedOs) -> Result<Database> {
    let options = Options {
        background: false,
        ..Options::default()
    };
    Database::open_on(Arc::new(os.clone()), "/db", options)
}

fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    TableSchema {
        columns: vec![Column::new("id", int)],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

fn create(db: &Database) {
    db.create_table("t", &schema()).unwrap();
}

fn insert(db: &Database, ids: Range<u64>) -> Transaction {
    let table = db.table("t").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in ids {
        txn.insert(&table, &[Value::UInt(id)]).unwrap();
    }
    txn
}

fn count(db: &Database) -> u64 {
    let table = db.table("t").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    let mut rows = 0;
    let mut found = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    while found {
        rows += 1;
        found = cursor.next(&mut txn).unwrap();
    }
    rows
}

/// Two threads request a checkpoint at once.
///
/// Between the two, a transaction that was running when the first began ends, its undo is freed, and another
/// transaction begins. Each checkpoint must store the transactions that match its own pages.
#[test]
fn of_two_checkpoints_at_once_each_has_its_own_pages() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    create(&db);
    insert(&db, 0..10).commit().unwrap();
    let mut ends = insert(&db, 10..20);
    let (goes_on, left) = channel();
    let beside = db.clone();
    db.transactions()
        .moments
        .at(Moment::CheckpointBegun, move || {
            ends.commit().unwrap();
            beside.purge().unwrap();
            let begins = insert(&beside, 20..30);
            let waits = beside.checkpointing.try_lock().is_none();
            let second = std::thread::spawn(move || beside.checkpoint());
            // The second checkpoint comes now, unless it has to wait.
            while !waits && !second.is_finished() {
                std::thread::yield_now();
            }
            goes_on.send((begins, second)).unwrap();
        });
    db.checkpoint().unwrap();
    assert!(db.transactions().moments.passed());
    assert_eq!(count(&open(&os.crash(1))), 20, "after the first");
    let (mut begun, second) = left.recv().unwrap();
    second.join().unwrap().unwrap();
    assert_eq!(count(&open(&os.crash(2))), 20, "after both");
    begun.commit().unwrap();
    assert_eq!(count(&open(&os.crash(3))), 30);
}

/// Several threads, without a chosen moment.
#[test]
fn checkpoints_of_several_threads_lose_nothing_of_a_writer() {
    let os = SimulatedOs::new(2);
    let db = open(&os);
    create(&db);
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !written.load(Ordering::Relaxed) {
                    db.checkpoint().unwrap();
                }
            });
        }
        for id in 0..300 {
            insert(&db, id..id + 1).commit().unwrap();
        }
        written.store(true, Ordering::Relaxed);
    });
    let found = open(&os.crash(1));
    assert_eq!(count(&found), 300);
    assert_eq!(found.table("t").unwrap().estimate_rows(), 300);
}

/// Gives up the disk space that a data file has behind its last checkpoint.
fn cut_behind_checkpoint(os: &SimulatedOs, parts: &[Part]) {
    let end = parts.iter().map(|part| part.offset + part.len).max();
    os.damage(Path::new("/db/data"), |data| {
        data.truncate(end.unwrap() as usize);
    });
}

/// The log's last segment is full, except for the space that is left behind each record.
#[test]
fn a_database_opens_and_closes_on_a_full_disk_however_often() {
    let os = SimulatedOs::new(13);
    let open = || {
        let options = Options {
            background: false,
            log_segment_bytes: Some(16 << 10),
            ..Options::default()
        };
        Database::open_on(Arc::new(os.clone()), "/db", options)
    };
    let db = open().unwrap();
    create(&db);
    let log = &db.shared.log;
    let mut rows = 0;
    while log.segment_bytes() - log.end().0 % log.segment_bytes() > 500 {
        insert(&db, rows..rows + 1).commit().unwrap();
        rows += 1;
    }
    db.checkpoint().unwrap();
    log.give_spares_back().unwrap();
    db.close().unwrap();
    for n in 0..20 {
        // Too little for another segment.
        os.set_capacity(Some(os.used() + (12 << 10)));
        let db = open().unwrap_or_else(|error| panic!("opening {n}: {error}"));
        assert_eq!(count(&db), rows, "opening {n}");
        db.close().unwrap();
    }
    let db = open().unwrap();
    os.set_capacity(None);
    insert(&db, rows..rows + 1).commit().unwrap();
    let after = os.crash_with(Loss::Everything, 0);
    assert_eq!(count(&try_open(&after).unwrap()), rows + 1);
}

/// The decision comes before there is room: only the log has it, like changes before the crash.
#[test]
fn a_database_without_room_for_a_checkpoint_opens() {
    const ROWS: u64 = 10_000;
    let os = SimulatedOs::new(13);
    let db = open(&os);
    create(&db);
    insert(&db, 0..ROWS).commit().unwrap();
    let xid = Xid::new(1, b"global", b"branch").unwrap();
    insert(&db, ROWS..ROWS + 1).prepare(&xid).unwrap();
    let parts = db.registry().pool().store().parts();
    let full = os.crash_with(Loss::Nothing, 0);
    cut_behind_checkpoint(&full, &parts);
    full.set_capacity(Some(0));
    let db = open(&full);
    let refused = db.checkpoint();
    // With drawn knobs, the pages may have got their space before.
    let is_refused = matches!(refused, Err(Error::NoSpace { .. }));
    assert!(
        is_refused || knobs::SHAKEN && refused.is_ok(),
        "{refused:?}"
    );
    assert_eq!(count(&db), ROWS);
    db.commit_prepared(&xid).unwrap();
    let again = full.crash_with(Loss::Nothing, 0);
    assert_eq!(count(&open(&again)), ROWS + 1);
    full.set_capacity(None);
    db.checkpoint().unwrap();
    let after = full.crash_with(Loss::Everything, 0);
    let db = open(&after);
    assert_eq!(count(&db), ROWS + 1);
    assert!(db.prepared().is_empty());
}

/// The disk had given the space to the killed process: if the engine gives it up, other files may take it.
#[test]
fn the_room_that_was_kept_for_a_checkpoint_outlives_a_crash() {
    const ROWS: u64 = 10_000;
    let os = SimulatedOs::new(14);
    let db = open(&os);
    create(&db);
    insert(&db, 0..ROWS).commit().unwrap();
    assert!(db.registry().pool().keep_room(false).unwrap().is_none());
    let full = os.crash_with(Loss::Nothing, 0);
    full.set_capacity(Some(0));
    let db = open(&full);
    assert_eq!(count(&db), ROWS);
    let stats = db.registry().pool().store().stats();
    assert_eq!(stats.checkpoints, 1, "the opening's own found no room");
    let after = full.crash_with(Loss::Everything, 0);
    assert_eq!(count(&open(&after)), ROWS);
}

/// The log does not have the drop, and has another table of that name later.
#[test]
fn tables_that_end_with_the_process_go_where_the_log_has_no_room_to_say_so() {
    let try_open = |os: &SimulatedOs| {
        let options = Options {
            background: false,
            log_segment_bytes: Some(16 << 10),
            drop_on_open: Some("ends".into()),
            ..Options::default()
        };
        Database::open_on(Arc::new(os.clone()), "/db", options)
    };
    let os = SimulatedOs::new(16);
    let db = try_open(&os).unwrap();
    create(&db);
    db.create_table("ends", &schema()).unwrap();
    let parts = db.registry().pool().store().parts();
    os.set_capacity(Some(os.used()));
    let mut rows = 0;
    let refused = loop {
        match insert(&db, rows..rows + 1).commit() {
            Ok(()) => rows += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    let full = os.crash_with(Loss::Nothing, 0);
    drop(db);
    cut_behind_checkpoint(&full, &parts);
    full.set_capacity(Some(0));

    let db = try_open(&full).unwrap();
    assert_eq!(db.table_names(), ["t"]);
    assert_eq!(count(&db), rows);
    full.set_capacity(None);
    db.create_table("ends", &schema()).unwrap();
    let full = full.crash_with(Loss::Nothing, 0);
    drop(db);
    let db = try_open(&full).unwrap();
    assert_eq!(db.table_names(), ["t"]);
    assert_eq!(count(&db), rows);
    let (mut damaged, mut defined) = (BTreeMap::new(), Vec::new());
    let load = db.tables.catalog.load(&mut damaged, &mut |definition| {
        defined.push(definition.name);
        Ok(())
    });
    load.unwrap();
    assert_eq!(defined, ["t"]);
}

/// The log has them at their old place: an opening need not log them again.
#[test]
fn prepared_transactions_are_there_where_the_log_has_no_room_for_a_copy() {
    let try_open = |os: &SimulatedOs| {
        let options = Options {
            background: false,
            log_segment_bytes: Some(16 << 10),
            ..Options::default()
        };
        Database::open_on(Arc::new(os.clone()), "/db", options)
    };
    for commits in [true, false] {
        let os = SimulatedOs::new(20);
        let db = try_open(&os).unwrap();
        create(&db);
        let parts = db.registry().pool().store().parts();
        let xid = Xid::new(1, b"global", b"branch").unwrap();
        insert(&db, 1000..1003).prepare(&xid).unwrap();
        os.set_capacity(Some(os.used()));
        let mut rows = 0;
        while insert(&db, rows..rows + 1).commit().is_ok() {
            rows += 1;
        }
        let full = os.crash_with(Loss::Nothing, 0);
        drop(db);
        cut_behind_checkpoint(&full, &parts);
        full.set_capacity(Some(0));

        let db = try_open(&full).unwrap();
        assert_eq!(db.prepared().len(), 1);
        assert_eq!(count(&db), rows);
        full.set_capacity(None);
        // Each checkpoint keeps the part of the log that the transaction needs.
        for id in 2000..2010 {
            insert(&db, id..id + 1).commit().unwrap();
            db.checkpoint().unwrap();
        }
        let again = full.crash_with(Loss::Nothing, 0);
        match commits {
            true => db.commit_prepared(&xid).unwrap(),
            false => db.rollback_prepared(&xid).unwrap(),
        }
        let rows = rows + 10;
        let decided = rows + if commits { 3 } else { 0 };
        assert_eq!(count(&db), decided);
        let after = full.crash_with(Loss::Nothing, 0);
        let found = try_open(&after).unwrap();
        assert!(found.prepared().is_empty());
        assert_eq!(count(&found), decided);
        // A transaction without a decision before a crash can get one after it.
        let found = try_open(&again).unwrap();
        assert_eq!((found.prepared().len(), count(&found)), (1, rows));
        found.commit_prepared(&xid).unwrap();
        assert_eq!(count(&found), rows + 3);
    }
}

/// The data and log of the old database are gone, but not the files of its quarantined tables.
#[test]
fn a_database_in_the_place_of_another_has_no_quarantined_tables() {
    let os = SimulatedOs::new(12);
    let dir = Path::new("/db");
    os.create_dir(dir).unwrap();
    let files = QuarantineFiles::new(Arc::new(os.clone()), dir, 7);
    files
        .update(TableId(1), |_| QuarantinedTable::default())
        .unwrap();
    let db = open(&os);
    create(&db);
    assert_eq!(db.table("t").unwrap().id(), TableId(1));
    insert(&db, 0..3).commit().unwrap();
    drop(db);
    assert_eq!(count(&open(&os)), 3);
}

#[test]
fn numbers_of_tables_and_trees_are_not_given_again_when_none_is_left() {
    let os = SimulatedOs::new(10);
    let db = open(&os);
    db.tables.numbers.lock().tree = TreeId(u32::MAX - 1);
    create(&db);
    insert(&db, 0..3).commit().unwrap();
    let refused = |db: &Database| {
        let created = db.create_table("other", &schema()).map(drop);
        assert!(matches!(created, Err(Error::TooLarge(_))), "{created:?}");
    };
    refused(&db);
    let emptied = db.truncate_table("t");
    assert!(matches!(emptied, Err(Error::TooLarge(_))), "{emptied:?}");
    let os = os.crash_with(Loss::Nothing, 0);
    drop(db);
    let db = open(&os);
    assert_eq!(count(&db), 3);
    refused(&db);
    let mut numbers = db.tables.numbers.lock();
    numbers.tree = TreeId(100);
    numbers.table = TableId(u32::MAX);
    drop(numbers);
    refused(&db);
}

/// A server does this whenever it opens a table.
///
/// Others may be changing definitions, or a checkpoint may begin.
#[test]
fn what_a_table_is_said_to_be_already_waits_for_no_change_of_another() {
    let os = SimulatedOs::new(12);
    let db = open(&os);
    create(&db);
    let names = SchemaNames {
        columns: vec!["id".into()],
        indexes: vec![],
    };
    let (tell, told) = channel();
    let others = db.clone();
    let changing = db.tables.numbers.lock();
    let opens = std::thread::spawn(move || {
        let names = others.set_names("t", &names);
        let user = names.and_then(|()| others.set_user("t", &[]));
        let all = user.and_then(|()| others.set_locking("t", Locking::Pessimistic));
        tell.send(all).unwrap_or_default();
    });
    let opened = told.recv_timeout(Duration::from_secs(5));
    drop(changing);
    opens.join().unwrap();
    assert!(matches!(opened, Ok(Ok(()))), "{opened:?}");
}
