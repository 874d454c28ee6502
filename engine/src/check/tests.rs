//! Faults that are planted in a table: each is found.

use std::sync::Arc;

use super::Report;
use crate::page::Change;
use crate::row::{Column, ColumnType, Index, Key, Value};
use crate::table::{Cursor, CursorOptions, Seek, Table};
use crate::tree::Tree;
use crate::{Database, Isolation, TableSchema};

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
        (Change::Remove, ())
    })
    .unwrap();
}

/// Changes the last byte of a record.
fn spoil(tree: &Tree, key: &[u8]) {
    tree.modify(key, 100, 0, |old, new| {
        new.extend_from_slice(old.unwrap());
        *new.last_mut().unwrap() ^= 1;
        (Change::Put, ())
    })
    .unwrap();
}

fn problems_after(fault: impl FnOnce(&Database, &Arc<Table>)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), crate::Options::default()).unwrap();
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
            "index by_k: key",
            "index by_k has 3000 entries for 2999 rows",
        ],
    );
    assert!(problems[0].contains("leads to no row"), "{problems:?}");
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
            (Change::Put, ())
        })
        .unwrap();
    });
    assert!(!problems.is_empty());
    assert!(problems[0].contains("table t: key"), "{problems:?}");
}

#[test]
fn an_entry_that_differs_from_its_row() {
    // The first index entry is of k = 0, id = 0: the entry of k = 0, id = 1 would be a lie.
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
            (Change::Put, ())
        })
        .unwrap();
    });
    assert_one(&problems, &["the entry differs from its row"]);
}

#[test]
fn a_record_whose_header_is_none() {
    let problems = problems_after(|db, table| {
        let trees = table.trees.load();
        let key = first_key(db, table, 1);
        trees.indexes[0]
            .modify(&key, 100, 0, |_, new| {
                new.push(0xff);
                (Change::Put, ())
            })
            .unwrap();
        spoil(&trees.clustered, &first_key(db, table, 0));
    });
    assert!(
        problems.iter().any(|p| p.contains("index by_k: key")),
        "{problems:?}"
    );
}
