//! Transactions that run for long: their effect on the log, and on the next opening.

use super::*;
use crate::checkpoint::{CheckpointSource, OpenWork};

/// Rows of one statement, which need several parts of redo.
const MANY: u64 = 60_000;
const LIMIT: u64 = 1 << 20;

fn open_with_short_segments(os: &SimulatedOs) -> Database {
    let options = Options {
        background: false,
        log_segment_bytes: Some(64 << 10),
        longest_kept_log: LIMIT,
        ..Options::default()
    };
    Database::open_on(Arc::new(os.clone()), "/db", options).unwrap()
}

/// A disk, and a database with a table; the database keeps little log for a transaction.
fn limited(seed: u64) -> (SimulatedOs, Database) {
    let os = SimulatedOs::new(seed);
    let db = open_with_short_segments(&os);
    create(&db);
    (os, db)
}

/// A disk, and a database with a table; the database keeps any amount of log.
fn unlimited(seed: u64) -> (SimulatedOs, Arc<Database>) {
    let os = SimulatedOs::new(seed);
    let db = open(&os);
    create(&db);
    (os, db)
}

/// A prepared transaction with these rows.
fn prepared(db: &Database, ids: Range<u64>, number: u8) -> (Xid, Transaction) {
    let xid = Xid::new(1, b"global", &[number]).unwrap();
    let mut txn = insert(db, ids);
    txn.prepare(&xid).unwrap();
    (xid, txn)
}

/// Makes other transactions log more than the database keeps for one.
fn log_much(db: &Database) {
    log_much_from(db, 1_000_000);
}

fn log_much_from(db: &Database, mut from: u64) {
    let begun = db.status().log_bytes;
    while db.status().log_bytes < begun + LIMIT {
        insert(db, from..from + 10_000).commit().unwrap();
        from += 10_000;
    }
}

#[test]
fn a_transaction_for_which_the_log_gets_too_long_is_rolled_back_and_the_log_gets_short() {
    let (os, db) = limited(30);
    let table = db.table("t").unwrap();
    let mut long = insert(&db, 0..MANY);
    db.checkpoint().unwrap();
    long.insert(&table, &[Value::UInt(MANY)]).unwrap();
    log_much(&db);
    assert!(db.shared.log.stats().segments >= LIMIT >> 16);

    db.checkpoint().unwrap();
    assert!(db.shared.log.stats().segments <= 4);
    let others = count(&db);
    let more = long.insert(&table, &[Value::UInt(MANY + 1)]);
    assert!(
        matches!(more, Err(Error::LogLimit { limit: LIMIT })),
        "{more:?}"
    );
    assert!(matches!(long.commit(), Err(Error::LogLimit { .. })));
    long.rollback().unwrap();
    // The object can be used like a new one.
    long.insert(&table, &[Value::UInt(0)]).unwrap();
    long.commit().unwrap();
    let os = os.crash_with(Loss::Nothing, 0);
    drop((long, table, db));
    assert_eq!(count(&open(&os)), others + 1);
}

#[test]
fn what_the_log_does_not_have_any_more_is_not_committed() {
    let (os, db) = limited(31);
    let mut long = insert(&db, 0..MANY);
    log_much(&db);
    db.checkpoint().unwrap();
    let others = count(&db);
    // The transaction has made all its changes before: only the commit can report the error.
    let committed = long.commit();
    let os = os.crash_with(Loss::Nothing, 0);
    drop((long, db));
    let found = count(&open(&os));
    match committed {
        Ok(()) => assert_eq!(found, others + MANY, "what was committed is lost"),
        Err(error) => {
            assert!(matches!(error, Error::LogLimit { .. }), "{error}");
            assert_eq!(found, others);
        }
    }
}

#[test]
fn the_log_is_kept_for_what_is_prepared() {
    let (os, db) = limited(32);
    let (xid, long) = prepared(&db, 0..MANY, 0);
    log_much(&db);
    db.checkpoint().unwrap();
    db.checkpoint().unwrap();
    let others = count(&db);
    let os = os.crash_with(Loss::Nothing, 0);
    drop((long, db));
    let db = open(&os);
    db.commit_prepared(&xid).unwrap();
    assert_eq!(count(&db), others + MANY);
}

#[test]
fn the_log_is_kept_for_what_is_going_to_be_prepared() {
    let (_, db) = limited(34);
    let mut long = insert(&db, 0..MANY);
    long.keep_log();
    log_much(&db);
    db.checkpoint().unwrap();
    let others = count(&db);
    long.commit().unwrap();
    // The limit holds again for the next transaction of the same object.
    let table = db.table("t").unwrap();
    for id in MANY..2 * MANY {
        long.insert(&table, &[Value::UInt(id)]).unwrap();
    }
    log_much_from(&db, 2_000_000);
    db.checkpoint().unwrap();
    assert!(matches!(long.commit(), Err(Error::LogLimit { .. })));
    long.rollback().unwrap();
    assert!(count(&db) > others + MANY);
}

#[test]
fn a_table_is_dropped_though_the_log_has_let_go_of_who_drops_it() {
    let (_, db) = limited(35);
    let mut long = insert(&db, 0..MANY);
    db.create_table("u", &schema()).unwrap();
    let table = db.table("u").unwrap();
    long.insert(&table, &[Value::UInt(1)]).unwrap();
    log_much(&db);
    db.checkpoint().unwrap();
    drop(table);
    db.drop_table_used_by(&mut long, "u").unwrap();
    assert!(db.table("u").is_err());
    assert!(matches!(long.commit(), Err(Error::LogLimit { .. })));
    long.rollback().unwrap();
}

#[test]
fn checkpoints_gain_nothing_beside_what_is_prepared() {
    let (_, db) = unlimited(36);
    let (_, mut long) = prepared(&db, 0..MANY, 0);
    db.checkpoint().unwrap();
    let OpenWork { now, standing } = db.source.open_work();
    assert!(now.log_bytes > 5 * MANY, "{now:?}");
    assert!(
        now.log_bytes < standing.log_bytes + (64 << 10),
        "{now:?}, {standing:?}"
    );
    long.commit().unwrap();
    let standing = db.source.open_work().standing;
    assert_eq!(standing.log_bytes, 0, "{standing:?}");
}

#[test]
fn small_transactions_are_not_counted_one_by_one() {
    let (_, db) = unlimited(37);
    let ends = db.transactions().large_ends();
    for id in 0..10 {
        let (_, mut small) = prepared(&db, id.into()..u64::from(id) + 1, id);
        small.commit().unwrap();
    }
    assert_eq!(db.transactions().large_ends(), ends);
    insert(&db, 100..100 + MANY).commit().unwrap();
    assert_eq!(db.transactions().large_ends(), ends + 1);
}

#[test]
fn the_time_of_a_recovery_counts_what_ran_at_the_checkpoint_and_what_was_logged_before_it() {
    if knobs::SHAKEN {
        // The figures hold only for production's numbers.
        return;
    }
    let (os, db) = unlimited(33);
    db.checkpoint().unwrap();
    let expected = || (db.transactions().recovery_work(), db.status().recovery_time);
    let (_, nothing) = expected();
    let little = 64 << 10;
    let much = Duration::from_nanos(600 * MANY);

    let mut long = insert(&db, 0..MANY);
    // The checkpoint has none of its changes, and without a commit an opening repeats none.
    let (work, time) = expected();
    assert_eq!(work.undo.records, 0);
    assert!(work.log_replayed < little, "{work:?}");
    assert!(time < nothing + much, "{time:?}");

    db.checkpoint().unwrap();
    let (work, rollback) = expected();
    let logged = work.kept_log;
    assert!(logged > 5 * MANY, "{work:?}");
    assert_eq!((work.undo.records, work.running), (MANY, work.undo));
    // About once per leaf.
    assert!(
        (10..MANY / 10).contains(&work.undo.leaves) && work.undo.bytes > 5 * MANY,
        "{work:?}"
    );
    assert!(work.log_read >= logged && work.log_replayed < little);
    assert!(rollback > nothing + much);

    long.commit().unwrap();
    let (work, both) = expected();
    assert!(work.log_again + little > logged, "{work:?}");
    assert_eq!((work.undo.records, work.kept_log), (MANY, 0));
    assert!(both > rollback);
    // An opening has to do this work.
    let after = os.crash_with(Loss::Nothing, 0);
    let opened = open(&after);
    assert_eq!(count(&opened), MANY);

    db.checkpoint().unwrap();
    let (work, time) = expected();
    assert_eq!(work.undo.records, 0);
    assert!(work.log_read < little, "{work:?}");
    assert!(time < nothing + much, "{time:?}");

    // A transaction that was rolled back is not repeated, but was running at the checkpoint.
    let mut long = insert(&db, MANY..2 * MANY);
    db.checkpoint().unwrap();
    long.rollback().unwrap();
    let (work, _) = expected();
    assert_eq!(work.undo.records, MANY);
    assert!(work.log_replayed < little, "{work:?}");
}
