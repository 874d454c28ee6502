//! Renamed columns and indexes, as by `ALTER TABLE … RENAME COLUMN` and `RENAME INDEX`, and changes of the program's
//! bytes of a table.

use std::io::ErrorKind;
use std::sync::Arc;

use peregrine::dump::Dump;
use peregrine::os::simulated::{FaultOn, SimulatedOs};
use peregrine::{
    Cursor, CursorOptions, Database, Error, Isolation, Options, OwnedValue, SchemaNames, Seek,
    TableSchema, Value,
};

use crate::tables::schemas::numbered;

fn open(os: &SimulatedOs) -> Database {
    let options = Options {
        pool_bytes: 1 << 20,
        log_bytes: 1 << 20,
        log_segment_bytes: Some(16 << 10),
        background: false,
        ..Options::default()
    };
    Database::open_on(Arc::new(os.clone()), "/db", options).unwrap()
}

fn names(columns: [&str; 3], index: &str) -> SchemaNames {
    SchemaNames {
        columns: columns.map(String::from).into(),
        indexes: vec![index.into()],
    }
}

/// Two columns have exchanged names, and the index has another name.
fn swapped() -> SchemaNames {
    names(["id", "content", "number"], "by_content")
}

fn renamed() -> TableSchema {
    TableSchema {
        user: b"of the program".to_vec(),
        ..numbered().named(&swapped()).unwrap()
    }
}

fn row(id: u32, number: u32, content: u32) -> [Value<'static>; 3] {
    [id.into(), number.into(), content.into()]
}

/// Returns the names of the indexes with locks.
fn locked(db: &Database) -> Vec<String> {
    let locks = db.inspect().locks;
    let mut indexes: Vec<String> = locks.into_iter().map(|lock| lock.row.index).collect();
    indexes.retain(|index| index != "PRIMARY");
    indexes.dedup();
    indexes
}

#[test]
fn other_names_come_at_once_and_stay() {
    let os = SimulatedOs::new(1);
    let db = open(&os);
    let table = db.create_table("t", &numbered()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.insert(&table, &row(1, 20, 30)).unwrap();
    txn.commit().unwrap();
    let key = table.encode_key(0, &[1u32.into()]).unwrap();

    let mut old = db.begin(Isolation::RepeatableRead);
    old.take_snapshot();
    let mut user = db.begin(Isolation::Serializable);
    let mut cursor = Cursor::new(&table, 1, CursorOptions::default());
    let mut more = cursor.seek(&mut user, &[], Seek::First).unwrap();
    while more {
        more = cursor.next(&mut user).unwrap();
    }
    assert_eq!(locked(&db), ["number"]);
    db.set_names("t", &swapped()).unwrap();
    db.set_user("t", &renamed().user).unwrap();
    assert_eq!(*table.schema(), renamed());
    assert_eq!(locked(&db), ["by_content"]);

    // A transaction that uses the table continues, and older snapshots can still read it.
    user.update(&table, &key, &row(1, 20, 31)).unwrap();
    user.commit().unwrap();
    let found = old.get(&table, &key, |row| row.to_values()).unwrap();
    let values = [1, 20, 30].map(OwnedValue::UInt);
    assert_eq!(found.unwrap().unwrap(), values);
    drop(old);

    let few = SchemaNames {
        indexes: vec![],
        ..swapped()
    };
    let refused = db.set_names("t", &few);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    for refused in [db.set_names("u", &swapped()), db.set_user("u", b"")] {
        assert!(
            matches!(refused, Err(Error::NotFound { .. })),
            "{refused:?}"
        );
    }

    // The names come from the log, by a dump and by recovery; then from the catalog.
    let after = os.crash(7);
    let dumped = |os: &SimulatedOs| {
        let dump = Dump::open_on(Arc::new(os.crash(7)), "/db").unwrap();
        assert!(dump.missing().is_empty(), "{:?}", dump.missing());
        dump.schema("t").unwrap().clone()
    };
    assert_eq!(dumped(&after), renamed());
    for _ in 0..2 {
        let db = open(&after);
        assert_eq!(*db.table("t").unwrap().schema(), renamed());
        db.close().unwrap();
        assert_eq!(dumped(&after), renamed());
    }
    // A truncated table keeps its names.
    let db = open(&after);
    db.truncate_table("t").unwrap();
    let db = open(&after.crash(8));
    assert_eq!(*db.table("t").unwrap().schema(), renamed());
}

/// The log's last segment is full, and the disk has no space for another.
#[test]
fn names_change_as_a_whole_or_not_at_all() {
    let os = SimulatedOs::new(2);
    let db = open(&os);
    let table = db.create_table("t", &numbered()).unwrap();
    os.fail(FaultOn::Growth, 0, ErrorKind::StorageFull);
    let numbers = |n: u32| names(["id", &format!("number{n}"), "content"], "number");
    let (last, refused) = (1..100_000)
        .find_map(|n| {
            let named = db.set_names("t", &numbers(n));
            named.err().map(|error| (n - 1, error))
        })
        .unwrap();
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    let expected = match last {
        0 => numbered(),
        last => numbered().named(&numbers(last)).unwrap(),
    };
    assert_eq!(*table.schema(), expected);
    let db = open(&os.crash(2));
    assert_eq!(*db.table("t").unwrap().schema(), expected);
}
