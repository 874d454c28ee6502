//! The output of `peregrine dump`, and its reports of missing data.

use std::path::Path;

use assert_cmd::assert::Assert;
use assert_cmd::Command;
use peregrine::{
    Column, ColumnType, Database, Isolation, Key, Locking, Options, OwnedValue, TableSchema, Value,
};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

/// Rows (id, number).
fn schema() -> TableSchema {
    let signed = false;
    TableSchema {
        columns: vec![
            Column::new("id", ColumnType::Int { bytes: 4, signed }),
            Column::new("number", ColumnType::Double),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![],
        user: vec![],
    }
}

/// A closed database with these tables, of a row each.
fn database(dir: &Path, tables: &[(&str, f64)]) {
    let options = Options {
        pool_bytes: 4 << 20,
        ..Options::default()
    };
    let db = Database::open(dir, options).expect("a database");
    for (name, number) in tables {
        let table = db.create_table(name, &schema()).expect("a table");
        let row = [OwnedValue::UInt(1), OwnedValue::Double(*number)];
        let row: Vec<Value<'_>> = row.iter().map(OwnedValue::as_value).collect();
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.insert(&table, &row).expect("inserted");
        txn.commit().expect("committed");
    }
    db.close().expect("closed");
}

fn dump(dir: &Path, arguments: &[&str]) -> Assert {
    Command::new(assert_cmd::cargo::cargo_bin!("peregrine"))
        .current_dir(dir)
        .args(["dump", "db"])
        .args(arguments)
        .assert()
}

#[test]
fn temporary_tables_are_left_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let tables = [("#temporary/#sql-temptable-1", 1.0), ("shop/t", 2.0)];
    database(&dir.path().join("db"), &tables);
    dump(dir.path(), &[])
        .success()
        .stdout(contains("CREATE TABLE `shop`.`t`").and(contains("temptable").not()))
        .stdout(contains("left out: 1 temporary tables"))
        .stderr(contains("1 rows of 1 tables").and(contains("left out: 1 temporary tables")));
}

/// The table may exist, and only its definition be missing.
#[test]
fn who_asks_for_a_table_is_told_of_damaged_definitions() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = "shop/q7Zx9wK3";
    database(&dir.path().join("db"), &[(name, 1.0)]);
    let data = dir.path().join("db/data");
    let mut bytes = std::fs::read(&data).expect("the data file");
    let mut found = 0;
    for at in 0..bytes.len() - name.len() {
        if bytes[at..].starts_with(name.as_bytes()) {
            bytes[at] = b'*';
            found += 1;
        }
    }
    assert!(found > 0, "{name} is not in the data file");
    std::fs::write(&data, bytes).expect("written");
    dump(dir.path(), &["--table", name])
        .code(1)
        .stderr(contains("missing: the definitions of tables"))
        .stderr(contains("no table shop/q7Zx9wK3 can be found"));
}

#[test]
fn a_table_that_makes_no_file_keeps_no_other_from_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let long = format!("{0}/{0}", "@m0".repeat(64));
    // A file and a folder would have the same name.
    let tables = [
        (&long[..], 1.0),
        ("a", 2.0),
        ("a.csv/t", 3.0),
        ("b.c", 4.0),
        ("b/c", 5.0),
    ];
    database(&dir.path().join("db"), &tables);
    dump(dir.path(), &["--format", "csv", "--output", "out"])
        .code(1)
        .stderr(contains("missing: table a.csv/t: cannot create"))
        .stderr(contains("4 rows of 5 tables").and(contains("1 part is missing")));
    for (file, number) in [
        (format!("{long}.csv"), 1),
        ("a.csv".into(), 2),
        ("b.c.csv".into(), 4),
        ("b/c.csv".into(), 5),
    ] {
        let text = std::fs::read_to_string(dir.path().join("out").join(&file)).expect("a file");
        assert_eq!(
            text,
            format!("\"id\",\"number\"\r\n1,{number}\r\n"),
            "{file}"
        );
    }
}

#[test]
fn what_mariadb_can_not_have_is_missing() {
    let dir = tempfile::tempdir().expect("a directory");
    database(&dir.path().join("db"), &[("t", f64::INFINITY)]);
    let told = "missing: table t: 1 values of column number, infinite or no numbers";
    dump(dir.path(), &[])
        .code(1)
        .stdout(contains("(1,0);").and(contains(format!("-- {told}"))))
        .stderr(contains(told).and(contains("1 part is missing")));
    dump(dir.path(), &["--format", "csv"])
        .success()
        .stdout(contains("1,inf"));
}

#[test]
fn a_table_is_locked_and_counts_as_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    database(&path, &[("t", 1.0)]);
    let db = Database::open(&path, Options::default()).expect("a database");
    db.set_locking("t", Locking::Optimistic).expect("set");
    db.set_auto_increment("t", 70).expect("set");
    db.close().expect("closed");
    dump(dir.path(), &[])
        .success()
        .stdout(contains(") LOCKING=OPTIMISTIC;"))
        .stdout(contains(
            "-- left out: the auto-increment counter, which is at 70",
        ));
}

#[test]
fn a_column_whose_name_sql_does_not_take_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("db");
    let db = Database::open(&path, Options::default()).expect("a database");
    let mut schema = schema();
    schema.columns[1].name = "number ".into();
    db.create_table("t", &schema).expect("a table");
    db.close().expect("closed");
    let told = "missing: table t: the name of column \"number \"";
    dump(dir.path(), &[])
        .code(1)
        .stdout(contains("`number` DOUBLE").and(contains(format!("-- {told}"))))
        .stderr(contains(told));
}
