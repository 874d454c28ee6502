//! Verification of a table while other threads change it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use peregrine::check::Report;
use peregrine::{
    Column, ColumnType, Database, Error, Index, Isolation, Key, Options, Table, TableSchema, Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::reading::ascii::NO_CASE;
use crate::tables::schemas::{options, INT};

fn schema() -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("name", ColumnType::VarBytes { max: 40 }).collation(NO_CASE),
            Column::new("body", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("name", &[1]), Index::new("again", &[0]).unique()],
        user: vec![],
    }
}

fn key(table: &Table, id: u32) -> Vec<u8> {
    table.encode_key(0, &[id.into()]).unwrap()
}

/// Changes a random row; some rows fill a leaf, or are stored outside.
fn change(db: &Database, table: &Table, rng: &mut StdRng) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    for _ in 0..rng.random_range(1..4) {
        let id = rng.random_range(0..400u32);
        let name = format!("Name{}", rng.random_range(0..50u32));
        let body = vec![b'x'; [10, 900, 3000, 20_000][rng.random_range(0..4)]];
        let row = [
            id.into(),
            Value::from(name.as_bytes()),
            Value::from(&body[..]),
        ];
        let result = match rng.random_range(0..4) {
            0 | 1 => txn.insert(table, &row),
            2 => txn.update(table, &key(table, id), &row),
            _ => txn.delete(table, &key(table, id)),
        };
        match result {
            Ok(()) | Err(Error::Duplicate { .. } | Error::NotFound { .. }) => {}
            Err(Error::Deadlock) => return,
            Err(error) => panic!("{error}"),
        }
    }
    if rng.random_bool(0.8) {
        txn.commit().unwrap();
    }
}

#[test]
fn nothing_is_found_in_a_sound_table_that_changes() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let (checks, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (db, table, checks) = (&db, &table, &checks);
            let stop = &stop;
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed);
                // Continues until enough checks have run beside changes.
                for n in 0.. {
                    let enough = n >= 1500 && checks.load(Ordering::Relaxed) >= 5;
                    if enough || stop.load(Ordering::Relaxed) {
                        break;
                    }
                    change(db, table, &mut rng);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        while !stop.load(Ordering::Relaxed) {
            let mut report = Report::default();
            let result = db.check_table("t", &|| false, &mut report);
            stop.fetch_or(result.is_err() || !report.is_sound(), Ordering::Relaxed);
            result.unwrap();
            assert!(report.is_sound(), "{:?}", report.problems);
            let found = &report.tables[0];
            assert!(found.indexes.iter().all(|index| index.1 == found.rows));
            checks.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut report = Report::default();
    db.check_table("t", &|| false, &mut report).unwrap();
    assert!(report.tables[0].rows > 0 && report.pages > 3, "{report:?}");
}

#[test]
fn it_can_be_interrupted_at_every_page() {
    let dir = tempfile::tempdir().unwrap();
    // Purge would reduce the number of pages between checks.
    let options = Options {
        background: false,
        ..options()
    };
    let db = Database::open(dir.path().join("db"), options).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let mut rng = StdRng::seed_from_u64(5);
    for _ in 0..100 {
        change(&db, &table, &mut rng);
    }
    let looks = AtomicU32::new(0);
    let mut report = Report::default();
    let count = || {
        looks.fetch_add(1, Ordering::Relaxed);
        false
    };
    db.check_table("t", &count, &mut report).unwrap();
    let all = looks.load(Ordering::Relaxed);
    for last in 0..all {
        looks.store(0, Ordering::Relaxed);
        let stop = || looks.fetch_add(1, Ordering::Relaxed) == last;
        let result = db.check_table("t", &stop, &mut Report::default());
        assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
        assert_eq!(looks.load(Ordering::Relaxed), last + 1);
    }
    let unknown = db.check_table("u", &|| false, &mut report);
    assert!(matches!(unknown, Err(Error::NotFound { .. })));
}
