//! One read fails during recovery: the database does not open, or it has the state of the last commit.

use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::check::Report;
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Cursor, CursorOptions, Database, Isolation, Options, Seek, Table, Transaction, Value,
};

use crate::tables::schemas::{grouped, noise};

const COMMITTED: u32 = 50;

fn options() -> Options {
    Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    }
}

fn insert(txn: &mut Transaction, table: &Table, ids: std::ops::Range<u32>, group: u32) {
    for id in ids {
        let body = noise(id, 100);
        let row = [Value::from(id), Value::from(group), Value::from(&body[..])];
        txn.insert(table, &row).unwrap();
    }
}

fn rows(db: &Database, table: &Arc<Table>) -> u32 {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(table, 0, CursorOptions::default());
    let mut rows = 0;
    let mut found = cursor.seek(&mut txn, &[], Seek::First).unwrap();
    while found {
        rows += 1;
        found = cursor.next(&mut txn).unwrap();
    }
    rows
}

#[test]
fn a_failed_read_in_recovery_keeps_no_change_of_a_loser() {
    let os = SimulatedOs::new(1);
    let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
    let table = db.create_table("t", &grouped()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    insert(&mut txn, &table, 0..COMMITTED, 1);
    txn.commit().unwrap();
    let mut loser = db.begin(Isolation::ReadCommitted);
    insert(&mut loser, &table, COMMITTED..COMMITTED + 10, 2);
    db.checkpoint().unwrap();

    let mut refused = 0;
    for read in 0.. {
        let after = os.crash(read);
        after.fail_once(FaultOn::Read, read, ErrorKind::Other);
        let opened = Database::open_on(Arc::new(after.clone()), "/db", options());
        let unhurt = after.struck() == 0;
        after.heal();
        match opened {
            Err(_) => refused += 1,
            Ok(db) => {
                let table = db.table("t").unwrap();
                assert_eq!(rows(&db, &table), COMMITTED, "read {read} failed");
                let mut report = Report::default();
                db.check_table("t", &|| false, &mut report).unwrap();
                assert_eq!(report.problems, Vec::<String>::new(), "read {read} failed");
            }
        }
        if unhurt {
            break;
        }
    }
    assert!(refused > 10, "{refused} openings were refused");
}
