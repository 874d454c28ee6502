//! Constant sums, beside writers that move amounts between rows.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use peregrine::{
    Aggregate, Aggregated, Database, IndexRange, Isolation, Options, OwnedValue, RowLock, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::reading::aggregates::schema;
use crate::tables::schemas::{noise, options};

/// Amounts move between rows, and rows are inserted and deleted, so that the sum is constant: every snapshot must have
/// it.
#[test]
fn sums_that_stay_are_found_beside_writers() {
    sums_that_stay(1, 0..400, 1_500);
}

/// The same with so many leaves that several threads read them.
#[test]
fn several_threads_find_sums_that_stay_beside_writers() {
    sums_that_stay(3, 2_400..2_900, 300);
}

/// Counts a writer as finished when it is dropped, even by a panic.
struct Writing<'a>(&'a AtomicUsize);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

fn sums_that_stay(scan_threads: usize, text_len: Range<usize>, transactions: usize) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        scan_threads,
        ..options()
    };
    let db = Database::open(dir.path(), options).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    const ROWS: u32 = 2_000;
    const EACH: i64 = 1_000;
    let put = |id: u32, amount: i64, len: usize| -> Vec<OwnedValue> {
        let text = noise(id, len);
        vec![
            OwnedValue::UInt(id.into()),
            OwnedValue::UInt(u64::from(id % 20)),
            OwnedValue::Int(amount),
            OwnedValue::Null,
            OwnedValue::Bytes(text),
        ]
    };
    fn borrowed(row: &[OwnedValue]) -> Vec<Value<'_>> {
        row.iter().map(OwnedValue::as_value).collect()
    }
    let mut load = db.begin(Isolation::RepeatableRead);
    for id in 0..ROWS {
        load.insert(&table, &borrowed(&put(id, EACH, text_len.start)))
            .unwrap();
    }
    load.commit().unwrap();
    let writing = AtomicUsize::new(2);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (db, table, writing, put) = (&db, &table, &writing, &put);
            let text_len = text_len.clone();
            scope.spawn(move || {
                let _writing = Writing(writing);
                let mut rng = StdRng::seed_from_u64(seed);
                for _ in 0..transactions {
                    let mut txn = db.begin(Isolation::ReadCommitted);
                    // In the order of keys, so that there is no deadlock.
                    let a = rng.random_range(0..ROWS - 1);
                    let b = rng.random_range(a + 1..ROWS);
                    let mut amounts = [0; 2];
                    for (id, amount) in [a, b].into_iter().zip(&mut amounts) {
                        let key = table.encode_key(0, &[id.into()]).unwrap();
                        let read = |row: peregrine::RowView<'_>| match row.get(2).unwrap() {
                            Value::Int(amount) => amount,
                            other => panic!("{other:?}"),
                        };
                        let found = txn.get_locked(table, &key, RowLock::Exclusive, read);
                        *amount = found.unwrap().unwrap();
                    }
                    let moved = rng.random_range(-50..50);
                    for (id, amount) in [(a, amounts[0] - moved), (b, amounts[1] + moved)] {
                        let len = rng.random_range(text_len.clone());
                        let row = put(id, amount, len);
                        let key = table.encode_key(0, &[id.into()]).unwrap();
                        if rng.random_ratio(1, 3) {
                            txn.delete(table, &key).unwrap();
                            txn.insert(table, &borrowed(&row)).unwrap();
                        } else {
                            txn.update(table, &key, &borrowed(&row)).unwrap();
                        }
                    }
                    match rng.random_ratio(1, 4) {
                        true => txn.rollback().unwrap(),
                        false => txn.commit().unwrap(),
                    }
                }
            });
        }
        let sum = Aggregated::Sum {
            sum: i128::from(ROWS) * i128::from(EACH),
            values: ROWS.into(),
        };
        let mut held = db.begin(Isolation::RepeatableRead);
        for n in 0.. {
            // Reads at least once after all writers have ended.
            let last = writing.load(Ordering::Acquire) == 0;
            if n % 8 == 0 {
                held.commit().unwrap();
            }
            let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead][n % 2];
            let mut txn = db.begin(isolation);
            for index in [0, 1] {
                let range = IndexRange::whole(index);
                for txn in [&mut txn, &mut held] {
                    let got = txn.aggregate(&table, &range, &[], &[Aggregate::Sum(2)]);
                    assert_eq!(got.unwrap(), std::slice::from_ref(&sum));
                }
            }
            if last {
                break;
            }
        }
    });
}
