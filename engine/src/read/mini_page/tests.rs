//! Mini-pages that can't be made.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::sync::Moment;
use crate::{
    Column, ColumnType, Cursor, CursorOptions, Database, Isolation, Key, Options, Seek,
    TableSchema, Value,
};

const ROWS: u64 = 12_000;

fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    TableSchema {
        columns: vec![
            Column::new("id", int),
            Column::new("n", int),
            Column::new("filler", ColumnType::VarBytes { max: 400 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

/// The inner nodes are evicted after the row was read, and can't be read again.
#[test]
fn a_row_that_was_read_is_given_where_no_copy_of_its_columns_can_be_made() {
    let os = SimulatedOs::new(1);
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..ROWS {
        let row = [Value::UInt(id), Value::UInt(7), Value::Bytes(&[7; 300])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    let pool = db.registry().pool().clone();
    let disk = os.clone();
    db.transactions().moments.at(Moment::RowBrought, move || {
        while pool.buffer_pool().evict_some(64).unwrap() > 0 {}
        disk.fail(FaultOn::Read, 0, ErrorKind::Other);
    });
    let key = table.encode_key(0, &[Value::UInt(5)]).unwrap();
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    cursor.set_columns(Some(&[1]));
    let found = cursor.seek(&mut txn, &key, Seek::Exact);
    os.heal();
    assert!(matches!(found, Ok(true)), "{found:?}");
    assert!(db.transactions().moments.passed());
}
