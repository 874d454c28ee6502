//! Prepared transactions that the log has only under their old numbers, and whose changed tables are gone by then.

use super::*;

/// More than the files of quarantined tables take, and less than a log segment.
const LITTLE: u64 = 8 << 10;

fn open_ending(os: &SimulatedOs) -> Database {
    let options = Options {
        background: false,
        log_segment_bytes: Some(16 << 10),
        drop_on_open: Some("ends".into()),
        ..Options::default()
    };
    Database::open_on(Arc::new(os.clone()), "/db", options).unwrap()
}

fn rows_of(db: &Database, name: &str) -> u64 {
    let table = db.table(name).unwrap();
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

/// A database after a crash, on a disk with almost no space, with a prepared transaction.
///
/// The transaction has put three rows into `t` and three into `name`. Also returns the place of the root of `name`, and
/// the number of other rows in `t`.
fn crashed_on_a_full_disk(name: &str, xid: &Xid) -> (SimulatedOs, u64, u64) {
    let os = SimulatedOs::new(21);
    let db = open_ending(&os);
    create(&db);
    let other = db.create_table(name, &schema()).unwrap();
    db.checkpoint().unwrap();
    let parts = db.registry().pool().store().parts();
    let root = db.registry().definition(other.id()).unwrap().trees[0].root;
    let is_root = |part: &&Part| part.kind == PartKind::Page(root);
    let place = parts.iter().find(is_root).unwrap().offset;
    let mut txn = insert(&db, 1000..1003);
    for id in 0..3 {
        txn.insert(&other, &[Value::UInt(id)]).unwrap();
    }
    txn.prepare(xid).unwrap();
    os.set_capacity(Some(os.used()));
    let mut rows = 0;
    while insert(&db, rows..rows + 1).commit().is_ok() {
        rows += 1;
    }
    let full = os.crash_with(Loss::Nothing, 0);
    drop((txn, other, db));
    cut_behind_checkpoint(&full, &parts);
    full.set_capacity(Some(full.used() + LITTLE));
    (full, place, rows)
}

#[test]
fn a_table_that_was_emptied_gets_no_row_of_a_transaction_that_stands() {
    let xid = Xid::new(1, b"global", b"branch").unwrap();
    let (full, place, rows) = crashed_on_a_full_disk("other", &xid);
    full.damage(Path::new("/db/data"), |data| data[place as usize + 16] ^= 1);

    let db = open_ending(&full);
    let used = db.table("other").map(drop);
    assert!(matches!(used, Err(Error::Corrupt { .. })), "{used:?}");
    full.set_capacity(None);
    db.truncate_table("other").unwrap();
    let other = db.table("other").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.insert(&other, &[Value::UInt(9)]).unwrap();
    txn.commit().unwrap();
    // The log has the truncate before the checkpoint then.
    db.checkpoint().unwrap();
    let undecided = full.crash_with(Loss::Nothing, 0);
    db.commit_prepared(&xid).unwrap();
    let decided = full.crash_with(Loss::Nothing, 0);
    drop((txn, other, db));

    let db = open_ending(&decided);
    assert_eq!(rows_of(&db, "t"), rows + 3);
    assert_eq!(rows_of(&db, "other"), 1);
    let db = open_ending(&undecided);
    assert_eq!(db.prepared().len(), 1);
    db.commit_prepared(&xid).unwrap();
    assert_eq!(rows_of(&db, "t"), rows + 3);
    assert_eq!(rows_of(&db, "other"), 1);
}

#[test]
fn a_table_that_an_opening_has_dropped_unsaid_keeps_no_database_closed() {
    let xid = Xid::new(1, b"global", b"branch").unwrap();
    let (full, _, rows) = crashed_on_a_full_disk("ends", &xid);
    let db = open_ending(&full);
    assert_eq!(db.table_names(), ["t"]);
    full.set_capacity(None);
    db.checkpoint().unwrap();
    db.commit_prepared(&xid).unwrap();
    let decided = full.crash_with(Loss::Nothing, 0);
    drop(db);
    assert_eq!(rows_of(&open_ending(&decided), "t"), rows + 3);
}
