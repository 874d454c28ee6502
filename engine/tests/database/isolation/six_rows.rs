//! Six rows for tests of locks, and a list of the locked ones.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Column, Database, Error, Index, Isolation, Key, RowLock, Table, TableSchema, Transaction,
};

use crate::tables::schemas::{options, INT};

/// Creates rows 1 to 6: (id, number); the number is ten times the id.
pub fn six_rows(dir: &Path, indexes: Vec<Index>) -> (Database, Arc<Table>) {
    let db = Database::open(dir.join("db"), options()).unwrap();
    let schema = TableSchema {
        columns: vec![Column::new("id", INT), Column::new("number", INT)],
        primary: Some(Key::new(&[0])),
        indexes,
        user: vec![],
    };
    let table = db.create_table("rows", &schema).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 1..=6u32 {
        txn.insert(&table, &[id.into(), (10 * id).into()]).unwrap();
    }
    txn.commit().unwrap();
    (db, table)
}

/// Returns the rows that another transaction can't lock.
pub fn locked(db: &Database, table: &Arc<Table>) -> Vec<u32> {
    let mut other = db.begin(Isolation::ReadCommitted);
    other.set_lock_wait_timeout(Duration::ZERO);
    (1..=6)
        .filter(|&id| is_locked(&mut other, table, id))
        .collect()
}

fn is_locked(other: &mut Transaction, table: &Arc<Table>, id: u32) -> bool {
    let key = table.encode_key(0, &[id.into()]).unwrap();
    match other.get_locked(table, &key, RowLock::Exclusive, |_| ()) {
        Ok(found) => {
            assert!(found.is_some());
            false
        }
        Err(Error::LockNotAvailable) => true,
        Err(error) => panic!("{error}"),
    }
}
