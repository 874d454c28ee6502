//! Disk space that a load has used is released after the load.

use std::path::Path;
use std::time::{Duration, Instant};

use peregrine::{Database, Durability, Isolation, Options};

use crate::tables::schemas::bodies;

/// Returns the bytes of all files in the log's folder.
fn log_bytes(dir: &Path) -> u64 {
    std::fs::read_dir(dir.join("log"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().map_or(0, |about| about.len()))
        .sum()
}

/// Rewrites the same few rows, which logs about `megabytes`.
fn write(db: &Database, megabytes: usize) {
    let table = db.table("t").unwrap();
    let value = vec![7u8; 100_000];
    for n in 0..megabytes * 10 {
        let mut txn = db.begin(Isolation::ReadCommitted);
        let id = (n % 5) as u32;
        let key = table.encode_key(0, &[id.into()]).unwrap();
        let _ = txn.delete(&table, &key);
        txn.insert(&table, &[id.into(), (&value[..]).into()])
            .unwrap();
        txn.commit().unwrap();
    }
}

#[test]
fn the_log_shrinks_when_the_load_is_gone() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let options = Options {
        durability: Durability::Later,
        // Segments have 1 MiB; a checkpoint starts by itself only after more than is written here.
        log_bytes: 8 << 20,
        ..Options::default()
    };
    let db = Database::open(&dir, options).unwrap();
    db.create_table("t", &bodies(100_000)).unwrap();
    let idle = log_bytes(&dir);
    write(&db, 7);
    let loaded = log_bytes(&dir);
    assert!(
        loaded >= 7 << 20,
        "{loaded} bytes of log after 7 MB of work"
    );

    let begun = Instant::now();
    while log_bytes(&dir) > idle + (1 << 20) {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "still {} bytes of log, {idle} before",
            log_bytes(&dir)
        );
        std::thread::sleep(Duration::from_millis(100));
    }

    // The database still works.
    write(&db, 20);
    drop(db);
    let db = Database::open(&dir, Options::default()).unwrap();
    let table = db.table("t").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..5u32 {
        let key = table.encode_key(0, &[id.into()]).unwrap();
        assert!(txn.get(&table, &key, |_| ()).unwrap().is_some());
    }
}

#[test]
fn a_closed_database_keeps_no_room_for_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("db");
    let db = Database::open(&dir, Options::default()).unwrap();
    db.create_table("t", &bodies(100_000)).unwrap();
    write(&db, 2);
    let data_bytes = || std::fs::metadata(dir.join("data")).unwrap().len();
    let running = data_bytes();
    db.close().unwrap();
    let closed = data_bytes();
    drop(Database::open(&dir, Options::default()).unwrap());
    assert!(closed < running, "{closed} of {running} bytes");
}
