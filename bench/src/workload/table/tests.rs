use std::collections::HashSet;

use super::*;
use crate::workload::{Options, Workload};

/// Reads `[[table]]`s, with a transaction that completes the file.
fn tables(text: &str) -> Vec<Table> {
    let file = format!(
        "name = 't'\nabout = 't'\nrun = 'each'\n{text}\n[[transaction]]\nname = 'x'\nsql = 'SELECT 1'\n"
    );
    Workload::read(&file, "t.toml", &Options::default())
        .expect("right")
        .tables
}

fn rows(table: &Table, seed: u64) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    table.rows(seed, &mut |row| {
        rows.push(row.to_vec());
        true
    });
    rows
}

const FAMILY: &str = r#"
[[table]]
name = "parents"
rows = 50
draw = { twice = "row * 2" }
columns = [
  { name = "id", type = "int", value = "row" },
  { name = "children", type = "int", uniform = [0, 4] },
  { name = "later", type = "int default 5" },
]
[[table]]
name = "children"
per = "parents"
rows = "children"
columns = [
  { name = "parent", type = "int", value = "id" },
  { name = "id", type = "int", value = "row" },
  { name = "double", type = "int", value = "twice" },
  { name = "gift", type = "varchar(9)", letters = [3, 9] },
]
"#;

#[test]
fn a_child_table_has_the_rows_that_its_parents_say() {
    let tables = tables(FAMILY);
    let [parents, children] = tables.as_slice() else {
        panic!("two tables")
    };
    assert_eq!(parents.loaded_columns(), ["id", "children"]);
    let parents = rows(parents, 3);
    assert_eq!(parents.len(), 50);
    let children = rows(children, 3);
    let number = |row: &[Datum], at: usize| row[at].integer().expect("a number");
    for parent in &parents {
        let id = number(parent, 0);
        let theirs: Vec<&Vec<Datum>> = children.iter().filter(|c| number(c, 0) == id).collect();
        let count = usize::try_from(number(parent, 1)).expect("few");
        assert_eq!(theirs.len(), count);
        for (child, line) in theirs.iter().zip(1..) {
            assert_eq!(number(child, 1), line, "its own number, not the parent's");
            assert_eq!(number(child, 2), id * 2);
        }
    }
    let gifts: HashSet<String> = children.iter().map(|row| format!("{:?}", row[3])).collect();
    assert!(gifts.len() > children.len() / 2);
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_does_not() {
    let tables = tables(FAMILY);
    for table in &tables {
        assert_eq!(rows(table, 3), rows(table, 3));
        assert_ne!(rows(table, 3), rows(table, 4));
    }
}

#[test]
fn making_rows_ends_when_it_is_told_to() {
    let tables = tables(FAMILY);
    for table in &tables {
        let mut taken = 0;
        table.rows(3, &mut |_| {
            taken += 1;
            taken < 7
        });
        assert_eq!(taken, 7);
    }
}

#[test]
fn a_table_s_file_has_a_line_a_row() {
    let tables = tables(FAMILY);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("parents.tsv");
    let written = super::super::data_file::write(&tables[0], 3, &path, &|| true).expect("written");
    let text = std::fs::read_to_string(&path).expect("read");
    assert_eq!((written, text.lines().count()), (50, 50));
    for (line, row) in text.lines().zip(rows(&tables[0], 3)) {
        let fields: Vec<Datum> = line.split('\t').map(Datum::of_text).collect();
        assert_eq!(fields, row);
    }
}

#[test]
fn columns_of_one_definition_are_numbered() {
    let tables = tables(
        "[[table]]\nname = 'wide'\nrows = 2\ncolumns = [\n\
         { name = 'id', type = 'int', value = 'row' },\n\
         { name = 'i', copies = 3, type = 'int not null', value = 'id * 10' },\n\
         { name = 'last', type = 'int', value = 'i3 + 1' },\n]",
    );
    assert_eq!(
        tables[0].create("InnoDB"),
        "CREATE TABLE wide (id int, i1 int not null, i2 int not null, i3 int not null, last int) ENGINE=InnoDB"
    );
    let numbers = |row: &[i64]| -> Vec<Datum> { row.iter().map(|n| Datum::Integer(*n)).collect() };
    assert_eq!(
        rows(&tables[0], 1),
        [numbers(&[1, 10, 10, 10, 11]), numbers(&[2, 20, 20, 20, 21])]
    );
}
