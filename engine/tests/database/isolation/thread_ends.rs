//! Objects that are dropped at a thread's end.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use peregrine::os::simulated::SimulatedOs;
use peregrine::{Database, Isolation, Options, Table, Transaction, Value};

use crate::tables::schemas::numbered;

thread_local! {
    static LEFT: RefCell<Option<Transaction>> = const { RefCell::new(None) };
}

fn insert(txn: &mut Transaction, table: &Table) {
    txn.insert(table, &[1u32, 1, 1].map(Value::from)).unwrap();
}

#[test]
fn a_transaction_that_goes_with_its_thread_is_rolled_back() {
    let options = Options {
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(SimulatedOs::new(1)), "/db", options).unwrap();
    let db = Arc::new(db);
    let table = db.create_table("t", &numbered()).unwrap();
    let thread = std::thread::spawn({
        let (db, table) = (db.clone(), table.clone());
        // `LEFT` is used first, so it is dropped after the engine's own thread-local data.
        move || {
            LEFT.with_borrow_mut(|left| {
                let txn = left.insert(db.begin(Isolation::ReadCommitted));
                insert(txn, &table);
            });
        }
    });
    thread.join().unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.set_lock_wait_timeout(Duration::ZERO);
    insert(&mut txn, &table);
    txn.commit().unwrap();
}
