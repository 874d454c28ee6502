//! Bulk inserts: their result, their visibility while they run, and their failures.

use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::check::Report;
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options,
    Savepoint, Seek, Table, TableSchema, Transaction, Value,
};

use crate::tables::schemas::{grouped, noise, INT};

const BY_GROUP: usize = 1;

struct World {
    os: SimulatedOs,
    db: Database,
    table: Arc<Table>,
}

impl World {
    fn new(pool_bytes: usize) -> World {
        World::with(pool_bytes, &grouped())
    }

    fn with(pool_bytes: usize, schema: &TableSchema) -> World {
        let os = SimulatedOs::new(1);
        let options = Options {
            pool_bytes,
            ..Options::default()
        };
        let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
        let table = db.create_table("t", schema).unwrap();
        World { os, db, table }
    }

    fn begin(&self) -> Transaction {
        self.db.begin(Isolation::ReadCommitted)
    }

    /// Inserts rows with groups in random order.
    fn insert(
        &self,
        txn: &mut Transaction,
        ids: std::ops::Range<u32>,
        body: &[u8],
    ) -> peregrine::Result<()> {
        for id in ids {
            let group = id.wrapping_mul(2_654_435_761);
            txn.insert(&self.table, &[id.into(), group.into(), body.into()])?;
        }
        Ok(())
    }

    /// Returns the ids of the rows, in the order of the index.
    fn by_group(&self, txn: &mut Transaction) -> Vec<u32> {
        let mut cursor = Cursor::new(&self.table, BY_GROUP, CursorOptions::default());
        let mut ids = Vec::new();
        let mut found = cursor.seek(txn, &[], Seek::First).unwrap();
        while found {
            match cursor.row().unwrap().get(0).unwrap() {
                Value::UInt(id) => ids.push(u32::try_from(id).unwrap()),
                other => panic!("{other:?}"),
            }
            found = cursor.next(txn).unwrap();
        }
        ids.sort_unstable();
        ids
    }

    /// Checks that the table is sound, and has these rows.
    fn holds(&self, rows: std::ops::Range<u32>) {
        let mut txn = self.db.begin(Isolation::RepeatableRead);
        assert_eq!(self.by_group(&mut txn), rows.collect::<Vec<_>>());
        let mut report = Report::default();
        self.db.check_table("t", &|| false, &mut report).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
    }
}

const POOL: usize = 32 << 20;

#[test]
fn the_transaction_itself_sees_its_rows_and_others_do_not() {
    let world = World::new(POOL);
    let mut txn = world.begin();
    txn.begin_bulk_insert(&world.table);
    world.insert(&mut txn, 0..50, b"one").unwrap();
    assert_eq!(world.by_group(&mut txn), (0..50).collect::<Vec<_>>());
    world.insert(&mut txn, 50..100, b"two").unwrap();
    let key = world.table.encode_key(0, &[70u32.into()]).unwrap();
    txn.delete(&world.table, &key).unwrap();
    world.insert(&mut txn, 70..71, b"again").unwrap();
    world.holds(0..0);
    txn.commit().unwrap();
    world.holds(0..100);
}

#[test]
fn it_goes_back_to_savepoints() {
    let world = World::new(POOL);
    let mut txn = world.begin();
    txn.begin_bulk_insert(&world.table);
    world.insert(&mut txn, 0..50, b"stays").unwrap();
    let mark = txn.savepoint();
    world.insert(&mut txn, 50..100, b"goes").unwrap();
    txn.rollback_to(&mark).unwrap();
    world.insert(&mut txn, 50..60, b"comes").unwrap();
    let twice = world.insert(&mut txn, 7..8, b"twice");
    assert!(matches!(twice, Err(Error::Duplicate { index: 0 })));
    txn.end_bulk_insert().unwrap();
    world.insert(&mut txn, 60..70, b"not in bulk").unwrap();
    txn.commit().unwrap();
    world.holds(0..70);

    let mut txn = world.begin();
    txn.begin_bulk_insert(&world.table);
    world.insert(&mut txn, 70..80, b"gone").unwrap();
    txn.rollback().unwrap();
    world.holds(0..70);
}

#[test]
fn a_checkpoint_between_rows_and_their_entries_loses_nothing() {
    for commits in [true, false] {
        let world = World::new(1 << 20);
        let mut txn = world.begin();
        txn.begin_bulk_insert(&world.table);
        world.insert(&mut txn, 0..2_000, &noise(2, 100)).unwrap();
        world.db.checkpoint().unwrap();
        world
            .insert(&mut txn, 2_000..3_000, &noise(3, 100))
            .unwrap();
        if commits {
            txn.commit().unwrap();
        }
        let os = world.os.crash(5);
        let db = Database::open_on(Arc::new(os.clone()), "/db", Options::default()).unwrap();
        let table = db.table("t").unwrap();
        let after = World { os, db, table };
        after.holds(0..if commits { 3_000 } else { 0 });
    }
}

#[test]
fn indexes_stay_smaller() {
    let pages = |in_bulk: bool| {
        let world = World::new(POOL);
        let mut txn = world.begin();
        if in_bulk {
            txn.begin_bulk_insert(&world.table);
        }
        world.insert(&mut txn, 0..30_000, b"").unwrap();
        txn.commit().unwrap();
        world.holds(0..30_000);
        world.db.status().pool_pages_used
    };
    let (in_bulk, one_by_one) = (pages(true), pages(false));
    // With random knobs, helpers may have read all of either table.
    assert!(
        in_bulk < one_by_one || peregrine::knobs::SHAKEN,
        "{in_bulk}, {one_by_one}"
    );
}

#[test]
fn entries_beyond_what_is_deferred_go_in_at_once() {
    let world = World::new(1 << 20);
    let mut txn = world.begin();
    txn.begin_bulk_insert(&world.table);
    // Each deferred entry takes about 30 bytes, and at most 1 MiB is kept.
    world.insert(&mut txn, 0..80_000, b"").unwrap();
    txn.commit().unwrap();
    world.holds(0..80_000);
}

#[test]
fn a_killed_one_leaves_nothing() {
    let world = World::new(POOL);
    let mut txn = world.begin();
    let mark = txn.savepoint();
    txn.begin_bulk_insert(&world.table);
    world.insert(&mut txn, 0..1_000, b"").unwrap();
    txn.kill_handle().kill();
    assert!(matches!(txn.end_bulk_insert(), Err(Error::Interrupted)));
    txn.rollback_to(&mark).unwrap();
    drop(txn);
    world.holds(0..0);
}

/// Begins a transaction whose deferred entries can't be inserted, because reads fail.
fn stuck(world: &World, at_savepoint: bool) -> Transaction {
    let mut txn = world.begin();
    world.insert(&mut txn, 0..3_000, &noise(1, 300)).unwrap();
    world.insert(&mut txn, 3_000..60_000, b"").unwrap();
    txn.commit().unwrap();
    world.db.checkpoint().unwrap();
    txn.begin_bulk_insert(&world.table);
    world.insert(&mut txn, 60_000..70_000, b"").unwrap();
    world.os.fail(FaultOn::Read, 0, ErrorKind::Other);
    if at_savepoint {
        let mark = txn.savepoint();
        world.os.heal();
        txn.rollback_to(&mark).unwrap();
    } else {
        let ended = txn.end_bulk_insert();
        assert!(matches!(ended, Err(Error::Io { .. })), "{ended:?}");
        world.os.heal();
    }
    txn
}

#[test]
fn what_could_not_be_put_in_goes_in_later() {
    let world = World::new(1 << 20);
    stuck(&world, false).commit().unwrap();
    world.holds(0..70_000);
}

/// The error is that of the savepoint.
#[test]
fn rows_that_lack_entries_are_neither_read_nor_committed() {
    let world = World::new(1 << 20);
    let mut txn = stuck(&world, true);
    let mut cursor = Cursor::new(&world.table, BY_GROUP, CursorOptions::default());
    let refused = cursor.seek(&mut txn, &[], Seek::First);
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    let refused = txn.commit();
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    world.holds(0..60_000);
}

/// Begins a transaction that is killed while a savepoint inserts its deferred entries; returns it with the savepoint.
fn killed(world: &World, mut txn: Transaction) -> (Transaction, Savepoint) {
    txn.begin_bulk_insert(&world.table);
    world.insert(&mut txn, 0..1_000, b"").unwrap();
    txn.kill_handle().kill();
    let mark = txn.savepoint();
    txn.kill_handle().clear();
    assert!(mark.missing_entries().is_some());
    (txn, mark)
}

/// An interrupted or timed-out operation may be tried again; here every retry would fail.
#[test]
fn rows_that_lack_entries_for_a_wait_in_vain_do_not_ask_for_another_try() {
    let world = World::new(8 << 20);
    let (mut txn, mark) = killed(&world, world.begin());
    txn.rollback_to(&mark).unwrap();
    match txn.commit() {
        Err(Error::Invalid(why)) => assert!(why.contains("rolled back"), "{why}"),
        refused => panic!("{refused:?}"),
    }
    world.holds(0..0);
}

/// Also after the bulk insert has ended, when nothing is deferred.
#[test]
fn rows_that_lack_entries_are_not_committed_once_the_bulk_insert_has_ended() {
    let world = World::new(8 << 20);
    let (mut txn, mark) = killed(&world, world.begin());
    txn.end_bulk_insert().unwrap();
    txn.rollback_to(&mark).unwrap();
    let later = txn.savepoint();
    txn.rollback_to(&later).unwrap();
    assert!(matches!(txn.commit(), Err(Error::Invalid(_))));
    world.holds(0..0);
}

#[test]
fn a_transaction_that_goes_back_before_rows_that_lack_entries_goes_on() {
    let world = World::new(8 << 20);
    let mut txn = world.begin();
    let before = txn.savepoint();
    let (mut txn, mark) = killed(&world, txn);
    txn.rollback_to(&mark).unwrap();
    txn.rollback_to(&before).unwrap();
    world.insert(&mut txn, 1_000..1_010, b"").unwrap();
    txn.commit().unwrap();
    world.holds(1_000..1_010);
}

#[test]
fn a_savepoint_at_which_entries_could_not_be_put_in_does_no_harm_unless_it_is_used() {
    let world = World::new(1 << 20);
    let mut txn = stuck(&world, false);
    world.insert(&mut txn, 70_000..70_010, b"").unwrap();
    world.os.fail(FaultOn::Read, 0, ErrorKind::Other);
    let mark = txn.savepoint();
    world.os.heal();
    world.insert(&mut txn, 70_010..70_020, b"").unwrap();
    drop(mark);
    txn.commit().unwrap();
    world.holds(0..70_020);
}

/// Rows with a value outside the row, of which every second is refused.
///
/// Sometimes deferred entries are inserted just before a row that is refused.
#[test]
fn a_refused_long_row_takes_no_entries_of_earlier_rows_along() {
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("long key", ColumnType::VarBytes { max: 1000 }),
            Column::new("body", ColumnType::Large { max: 100_000 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("long key", &[1])],
        user: vec![],
    };
    let world = World::with(8 << 20, &schema);
    let mut txn = world.begin();
    txn.begin_bulk_insert(&world.table);
    let body = noise(7, 4000);
    for id in 0..2_000 {
        let long_key = noise(id, 900);
        let row = [
            id.into(),
            Value::from(&long_key[..]),
            Value::from(&body[..]),
        ];
        txn.insert(&world.table, &row).unwrap();
        let again = txn.insert(&world.table, &row);
        assert!(
            matches!(again, Err(Error::Duplicate { index: 0 })),
            "{again:?}"
        );
    }
    txn.commit().unwrap();
    world.holds(0..2_000);
}
