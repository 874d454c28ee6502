//! Running transactions, locks and waits, from `Database::inspect`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Inspection, Isolation, Key,
    LockMode, Options, RowLock, Seek, Sessions, Table, TableSchema, TransactionEntry,
    TransactionState, Value,
};
use proptest::prelude::*;

use crate::tables::schemas::options;

fn table(db: &Database, rows: u64) -> Arc<Table> {
    let int = ColumnType::Int {
        bytes: 8,
        signed: true,
    };
    let schema = TableSchema {
        columns: vec![
            Column::new("id", int),
            Column::new("name", ColumnType::VarBytes { max: 100 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_name", &[1]).unique()],
        user: vec![],
    };
    let table = db.create_table("things", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..rows {
        txn.insert(&table, &row(id, &format!("name {id}"))).unwrap();
    }
    txn.commit().unwrap();
    table
}

fn row(id: u64, name: &str) -> [Value<'_>; 2] {
    [Value::Int(id as i64), Value::Bytes(name.as_bytes())]
}

fn key(table: &Table, id: u64) -> Vec<u8> {
    table.encode_key(0, &[Value::Int(id as i64)]).unwrap()
}

fn of_session(found: &Inspection, session: u64) -> &TransactionEntry {
    let mut entries = found.transactions.iter().filter(|t| t.session == session);
    let entry = entries.next().unwrap();
    assert!(
        entries.next().is_none(),
        "session {session} is listed twice"
    );
    entry
}

/// Waits until a session waits for a lock, on machines of any speed.
fn until_waiting(db: &Database, session: u64) -> Inspection {
    let begin = Instant::now();
    loop {
        let found = db.inspect();
        let waits = |t: &TransactionEntry| t.session == session && t.waits_for.is_some();
        if found.transactions.iter().any(waits) {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{found:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_waiter_its_holder_and_a_reader_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, 10);
    assert!(db.inspect().transactions.is_empty());

    let mut writer = db.begin(Isolation::ReadCommitted);
    writer.set_session(1);
    writer.set_started(1_700_000_000_000_000);
    writer
        .update(&table, &key(&table, 7), &row(7, "new"))
        .unwrap();
    writer.insert(&table, &row(100, "hundred")).unwrap();

    let mut reader = db.begin(Isolation::RepeatableRead);
    reader.set_session(2);
    reader.take_snapshot();

    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut waiter = db.begin(Isolation::Serializable);
            waiter.set_session(3);
            waiter.delete(&table, &key(&table, 7)).unwrap();
            waiter.rollback().unwrap();
        });
        let found = until_waiting(&db, 3);
        let (w, r, d) = (
            of_session(&found, 1),
            of_session(&found, 2),
            of_session(&found, 3),
        );
        assert_eq!(w.id, writer.id().unwrap().0);
        assert_eq!(w.state, TransactionState::Running);
        assert_eq!(w.isolation, Isolation::ReadCommitted);
        assert_eq!(w.started_us, Some(1_700_000_000_000_000));
        assert_eq!(w.rows_changed, 2);
        // For the first row: its record, old entry and new entry; for the second: its record and entry.
        assert_eq!(w.undo_records, 5);
        assert!(w.undo_bytes > 50, "{w:?}");
        assert_eq!(r.isolation, Isolation::RepeatableRead);
        assert_eq!((r.rows_changed, r.started_us), (0, None));
        assert_eq!(r.snapshot_age, Some(0));
        assert_eq!(d.state, TransactionState::LockWait);
        assert_eq!(d.isolation, Isolation::Serializable);
        assert!(d.waits_since_us.unwrap() >= d.started_us.unwrap());
        assert_eq!(d.lock_waits, 1);

        let wait = match &found.waits[..] {
            [wait] => wait,
            waits => panic!("{waits:?}"),
        };
        assert_eq!((wait.requesting, wait.blocking), (d.id, w.id));
        assert_eq!(Some(wait.lock), d.waits_for);
        let held: Vec<_> = found.locks.iter().filter(|l| l.granted).collect();
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].transaction, w.id);
        for lock in &found.locks {
            assert_eq!(lock.lock, wait.lock);
            assert_eq!(lock.mode, LockMode::Exclusive);
            let name = &lock.row;
            let name = (&name.table[..], &name.index[..], &name.key[..]);
            assert_eq!(name, ("things", "PRIMARY", "7"));
        }
        let status = db.status();
        assert_eq!((status.lock_waits, status.lock_waits_now), (1, 1));
        writer.commit().unwrap();
        waiter.join().unwrap();
    });
    // The end of the writer, and that of the waiter.
    assert_eq!(of_session(&db.inspect(), 2).snapshot_age, Some(2));
    drop(reader);
    let found = db.inspect();
    assert!(found.transactions.is_empty() && found.locks.is_empty());
    let status = db.status();
    assert_eq!((status.lock_waits, status.lock_waits_now), (1, 0));
    assert!(status.lock_wait_us > 0 && status.longest_lock_wait_us <= status.lock_wait_us);
}

struct Say;

impl Sessions for Say {
    fn statement(&self, session: u64) -> Option<String> {
        Some(format!("statement of {session}"))
    }
}

#[test]
fn a_deadlock_is_reported_with_what_everybody_did() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        sessions: Some(Arc::new(Say)),
        ..options()
    };
    let db = Database::open(dir.path().join("db"), options).unwrap();
    let table = table(&db, 10);
    assert!(db.latest_deadlock().is_none());
    let mut first = db.begin(Isolation::RepeatableRead);
    first.set_session(1);
    for id in [1, 3, 4] {
        let name = format!("changed {id}");
        first
            .update(&table, &key(&table, id), &row(id, &name))
            .unwrap();
    }
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = db.begin(Isolation::RepeatableRead);
            second.set_session(2);
            second
                .update(&table, &key(&table, 2), &row(2, "second"))
                .unwrap();
            let error = second.update(&table, &key(&table, 1), &row(1, "second's"));
            assert!(matches!(error, Err(Error::Deadlock)), "{error:?}");
            second.rollback().unwrap();
        });
        until_waiting(&db, 2);
        first
            .update(&table, &key(&table, 2), &row(2, "first"))
            .unwrap();
        second.join().unwrap();
    });
    first.commit().unwrap();

    let report = db.latest_deadlock().unwrap();
    assert_eq!((report.length, report.members.len()), (2, 2));
    let told: Vec<_> = report
        .members
        .iter()
        .map(|(member, row)| {
            let statement = member.statement.clone().unwrap();
            (member.session, statement, row.key.clone())
        })
        .collect();
    let expected = [
        (1, "statement of 1".to_string(), "2".to_string()),
        (2, "statement of 2".to_string(), "1".to_string()),
    ];
    assert_eq!(told, expected);
    assert_eq!(report.members[report.victim].0.session, 2);
    assert_eq!(db.status().deadlocks, 1);

    // A dropped table has no name, and causes no error.
    drop(first);
    db.drop_table("things").unwrap();
    let report = db.latest_deadlock().unwrap();
    assert_eq!(report.members[0].1.table, "");
}

#[test]
fn keys_are_told_as_values() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let bytes = |max| ColumnType::VarBytes { max };
    let mut descending = Key::new(&[0, 1, 2]);
    descending.parts[1].descending = true;
    let schema = TableSchema {
        columns: vec![
            Column::new("a", bytes(50)),
            Column::new(
                "b",
                ColumnType::Int {
                    bytes: 2,
                    signed: true,
                },
            ),
            Column::new("c", bytes(50)),
        ],
        primary: Some(descending),
        indexes: vec![],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for (a, b, c, told) in [
        (&b"it's"[..], -5, &b"z"[..], "'it''s', -5, 'z'"),
        (b"\x01\x00", 7, b"", "X'0100', 7, ''"),
        (
            b"x",
            300,
            &[b'y'; 50],
            "'x', 300, X'7979797979797979797979797979797979797979797979', …",
        ),
    ] {
        let values = [Value::Bytes(a), Value::Int(b), Value::Bytes(c)];
        let key = table.encode_key(0, &values).unwrap();
        let got = txn.get_locked(&table, &key, RowLock::Exclusive, |_| ());
        assert!(got.unwrap().is_none());
        let found = db.inspect();
        let keys: Vec<_> = found.locks.iter().map(|l| l.row.key.as_str()).collect();
        assert!(keys.contains(&told), "{told} is not in {keys:?}");
    }
}

#[test]
fn ranges_that_were_searched_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = table(&db, 10);
    let ranges = |db: &Database| {
        let found = db.inspect();
        let ranges = found.locks.iter().filter(|lock| lock.is_range);
        ranges.map(|lock| lock.row.clone()).collect::<Vec<_>>()
    };
    let mut reader = db.begin(Isolation::Serializable);
    reader.set_session(1);
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    cursor.set_end(&key(&table, 5), false);
    let mut more = cursor
        .seek(&mut reader, &key(&table, 3), Seek::AtOrAfter)
        .unwrap();
    while more {
        more = cursor.next(&mut reader).unwrap();
    }
    let told = ranges(&db);
    assert_eq!(told.len(), 1, "{told:?}");
    let row = &told[0];
    let row = (&row.table[..], &row.index[..], &row.key[..]);
    assert_eq!(row, ("things", "PRIMARY", "3 <= key < 5"));

    // A writer waits for a row in a locked range.
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut writer = db.begin(Isolation::ReadCommitted);
            writer.set_session(2);
            writer.delete(&table, &key(&table, 4)).unwrap();
        });
        let found = until_waiting(&db, 2);
        assert_eq!(found.waits.len(), 1, "{found:?}");
        assert_eq!(found.waits[0].blocking, of_session(&found, 1).id);
        reader.rollback().unwrap();
        writer.join().unwrap();
    });
    assert!(ranges(&db).is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Lock(usize, u64, bool),
    End(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4usize, 0..6u64, any::<bool>()).prop_map(|(t, id, x)| Step::Lock(t, id, x)),
        1 => (0..4usize).prop_map(Step::End),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The list equals a model of shared and exclusive locks at any time.
    #[test]
    fn the_list_is_what_was_locked(steps in prop::collection::vec(step(), 1..60)) {
        if peregrine::knobs::rows_before_escalation() <= 6 {
            // Locks of some rows are replaced by ranges.
            return Ok(());
        }
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        let table = table(&db, 6);
        let mut sessions: Vec<_> = (0..4u64)
            .map(|n| {
                let mut txn = db.begin(Isolation::ReadCommitted);
                txn.set_session(n + 1);
                txn.set_lock_wait_timeout(Duration::ZERO);
                txn
            })
            .collect();
        // (row, session) → exclusive.
        let mut model: BTreeMap<(u64, u64), bool> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Lock(n, id, exclusive) => {
                    let session = n as u64 + 1;
                    let free = model.iter().all(|(&(row, holder), &x)| {
                        row != id || holder == session || !(x || exclusive)
                    });
                    let lock = if exclusive { RowLock::Exclusive } else { RowLock::Shared };
                    let got = sessions[n].get_locked(&table, &key(&table, id), lock, |_| ());
                    prop_assert_eq!(got.is_ok(), free);
                    if free {
                        *model.entry((id, session)).or_default() |= exclusive;
                    }
                }
                Step::End(n) => {
                    sessions[n].rollback().unwrap();
                    model.retain(|&(_, holder), _| holder != n as u64 + 1);
                }
            }
            let found = db.inspect();
            let session_of: BTreeMap<u64, u64> =
                found.transactions.iter().map(|t| (t.id, t.session)).collect();
            let listed: BTreeMap<(u64, u64), bool> = found
                .locks
                .iter()
                .map(|l| {
                    let id = l.row.key.parse().unwrap();
                    ((id, session_of[&l.transaction]), l.mode == LockMode::Exclusive)
                })
                .collect();
            prop_assert_eq!(listed.len(), found.locks.len());
            prop_assert!(found.waits.is_empty());
            prop_assert_eq!(&listed, &model);
        }
    }
}
