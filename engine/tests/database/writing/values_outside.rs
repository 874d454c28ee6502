//! Values outside their rows, when the rows change.

use std::sync::Arc;

use peregrine::os::simulated::SimulatedOs;
use peregrine::{
    Column, ColumnType, Database, Index, Isolation, Key, KeyPart, Options, Table, TableSchema,
    Value,
};

use crate::tables::schemas::{noise, INT};

/// Too short to be stored outside, but so many that a row of them alone is too long.
const SHORT: u32 = 63;
const SHORTS: usize = 60;

fn schema() -> TableSchema {
    let mut columns = vec![
        Column::new("id", INT),
        Column::new("text", ColumnType::Large { max: 1 << 20 }),
    ];
    for n in 0..SHORTS {
        let ty = ColumnType::VarBytes { max: SHORT };
        columns.push(Column::new(format!("short {n}"), ty));
    }
    let prefix = KeyPart {
        prefix: Some(100),
        ..KeyPart::new(1)
    };
    TableSchema {
        columns,
        primary: Some(Key::new(&[0])),
        indexes: vec![Index {
            parts: vec![prefix],
            ..Index::new("text", &[])
        }],
        user: vec![],
    }
}

fn options() -> Options {
    Options {
        background: false,
        ..Options::default()
    }
}

fn text_of(db: &Database, table: &Arc<Table>) -> Vec<u8> {
    let key = table.encode_key(0, &[Value::UInt(1)]).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut text = Vec::new();
    let read = txn.get(table, &key, |row| row.get_large(1, &mut text).unwrap());
    assert_eq!(read.unwrap(), Some(true));
    text
}

/// Also when no other value can be stored outside, and the index has the beginning of the value.
#[test]
fn a_value_outside_stays_whole_when_the_rest_of_its_row_gets_too_long() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let text = noise(1, 10_000);
    for checkpoint in [false, true] {
        let os = SimulatedOs::new(1);
        let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
        let table = db.create_table("t", &schema()).unwrap();
        let mut row = vec![Value::UInt(1), Value::Bytes(&text)];
        row.resize(2 + SHORTS, Value::Bytes(b""));
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.insert(&table, &row).unwrap();
        txn.commit().unwrap();
        if checkpoint {
            db.checkpoint().unwrap();
        }

        let short = noise(2, SHORT as usize);
        row[1] = Value::OutOfRow(0);
        row[2..].fill(Value::Bytes(&short));
        let key = table.encode_key(0, &row[..1]).unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.update(&table, &key, &row).unwrap();
        txn.commit().unwrap();
        assert!(text_of(&db, &table) == text, "after the update");

        let db = Database::open_on(Arc::new(os.crash(1)), "/db", options()).unwrap();
        let table = db.table("t").unwrap();
        assert!(text_of(&db, &table) == text, "after a crash");
        let mut txn = db.begin(Isolation::RepeatableRead);
        let same = |row: peregrine::RowView<'_>| row.get(2).unwrap() == Value::Bytes(&short);
        assert_eq!(txn.get(&table, &key, same).unwrap(), Some(true));
    }
}
