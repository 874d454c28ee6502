//! A database on a simulated disk with one table.

use std::sync::Arc;
use std::time::Duration;

use peregrine::os::simulated::SimulatedOs;
use peregrine::{Database, Isolation, Options, Table, TableSchema, Transaction};

pub struct OneTable {
    pub os: SimulatedOs,
    pub db: Database,
    pub table: Arc<Table>,
}

impl OneTable {
    pub fn new(schema: &TableSchema) -> OneTable {
        let os = SimulatedOs::new(1);
        let db = open(&os);
        db.create_table("t", schema).unwrap();
        OneTable::of(os, db)
    }

    fn of(os: SimulatedOs, db: Database) -> OneTable {
        let table = db.table("t").unwrap();
        OneTable { os, db, table }
    }

    /// Begins a transaction that waits for no lock.
    pub fn begin(&self) -> Transaction {
        let mut txn = self.db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(Duration::ZERO);
        txn
    }

    /// Returns the database after a crash at this moment.
    ///
    /// `self` continues.
    pub fn after_a_crash(&self) -> OneTable {
        let os = self.os.crash(3);
        let db = open(&os);
        OneTable::of(os, db)
    }
}

fn open(os: &SimulatedOs) -> Database {
    Database::open_on(Arc::new(os.clone()), "/db", Options::default()).unwrap()
}
