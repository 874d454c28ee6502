//! Commits and other operations, with another event between their steps.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use crate::os::simulated::SimulatedOs;
use crate::row::payload::{LargeRef, RowEncoder};
use crate::sync::atomic::Ordering;
use crate::sync::Moment;
use crate::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options,
    Seek, Sessions, Table, TableSchema, ToldWaits, Transaction, Value, Xid,
};

fn open(os: &SimulatedOs) -> Arc<Database> {
    open_and_drop(os, None)
}

fn open_and_drop(os: &SimulatedOs, prefix: Option<&str>) -> Arc<Database> {
    let options = Options {
        background: false,
        drop_on_open: prefix.map(str::to_owned),
        ..Options::default()
    };
    Arc::new(Database::open_on(Arc::new(os.clone()), "/db", options).unwrap())
}

fn create(db: &Database) -> Arc<Table> {
    create_named(db, "t")
}

fn create_named(db: &Database, name: &str) -> Arc<Table> {
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    let schema = TableSchema {
        columns: vec![Column::new("id", int)],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    db.create_table(name, &schema).unwrap()
}

fn insert(db: &Database, table: &Table, id: u64) -> Transaction {
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.insert(table, &[Value::UInt(id)]).unwrap();
    txn
}

fn count(db: &Database, table: &Arc<Table>) -> u64 {
    let mut txn = db.begin(Isolation::ReadCommitted);
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut rows = 0;
    let mut found = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    while found {
        rows += 1;
        found = cursor.next(&mut txn).unwrap();
    }
    rows
}

/// Requests a checkpoint when others already see a commit; it takes place then, if the barrier lets it.
fn checkpoint_amid_commit(db: &Arc<Database>) {
    let checkpointing = db.clone();
    db.transactions().moments.at(Moment::CommitSeen, move || {
        if checkpointing.transactions().barrier().try_close().is_some() {
            checkpointing.checkpoint().unwrap();
        }
    });
}

/// Checks the number of rows after a restart, also after a loss of power.
fn assert_counted(os: &SimulatedOs, rows: u64) {
    let db = open(&os.crash(rows));
    let table = db.table("t").unwrap();
    assert_eq!(count(&db, &table), rows);
    assert_eq!(table.estimate_rows(), rows);
}

/// The checkpoint would have the commit, which is then not replayed, but not the number of its rows.
#[test]
fn no_checkpoint_comes_between_a_commit_and_the_counting_of_its_rows() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let table = create(&db);
    checkpoint_amid_commit(&db);
    insert(&db, &table, 1).commit().unwrap();
    assert!(db.transactions().moments.passed());
    assert_counted(&os, 1);

    let xid = Xid::new(1, b"prepared", b"").unwrap();
    insert(&db, &table, 2).prepare(&xid).unwrap();
    checkpoint_amid_commit(&db);
    db.commit_prepared(&xid).unwrap();
    assert!(db.transactions().moments.passed());
    assert_counted(&os, 2);
}

/// A DROP or TRUNCATE that finds the table in use keeps other transactions out for a moment.
#[test]
fn a_table_that_is_closed_for_a_moment_is_busy_and_not_gone() {
    let db = open(&SimulatedOs::new(1));
    let table = create(&db);
    let mut user = insert(&db, &table, 1);
    let mut late = db.begin(Isolation::ReadCommitted);
    assert!(table.state.close(1));
    let refused = late.insert(&table, &[Value::UInt(2)]);
    assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
    table.state.reopen();
    late.insert(&table, &[Value::UInt(2)]).unwrap();
    user.commit().unwrap();
    late.commit().unwrap();
    db.drop_table("t").unwrap();
    let refused = late.insert(&table, &[Value::UInt(3)]);
    assert!(
        matches!(refused, Err(Error::NotFound { .. })),
        "{refused:?}"
    );
}

/// The log has a row whose long value is "as in the row before", but does not have that row.
///
/// Logs of tables that were filled while they were created are like this.
#[test]
fn replay_leaves_out_tables_that_end_with_the_process() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let kept = create(&db);
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    let body = ColumnType::VarBytes { max: 9_000 };
    let schema = TableSchema {
        columns: vec![Column::new("id", int), Column::new("body", body)],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    let own = db.create_table("renamed", &schema).unwrap();
    let row = [Value::UInt(1), Value::OutOfRow(5_000)];
    let mut encoder = RowEncoder::default();
    encoder.begin(row.len());
    encoder.outside[1] = Some(LargeRef { id: 0, len: 5_000 });
    encoder.lay_out(&own.layout, &row).unwrap();
    let mut redo = Vec::new();
    encoder.write(&own.layout, &row, &mut redo).unwrap();
    let key = own.encode_key(0, &[Value::UInt(1)]).unwrap();
    let mut txn = insert(&db, &kept, 1);
    txn.tree_txn.redo().put(own.id(), &key, &[&redo]).unwrap();
    txn.commit().unwrap();
    db.rename_table("renamed", "temporary/own").unwrap();
    let db = open_and_drop(&os.crash(1), Some("temporary/"));
    assert_eq!(db.table_names(), ["t"]);
    let kept = db.table("t").unwrap();
    assert_eq!(count(&db, &kept), 1);
}

/// The last name of a table decides whether an opening drops it.
#[test]
fn replay_leaves_out_no_table_that_stays() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let table = create(&db);
    db.rename_table("t", "temporary/t").unwrap();
    insert(&db, &table, 1).commit().unwrap();
    db.rename_table("temporary/t", "t").unwrap();
    let db = open_and_drop(&os.crash(1), Some("temporary/"));
    let table = db.table("t").unwrap();
    assert_eq!(count(&db, &table), 1);
}

/// A missing row is deleted: logs of earlier versions have this after a refused change of a key.
#[test]
fn a_prepared_change_that_can_not_be_made_again_keeps_no_other_table_closed() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let table = create(&db);
    let other = create_named(&db, "other");
    insert(&db, &table, 1).commit().unwrap();
    let mut txn = insert(&db, &other, 1);
    let key = table.encode_key(0, &[Value::UInt(2)]).unwrap();
    txn.tree_txn.redo().delete(table.id(), &key);
    let xid = Xid::new(1, b"prepared", b"").unwrap();
    txn.prepare(&xid).unwrap();
    let db = open(&os.crash(1));
    let opened = db.table("t").map(drop);
    assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
    let other = db.table("other").unwrap();
    assert_eq!(count(&db, &other), 0);
    db.commit_prepared(&xid).unwrap();
    assert_eq!(count(&db, &other), 1);
    db.drop_table("t").unwrap();
}

/// Values are given back just after the log has got the counter, and a checkpoint is requested then.
///
/// The next session that takes one of the values relies on the log's counter.
#[test]
fn no_checkpoint_comes_between_a_counter_in_the_log_and_the_note_of_it() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let table = create(&db);
    assert_eq!(table.reserve_auto_increment(5, 1, 1, 1_000).unwrap(), 1);
    let (beside, counted) = (db.clone(), table.clone());
    db.transactions()
        .moments
        .at(Moment::CounterLogged, move || {
            counted.return_auto_increment(1, 6);
            if beside.transactions().barrier().try_close().is_some() {
                beside.checkpoint().unwrap();
            }
        });
    insert(&db, &table, 100).commit().unwrap();
    assert!(db.transactions().moments.passed());
    assert_eq!(table.reserve_auto_increment(1, 1, 1, 1_000).unwrap(), 1);
    insert(&db, &table, 1).commit().unwrap();
    let db = open(&os.crash(1));
    let next = db.table("t").unwrap().next_auto_increment();
    assert!(next >= 2, "{next}");
}

/// A table is dropped by a transaction that has used it, while tables are renamed.
///
/// Neither the renamed table goes nor the other one, which another transaction uses.
#[test]
fn a_table_that_gets_the_name_of_one_that_is_dropped_stays() {
    let db = open(&SimulatedOs::new(1));
    let table = create(&db);
    let other = create_named(&db, "other");
    let mut txn = insert(&db, &table, 1);
    let mut user = insert(&db, &other, 2);
    let beside = db.clone();
    db.transactions().moments.at(Moment::TableToDrop, move || {
        beside.rename_table("t", "renamed").unwrap();
        beside.rename_table("other", "t").unwrap();
    });
    let refused = db.drop_table_used_by(&mut txn, "t");
    assert!(
        matches!(refused, Err(Error::NotFound { .. })),
        "{refused:?}"
    );
    assert!(db.transactions().moments.passed());
    user.commit().unwrap();
    txn.commit().unwrap();
    for table in ["renamed", "t"] {
        let table = db.table(table).unwrap();
        assert_eq!(count(&db, &table), 1);
    }
    db.drop_table_used_by(&mut txn, "renamed").unwrap();
}

/// Sessions that panic when they are asked about a wait.
struct Nervous;

impl Sessions for Nervous {
    fn told_waits(&self, _: u64) -> ToldWaits {
        panic!("not today")
    }
}

#[test]
fn what_a_panic_takes_along_of_a_bulk_insert_counts_no_more() {
    let options = Options {
        background: false,
        sessions: Some(Arc::new(Nervous)),
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(SimulatedOs::new(1)), "/db", options).unwrap();
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    let schema = TableSchema {
        columns: vec![Column::new("id", int), Column::new("group", int)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("group", &[1])],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    // The reader's range in the index blocks all entries.
    let mut reader = db.begin(Isolation::Serializable);
    let mut cursor = Cursor::new(&table, 1, CursorOptions::default());
    assert!(!cursor.seek(&mut reader, &[], Seek::First).unwrap());

    let deferred = |txn: &Transaction| txn.shared.deferred_bytes.load(Ordering::Relaxed);
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_bulk_insert(&table);
    for id in [1, 2] {
        txn.insert(&table, &[Value::UInt(id), Value::UInt(id)])
            .unwrap();
    }
    assert!(deferred(&txn) > 0);
    let outcome = catch_unwind(AssertUnwindSafe(|| txn.end_bulk_insert()));
    assert!(outcome.is_err());
    txn.rollback().unwrap();
    assert_eq!(deferred(&txn), 0);
}

/// At that time the coordinator has already told others that the transactions commit.
#[test]
fn what_is_decided_about_prepared_transactions_has_room_on_a_full_disk() {
    let os = SimulatedOs::new(3);
    let options = Options {
        background: false,
        log_segment_bytes: Some(16 << 10),
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let table = create(&db);
    let mut prepared: Vec<_> = (0..40).map(|id| insert(&db, &table, id)).collect();
    for (id, txn) in prepared.iter_mut().enumerate() {
        txn.prepare(&Xid::new(1, &[id as u8], b"").unwrap())
            .unwrap();
    }
    os.set_capacity(Some(os.used()));
    let log = prepared[0].shared.log.clone();
    // Ends of a transaction that does not exist.
    let refused = loop {
        if let Err(error) = log.append(crate::txn::KIND_ROLLED_BACK, &[&[0x7f]]) {
            break error;
        }
    };
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    for (id, mut txn) in prepared.into_iter().enumerate() {
        match id % 2 {
            0 => txn.commit().unwrap(),
            _ => txn.rollback().unwrap(),
        }
    }
    assert_eq!(count(&db, &table), 20);
    os.set_capacity(None);
    let db = open(&os.crash(3));
    assert!(db.prepared().is_empty());
    assert_eq!(count(&db, &db.table("t").unwrap()), 20);
}
