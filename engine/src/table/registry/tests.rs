use std::sync::Arc;

use crate::knobs;
use crate::os::simulated::SimulatedOs;
use crate::{
    Column, ColumnType, Database, Index, Isolation, Key, Options, Table, TableSchema, Value,
};

// More than [`knobs::most_tables_open`] ever is.
const TABLES: usize = 1024 + 200;

fn schema() -> TableSchema {
    let int = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    TableSchema {
        columns: vec![Column::new("id", int), Column::new("other", int)],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("other", &[1])],
        user: vec![],
    }
}

fn insert(db: &Database, table: &Table, id: u64) {
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.insert(table, &[Value::UInt(id), Value::UInt(7)])
        .unwrap();
    txn.commit().unwrap();
}

fn open_tables(db: &Database) -> usize {
    let tables = db.registry().tables.read();
    let open = tables.by_id.values().filter(|entry| entry.table.is_some());
    open.count()
}

#[test]
fn tables_that_nobody_has_are_closed_and_opened_again() {
    if crate::knobs::SHAKEN {
        // It counts what production's numbers make of it.
        return;
    }
    let os = Arc::new(SimulatedOs::new(1));
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(os, "/db", options).unwrap();
    let held = db.create_table("held", &schema()).unwrap();
    for n in 0..TABLES {
        let table = db.create_table(&format!("t{n}"), &schema()).unwrap();
        insert(&db, &table, 1);
    }
    assert!(open_tables(&db) <= knobs::most_tables_open());
    // Who has a table has the same that others get.
    insert(&db, &held, 1);
    assert!(Arc::ptr_eq(&held, &db.table("held").unwrap()));
    for n in 0..TABLES {
        let name = format!("t{n}");
        insert(&db, &db.table(&name).unwrap(), 2);
        assert_eq!(db.table(&name).unwrap().estimate_rows(), 2);
        if n % 2 == 0 {
            db.drop_table(&name).unwrap();
        } else {
            db.rename_table(&name, &format!("n{n}")).unwrap();
            assert_eq!(db.table(&format!("n{n}")).unwrap().name(), format!("n{n}"));
        }
    }
    assert!(open_tables(&db) <= knobs::most_tables_open());
    assert_eq!(db.table_names().len(), TABLES / 2 + 1);
}

/// Who drops or truncates a table works on its trees, which are not to be opened a second time.
#[test]
fn a_table_that_is_about_to_go_is_not_closed() {
    let os = Arc::new(SimulatedOs::new(1));
    let options = Options {
        pool_bytes: 1 << 20,
        background: false,
        ..Options::default()
    };
    let db = Database::open_on(os, "/db", options).unwrap();
    for n in 0..TABLES {
        db.create_table(&format!("t{n}"), &schema()).unwrap();
    }
    let registry = db.registry();
    let definition = registry.definition(registry.id_of("t0").unwrap()).unwrap();
    assert!(registry.state(definition.id).unwrap().close(0));
    let trees = registry.trees_to_destroy(&definition, |_| false).unwrap();
    for n in (1..TABLES).chain(1..TABLES) {
        db.table(&format!("t{n}")).unwrap();
    }
    let now = registry.trees_to_destroy(&definition, |_| false).unwrap();
    assert!(Arc::ptr_eq(&trees[0], &now[0]));
    registry.state(definition.id).unwrap().reopen();
}
