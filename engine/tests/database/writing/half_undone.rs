//! A rollback that fails because a page can't be read: the rest is never committed, and is undone as soon as that is
//! possible.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use peregrine::check::Report;
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Column, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options, Savepoint,
    Seek, Table, TableOptions, TableSchema, Transaction, Value, Xid,
};

use crate::tables::schemas::{grouped, noise, INT};

/// More rows than the pool holds, so that a rollback needs pages that were evicted.
const ROWS: u32 = 1500;

fn body(seed: u32) -> Vec<u8> {
    noise(seed, 2000)
}

struct World {
    os: SimulatedOs,
    db: Database,
    table: Arc<Table>,
}

impl World {
    fn new() -> World {
        let os = SimulatedOs::new(1);
        let options = Options {
            pool_bytes: 1 << 20,
            lock_wait_timeout: Duration::from_millis(100),
            ..Options::default()
        };
        let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
        let table = db.create_table("t", &grouped()).unwrap();
        let world = World { os, db, table };
        let mut txn = world.db.begin(Isolation::ReadCommitted);
        for id in 0..ROWS {
            world.insert(&mut txn, id, 0).unwrap();
        }
        txn.commit().unwrap();
        world
    }

    fn insert(&self, txn: &mut Transaction, id: u32, group: u32) -> peregrine::Result<()> {
        let body = body(id + group);
        let row = [Value::from(id), Value::from(group), Value::from(&body[..])];
        txn.insert(&self.table, &row)
    }

    /// Begins a transaction with one more row, and then a statement that changes every row, whose rollback fails.
    fn half_undone(&self, all: bool) -> (Transaction, Savepoint) {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        self.insert(&mut txn, ROWS, 1).unwrap();
        let mark = txn.savepoint();
        for id in 0..ROWS {
            let key = self.table.encode_key(0, &[id.into()]).unwrap();
            let body = body(id + 7);
            let row = [Value::from(id), Value::from(2), Value::from(&body[..])];
            txn.update(&self.table, &key, &row).unwrap();
        }
        self.os.fail(FaultOn::Read, 0, ErrorKind::Other);
        let stopped = if all {
            txn.rollback()
        } else {
            txn.rollback_to(&mark)
        };
        assert!(matches!(stopped, Err(Error::Io { .. })), "{stopped:?}");
        (txn, mark)
    }

    /// Returns the number of rows that each index has, by group.
    fn groups(&self) -> [[usize; 3]; 2] {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        [0, 1].map(|index| {
            let mut found = [0; 3];
            let mut cursor = Cursor::new(&self.table, index, CursorOptions::default());
            let mut more = cursor.seek(&mut txn, b"", Seek::First).unwrap();
            while more {
                match cursor.row().unwrap().get(1).unwrap() {
                    Value::UInt(group) => found[group as usize] += 1,
                    other => panic!("{other:?}"),
                }
                more = cursor.next(&mut txn).unwrap();
            }
            found
        })
    }

    /// The disk works again: only committed rows exist, and all rows can be changed.
    fn ends_with(self, groups: [usize; 3]) {
        self.os.heal();
        self.db.purge().unwrap();
        assert_eq!(self.groups(), [groups; 2]);
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(Duration::ZERO);
        for id in 0..ROWS {
            let key = self.table.encode_key(0, &[id.into()]).unwrap();
            txn.delete(&self.table, &key).unwrap();
        }
        txn.rollback().unwrap();
        drop(self.table);
        self.db.close().unwrap();
        let db = Database::open_on(Arc::new(self.os.clone()), "/db", Options::default()).unwrap();
        let table = db.table("t").unwrap();
        let world = World {
            os: self.os,
            db,
            table,
        };
        assert_eq!(world.groups(), [groups; 2]);
    }
}

#[test]
fn it_is_not_committed() {
    let world = World::new();
    let (mut txn, _) = world.half_undone(false);
    world.os.heal();
    assert!(txn.commit().is_err());
    drop(txn);
    world.ends_with([ROWS as usize, 0, 0]);
}

#[test]
fn it_is_not_prepared() {
    let world = World::new();
    let (mut txn, _) = world.half_undone(false);
    world.os.heal();
    let name = Xid::new(1, b"half", b"").unwrap();
    assert!(txn.prepare(&name).is_err());
    txn.rollback().unwrap();
    world.ends_with([ROWS as usize, 0, 0]);
}

#[test]
fn it_goes_on_once_it_could_be_undone() {
    let world = World::new();
    let (mut txn, mark) = world.half_undone(false);
    assert!(txn.rollback_to(&mark).is_err());
    world.os.heal();
    txn.rollback_to(&mark).unwrap();
    txn.commit().unwrap();
    drop(txn);
    world.ends_with([ROWS as usize, 1, 0]);
}

#[test]
fn the_way_back_to_another_savepoint_does_not_make_it_whole() {
    let world = World::new();
    let (mut txn, mark) = world.half_undone(false);
    world.os.heal();
    let later = txn.savepoint();
    let refused = txn.rollback_to(&later);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    let refused = txn.commit();
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    drop((txn, mark));
    world.ends_with([ROWS as usize, 0, 0]);
}

#[test]
fn nothing_else_is_done_in_it() {
    let world = World::new();
    let (mut txn, mark) = world.half_undone(false);
    world.os.heal();
    let key = world.table.encode_key(0, &[7u32.into()]).unwrap();
    let refused = [
        world.insert(&mut txn, ROWS + 1, 1),
        txn.delete(&world.table, &key),
        txn.get(&world.table, &key, |_| ()).map(|_| ()),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    }
    txn.rollback_to(&mark).unwrap();
    world.insert(&mut txn, ROWS + 1, 1).unwrap();
    txn.commit().unwrap();
    drop(txn);
    world.ends_with([ROWS as usize, 2, 0]);
}

/// The undone changes were not in the log yet; some earlier ones are.
#[test]
fn the_way_back_can_go_on_to_an_earlier_savepoint() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let world = World::new();
    let mut txn = world.db.begin(Isolation::ReadCommitted);
    world.insert(&mut txn, ROWS, 1).unwrap();
    let earlier = txn.savepoint();
    for id in ROWS + 1..ROWS + 150 {
        world.insert(&mut txn, id, 1).unwrap();
    }
    let mark = txn.savepoint();
    for id in (0..60).map(|n| n * 25) {
        let key = world.table.encode_key(0, &[id.into()]).unwrap();
        let body = body(id + 7);
        let row = [Value::from(id), Value::from(2), Value::from(&body[..])];
        txn.update(&world.table, &key, &row).unwrap();
    }
    // Evicts their pages.
    let mut reader = world.db.begin(Isolation::ReadCommitted);
    for id in 0..ROWS {
        let key = world.table.encode_key(0, &[id.into()]).unwrap();
        reader.get(&world.table, &key, |_| ()).unwrap().unwrap();
    }
    drop(reader);
    world.os.fail(FaultOn::Read, 20, ErrorKind::Other);
    let stopped = txn.rollback_to(&mark);
    assert!(matches!(stopped, Err(Error::Io { .. })), "{stopped:?}");
    world.os.heal();
    txn.rollback_to(&earlier).unwrap();
    txn.commit().unwrap();
    drop(txn);
    let os = world.os.crash(3);
    let db = Database::open_on(Arc::new(os.clone()), "/db", Options::default()).unwrap();
    let table = db.table("t").unwrap();
    World { os, db, table }.ends_with([ROWS as usize, 1, 0]);
}

/// One row operation changes more pages than memory holds, and reading them again fails.
#[test]
fn half_a_row_operation_is_not_committed() {
    const INDEXES: u32 = 24;
    let os = SimulatedOs::new(1);
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let mut schema = TableSchema {
        columns: vec![Column::new("id", INT)],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    for n in 1..=INDEXES {
        schema.columns.push(Column::new(format!("c{n}"), INT));
        let index = Index::new(format!("i{n}"), &[n as usize]);
        schema.indexes.push(index);
    }
    let table = db.create_table("t", &schema).unwrap();
    let row = |id: u32, round: u32| -> Vec<Value<'static>> {
        let scattered = id.wrapping_mul(2_654_435_761);
        let value = |n| scattered.rotate_left(n).wrapping_add(round * 40_503);
        let values = (1..=INDEXES).map(|n| Value::from(value(n)));
        std::iter::once(Value::from(id)).chain(values).collect()
    };
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..6_000 {
        txn.insert(&table, &row(id, 0)).unwrap();
    }
    txn.commit().unwrap();
    let mut refused = 0;
    for round in 0..60u32 {
        let mut txn = db.begin(Isolation::ReadCommitted);
        for n in 0..10 {
            let n = round * 10 + n;
            let id = n.wrapping_mul(7_919) % 6_000;
            let key = table.encode_key(0, &[id.into()]).unwrap();
            os.fail(FaultOn::Read, u64::from(n % 29), ErrorKind::Other);
            let _failed = txn.update(&table, &key, &row(id, round + 1));
            os.heal();
        }
        refused += u32::from(txn.commit().is_err());
    }
    assert!(refused > 0);
    db.purge().unwrap();
    let mut report = Report::default();
    db.check_table("t", &|| false, &mut report).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// The object's next transaction is not affected.
#[test]
fn the_rest_of_a_rollback_is_not_in_the_next_transaction() {
    let world = World::new();
    let (mut txn, _) = world.half_undone(true);
    world.os.heal();
    world.insert(&mut txn, ROWS + 1, 1).unwrap();
    txn.commit().unwrap();
    drop(txn);
    world.ends_with([ROWS as usize, 1, 0]);
}

/// The commit is refused, and its rollback fails.
#[test]
fn the_next_transaction_of_the_object_is_as_patient_and_of_the_same_session() {
    let world = World::new();
    let (mut txn, _) = world.half_undone(false);
    txn.set_lock_wait_timeout(Duration::ZERO);
    txn.set_session(7);
    assert!(txn.commit().is_err());
    // The unfinished rollback belongs to no session, so a wait for it is not a wait for a session.
    let left = world.db.inspect().transactions;
    assert!(!left.is_empty() && left.iter().all(|t| t.session != 7));
    world.os.heal();
    let mut other = world.db.begin(Isolation::ReadCommitted);
    world.insert(&mut other, ROWS + 1, 1).unwrap();
    let refused = world.insert(&mut txn, ROWS + 1, 1);
    assert!(
        matches!(refused, Err(Error::LockNotAvailable)),
        "{refused:?}"
    );
    drop(other);
    world.insert(&mut txn, ROWS + 1, 1).unwrap();
    let entries = world.db.inspect().transactions;
    let own = entries
        .iter()
        .find(|t| Some(t.id) == txn.id().map(|id| id.0));
    assert_eq!(own.unwrap().session, 7);
    txn.commit().unwrap();
    drop(txn);
    world.ends_with([ROWS as usize, 1, 0]);
}

#[test]
fn a_restart_undoes_it_too() {
    for all in [true, false] {
        let world = World::new();
        let (txn, _) = world.half_undone(all);
        world.os.heal();
        let after = world.os.crash(3);
        std::mem::forget(txn);
        let db = Database::open_on(Arc::new(after.clone()), "/db", Options::default()).unwrap();
        let table = db.table("t").unwrap();
        let after = World {
            os: after,
            db,
            table,
        };
        after.ends_with([ROWS as usize, 0, 0]);
    }
}

/// Dropping a table that the transaction has used sends its collected changes to the log.
///
/// Undone changes would get there, and no record would undo them. The log has nothing of a table of one session.
#[test]
fn a_table_that_it_drops_sends_nothing_undone_to_the_log() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    for of_one_session in [false, true] {
        let world = World::new();
        let options = TableOptions {
            of_one_session,
            ..TableOptions::default()
        };
        let other = world.db.create_table_with("other", &grouped(), &options);
        let other = other.unwrap();
        let mut txn = world.db.begin(Isolation::ReadCommitted);
        world.insert(&mut txn, ROWS, 1).unwrap();
        let row = [1u32.into(), 1u32.into(), Value::from(&b"body"[..])];
        txn.insert(&other, &row).unwrap();
        let mark = txn.savepoint();
        for id in (0..60).map(|n| n * 25) {
            let key = world.table.encode_key(0, &[id.into()]).unwrap();
            let body = body(id + 7);
            let row = [Value::from(id), Value::from(2), Value::from(&body[..])];
            txn.update(&world.table, &key, &row).unwrap();
        }
        // Evicts their pages.
        let mut reader = world.db.begin(Isolation::ReadCommitted);
        for id in 0..ROWS {
            let key = world.table.encode_key(0, &[id.into()]).unwrap();
            reader.get(&world.table, &key, |_| ()).unwrap().unwrap();
        }
        drop(reader);
        world.os.fail(FaultOn::Read, 20, ErrorKind::Other);
        let stopped = txn.rollback_to(&mark);
        assert!(matches!(stopped, Err(Error::Io { .. })), "{stopped:?}");
        world.os.heal();
        let dropped = world.db.drop_table_used_by(&mut txn, "other");
        if of_one_session {
            dropped.unwrap();
        } else {
            assert!(matches!(dropped, Err(Error::Invalid(_))), "{dropped:?}");
        }
        txn.rollback_to(&mark).unwrap();
        if !of_one_session {
            world.db.drop_table_used_by(&mut txn, "other").unwrap();
        }
        txn.commit().unwrap();
        drop(txn);
        let os = world.os.crash(3);
        let db = Database::open_on(Arc::new(os.clone()), "/db", Options::default()).unwrap();
        let table = db.table("t").unwrap();
        World { os, db, table }.ends_with([ROWS as usize, 1, 0]);
    }
}
