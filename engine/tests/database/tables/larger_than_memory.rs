//! Data ten times the buffer pool.

use std::collections::BTreeMap;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Index, Isolation, Key, Seek, TableSchema,
    Value,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::tables::schemas::options;

const ROWS: u64 = 40_000;

fn schema() -> TableSchema {
    let int = |bytes| ColumnType::Int {
        bytes,
        signed: false,
    };
    TableSchema {
        columns: vec![
            Column::new("id", int(8)),
            Column::new("group", int(2)),
            Column::new("token", int(8)),
            Column::new("filler", ColumnType::VarBytes { max: 400 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("group", &[1]),
            Index::new("token", &[2]).unique(),
        ],
        user: vec![],
    }
}

#[test]
fn data_ten_times_the_pool_is_loaded_changed_and_read() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let table = db.create_table("t", &schema()).unwrap();
    let mut rng = StdRng::seed_from_u64(7);
    // id → (group, token, filler byte); the filler does not compress.
    let mut model: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let filler = |token: u64| -> Vec<u8> {
        let mut rng = StdRng::seed_from_u64(token);
        (0..300).map(|_| rng.random()).collect()
    };
    let mut txn = db.begin(Isolation::RepeatableRead);
    for n in 0..ROWS {
        let id = rng.random_range(0..ROWS * 10);
        if model.contains_key(&id) {
            continue;
        }
        let (group, token) = (rng.random_range(0..100), rng.random());
        let row = [id, group, token].map(Value::UInt);
        let text = filler(token);
        let row = [row[0], row[1], row[2], Value::Bytes(&text)];
        txn.insert(&table, &row).unwrap();
        model.insert(id, (group, token));
        if n % 500 == 0 {
            txn.commit().unwrap();
        }
    }
    txn.commit().unwrap();
    let status = db.status();
    let pool_bytes = status.pool_pages_total * (16 << 10);
    assert!(pool_bytes <= options().pool_bytes as u64 + (1 << 20));
    let (rows, indexes) = table.size_bytes().unwrap();
    assert!(
        rows + indexes >= 10 * pool_bytes,
        "{rows} {indexes} {pool_bytes}"
    );
    assert!(status.pages_evicted > 0 && status.pages_read > 0);

    // Random changes in one long transaction, half of them undone.
    let ids: Vec<u64> = model.keys().copied().collect();
    let before = model.clone();
    for round in 0..2 {
        for _ in 0..3000 {
            let id = ids[rng.random_range(0..ids.len())];
            let key = table.encode_key(0, &[Value::UInt(id)]).unwrap();
            let (group, token) = (rng.random_range(0..100), rng.random());
            let text = filler(token);
            let row = [
                Value::UInt(id),
                Value::UInt(group),
                Value::UInt(token),
                Value::Bytes(&text),
            ];
            match model.contains_key(&id) {
                true if rng.random_bool(0.3) => {
                    txn.delete(&table, &key).unwrap();
                    model.remove(&id);
                }
                true => {
                    txn.update(&table, &key, &row).unwrap();
                    model.insert(id, (group, token));
                }
                false => {
                    txn.insert(&table, &row).unwrap();
                    model.insert(id, (group, token));
                }
            }
        }
        if round == 0 {
            txn.rollback().unwrap();
            model = before.clone();
        } else {
            txn.commit().unwrap();
        }
    }
    drop((txn, table));
    db.close().unwrap();

    let db = Database::open(dir.path(), options()).unwrap();
    let table = db.table("t").unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut cursor = Cursor::new(&table, 0, CursorOptions::default());
    let mut more = cursor.seek(&mut txn, b"", Seek::First).unwrap();
    for (&id, &(group, token)) in &model {
        assert!(more);
        let row = cursor.row().unwrap();
        assert_eq!(row.get(0).unwrap(), Value::UInt(id));
        assert_eq!(row.get(1).unwrap(), Value::UInt(group));
        assert_eq!(row.get(2).unwrap(), Value::UInt(token));
        assert_eq!(row.get(3).unwrap(), Value::Bytes(&filler(token)));
        more = cursor.next(&mut txn).unwrap();
    }
    assert!(!more);
    for group in 0..100 {
        let want: Vec<u64> = model
            .iter()
            .filter(|(_, v)| v.0 == group)
            .map(|(id, _)| *id)
            .collect();
        let mut cursor = Cursor::new(&table, 1, CursorOptions::default());
        let key = table.encode_key(1, &[Value::UInt(group)]).unwrap();
        let mut got = Vec::new();
        let mut more = cursor.seek(&mut txn, &key, Seek::Exact).unwrap();
        while more {
            let row = cursor.row().unwrap();
            let Value::UInt(id) = row.get(0).unwrap() else {
                panic!("no id");
            };
            assert_eq!(row.get(2).unwrap(), Value::UInt(model[&id].1));
            got.push(id);
            more = cursor.next_same_prefix(&mut txn).unwrap();
        }
        assert_eq!(got, want);
    }
}
