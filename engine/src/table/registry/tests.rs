use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::Duration;

use crate::os::simulated::SimulatedOs;
use crate::sync::Moment;
use crate::{
    knobs, Column, ColumnType, Database, Error, Index, Isolation, Key, Options, Table, TableSchema,
    Value,
};

// More than [`knobs::most_tables_open`] can be.
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
        // The figures hold only for production's numbers.
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
    // The holder of a table has the same object that others get.
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

/// A drop or truncate works on the table's trees, which must not be opened a second time.
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

/// Reads of a table from disk may take long.
#[test]
fn who_wants_another_table_does_not_wait_for_one_that_is_being_opened() {
    let os = Arc::new(SimulatedOs::new(1));
    let open = || {
        let options = Options {
            pool_bytes: 1 << 20,
            background: false,
            ..Options::default()
        };
        Arc::new(Database::open_on(os.clone(), "/db", options).unwrap())
    };
    let db = open();
    for name in ["slow", "other"] {
        db.create_table(name, &schema()).unwrap();
    }
    drop(db);
    let db = open();
    let slow = db.registry().id_of("slow").unwrap();
    let state = db.registry().state(slow).unwrap();
    let (found, waits) = channel();
    let others = db.clone();
    state.moments.at(Moment::TableOpened, move || {
        let (tell, told) = channel();
        let looks = std::thread::spawn(move || {
            let table = others.table("other");
            tell.send(table.is_ok()).unwrap_or_default();
        });
        let other = told.recv_timeout(Duration::from_secs(5));
        found.send((other, looks)).unwrap();
    });
    let table = db.table("slow").unwrap();
    let (other, looks) = waits.recv().unwrap();
    looks.join().unwrap();
    assert_eq!(other, Ok(true));
    assert!(Arc::ptr_eq(&table, &db.table("slow").unwrap()));
}

/// Two threads that open one table at once would each have their own statistics, and trees of which one goes with the
/// table.
#[test]
fn a_table_that_is_being_opened_is_dropped_when_it_is_open() {
    let os = Arc::new(SimulatedOs::new(1));
    let open = || {
        let options = Options {
            pool_bytes: 1 << 20,
            background: false,
            ..Options::default()
        };
        Arc::new(Database::open_on(os.clone(), "/db", options).unwrap())
    };
    let db = open();
    db.create_table("t", &schema()).unwrap();
    drop(db);
    let db = open();
    let id = db.registry().id_of("t").unwrap();
    let state = db.registry().state(id).unwrap();
    let (began, drops) = channel();
    let others = db.clone();
    state.moments.at(Moment::TableOpened, move || {
        let drops = std::thread::spawn(move || others.drop_table("t"));
        began.send(drops).unwrap();
    });
    let table = db.table("t").unwrap();
    drops.recv().unwrap().join().unwrap().unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let late = txn.insert(&table, &[Value::UInt(1), Value::UInt(7)]);
    assert!(matches!(late, Err(Error::NotFound { .. })), "{late:?}");
    assert!(db.registry().table_of(id).unwrap().is_none());
}
