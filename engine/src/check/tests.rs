//! Faults that are planted in a table: a check finds each.

use std::io::ErrorKind;
use std::sync::Arc;

use super::open_table::fault;
use super::{check_on, Report};
use crate::buffer::RecordEdit;
use crate::dump::Dump;
use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::read::{Cursor, CursorOptions, Seek};
use crate::row::{Column, ColumnType, Index, Key, Value};
use crate::table::Table;
use crate::tree::Tree;
use crate::{Database, Error, Isolation, Options, TableSchema};

fn table(db: &Database) -> Arc<Table> {
    let int = |name| {
        let signed = false;
        Column::new(name, ColumnType::Int { bytes: 4, signed })
    };
    let schema = TableSchema {
        columns: vec![int("id"), int("k"), int("v")],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_k", &[1])],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for id in 0..3000u32 {
        let row: [Value<'_>; 3] = [id.into(), (id % 7).into(), id.into()];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    table
}

/// The key of the first record of an index.
fn first_key(db: &Database, table: &Arc<Table>, index: usize) -> Vec<u8> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let options = CursorOptions {
        index_only: true,
        ..CursorOptions::default()
    };
    let mut cursor = Cursor::new(table, index, options);
    assert!(cursor.seek(&mut txn, &[], Seek::First).unwrap());
    cursor.key().to_vec()
}

fn remove(tree: &Tree, key: &[u8]) {
    tree.modify(key, 0, 0, |old, _| {
        assert!(old.is_some());
        (RecordEdit::Remove, ())
    })
    .unwrap();
}

/// Changes the last byte of a record.
fn spoil(tree: &Tree, key: &[u8]) {
    tree.modify(key, 100, 0, |old, new| {
        new.extend_from_slice(old.unwrap());
        *new.last_mut().unwrap() ^= 1;
        (RecordEdit::Put, ())
    })
    .unwrap();
}

fn problems_after(fault: impl FnOnce(&Database, &Arc<Table>)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), Options::default()).unwrap();
    let table = table(&db);
    let mut report = Report::default();
    db.check_table("t", &|| false, &mut report).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(report.tables[0].rows, 3000);
    fault(&db, &table);
    db.check_table("t", &|| false, &mut report).unwrap();
    report.problems
}

fn assert_one(problems: &[String], texts: &[&str]) {
    for text in texts {
        assert!(problems.iter().any(|p| p.contains(text)), "{problems:?}");
    }
    assert_eq!(problems.len(), texts.len(), "{problems:?}");
}

#[test]
fn a_missing_entry() {
    let problems = problems_after(|db, table| {
        remove(&table.trees.load().indexes[0], &first_key(db, table, 1));
    });
    assert_one(&problems, &["index by_k has 2999 entries for 3000 rows"]);
}

#[test]
fn an_entry_without_its_row() {
    let problems = problems_after(|db, table| {
        remove(&table.trees.load().clustered, &first_key(db, table, 0));
    });
    assert_one(
        &problems,
        &[
            "index by_k: internal error: the entry leads to no row 0; key 0, 0",
            "index by_k has 3000 entries for 2999 rows",
        ],
    );
}

#[test]
fn a_row_that_is_none() {
    let problems = problems_after(|db, table| {
        let tree = &table.trees.load().clustered;
        let key = first_key(db, table, 0);
        tree.modify(&key, 100, 0, |old, new| {
            // Without the end of its last column.
            let old = old.unwrap();
            new.extend_from_slice(&old[..old.len() - 1]);
            (RecordEdit::Put, ())
        })
        .unwrap();
    });
    assert!(!problems.is_empty());
    assert!(problems[0].contains("; key 0"), "{problems:?}");
}

#[test]
fn an_entry_that_differs_from_its_row() {
    // The first index entry is of k = 0, id = 0: an entry of k = 0, id = 1 would be wrong.
    let problems = problems_after(|db, table| {
        let trees = table.trees.load();
        let tree = &trees.indexes[0];
        let key = first_key(db, table, 1);
        let value = tree.read(&key, |value, _| value.unwrap().to_vec()).unwrap();
        let other = table
            .encode_key(1, &[Value::UInt(3)])
            .map(|mut other| {
                other.extend_from_slice(&key[other.len()..]);
                other
            })
            .unwrap();
        remove(tree, &key);
        tree.modify(&other, 100, 0, |old, new| {
            assert!(old.is_none());
            new.extend_from_slice(&value);
            (RecordEdit::Put, ())
        })
        .unwrap();
    });
    assert_one(&problems, &["the entry differs from its row"]);
}

/// The key has only the beginning of the name, so that the row stores the name.
#[test]
fn a_row_under_the_key_of_another() {
    let os = SimulatedOs::new(5);
    let options = Options {
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let mut schema = TableSchema {
        columns: vec![Column::new("name", ColumnType::VarBytes { max: 100 })],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    };
    schema.primary.as_mut().unwrap().parts[0].prefix = Some(3);
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    for name in [&b"abc and more"[..], b"xyz"] {
        txn.insert(&table, &[Value::from(name)]).unwrap();
    }
    txn.commit().unwrap();
    let problems = || {
        db.checkpoint().unwrap();
        let [mut in_use, mut at_rest] = [(); 2].map(|()| Report::default());
        db.check_table("t", &|| false, &mut in_use).unwrap();
        check_on(Arc::new(os.crash(7)), "/db", &mut at_rest).unwrap();
        [in_use.problems, at_rest.problems]
    };
    for problems in problems() {
        assert_one(&problems, &[]);
    }
    let trees = table.trees.load();
    let [from, to] = [&b"abc and more"[..], b"abd"]
        .map(|name| table.encode_key(0, &[Value::from(name)]).unwrap());
    let read = |value: Option<&[u8]>, _| value.unwrap().to_vec();
    let record = trees.clustered.read(&from, read).unwrap();
    remove(&trees.clustered, &from);
    let put = |_: Option<&[u8]>, new: &mut Vec<u8>| {
        new.extend_from_slice(&record);
        (RecordEdit::Put, ())
    };
    trees.clustered.modify(&to, 100, 0, put).unwrap();
    for problems in problems() {
        assert_one(&problems, &["the row's values are not those of its key"]);
    }
}

#[test]
fn a_record_whose_header_is_none() {
    let problems = problems_after(|db, table| {
        let trees = table.trees.load();
        let key = first_key(db, table, 1);
        trees.indexes[0]
            .modify(&key, 100, 0, |_, new| {
                new.push(0xff);
                (RecordEdit::Put, ())
            })
            .unwrap();
        spoil(&trees.clustered, &first_key(db, table, 0));
    });
    assert!(
        problems.iter().any(|p| p.contains("index by_k: ")),
        "{problems:?}"
    );
}

/// Rows are in flight at the checkpoint: with changes of indexed and of other columns, deleted ones and new ones.
#[test]
fn a_missing_entry_beside_rows_in_flight() {
    let os = SimulatedOs::new(1);
    let options = Options {
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options).unwrap();
    let table = table(&db);
    let key = |id: u32| table.encode_key(0, &[id.into()]).unwrap();
    let mut under_way = db.begin(Isolation::ReadCommitted);
    for (id, k) in [(5u32, 6u32), (20, 6)] {
        let row: [Value<'_>; 3] = [id.into(), k.into(), 0u32.into()];
        under_way.update(&table, &key(id), &row).unwrap();
    }
    under_way.delete(&table, &key(12)).unwrap();
    let new: [Value<'_>; 3] = [5000u32.into(), 1u32.into(), 0u32.into()];
    under_way.insert(&table, &new).unwrap();
    let check = || {
        db.checkpoint().unwrap();
        let mut report = Report::default();
        check_on(Arc::new(os.crash(7)), "/db", &mut report).unwrap();
        assert!(report.in_flight > 0);
        assert_eq!(report.tables[0].rows, 2997);
        report.problems
    };
    assert_one(&check(), &[]);
    remove(&table.trees.load().indexes[0], &first_key(&db, &table, 1));
    assert_one(&check(), &["index by_k has 2996 entries for 2997 rows"]);
}

/// A program that shows a problem may cut it: the server has 512 bytes for a warning.
#[test]
fn what_is_wrong_stands_before_a_long_key() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), Options::default()).unwrap();
    let schema = TableSchema {
        columns: vec![Column::new("name", ColumnType::VarBytes { max: 1000 })],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("by_name", &[0])],
        user: vec![],
    };
    let table = db.create_table("t", &schema).unwrap();
    let mut txn = db.begin(Isolation::RepeatableRead);
    let name = [7u8; 1000];
    txn.insert(&table, &[Value::from(&name[..])]).unwrap();
    txn.commit().unwrap();
    remove(&table.trees.load().clustered, &first_key(&db, &table, 0));
    let mut report = Report::default();
    db.check_table("t", &|| false, &mut report).unwrap();
    let problems = report.problems;
    let told = problems.iter().find(|p| p.contains("leads to no row"));
    assert!(told.unwrap().len() < 300, "{told:?}");
}

#[test]
fn a_copy_without_the_file_of_its_lock_is_checked_and_dumped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let db = Database::open(&path, Options::default()).unwrap();
    drop(table(&db));
    db.close().unwrap();
    std::fs::remove_file(path.join("lock")).unwrap();
    let mut report = Report::default();
    super::check(&path, &mut report).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    assert_eq!(report.tables[0].rows, 3000);
    assert!(Dump::open(&path).unwrap().missing().is_empty());
    assert!(!path.join("lock").exists());
    Database::open(&path, Options::default()).unwrap();
}

/// A read that fails, or a pool without a free page, is no fault of the table.
#[test]
fn what_may_pass_ends_a_check_and_is_no_fault_of_the_table() {
    let os = SimulatedOs::new(3);
    let open = || {
        let options = Options {
            background: false,
            ..Options::default()
        };
        Database::open_on(Arc::new(os.clone()), "/db", options).unwrap()
    };
    let db = open();
    drop(table(&db));
    db.close().unwrap();
    let db = open();
    // Only its roots are read.
    let table = db.table("t").unwrap();
    os.fail(FaultOn::Read, 0, ErrorKind::Other);
    let mut report = Report::default();
    let failed = db.check_table("t", &|| false, &mut report);
    assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
    assert!(report.is_sound(), "{:?}", report.problems);
    os.heal();
    db.check_table("t", &|| false, &mut report).unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    drop(table);
    for passes in [
        Error::TooLarge("all pages are in use".into()),
        Error::NoSpace { path: "db".into() },
    ] {
        assert!(fault(passes).is_err());
    }
    let cut = Error::io("read", "db", ErrorKind::UnexpectedEof.into());
    assert!(fault(cut).is_ok());
}
