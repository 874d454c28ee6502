//! Damage in one table's pages affects only that table: others work, and the damaged one can be dropped.

use std::path::Path;
use std::sync::Arc;

use peregrine::{
    Column, ColumnType, Database, Error, Index, Isolation, Key, Options, Table, TableSchema, Value,
    Xid,
};

use crate::tables::schemas::{noise, options, INT};

const ROWS: u32 = 60;

fn schema() -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("body", ColumnType::VarBytes { max: 4000 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("again", &[0]).unique()],
        user: vec![],
    }
}

fn body(id: u32) -> Vec<u8> {
    noise(id, 2500)
}

fn fill(db: &Database, name: &str, rows: u32) {
    let table = db.create_table(name, &schema()).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..rows {
        let body = body(id);
        let row = [Value::from(id), Value::from(&body[..])];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
}

/// Returns the number of readable rows, or the first error.
fn read(db: &Database, table: &Arc<Table>, rows: u32) -> Result<u32, Error> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut found = 0;
    for id in 0..rows {
        let key = table.encode_key(0, &[id.into()])?;
        let same = txn.get(table, &key, |row| {
            row.get(1).map(|value| value == Value::Bytes(&body(id)))
        })?;
        assert!(same.transpose()?.unwrap());
        found += 1;
    }
    Ok(found)
}

/// Copies a database in the state after a crash.
fn copy_of(dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for folder in ["", "log", "aside"] {
        let Ok(files) = std::fs::read_dir(dir.join(folder)) else {
            continue;
        };
        std::fs::create_dir_all(copy.path().join(folder)).unwrap();
        for file in files.map(Result::unwrap) {
            if file.file_type().unwrap().is_file() {
                let to = copy.path().join(folder).join(file.file_name());
                std::fs::copy(file.path(), to).unwrap();
            }
        }
    }
    copy
}

/// Copies a database repeatedly, each time with damage at another place of its data file; counts the copies that `look`
/// finds damaged.
fn count_damaged(sound: &Path, mut look: impl FnMut(usize, &Path) -> bool) -> usize {
    let sound_data = std::fs::read(sound.join("data")).unwrap();
    let places = (0..sound_data.len()).step_by(3 * 4096).enumerate();
    let damaged = places.filter(|&(n, at)| {
        let copy = copy_of(sound);
        let mut data = sound_data.clone();
        for byte in data.iter_mut().skip(at + 100).take(8) {
            *byte ^= 0x5a;
        }
        std::fs::write(copy.path().join("data"), data).unwrap();
        look(n, copy.path())
    });
    damaged.count()
}

/// Drops or truncates the damaged table, and checks that everything else works.
fn goes(dir: &Path, truncate: bool) -> bool {
    let Ok(db) = Database::open(dir, options()) else {
        return false;
    };
    let kept = match db.table("kept") {
        Ok(table) if read(&db, &table, 3).is_ok() => table,
        _ => return false,
    };
    let damaged = match db.table("damaged") {
        Ok(table) => read(&db, &table, ROWS).is_err(),
        Err(error) => {
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            true
        }
    };
    if truncate {
        db.truncate_table("damaged").unwrap();
        let table = db.table("damaged").unwrap();
        let mut txn = db.begin(Isolation::RepeatableRead);
        let row = [Value::from(1u32), Value::from(&b"anew"[..])];
        txn.insert(&table, &row).unwrap();
        txn.commit().unwrap();
    } else {
        db.drop_table("damaged").unwrap();
    }
    let mut txn = db.begin(Isolation::RepeatableRead);
    let row = [Value::from(100u32), Value::from(&b"new"[..])];
    txn.insert(&kept, &row).unwrap();
    txn.commit().unwrap();
    drop(txn);
    db.close().unwrap();
    let db = Database::open(dir, options()).unwrap();
    let kept = db.table("kept").unwrap();
    assert_eq!(read(&db, &kept, 3).unwrap(), 3);
    assert_eq!(db.table("damaged").is_ok(), truncate);
    damaged
}

#[test]
fn a_damaged_table_can_be_dropped_and_truncated() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let db = Database::open(&sound, options()).unwrap();
    fill(&db, "kept", 3);
    fill(&db, "damaged", ROWS);
    db.close().unwrap();
    let found = count_damaged(&sound, |n, dir| goes(dir, n % 2 == 1));
    assert!(found > 3, "{found} damaged tables");
}

/// Creates a database with two tables; recovery must change every row of one of them.
fn to_be_recovered(dir: &Path) -> Database {
    let db = Database::open(dir, options()).unwrap();
    fill(&db, "kept", 3);
    fill(&db, "damaged", ROWS);
    db.close().unwrap();
    let db = Database::open(dir, options()).unwrap();
    let table = db.table("damaged").unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 1..ROWS {
        let key = table.encode_key(0, &[id.into()]).unwrap();
        txn.update(&table, &key, &[id.into(), Value::from(&b"new"[..])])
            .unwrap();
    }
    txn.commit().unwrap();
    db.sync_log().unwrap();
    db
}

/// The rows that an earlier opening has quarantined are those from before the truncation.
#[test]
fn rows_put_into_a_table_once_quarantined_and_truncated_are_found_after_a_crash() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let _running = to_be_recovered(&sound);
    let found = count_damaged(&sound, |_, dir| {
        let Ok(db) = Database::open(dir, options()) else {
            return false;
        };
        if db.table("damaged").is_ok() {
            return false;
        }
        db.truncate_table("damaged").unwrap();
        let table = db.table("damaged").unwrap();
        let mut txn = db.begin(Isolation::RepeatableRead);
        for id in 0..3 {
            let body = body(id);
            let row = [Value::from(id), Value::from(&body[..])];
            txn.insert(&table, &row).unwrap();
        }
        txn.commit().unwrap();
        db.sync_log().unwrap();
        // Opens twice, because the second opening must not depend on the state that the first has left.
        let mut crashed = copy_of(dir);
        for _ in 0..2 {
            crashed = copy_of(crashed.path());
            let db = Database::open(crashed.path(), options()).unwrap();
            let table = db.table("damaged").unwrap();
            assert_eq!(read(&db, &table, 3).unwrap(), 3);
        }
        true
    });
    assert!(found > 0, "no table was quarantined");
}

/// The same after the log with the truncation is gone.
#[test]
fn rows_put_into_a_table_once_quarantined_and_truncated_are_found_after_an_orderly_end() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let _running = to_be_recovered(&sound);
    let found = count_damaged(&sound, |_, dir| {
        let Ok(db) = Database::open(dir, options()) else {
            return false;
        };
        if db.table("damaged").is_ok() {
            return false;
        }
        db.truncate_table("damaged").unwrap();
        let table = db.table("damaged").unwrap();
        let mut txn = db.begin(Isolation::RepeatableRead);
        let body = body(0);
        let row = [Value::from(0u32), Value::from(&body[..])];
        txn.insert(&table, &row).unwrap();
        txn.commit().unwrap();
        drop((txn, table));
        db.close().unwrap();
        let (mut rows, mut missing) = (0, 0);
        peregrine::dump::Dump::open(dir)
            .unwrap()
            .rows(
                "damaged",
                &mut |_| {
                    rows += 1;
                    Ok(())
                },
                &mut |_| missing += 1,
            )
            .unwrap();
        assert_eq!((rows, missing), (1, 0));
        for _ in 0..2 {
            let db = Database::open(dir, options()).unwrap();
            let table = db.table("damaged").unwrap();
            assert_eq!(read(&db, &table, 1).unwrap(), 1);
            db.close().unwrap();
        }
        true
    });
    assert!(found > 0, "no table was quarantined");
}

/// Changes the first rows of tables, in a prepared transaction.
fn prepare(db: &Database, xid: &Xid, tables: &[&str]) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    for name in tables {
        let table = db.table(name).unwrap();
        let key = table.encode_key(0, &[Value::from(0u32)]).unwrap();
        let row = [Value::from(0u32), Value::from(&b"prepared"[..])];
        txn.update(&table, &key, &row).unwrap();
    }
    txn.prepare(xid).unwrap();
    drop(txn);
}

#[test]
fn a_prepared_transaction_keeps_its_changes_of_the_other_tables() {
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    // Recovery repeats the committed changes, and meets the damage before it restores the prepared transaction.
    let db = to_be_recovered(&sound);
    let xid = Xid::new(1, b"global", b"branch").unwrap();
    prepare(&db, &xid, &["kept", "damaged"]);
    db.sync_log().unwrap();

    let found = count_damaged(&sound, |_, dir| {
        let Ok(db) = Database::open(dir, options()) else {
            return false;
        };
        db.commit_prepared(&xid).unwrap();
        let Ok(kept) = db.table("kept") else {
            return false;
        };
        let key = kept.encode_key(0, &[Value::from(0u32)]).unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        let same = txn.get(&kept, &key, |row| {
            row.get(1).map(|value| value == Value::Bytes(b"prepared"))
        });
        assert!(same.unwrap().transpose().unwrap().unwrap());
        db.table("damaged").is_err()
    });
    assert!(found > 0, "no table was quarantined");
}

/// Returns the body of the damaged table's first row in the dump of a closed database; `None` when the dump reports it
/// missing.
fn dumped_body(dir: &Path) -> Option<Vec<u8>> {
    let (mut body, mut missing) = (None, 0);
    let dump = peregrine::dump::Dump::open(dir).unwrap();
    dump.rows(
        "damaged",
        &mut |row| {
            if row[0].as_value() == Value::from(0u32) {
                let Value::Bytes(bytes) = row[1].as_value() else {
                    panic!("{:?}", row[1]);
                };
                body = Some(bytes.to_vec());
            }
            Ok(())
        },
        &mut |_| missing += 1,
    )
    .unwrap();
    assert!(body.is_some() || missing > 0, "the row is lost silently");
    body
}

/// Ends a running database like a crash.
fn crash(db: Database, dir: &Path) {
    db.sync_log().unwrap();
    let crashed = copy_of(dir);
    drop(db);
    for name in ["data", "log", "aside"] {
        let (from, to) = (crashed.path().join(name), dir.join(name));
        if to.is_dir() {
            std::fs::remove_dir_all(&to).unwrap();
        }
        if from.exists() {
            std::fs::rename(from, to).unwrap();
        }
    }
}

/// A prepared transaction meets a quarantined table, and is decided at one of the next openings.
fn decide_behind_damage(tables: &[&str], commits: bool) {
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let db = to_be_recovered(&sound);
    let xid = Xid::new(1, b"global", b"branch").unwrap();
    prepare(&db, &xid, tables);
    db.sync_log().unwrap();

    let (mut told, mut wrong, mut enough) = (0, Vec::new(), 0);
    let found = count_damaged(&sound, |n, dir| {
        if enough == 6 {
            return false;
        }
        let openings = n % 3 + 1;
        for opening in 1..=openings {
            let Ok(db) = Database::open(dir, options()) else {
                return false;
            };
            if db.table("damaged").is_ok() {
                return false;
            }
            if opening == openings && commits {
                db.commit_prepared(&xid).unwrap();
            } else if opening == openings {
                db.rollback_prepared(&xid).unwrap();
            }
            match (n + opening) % 2 {
                0 => db.close().unwrap(),
                _ => crash(db, dir),
            }
        }
        enough += 1;
        for reopened in [false, true] {
            if reopened {
                let db = Database::open(dir, options()).unwrap();
                assert!(db.prepared().is_empty() && db.table("damaged").is_err());
                db.close().unwrap();
            }
            let body = dumped_body(dir);
            told += usize::from(body.is_some());
            if body.is_some_and(|body| (body == b"prepared") != commits) {
                wrong.push((n, reopened));
            }
        }
        true
    });
    assert!(found > 3 && told > 3, "{found} tables, {told} rows");
    assert!(wrong.is_empty(), "not as it was decided: {wrong:?}");
}

/// The transaction's changes in the table are kept, like those of a committed transaction.
#[test]
fn a_prepared_transaction_that_commits_loses_nothing_in_a_quarantined_table() {
    decide_behind_damage(&["kept", "damaged"], true);
    decide_behind_damage(&["damaged"], true);
}

#[test]
fn a_prepared_transaction_that_rolls_back_leaves_nothing_in_a_quarantined_table() {
    decide_behind_damage(&["kept", "damaged"], false);
}

/// Recovery only has to make the prepared transaction's own changes again.
#[test]
fn a_prepared_transaction_in_a_damaged_table_keeps_no_other_table_closed() {
    if peregrine::knobs::SHAKEN {
        // The test reads values that are stored in their rows.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let db = Database::open(&sound, options()).unwrap();
    fill(&db, "kept", 3);
    fill(&db, "damaged", ROWS);
    db.close().unwrap();
    let quiet = Options {
        background: false,
        ..options()
    };
    let db = Database::open(&sound, quiet).unwrap();
    let before = copy_of(&sound);
    let xid = Xid::new(1, b"global", b"branch").unwrap();
    prepare(&db, &xid, &["kept", "damaged"]);
    db.sync_log().unwrap();
    let data = |dir: &Path| std::fs::read(dir.join("data")).unwrap();
    assert!(data(before.path()) == data(&sound), "pages were written");

    let mut can_open = Vec::new();
    count_damaged(before.path(), |_, dir| {
        let works = (|| {
            let db = Database::open(dir, options())?;
            let kept = db.table("kept")?;
            let rows = read(&db, &kept, 3);
            drop(kept);
            rows
        })();
        can_open.push(works.is_ok());
        false
    });
    let found = count_damaged(&sound, |n, dir| {
        if !can_open[n] {
            return false;
        }
        let db = Database::open(dir, options()).unwrap();
        if db.table("damaged").is_ok() {
            return false;
        }
        db.commit_prepared(&xid).unwrap();
        crash(db, dir);
        assert!(dumped_body(dir).is_none_or(|body| body == b"prepared"));
        let db = Database::open(dir, options()).unwrap();
        assert!(db.table("damaged").is_err() && db.prepared().is_empty());
        db.close().unwrap();
        assert!(dumped_body(dir).is_none_or(|body| body == b"prepared"));
        true
    });
    assert!(found > 0, "no table was quarantined");
}
