//! Auto-increment counters: many threads reserve values, and the counter is never behind a committed row, whatever
//! happens.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Durability, Error, Isolation, Key,
    Options, Seek, Table, TableOptions, TableSchema, Value,
};
use proptest::prelude::*;

use crate::tables::schemas::options;

fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 8,
        signed: false,
    };
    TableSchema {
        columns: vec![Column::new("id", int)],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

fn ids(db: &Database, table: &Arc<Table>) -> BTreeSet<u64> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut found = BTreeSet::new();
    let mut more = cursor.seek(&mut txn, b"", Seek::First).unwrap();
    while more {
        let Value::UInt(id) = cursor.row().unwrap().get(0).unwrap() else {
            panic!("no number");
        };
        found.insert(id);
        more = cursor.next(&mut txn).unwrap();
    }
    found
}

#[test]
fn threads_take_different_values_of_the_form_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    std::thread::scope(|scope| {
        for n in 1..=8u64 {
            let (db, table) = (&db, &table);
            scope.spawn(move || {
                let mut txn = db.begin(Isolation::RepeatableRead);
                for batch in 1..=20 {
                    let first = table.reserve_auto_increment(batch, 5, 3, u64::MAX).unwrap();
                    assert_eq!(first % 5, 3);
                    for i in 0..batch {
                        // Fails when another thread has the same value.
                        txn.insert(table, &[Value::UInt(first + i * 5)]).unwrap();
                    }
                    if (batch + n) % 3 == 0 {
                        txn.rollback().unwrap();
                    } else {
                        txn.commit().unwrap();
                    }
                }
            });
        }
    });
    let found = ids(&db, &table);
    assert!(found.iter().all(|id| id % 5 == 3));
    assert!(table.next_auto_increment() > *found.last().unwrap());
}

fn simulated(durability: Durability) -> Options {
    Options {
        pool_bytes: 1 << 20,
        log_bytes: 1 << 20,
        durability,
        ..Options::default()
    }
}

/// The log's last segment is full, and the disk has no space for another.
#[test]
fn a_table_is_there_with_its_counter_or_not_at_all() {
    let with = TableOptions {
        auto_increment: 100,
        ..TableOptions::default()
    };
    for longer in 0..24 {
        let open = |os: &SimulatedOs| {
            let options = Options {
                log_segment_bytes: Some(16 << 10),
                background: false,
                ..simulated(Durability::SyncAtCommit)
            };
            Database::open_on(Arc::new(os.clone()), "/db", options).unwrap()
        };
        let os = SimulatedOs::new(longer);
        let db = open(&os);
        let schema = TableSchema {
            user: vec![1; longer as usize],
            ..schema()
        };
        os.fail(FaultOn::Growth, 0, ErrorKind::StorageFull);
        let (made, refused) = (0..)
            .find_map(|n| {
                let made = db.create_table_with(&format!("t{n}"), &schema, &with);
                made.err().map(|error| (n, error))
            })
            .unwrap();
        assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
        if peregrine::knobs::SHAKEN {
            // All frames may be dirty, so that a page must be written before any can be read.
            os.heal();
        }
        let check = |db: &Database| {
            assert_eq!(db.table_names().len(), made, "{longer} bytes longer");
            for name in db.table_names() {
                assert_eq!(db.table(&name).unwrap().next_auto_increment(), 100);
            }
        };
        check(&db);
        check(&open(&os.crash(longer)));
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Reserves values and inserts rows; commits or rolls back.
    Insert(u64, bool),
    /// Inserts a row with a value beyond the counter.
    Explicit(u64),
    /// ALTER TABLE … AUTO_INCREMENT = counter + n.
    Set(u64),
    Checkpoint,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1..5u64, any::<bool>()).prop_map(|(n, commit)| Step::Insert(n, commit)),
        1 => (1..50u64).prop_map(Step::Explicit),
        2 => (1..50u64).prop_map(Step::Set),
        1 => Just(Step::Checkpoint),
        3 => Just(Step::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// After any crash the counter is beyond every committed value, and not below the value it was set to.
    #[test]
    fn a_crash_takes_no_counter_back(
        steps in prop::collection::vec(step(), 1..25),
        first in 1..100u64,
        seed in any::<u64>(),
    ) {
        let mut os = SimulatedOs::new(seed);
        let open = |os: &SimulatedOs| {
            Database::open_on(Arc::new(os.clone()), "/db", simulated(Durability::SyncAtCommit))
        };
        let mut db = open(&os).unwrap();
        let with = TableOptions { auto_increment: first, ..TableOptions::default() };
        let mut table = db.create_table_with("t", &schema(), &with).unwrap();
        let mut least = first;
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(count, commit) => {
                    let begin = table.reserve_auto_increment(count, 1, 1, u64::MAX).unwrap();
                    prop_assert!(begin >= least);
                    let mut txn = db.begin(Isolation::RepeatableRead);
                    for i in 0..count {
                        txn.insert(&table, &[Value::UInt(begin + i)]).unwrap();
                    }
                    if commit {
                        txn.commit().unwrap();
                        least = begin + count;
                    }
                }
                Step::Explicit(more) => {
                    let value = table.next_auto_increment() + more;
                    let mut txn = db.begin(Isolation::RepeatableRead);
                    txn.insert(&table, &[Value::UInt(value)]).unwrap();
                    table.set_auto_increment_at_least(value + 1);
                    txn.commit().unwrap();
                    least = value + 1;
                }
                Step::Set(more) => {
                    least = table.next_auto_increment() + more;
                    db.set_auto_increment("t", least).unwrap();
                }
                Step::Checkpoint => db.checkpoint().unwrap(),
                Step::Crash => {
                    let after = os.crash(seed ^ n as u64);
                    drop((table, db));
                    os = after;
                    db = open(&os).unwrap();
                    table = db.table("t").unwrap();
                    let next = table.next_auto_increment();
                    prop_assert!(next >= least, "{} < {}", next, least);
                    least = next;
                }
            }
        }
    }
}

/// Values are reserved, another session uses one of them in a row, and the rest is returned.
#[test]
fn values_given_back_take_the_counter_below_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    assert_eq!(table.reserve_auto_increment(8, 1, 1, u64::MAX).unwrap(), 1);
    table.set_auto_increment_at_least(6);
    table.return_auto_increment(3, 9);
    assert_eq!(table.next_auto_increment(), 6);
    // A truncated table counts from its new start.
    db.truncate_table("t").unwrap();
    let table = db.table("t").unwrap();
    let first = table.reserve_auto_increment(8, 1, 1, u64::MAX).unwrap();
    table.return_auto_increment(first + 1, first + 8);
    assert_eq!(table.next_auto_increment(), first + 1);
}

#[test]
fn no_value_is_given_twice_where_the_counter_ends() {
    let db = Database::open_on(Arc::new(SimulatedOs::new(1)), "/db", options()).unwrap();
    for (increment, last) in [(1u64, u64::MAX - 1), (2, u64::MAX - 2)] {
        let table = db.create_table(&increment.to_string(), &schema()).unwrap();
        table.set_auto_increment_at_least(last);
        let reserve = || table.reserve_auto_increment(1, increment, 1, u64::MAX);
        assert_eq!(reserve().unwrap(), last);
        for _ in 0..2 {
            let refused = reserve();
            assert!(matches!(refused, Err(Error::TooLarge(_))), "{refused:?}");
        }
    }
}

/// Values are reserved, another session's commit logs the counter, and the values are returned.
///
/// The next checkpoint removes the log. A later insert of one of the values then logs no counter.
#[test]
fn a_checkpoint_keeps_the_counter_that_the_log_had() {
    let open = |os: &SimulatedOs| {
        let options = Options {
            background: false,
            ..simulated(Durability::SyncAtCommit)
        };
        Database::open_on(Arc::new(os.clone()), "/db", options).unwrap()
    };
    let insert = |db: &Database, table: &Arc<Table>, id: u64| {
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.insert(table, &[Value::UInt(id)]).unwrap();
        txn.commit().unwrap();
    };
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let table = db.create_table("t", &schema()).unwrap();
    assert_eq!(table.reserve_auto_increment(5, 1, 1, u64::MAX).unwrap(), 1);
    insert(&db, &table, 100);
    table.return_auto_increment(1, 6);
    db.checkpoint().unwrap();
    assert_eq!(table.reserve_auto_increment(1, 1, 1, u64::MAX).unwrap(), 1);
    insert(&db, &table, 1);
    let db = open(&os.crash(1));
    let table = db.table("t").unwrap();
    let next = table.reserve_auto_increment(1, 1, 1, u64::MAX).unwrap();
    assert!(next >= 2, "{next}");
    insert(&db, &table, next);
}
