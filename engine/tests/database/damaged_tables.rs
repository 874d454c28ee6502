//! Damage in one table's pages stays that table's: others work, and the damaged one can be dropped.

use std::path::Path;
use std::sync::Arc;

use peregrine::{
    Column, ColumnType, Database, Error, Index, Isolation, Key, Table, TableSchema, Value,
};

use crate::schemas::{noise, options, INT};

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

/// How many rows can be read; the first error else.
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

/// Drops or truncates the damaged table, and looks whether all else works.
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
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let db = Database::open(&sound, options()).unwrap();
    fill(&db, "kept", 3);
    fill(&db, "damaged", ROWS);
    db.close().unwrap();
    let bytes = std::fs::read(sound.join("data")).unwrap();
    let mut found = 0;
    for (n, at) in (0..bytes.len()).step_by(3 * 4096).enumerate() {
        let dir = dir.path().join(format!("damaged{n}"));
        std::fs::create_dir_all(dir.join("log")).unwrap();
        for file in std::fs::read_dir(sound.join("log")).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), dir.join("log").join(file.file_name())).unwrap();
        }
        let mut bytes = bytes.clone();
        for byte in bytes.iter_mut().skip(at + 100).take(8) {
            *byte ^= 0x5a;
        }
        std::fs::write(dir.join("data"), bytes).unwrap();
        found += u32::from(goes(&dir, n % 2 == 1));
        std::fs::remove_dir_all(&dir).unwrap();
    }
    assert!(found > 3, "{found} damaged tables");
}
