//! Read-ahead: the pages that a scan leaves in the pool, and the effect of failed reads.

use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Aggregate, Aggregated, Cursor, CursorOptions, Database, Error, IndexRange, Isolation, Options,
    Result, Seek, Table, Value,
};

use crate::tables::schemas::{grouped, noise};

/// Inserts rows with ids from 0, five per page, with their groups scattered over them.
fn fill(db: &Database, name: &str, rows: u32) -> Arc<Table> {
    let table = db.create_table(name, &grouped()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..rows {
        let body = noise(id, 3_000);
        txn.insert(&table, &[id.into(), (id % 7).into(), Value::Bytes(&body)])
            .unwrap();
    }
    txn.commit().unwrap();
    db.checkpoint().unwrap();
    table
}

/// Returns the ids that a cursor finds, all of them or those of a group, and checks each body.
fn ids(db: &Database, table: &Arc<Table>, seek: Seek, group: Option<u32>) -> Result<Vec<u32>> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let index = usize::from(group.is_some());
    let mut cursor = Cursor::new(table, index, CursorOptions::default());
    let prefix = match group {
        Some(group) => table.encode_key(1, &[group.into()])?,
        None => Vec::new(),
    };
    let mut found = Vec::new();
    let mut on = cursor.seek(&mut txn, &prefix, seek)?;
    while on {
        let row = cursor.row()?;
        let Value::UInt(id) = row.get(0)? else {
            panic!("no id")
        };
        let id = id as u32;
        assert_eq!(row.get(2)?, Value::Bytes(&noise(id, 3_000)), "row {id}");
        found.push(id);
        on = match seek {
            Seek::Last => cursor.prev(&mut txn)?,
            Seek::Exact => cursor.next_same_prefix(&mut txn)?,
            _ => cursor.next(&mut txn)?,
        };
    }
    Ok(found)
}

/// Creates a table of which a quarter of the pool is in use, and one several times larger than the pool.
fn hot_and_large(options: Options) -> (SimulatedOs, Database, [Arc<Table>; 2]) {
    let os = SimulatedOs::new(3);
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let large = fill(&db, "large", 3_000);
    let hot = fill(&db, "hot", 160);
    (os, db, [hot, large])
}

#[test]
fn a_scan_of_more_than_the_pool_leaves_in_it_what_is_in_use() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    // No background work happens, so that the figures are always the same.
    let options = Options {
        pool_bytes: 2 << 20,
        background: false,
        scan_threads: 1,
        ..Options::default()
    };
    let (_os, db, [hot, large]) = hot_and_large(options);
    let misses = |what: &dyn Fn()| {
        let before = db.status().pages_read;
        what();
        db.status().pages_read - before
    };
    let points = || {
        let mut txn = db.begin(Isolation::RepeatableRead);
        for id in 0..160u32 {
            let key = hot.encode_key(0, &[id.into()]).unwrap();
            assert!(txn.get(&hot, &key, |_| ()).unwrap().is_some());
        }
    };
    points();
    assert_eq!(misses(&points), 0, "it fits");
    let whole = IndexRange::whole(0);
    for scan in 0..3 {
        let read = misses(&|| match scan {
            0 => assert_eq!(ids(&db, &large, Seek::First, None).unwrap().len(), 3_000),
            1 => assert_eq!(ids(&db, &large, Seek::Last, None).unwrap().len(), 3_000),
            _ => {
                let mut txn = db.begin(Isolation::RepeatableRead);
                let got = txn.aggregate(&large, &whole, &[], &[Aggregate::Sum(1)]);
                let sum = (0..3_000).map(|id| i128::from(id % 7)).sum();
                let values = 3_000;
                assert_eq!(got.unwrap(), [Aggregated::Sum { sum, values }]);
            }
        });
        assert!(read > 400, "{read} pages read: the table does not fit");
        let lost = misses(&points);
        assert!(
            lost <= 8,
            "{lost} of 32 pages in use were gone after scan {scan}"
        );
    }
    // The zone maps of evicted leaves are kept.
    let read = misses(&|| {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.aggregate(&large, &whole, &[], &[Aggregate::Sum(1)])
            .unwrap();
    });
    assert!(read < 20, "{read} pages read for what was known");
}

#[test]
fn what_leaves_came_to_is_forgotten_when_they_change() {
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let (_os, db, [_, large]) = hot_and_large(options);
    let mut expected: i128 = (0..3_000).map(|id| i128::from(id % 7)).sum();
    for round in 0..30u32 {
        let mut txn = db.begin(Isolation::ReadCommitted);
        let sum = txn.aggregate(&large, &IndexRange::whole(0), &[], &[Aggregate::Sum(1)]);
        let values = 3_000 - u64::from(round);
        let sums = Aggregated::Sum {
            sum: expected,
            values,
        };
        assert_eq!(sum.unwrap(), [sums], "round {round}");
        // Rows far apart, in leaves that are not in memory; one is deleted, and one gets another group.
        let (gone, changed) = (round * 90 + 1, round * 90 + 45);
        let key = |id: u32| large.encode_key(0, &[id.into()]).unwrap();
        txn.delete(&large, &key(gone)).unwrap();
        let body = noise(changed, 3_000);
        let row = [changed.into(), 1_000u32.into(), Value::Bytes(&body)];
        txn.update(&large, &key(changed), &row).unwrap();
        txn.commit().unwrap();
        expected += 1_000 - i128::from(changed % 7) - i128::from(gone % 7);
        db.purge().unwrap();
    }
}

#[test]
fn a_read_ahead_that_fails_is_no_error_of_the_statement() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    for background in [false, true] {
        let options = Options {
            pool_bytes: 2 << 20,
            background,
            ..Options::default()
        };
        let (os, db, [hot, large]) = hot_and_large(options);
        let everything: Vec<u32> = (0..3_000).collect();
        let of_group: Vec<u32> = everything
            .iter()
            .copied()
            .filter(|id| id % 7 == 4)
            .collect();
        let (mut right, mut refused) = (0, 0);
        for after in 0..40 {
            // Evicts the pages that the last round read.
            ids(&db, &hot, Seek::First, None).unwrap();
            os.fail_once(FaultOn::Read, after * 3, ErrorKind::Other);
            for (seek, group, expected) in [
                (Seek::First, None, &everything),
                (Seek::Exact, Some(4), &of_group),
            ] {
                match ids(&db, &large, seek, group) {
                    Ok(found) => {
                        right += 1;
                        assert_eq!(&found, expected);
                    }
                    Err(Error::Io { .. }) => refused += 1,
                    Err(other) => panic!("{other}"),
                }
            }
            os.heal();
        }
        // Most reads are of several pages; after a failure they are read again one by one.
        assert!(right > 3 * refused, "{right} right, {refused} refused");
        os.fail(FaultOn::Read, 0, ErrorKind::Other);
        let refused = ids(&db, &large, Seek::First, None);
        assert!(matches!(refused, Err(Error::Io { .. })), "it was needed");
        os.heal();
        assert_eq!(ids(&db, &large, Seek::First, None).unwrap(), everything);
    }
}
