//! Tables that are dropped, renamed or truncated while reads fail: the change is complete or has no effect, and affects
//! nothing else.

use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, Options, Seek, Table, TableSchema,
    Transaction, Value,
};

use crate::tables::schemas::{grouped, noise};

/// So many rows of this length need inner nodes below the root, and exceed the pool.
const ROWS: u32 = 1_000;
const BODY: usize = 3_000;
/// A definition with this many more bytes does not fit into one page of the catalog.
const LONG: usize = 40_000;

fn options() -> Options {
    Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    }
}

fn insert(db: &Database, name: &str, ids: std::ops::Range<u32>) {
    let table = db.table(name).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in ids {
        let body = noise(id, BODY);
        let row = [Value::from(id), Value::from(id % 7), Value::from(&body[..])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
}

fn rows(db: &Database, table: &Arc<Table>) -> u32 {
    rows_in(&mut db.begin(Isolation::RepeatableRead), table)
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

/// Reads single rows until the pool has nothing else: a scan's pages would be evicted first.
fn fill_pool(txn: &mut Transaction, table: &Arc<Table>) {
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    for id in (0..ROWS).chain(0..ROWS) {
        let key = table.encode_key(0, &[id.into()]).unwrap();
        assert!(cursor.seek(txn, &key, Seek::AtOrAfter).unwrap());
    }
}

/// Makes each read fail in turn; `longer`: extra bytes in the definition.
fn with_failing_reads(gone: u32, longer: usize, change: &dyn Fn(&Database) -> Result<(), Error>) {
    let schema = TableSchema {
        user: vec![1; longer],
        ..grouped()
    };
    let os = SimulatedOs::new(11);
    let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
    for name in ["other", "goes"] {
        db.create_table(name, &schema).unwrap();
        insert(&db, name, 0..ROWS);
    }
    db.checkpoint().unwrap();
    drop(db);

    let mut refused = 0;
    for read in 0.. {
        let os = os.crash(read);
        let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
        let mut older = db.begin(Isolation::RepeatableRead);
        fill_pool(&mut older, &db.table("other").unwrap());
        os.fail(FaultOn::Read, read, ErrorKind::Other);
        let changed = change(&db);
        let unhurt = os.struck() == 0;
        os.heal();
        if let Err(error) = &changed {
            refused += 1;
            assert!(matches!(error, Error::Io { .. }), "read {read}: {error}");
            // Older snapshots also still read the table.
            assert_eq!(rows_in(&mut older, &db.table("goes").unwrap()), ROWS);
        }
        drop(older);
        insert(&db, "other", ROWS..ROWS + 1);
        let check = |db: &Database| {
            assert_eq!(rows(db, &db.table("other").unwrap()), ROWS + 1);
            let left = db.table("goes").map_or(u32::MAX, |table| rows(db, &table));
            assert_eq!(
                left,
                if changed.is_ok() { gone } else { ROWS },
                "read {read}"
            );
        };
        check(&db);
        let after = os.crash(read);
        drop(db);
        check(&Database::open_on(Arc::new(after), "/db", options()).unwrap());
        if unhurt {
            break;
        }
    }
    assert!(
        peregrine::knobs::SHAKEN || refused > 0,
        "no read was needed"
    );
}

#[test]
fn a_table_whose_pages_can_not_be_read_is_dropped_or_stays_and_all_else_goes_on() {
    with_failing_reads(u32::MAX, 0, &|db| db.drop_table("goes"));
}

#[test]
fn a_table_whose_pages_can_not_be_read_is_truncated_or_stays_and_all_else_goes_on() {
    with_failing_reads(0, 0, &|db| db.truncate_table("goes"));
}

#[test]
fn a_table_whose_long_definition_can_not_be_read_is_dropped_or_stays() {
    with_failing_reads(u32::MAX, LONG, &|db| db.drop_table("goes"));
}

#[test]
fn a_table_whose_long_definition_can_not_be_read_is_truncated_or_stays() {
    with_failing_reads(0, LONG, &|db| db.truncate_table("goes"));
}

#[test]
fn a_table_whose_long_definition_can_not_be_read_is_renamed_or_stays() {
    with_failing_reads(u32::MAX, LONG, &|db| db.rename_table("goes", "gone"));
}
