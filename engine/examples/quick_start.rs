//! The first steps: a database, a table, rows, a range, a rollback, and the data after reopening.
//!
//! `cargo run -p peregrine --example quick_start [DIR]`

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Database, Error, Index, Isolation, Key, Options,
    Result, Seek, TableSchema, Value,
};

fn main() -> Result<()> {
    let dir = std::env::args_os().nth(1).map_or_else(
        || std::env::temp_dir().join(format!("peregrine-quick-start-{}", std::process::id())),
        Into::into,
    );
    let schema = TableSchema {
        columns: vec![
            Column::new(
                "id",
                ColumnType::Int {
                    bytes: 4,
                    signed: false,
                },
            ),
            Column::new("email", ColumnType::VarBytes { max: 64 }),
            Column::new(
                "country",
                ColumnType::Int {
                    bytes: 2,
                    signed: false,
                },
            ),
            Column::new("photo", ColumnType::Large { max: 1 << 24 }).nullable(),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![
            Index::new("email", &[1]).unique(),
            Index::new("country", &[2]),
        ],
        user: vec![],
    };

    let db = Database::open(&dir, Options::default())?;
    let users = match db.create_table("app/users", &schema) {
        Err(Error::Exists(_)) => db.table("app/users")?,
        other => other?,
    };

    // A transaction is applied whole or not at all.
    let mut txn = db.begin(Isolation::RepeatableRead);
    let photo = vec![7u8; 100_000];
    for _ in 0..5 {
        let id = users.reserve_auto_increment(1, 1, 1, u32::MAX.into())?;
        let email = format!("user{id}@example.org");
        let row = [
            Value::UInt(id),
            Value::from(email.as_str()),
            Value::UInt(id % 2),
            Value::Bytes(&photo),
        ];
        txn.insert(&users, &row)?;
    }
    txn.commit()?;

    // An error undoes its own operation only; a rollback undoes the transaction.
    let id = users.reserve_auto_increment(1, 1, 1, u32::MAX.into())?;
    let again = [
        id.into(),
        "user1@example.org".into(),
        1u16.into(),
        Value::Null,
    ];
    match txn.insert(&users, &again) {
        Err(Error::Duplicate { index }) => {
            println!("refused: {} exists", users.schema().indexes[index - 1].name);
        }
        other => other?,
    }
    txn.rollback()?;

    // A range in an index; only the columns asked for are decoded.
    let mut cursor = Cursor::new(&users, 2, CursorOptions::default());
    let country = users.encode_key(2, &[Value::UInt(1)])?;
    let mut more = cursor.seek(&mut txn, &country, Seek::Exact)?;
    while more {
        let row = cursor.row()?;
        if let Value::Bytes(email) = row.get(1)? {
            println!("{:?} {}", row.get(0)?, String::from_utf8_lossy(email));
        }
        more = cursor.next_same_prefix(&mut txn)?;
    }
    drop((cursor, txn));
    db.close()?;

    let db = Database::open(&dir, Options::default())?;
    let rows = db.table("app/users")?.estimate_rows();
    println!("{rows} rows after reopening {}", dir.display());
    db.close()
}
