//! Tables and transactions of two open databases with the same numbers.

use std::fmt::Debug;
use std::sync::Arc;

use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, Options, Result, Seek, Table, Transaction,
    Value,
};

use crate::tables::one_table::OneTable;
use crate::tables::schemas::numbered;

fn insert(txn: &mut Transaction, table: &Table, id: u32) -> Result<()> {
    txn.insert(table, &[id, id, id].map(Value::from))
}

/// Returns whether the transaction finds a row.
fn has(txn: &mut Transaction, table: &Table, id: u32) -> Result<bool> {
    let key = table.encode_key(0, &[id.into()])?;
    let found = txn.get(table, &key, |_| ())?;
    Ok(found.is_some())
}

fn assert_refused<T: Debug>(result: Result<T>) {
    assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
}

#[test]
fn a_transaction_takes_no_table_of_another_database() {
    let one = OneTable::new(&numbered());
    let other = OneTable::new(&numbered());
    assert_eq!(one.table.id(), other.table.id());

    let mut txn = one.begin();
    assert_refused(has(&mut txn, &other.table, 1));
    // The same after it has used its own table of that number.
    insert(&mut txn, &one.table, 1).unwrap();
    assert_refused(has(&mut txn, &other.table, 1));
    assert_refused(insert(&mut txn, &other.table, 2));
    let mut cursor = Cursor::new(&other.table, 0, CursorOptions::default());
    assert_refused(cursor.seek(&mut txn, &[], Seek::First));
    assert_refused(other.db.drop_table_used_by(&mut txn, "t"));
    txn.begin_bulk_insert(&other.table);
    insert(&mut txn, &one.table, 3).unwrap();
    txn.commit().unwrap();

    let mut txn = one.begin();
    assert!(has(&mut txn, &one.table, 1).unwrap() && has(&mut txn, &one.table, 3).unwrap());
    let mut txn = other.begin();
    assert!(!has(&mut txn, &other.table, 2).unwrap());
}

/// A row written into such a table would be lost.
#[test]
fn a_table_that_is_kept_over_a_reopening_is_refused() {
    let OneTable { os, db, table } = OneTable::new(&numbered());
    db.close().unwrap();
    let db = Database::open_on(Arc::new(os.clone()), "/db", Options::default()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    assert_refused(has(&mut txn, &table, 1));
    assert_refused(insert(&mut txn, &table, 1));
    let table = db.table("t").unwrap();
    insert(&mut txn, &table, 1).unwrap();
    txn.commit().unwrap();
    assert!(has(&mut txn, &table, 1).unwrap());
}
