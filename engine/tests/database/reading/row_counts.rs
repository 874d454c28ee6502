//! The number of rows in a table's statistics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use peregrine::os::simulated::SimulatedOs;
use peregrine::{Cursor, CursorOptions, Database, Isolation, Options, Seek, Value};

use crate::tables::schemas::grouped;

/// A checkpoint between a commit and the count of its rows would have one without the other.
#[test]
fn checkpoints_have_commits_together_with_their_numbers_of_rows() {
    let os = SimulatedOs::new(1);
    let options = || Options {
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
    let table = db.create_table("t", &grouped()).unwrap();
    let stop = AtomicBool::new(false);
    let crashes: Vec<SimulatedOs> = std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 0u32.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let mut txn = db.begin(Isolation::ReadCommitted);
                let row = [id.into(), 1u32.into(), Value::Bytes(b"")];
                txn.insert(&table, &row).unwrap();
                txn.commit().unwrap();
            }
        });
        let crashes = (0..20)
            .map(|seed| {
                db.checkpoint().unwrap();
                os.crash(seed)
            })
            .collect();
        stop.store(true, Ordering::Relaxed);
        crashes
    });
    for os in crashes {
        let db = Database::open_on(Arc::new(os), "/db", options()).unwrap();
        let table = db.table("t").unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
        let mut rows = 0;
        let mut found = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        while found {
            rows += 1;
            found = cursor.next(&mut txn).unwrap();
        }
        assert_eq!(table.estimate_rows(), rows);
    }
}
