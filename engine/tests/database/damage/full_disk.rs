//! A disk that is full of log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use peregrine::os::simulated::SimulatedOs;
use peregrine::{Database, Error, Isolation, Options, Table, Value};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::{bodies, noise};

const ROWS: u32 = 8_000;
const DIR: &str = "/db";

fn options() -> Options {
    Options {
        pool_bytes: 16 << 20,
        // Checkpoints run only because of a full disk.
        log_bytes: 1 << 30,
        log_segment_bytes: Some(1 << 20),
        recovery_target: Duration::ZERO,
        checkpoint_interval: Duration::from_secs(3600),
        ..Options::default()
    }
}

fn body(version: u32) -> Vec<u8> {
    noise(version, 400)
}

/// Gives some rows new bodies, all of them or none.
fn change(db: &Database, table: &Table, ids: &[u32], version: u32) -> Result<(), Error> {
    let mut txn = db.begin(Isolation::ReadCommitted);
    for &id in ids {
        let key = table.encode_key(0, &[Value::UInt(id.into())])?;
        let body = body(version);
        txn.delete(table, &key)?;
        txn.insert(table, &[Value::UInt(id.into()), Value::Bytes(&body)])?;
    }
    txn.commit()
}

fn contents(db: &Database) -> BTreeMap<u32, Vec<u8>> {
    let table = db.table("t").unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    (0..ROWS)
        .map(|id| {
            let key = table.encode_key(0, &[Value::UInt(id.into())]).unwrap();
            let row = |row: peregrine::RowView<'_>| row.to_values().unwrap().pop().unwrap();
            match txn.get(&table, &key, row).unwrap() {
                Some(peregrine::OwnedValue::Bytes(bytes)) => (id, bytes),
                other => panic!("row {id}: {other:?}"),
            }
        })
        .collect()
}

#[test]
fn a_disk_that_the_log_has_filled_is_made_room_on_by_a_checkpoint() {
    for seed in 0..4 {
        let mut random = StdRng::seed_from_u64(seed);
        let os = SimulatedOs::new(seed);
        let db = Database::open_on(Arc::new(os.clone()), DIR, options()).unwrap();
        let table = db.create_table("t", &bodies(1_000)).unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        for id in 0..ROWS {
            txn.insert(&table, &[Value::UInt(id.into()), Value::Bytes(&body(0))])
                .unwrap();
        }
        txn.commit().unwrap();
        db.checkpoint().unwrap();
        let mut model: BTreeMap<u32, u32> = (0..ROWS).map(|id| (id, 0)).collect();

        os.set_capacity(Some(os.used() + random.random_range(6 << 20..16 << 20)));
        let (mut refused, mut version) = (0, 0);
        while refused < 3 {
            version += 1;
            let ids: Vec<u32> = (0..8).map(|_| random.random_range(0..ROWS)).collect();
            let begun = Instant::now();
            let mut was_refused = false;
            while let Err(error) = change(&db, &table, &ids, version) {
                assert!(matches!(error, Error::NoSpace { .. }), "{error}");
                assert!(
                    begun.elapsed() < Duration::from_secs(60),
                    "seed {seed}: nothing goes on, {refused} refusals passed before"
                );
                was_refused = true;
                std::thread::sleep(Duration::from_millis(10));
            }
            refused += u32::from(was_refused);
            model.extend(ids.iter().map(|&id| (id, version)));
        }
        let after = os.crash(seed);
        drop(db);
        for (os, what) in [(after, "after a crash"), (os, "closed")] {
            let db = Database::open_on(Arc::new(os), Path::new(DIR), options()).unwrap();
            let found = contents(&db);
            let want: BTreeMap<u32, Vec<u8>> = model
                .iter()
                .map(|(&id, &version)| (id, body(version)))
                .collect();
            assert!(found == want, "seed {seed}, {what}: the rows differ");
        }
    }
}
