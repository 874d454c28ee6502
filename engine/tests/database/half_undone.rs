//! A rollback that fails on the way, for a page can't be brought into memory: what is left is never
//! committed, and goes when that can be done again.

use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, Options, Savepoint, Seek, Table,
    Transaction, Value, Xid,
};

use crate::schemas::{grouped, noise};

/// More than the pool holds, so that undoing needs pages that were written out.
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

    /// A transaction with one row more, and then a statement that changes every row, which can't be
    /// undone to its end.
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

    /// How many rows each index has, by group.
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

    /// The disk works again: nothing is there but what was committed, and all rows can be changed.
    fn ends_with(self, groups: [usize; 3]) {
        self.os.heal();
        self.db.purge().unwrap();
        assert_eq!(self.groups(), [groups; 2]);
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(std::time::Duration::ZERO);
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

/// What the same object does next has nothing to do with it.
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
