//! The database of the golden files.
//!
//! Its content must never change for a version whose files are kept: a later version must find exactly this.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use peregrine::{
    Column, ColumnType, Database, Durability, Index, Isolation, Key, KeyPart, Locking, Options,
    OwnedValue, Table, TableOptions, TableSchema, Value, Xid,
};

pub type Row = Vec<OwnedValue>;
/// Rows of each table, in the order of its clustered key.
pub type Content = BTreeMap<&'static str, Vec<Row>>;

pub fn options() -> Options {
    Options {
        pool_bytes: 4 << 20,
        // The smallest log segments.
        log_bytes: 1 << 20,
        durability: Durability::SyncAtCommit,
        ..Options::default()
    }
}

fn number(bytes: u8, signed: bool) -> ColumnType {
    ColumnType::Int { bytes, signed }
}

/// Every type of column, and every form of key.
fn types_schema() -> TableSchema {
    let part = |column, prefix, descending| KeyPart {
        column,
        prefix,
        descending,
    };
    TableSchema {
        columns: vec![
            Column::new("id", number(4, false)),
            Column::new("tiny", number(1, true)).nullable(),
            Column::new("medium", number(3, true)),
            Column::new("big", number(8, false)),
            Column::new("real", ColumnType::Float).nullable(),
            Column::new("double", ColumnType::Double),
            Column::new("code", ColumnType::Bytes { len: 5 }),
            Column::new("name", ColumnType::VarBytes { max: 300 }).nullable(),
            Column::new("body", ColumnType::Large { max: 1 << 24 }).nullable(),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("by_big", &[3]).unique(),
            Index {
                name: "by_name".into(),
                parts: vec![part(7, Some(10), false), part(5, None, true)],
                unique: false,
            },
            Index {
                name: "by_body".into(),
                parts: vec![part(8, Some(20), false)],
                unique: false,
            },
        ],
        user: b"kept as it is".to_vec(),
    }
}

fn types_row(id: u64, version: u64) -> Row {
    let mixed = id * 2_654_435_761 % 1_000_003 + version;
    let bytes = |len: u64, salt: u64| -> OwnedValue {
        OwnedValue::Bytes((0..len).map(|i| (mixed + i * salt) as u8).collect())
    };
    vec![
        OwnedValue::UInt(id),
        match id % 5 {
            0 => OwnedValue::Null,
            _ => OwnedValue::Int((mixed % 256) as i64 - 128),
        },
        OwnedValue::Int(mixed as i64 * 8 - (1 << 22)),
        OwnedValue::UInt(u64::MAX - id * 3),
        match id % 7 {
            0 => OwnedValue::Null,
            _ => OwnedValue::Float(mixed as f32 / -8.0),
        },
        OwnedValue::Double(mixed as f64 / 1024.0 - 100.0),
        bytes(5, 3),
        match id % 3 {
            0 => OwnedValue::Null,
            _ => bytes(mixed % 300, 1),
        },
        match id % 4 {
            0 => OwnedValue::Null,
            1 if id % 16 == 1 => bytes(3_000 + mixed % 9_000, 7),
            _ => bytes(id % 50, 11),
        },
    ]
}

fn heap_schema() -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("number", number(8, true)),
            Column::new("text", ColumnType::VarBytes { max: 40 }),
        ],
        primary: None,
        indexes: vec![Index::new("by_number", &[0])],
        user: Vec::new(),
    }
}

fn heap_row(id: u64) -> Row {
    vec![
        OwnedValue::Int(500 - id as i64 * 7),
        OwnedValue::Bytes(format!("row {id}").into_bytes()),
    ]
}

fn pairs_schema() -> TableSchema {
    TableSchema {
        columns: vec![
            Column::new("word", ColumnType::VarBytes { max: 20 }),
            Column::new("rank", number(2, true)),
        ],
        primary: Some(Key {
            parts: vec![
                KeyPart {
                    column: 0,
                    prefix: None,
                    descending: false,
                },
                KeyPart {
                    column: 1,
                    prefix: None,
                    descending: true,
                },
            ],
        }),
        indexes: vec![],
        user: Vec::new(),
    }
}

fn pairs_row(id: u64) -> Row {
    vec![
        OwnedValue::Bytes(format!("w{:03}\0{}", id / 4, id / 4 % 2).into_bytes()),
        OwnedValue::Int(4 - (id % 4) as i64),
    ]
}

fn borrowed(row: &[OwnedValue]) -> Vec<Value<'_>> {
    row.iter().map(OwnedValue::as_value).collect()
}

fn insert(db: &Database, table: &Arc<Table>, rows: impl Iterator<Item = Row>) {
    let mut txn = db.begin(Isolation::RepeatableRead);
    for row in rows {
        txn.insert(table, &borrowed(&row)).unwrap();
    }
    txn.commit().unwrap();
}

fn key(table: &Table, id: u64) -> Vec<u8> {
    table.encode_key(0, &[Value::UInt(id)]).unwrap()
}

/// Makes the database; `crash` gets its files in the state after a crash, with open transactions.
pub fn make(dir: &Path, crash: impl FnOnce()) {
    let db = Database::open(dir, options()).unwrap();
    let types = db.create_table("all types", &types_schema()).unwrap();
    let heap = db.create_table("heap", &heap_schema()).unwrap();
    let optimistic = TableOptions {
        locking: Locking::Optimistic,
        auto_increment: 77,
        ..TableOptions::default()
    };
    let pairs = db
        .create_table_with("pair", &pairs_schema(), &optimistic)
        .unwrap();
    insert(&db, &types, (1..=120).map(|id| types_row(id, 0)));
    insert(&db, &heap, (1..=60).map(heap_row));
    insert(&db, &pairs, (0..80).map(pairs_row));
    db.create_table("gone", &heap_schema()).unwrap();
    db.drop_table("gone").unwrap();
    let emptied = db.create_table("emptied", &heap_schema()).unwrap();
    insert(&db, &emptied, (1..=10).map(heap_row));
    drop(emptied);
    db.truncate_table("emptied").unwrap();
    db.rename_table("pair", "pairs").unwrap();

    // At the checkpoint two transactions run: one that never commits, and one that commits later.
    let mut never = db.begin(Isolation::RepeatableRead);
    for id in 1..=20 {
        never
            .update(&types, &key(&types, id), &borrowed(&types_row(id, 9)))
            .unwrap();
    }
    never.delete(&types, &key(&types, 21)).unwrap();
    never.insert(&types, &borrowed(&types_row(900, 9))).unwrap();
    let mut later = db.begin(Isolation::RepeatableRead);
    for id in 31..=40 {
        later
            .update(&types, &key(&types, id), &borrowed(&types_row(id, 1)))
            .unwrap();
    }
    later.delete(&types, &key(&types, 41)).unwrap();
    db.checkpoint().unwrap();
    later.commit().unwrap();
    insert(&db, &types, (121..=130).map(|id| types_row(id, 0)));
    insert(&db, &heap, (61..=70).map(heap_row));
    // A prepared transaction without a decision.
    let mut prepared = db.begin(Isolation::RepeatableRead);
    prepared
        .update(&types, &key(&types, 50), &borrowed(&types_row(50, 2)))
        .unwrap();
    prepared.prepare(&xid()).unwrap();
    crash();
    never.rollback().unwrap();
    prepared.rollback().unwrap();
    drop((types, heap, pairs));
    db.close().unwrap();
}

pub fn xid() -> Xid {
    Xid::new(1, b"golden", b"branch").unwrap()
}

/// Returns the expected content, after a crash or a close.
pub fn expected() -> Content {
    let types = (1..=130).filter(|&id| id != 41).map(|id| match id {
        31..=40 => types_row(id, 1),
        _ => types_row(id, 0),
    });
    BTreeMap::from([
        ("all types", types.collect()),
        ("emptied", Vec::new()),
        ("heap", (1..=70).map(heap_row).collect()),
        ("pairs", (0..80).map(pairs_row).collect()),
    ])
}
