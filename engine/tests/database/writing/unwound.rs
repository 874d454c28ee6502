//! Panics of a program's code in the middle of a change: in its collation, and in its report of a wait.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use peregrine::os::simulated::SimulatedOs;
use peregrine::{
    Collations, Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key,
    Options, Result, RowLock, Savepoint, Seek, Sessions, Table, TableOptions, TableSchema,
    ToldWaits, Transaction, Value,
};

use crate::reading::ascii::{Ascii, NO_CASE};
use crate::tables::schemas::{grouped, INT};

/// A collation that panics on request.
#[derive(Default)]
struct Moody(AtomicBool);

impl Collations for Moody {
    fn sort_key(
        &self,
        collation: u32,
        value: &[u8],
        prefix_chars: Option<u32>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        assert!(!self.0.load(Ordering::SeqCst), "not today");
        Ascii.sort_key(collation, value, prefix_chars, out)
    }
}

struct World {
    moody: Arc<Moody>,
    db: Database,
    table: Arc<Table>,
}

impl World {
    fn new() -> World {
        let moody = Arc::new(Moody::default());
        let options = Options {
            collations: Some(moody.clone()),
            ..Options::default()
        };
        let db = Database::open_on(Arc::new(SimulatedOs::new(1)), "/db", options).unwrap();
        let name = Column::new("name", ColumnType::VarBytes { max: 40 }).collation(NO_CASE);
        let schema = TableSchema {
            columns: vec![Column::new("id", INT), name],
            primary: Some(Key::new(&[0])),
            indexes: vec![Index::new("name", &[1])],
            user: vec![],
        };
        let table = db.create_table("t", &schema).unwrap();
        World { moody, db, table }
    }

    fn insert(&self, txn: &mut Transaction, id: u32) -> Result<()> {
        txn.insert(&self.table, &[id.into(), "name".into()])
    }

    /// Begins a transaction with row `id` and a savepoint, after which the insert of another row has unwound.
    fn unwound(&self, id: u32) -> (Transaction, Savepoint) {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        self.insert(&mut txn, id).unwrap();
        let savepoint = txn.savepoint();
        self.moody.0.store(true, Ordering::SeqCst);
        let outcome = catch_unwind(AssertUnwindSafe(|| self.insert(&mut txn, id + 1)));
        self.moody.0.store(false, Ordering::SeqCst);
        assert!(outcome.is_err());
        (txn, savepoint)
    }

    /// Returns the ids in an index.
    fn ids(&self, index: usize) -> Vec<Value<'static>> {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        let mut cursor = Cursor::new(&self.table, index, CursorOptions::default());
        let mut found = Vec::new();
        let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        while more {
            match cursor.row().unwrap().get(0).unwrap() {
                Value::UInt(id) => found.push(Value::UInt(id)),
                other => panic!("{other:?}"),
            }
            more = cursor.next(&mut txn).unwrap();
        }
        found
    }

    fn assert_ids(&self, ids: &[u64]) {
        let ids: Vec<_> = ids.iter().map(|&id| Value::UInt(id)).collect();
        assert_eq!((self.ids(0), self.ids(1)), (ids.clone(), ids));
    }
}

#[test]
fn a_transaction_with_half_a_row_is_not_committed() {
    let world = World::new();
    let (mut txn, _) = world.unwound(1);
    let refused = txn.commit();
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    world.assert_ids(&[]);
    // The object works normally.
    world.insert(&mut txn, 5).unwrap();
    txn.commit().unwrap();
    world.assert_ids(&[5]);
}

#[test]
fn the_way_back_before_the_half_row_makes_it_whole() {
    let world = World::new();
    let (mut txn, savepoint) = world.unwound(1);
    txn.rollback_to(&savepoint).unwrap();
    world.insert(&mut txn, 3).unwrap();
    txn.commit().unwrap();
    world.assert_ids(&[1, 3]);
}

/// Sessions that panic when a wait is reported.
struct Nervous;

impl Sessions for Nervous {
    fn told_waits(&self, _: u64) -> ToldWaits {
        panic!("not today either")
    }
}

fn nervous() -> Database {
    let options = Options {
        sessions: Some(Arc::new(Nervous)),
        ..Options::default()
    };
    Database::open_on(Arc::new(SimulatedOs::new(1)), "/db", options).unwrap()
}

/// The panic loses the deferred entries of a bulk insert.
#[test]
fn rows_without_entries_are_not_committed_where_a_wait_has_unwound() {
    let db = nervous();
    let table = db.create_table("t", &grouped()).unwrap();
    // The reader's range in the index blocks all entries.
    let mut reader = db.begin(Isolation::Serializable);
    let mut cursor = Cursor::new(&table, 1, CursorOptions::default());
    assert!(!cursor.seek(&mut reader, &[], Seek::First).unwrap());

    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.begin_bulk_insert(&table);
    let row: [Value<'_>; 3] = [1u32.into(), 7u32.into(), "body".into()];
    txn.insert(&table, &row).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| txn.end_bulk_insert()));
    assert!(outcome.is_err());
    reader.commit().unwrap();
    let refused = txn.commit();
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    assert!(!cursor.seek(&mut txn, &[], Seek::First).unwrap());
}

/// No thread would use the lock that is granted to it.
#[test]
fn who_unwinds_where_a_wait_is_told_of_waits_no_more() {
    let db = nervous();
    let table = db.create_table("t", &grouped()).unwrap();
    let mut holder = db.begin(Isolation::ReadCommitted);
    let row: [Value<'_>; 3] = [1u32.into(), 7u32.into(), "body".into()];
    holder.insert(&table, &row).unwrap();

    let key = table.encode_key(0, &[1u32.into()]).unwrap();
    let mut waiter = db.begin(Isolation::ReadCommitted);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        waiter.get_locked(&table, &key, RowLock::Exclusive, |_| ())
    }));
    assert!(outcome.is_err());
    waiter.rollback().unwrap();
    holder.commit().unwrap();

    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.set_lock_wait_timeout(Duration::ZERO);
    txn.delete(&table, &key).unwrap();
    txn.commit().unwrap();
}

#[test]
fn a_table_is_not_committed_whose_filling_has_unwound() {
    let world = World::new();
    let own = TableOptions {
        of_one_session: true,
        ..TableOptions::default()
    };
    let schema = world.table.schema();
    let table = world.db.create_table_with("own", &schema, &own).unwrap();
    let mut txn = world.db.begin(Isolation::ReadCommitted);
    txn.begin_fill(&table).unwrap();
    txn.insert(&table, &[1u32.into(), "name".into()]).unwrap();
    world.moody.0.store(true, Ordering::SeqCst);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        txn.insert(&table, &[2u32.into(), "name".into()])
    }));
    world.moody.0.store(false, Ordering::SeqCst);
    assert!(outcome.is_err());
    let refused = txn.commit();
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}
