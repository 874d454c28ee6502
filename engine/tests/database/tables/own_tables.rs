//! Tables that a transaction drops after it has used them, and tables filled while they are created.

use std::sync::Arc;

use peregrine::check::Report;
use peregrine::dump::Dump;
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, Options, RowLock, Seek, Table, TableOptions,
    Transaction, Value, Xid,
};

use crate::tables::schemas::{grouped, noise};

fn options() -> Options {
    Options {
        pool_bytes: 4 << 20,
        background: false,
        ..Options::default()
    }
}

fn of_one_session() -> TableOptions {
    TableOptions {
        of_one_session: true,
        ..TableOptions::default()
    }
}

fn open(os: &SimulatedOs) -> Database {
    Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap()
}

fn insert(txn: &mut Transaction, table: &Table, ids: std::ops::Range<u32>, length: usize) {
    for id in ids {
        let body = noise(id, length);
        let row = [Value::from(id), Value::from(1u32), Value::from(&body[..])];
        txn.insert(table, &row).unwrap();
    }
}

fn rows_in(txn: &mut Transaction, table: &Arc<Table>) -> u32 {
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut rows = 0;
    let mut found = cursor.seek(txn, &[], Seek::First).unwrap();
    while found {
        rows += 1;
        found = cursor.next(txn).unwrap();
    }
    rows
}

fn rows(db: &Database, name: &str) -> u32 {
    let table = db.table(name).unwrap();
    let mut report = Report::default();
    db.check_table(name, &|| false, &mut report).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    rows_in(&mut db.begin(Isolation::RepeatableRead), &table)
}

/// A short transaction has all its changes in memory when it drops the table; a long one has some in the log.
const LENGTHS: [u32; 2] = [20, 2_000];

#[test]
fn a_transaction_drops_a_table_that_it_has_used_and_goes_on() {
    for length in LENGTHS {
        let db = open(&SimulatedOs::new(1));
        let kept = db.create_table("kept", &grouped()).unwrap();
        let gone = db.create_table("gone", &grouped()).unwrap();
        let mut txn = db.begin(Isolation::RepeatableRead);
        insert(&mut txn, &kept, 0..10, 100);
        let savepoint = txn.savepoint();
        insert(&mut txn, &gone, 0..length, 300);
        insert(&mut txn, &kept, 10..20, 100);
        db.drop_table_used_by(&mut txn, "gone").unwrap();
        assert!(matches!(db.table("gone"), Err(Error::NotFound { .. })));
        insert(&mut txn, &kept, 20..30, 100);
        txn.rollback_to(&savepoint).unwrap();
        insert(&mut txn, &kept, 30..35, 100);
        txn.commit().unwrap();
        assert_eq!(rows(&db, "kept"), 15);
    }
}

#[test]
fn a_table_that_another_transaction_uses_is_not_dropped() {
    let db = open(&SimulatedOs::new(1));
    let table = db.create_table("t", &grouped()).unwrap();
    let mut other = db.begin(Isolation::ReadCommitted);
    insert(&mut other, &table, 0..1, 100);
    let mut txn = db.begin(Isolation::ReadCommitted);
    insert(&mut txn, &table, 1..2, 100);
    let refused = db.drop_table_used_by(&mut txn, "t");
    assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
    txn.commit().unwrap();
    other.commit().unwrap();
    assert_eq!(rows(&db, "t"), 2);
    db.drop_table_used_by(&mut txn, "t").unwrap();
}

#[test]
fn replay_passes_over_changes_of_a_table_that_their_transaction_dropped() {
    for length in LENGTHS {
        for checkpoint_at in 0..4 {
            let os = SimulatedOs::new(1);
            let db = open(&os);
            let kept = db.create_table("kept", &grouped()).unwrap();
            let gone = db.create_table("gone", &grouped()).unwrap();
            let checkpoint = |now| {
                if now == checkpoint_at {
                    db.checkpoint().unwrap();
                }
            };
            let mut txn = db.begin(Isolation::ReadCommitted);
            insert(&mut txn, &kept, 0..10, 100);
            insert(&mut txn, &gone, 0..length, 300);
            checkpoint(0);
            db.drop_table_used_by(&mut txn, "gone").unwrap();
            checkpoint(1);
            insert(&mut txn, &kept, 10..20, 100);
            txn.commit().unwrap();
            checkpoint(2);
            let db = open(&os.crash(7));
            assert_eq!(rows(&db, "kept"), 20, "checkpoint {checkpoint_at}");
            assert!(matches!(db.table("gone"), Err(Error::NotFound { .. })));
        }
    }
}

#[test]
fn a_dump_misses_nothing_of_a_table_that_its_transaction_dropped() {
    for length in LENGTHS {
        for late in [false, true] {
            let os = SimulatedOs::new(1);
            let db = open(&os);
            let kept = db.create_table("kept", &grouped()).unwrap();
            let gone = db.create_table("gone", &grouped()).unwrap();
            let mut txn = db.begin(Isolation::ReadCommitted);
            insert(&mut txn, &kept, 0..10, 100);
            insert(&mut txn, &gone, 0..length, 300);
            db.drop_table_used_by(&mut txn, "gone").unwrap();
            if !late {
                // Recovery reads the log from before the drop, and the catalog no longer has the table.
                db.checkpoint().unwrap();
            }
            insert(&mut txn, &kept, 10..20, 100);
            txn.commit().unwrap();

            let dump = Dump::open_on(Arc::new(os.crash(7)), "/db").unwrap();
            assert!(dump.missing().is_empty(), "{:?}", dump.missing());
            assert_eq!(dump.table_names().collect::<Vec<_>>(), ["kept"]);
            let mut missing = Vec::new();
            let rows = dump.rows("kept", &mut |_| Ok(()), &mut |part| missing.push(part));
            assert_eq!(rows.unwrap(), 20);
            assert!(missing.is_empty(), "{missing:?}");
        }
    }
}

#[test]
fn the_rows_of_a_table_filled_while_it_is_made_stay_at_a_rollback() {
    let db = open(&SimulatedOs::new(1));
    let kept = db.create_table("kept", &grouped()).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    txn.take_snapshot();
    insert(&mut txn, &kept, 0..10, 100);
    let savepoint = txn.savepoint();
    let filled = db
        .create_table_with("own", &grouped(), &of_one_session())
        .unwrap();
    txn.begin_fill(&filled).unwrap();
    insert(&mut txn, &filled, 0..500, 100);
    insert(&mut txn, &filled, 500..510, 3_900);
    let twice = txn.insert(&filled, &[3u32.into(), 1u32.into(), Value::from(&b"x"[..])]);
    assert!(
        matches!(twice, Err(Error::Duplicate { index: 0 })),
        "{twice:?}"
    );
    txn.end_fill();
    assert_eq!(rows_in(&mut txn, &filled), 510);
    insert(&mut txn, &filled, 510..520, 100);
    let key = filled.encode_key(0, &[3u32.into()]).unwrap();
    txn.delete(&filled, &key).unwrap();
    assert_eq!(rows_in(&mut txn, &filled), 519);
    txn.rollback_to(&savepoint).unwrap();
    assert_eq!(rows_in(&mut txn, &filled), 510);
    txn.rollback().unwrap();
    assert_eq!(rows(&db, "own"), 510);
    assert_eq!(rows(&db, "kept"), 0);
    assert!(matches!(txn.begin_fill(&kept), Err(Error::Invalid(_))));
}

/// The transaction has written only rows of a table that it fills, which have no versions, so it has no transaction
/// number.
///
/// It has a locked row, and a snapshot.
#[test]
fn a_commit_that_fails_gives_back_the_locks_of_a_transaction_without_a_number() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let kept = db.create_table("kept", &grouped()).unwrap();
    let mut other = db.begin(Isolation::ReadCommitted);
    insert(&mut other, &kept, 0..1, 100);
    other.commit().unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    let filled = db
        .create_table_with("own", &grouped(), &of_one_session())
        .unwrap();
    let key = kept.encode_key(0, &[0u32.into()]).unwrap();
    txn.get_locked(&kept, &key, RowLock::Exclusive, |_| ())
        .unwrap();
    txn.take_snapshot();
    txn.begin_fill(&filled).unwrap();
    let first = filled.reserve_auto_increment(1, 1, 1, 100).unwrap() as u32;
    insert(&mut txn, &filled, first..first + 1, 100);
    txn.end_fill();
    assert_eq!((txn.id(), db.status().locked_rows), (None, 1));

    // The log accepts no more records, so it does not get the counter.
    os.fail(FaultOn::Sync, 0, std::io::ErrorKind::Other);
    insert(&mut other, &kept, 1..2, 100);
    other.commit().unwrap_err();
    let refused = txn.commit();
    assert!(matches!(refused, Err(Error::Stopped(_))), "{refused:?}");
    assert_eq!(db.status().locked_rows, 0);
    let left = db.inspect().transactions;
    assert!(left.is_empty(), "{left:?}");
}

/// The log has "unchanged" for a value that an UPDATE keeps, but recovery never had the earlier row.
#[test]
fn a_long_value_of_a_filled_table_keeps_no_database_closed() {
    let xid = Xid::new(1, b"prepared", b"").unwrap();
    for end in ["committed", "dropped", "prepared"] {
        let os = SimulatedOs::new(1);
        let db = open(&os);
        let kept = db.create_table("kept", &grouped()).unwrap();
        db.checkpoint().unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        let filled = db
            .create_table_with("own", &grouped(), &of_one_session())
            .unwrap();
        txn.begin_fill(&filled).unwrap();
        insert(&mut txn, &filled, 0..1, 3_900);
        txn.end_fill();
        insert(&mut txn, &kept, 0..1, 100);
        let key = filled.encode_key(0, &[0u32.into()]).unwrap();
        let row = [Value::from(0u32), Value::from(2u32), Value::OutOfRow(3_900)];
        txn.update(&filled, &key, &row).unwrap();
        match end {
            "prepared" => txn.prepare(&xid).unwrap(),
            _ => txn.commit().unwrap(),
        }
        if end == "dropped" {
            db.drop_table("own").unwrap();
        }
        let db = open(&os.crash(7));
        if end == "prepared" {
            db.commit_prepared(&xid).unwrap();
        }
        assert_eq!(rows(&db, "kept"), 1, "{end}");
        if let Ok(filled) = db.table("own") {
            let mut txn = db.begin(Isolation::ReadCommitted);
            assert_eq!(rows_in(&mut txn, &filled), 0, "{end}");
        }
    }
}

/// The log also has no undone changes of the table, though it has parts of the transaction.
#[test]
fn the_log_has_no_rows_of_a_table_of_one_session() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let kept = db.create_table("kept", &grouped()).unwrap();
    let table = db
        .create_table_with("own", &grouped(), &of_one_session())
        .unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    insert(&mut txn, &table, 0..10, 300);
    insert(&mut txn, &kept, 0..10, 300);
    let savepoint = txn.savepoint();
    insert(&mut txn, &kept, 10..2_000, 300);
    let key = table.encode_key(0, &[3u32.into()]).unwrap();
    txn.delete(&table, &key).unwrap();
    insert(&mut txn, &table, 10..20, 3_900);
    txn.rollback_to(&savepoint).unwrap();
    assert_eq!(rows_in(&mut txn, &table), 10);
    txn.commit().unwrap();
    let db = open(&os.crash(7));
    assert_eq!(rows(&db, "kept"), 10);
    assert_eq!(rows(&db, "own"), 0);
}

/// The session ends before its prepared transaction, and its tables are dropped.
#[test]
fn a_table_of_one_session_is_dropped_beside_a_prepared_transaction_that_its_session_gave_up() {
    let xid = Xid::new(1, b"prepared", b"").unwrap();
    for (commits, crashes) in [(true, false), (false, false), (true, true), (false, true)] {
        let os = SimulatedOs::new(1);
        let db = open(&os);
        let kept = db.create_table("kept", &grouped()).unwrap();
        let table = db
            .create_table_with("own", &grouped(), &of_one_session())
            .unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        insert(&mut txn, &table, 0..5_000, 300);
        insert(&mut txn, &kept, 0..10, 300);
        txn.prepare(&xid).unwrap();
        let refused = db.drop_table("own");
        assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
        txn.detach();
        // The decision may still return to the table, which must stay as the transaction left it.
        let refused = db.truncate_table("own");
        assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
        let refused = db.rename_table("own", "other");
        assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");

        db.checkpoint().unwrap();
        let free = db.status().file_free_bytes;
        db.drop_table("own").unwrap();
        assert_eq!(db.table_names(), ["kept"]);
        db.checkpoint().unwrap();
        let now = db.status().file_free_bytes;
        assert!(now > free + (1 << 20), "{now} bytes free, {free} before");
        let db = match crashes {
            false => db,
            true => {
                drop(db);
                open(&os.crash(7))
            }
        };
        match commits {
            true => db.commit_prepared(&xid).unwrap(),
            false => db.rollback_prepared(&xid).unwrap(),
        }
        db.purge().unwrap();
        assert_eq!(rows(&db, "kept"), if commits { 10 } else { 0 });
        assert_eq!(db.table_names(), ["kept"]);
    }
}

/// Like the session, which has the table for longer than the transaction.
#[test]
fn a_table_of_one_session_goes_on_behind_a_prepared_transaction_and_has_its_rows() {
    let xid = Xid::new(1, b"prepared", b"").unwrap();
    for commits in [true, false] {
        let db = open(&SimulatedOs::new(1));
        let table = db
            .create_table_with("own", &grouped(), &of_one_session())
            .unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        insert(&mut txn, &table, 0..10, 300);
        txn.commit().unwrap();
        insert(&mut txn, &table, 10..30, 300);
        txn.prepare(&xid).unwrap();
        txn.detach();
        match commits {
            true => db.commit_prepared(&xid).unwrap(),
            false => db.rollback_prepared(&xid).unwrap(),
        }
        let expected = if commits { 30 } else { 10 };
        assert_eq!(rows(&db, "own"), expected);
        assert_eq!(table.estimate_rows(), u64::from(expected));
        db.truncate_table("own").unwrap();
        assert_eq!(rows(&db, "own"), 0);
        let refused = db.drop_table_used_by(&mut txn, "own");
        assert!(refused.is_ok(), "{refused:?}");
    }
}
