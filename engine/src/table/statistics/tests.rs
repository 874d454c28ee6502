//! Rows whose keys can't be found without values outside their leaf.

use std::io::ErrorKind;
use std::sync::Arc;

use crate::os::simulated::{FaultOn, SimulatedOs};
use crate::sync::Moment;
use crate::{
    Collations, Column, ColumnType, Database, Error, Index, Isolation, Key, Options, Result, Table,
    TableSchema, Value,
};

/// Too short to be moved outside a row.
const SHORT: usize = 63;
/// So many that a row of only these is too long, and is stored outside as a whole.
const TOO_MANY: usize = 70;
/// So many that a row with a long name is too long, and the name is moved outside.
const MANY: usize = 53;
const LONG_NAME: usize = 150;

/// A collation that keeps bytes unchanged.
struct AsTheyAre;

impl Collations for AsTheyAre {
    fn sort_key(&self, _: u32, value: &[u8], _: Option<u32>, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(value);
        out.push(0);
        Ok(())
    }
}

fn database() -> Arc<Database> {
    let options = Options {
        background: false,
        collations: Some(Arc::new(AsTheyAre)),
        ..Options::default()
    };
    let os = Arc::new(SimulatedOs::new(1));
    Arc::new(Database::open_on(os, "/db", options).unwrap())
}

/// Rows (name, id, shorts), with the key (name, id); the name has a collation.
fn table(db: &Database, shorts: usize) -> Arc<Table> {
    let bytes = |max: usize| ColumnType::VarBytes { max: max as u32 };
    let id = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    let mut columns = vec![
        Column::new("name", bytes(LONG_NAME)).collation(1),
        Column::new("id", id),
    ];
    columns.extend((0..shorts).map(|n| Column::new(format!("short {n}"), bytes(SHORT))));
    let schema = TableSchema {
        columns,
        primary: Some(Key::new(&[0, 1])),
        indexes: vec![],
        user: vec![],
    };
    db.create_table("t", &schema).unwrap()
}

fn row<'a>(name: &'a [u8], shorts: usize, short: &'a [u8]) -> Vec<Value<'a>> {
    let mut row = vec![Value::Bytes(name), Value::UInt(1)];
    row.resize(2 + shorts, Value::Bytes(short));
    row
}

/// A table of three rows, and their names.
fn three_rows(db: &Database, shorts: usize, name: usize) -> (Arc<Table>, [Vec<u8>; 3]) {
    let table = table(db, shorts);
    let names = [b'a', b'b', b'c'].map(|letter| vec![letter; name]);
    let mut txn = db.begin(Isolation::ReadCommitted);
    for name in &names {
        txn.insert(&table, &row(name, shorts, &[1; SHORT])).unwrap();
    }
    txn.commit().unwrap();
    (table, names)
}

/// A row is changed, or deleted, after its leaf was copied, and its values outside are gone.
#[test]
fn what_has_gone_since_its_leaf_was_copied_is_left_out_of_statistics() {
    if crate::knobs::SHAKEN {
        // The figures hold only for production's numbers.
        return;
    }
    for (shorts, name, deletes) in [
        (TOO_MANY, 10, false),
        (TOO_MANY, 10, true),
        (MANY, LONG_NAME, true),
    ] {
        let db = database();
        let (table, [first, ..]) = three_rows(&db, shorts, name);
        let (writing, written) = (db.clone(), table.clone());
        table.state.moments.at(Moment::RowSampled, move || {
            let key = [Value::Bytes(&first), Value::UInt(1)];
            let key = written.encode_key(0, &key).unwrap();
            let mut txn = writing.begin(Isolation::ReadCommitted);
            match deletes {
                true => txn.delete(&written, &key).unwrap(),
                false => {
                    let changed = row(&first, shorts, &[2; SHORT]);
                    txn.update(&written, &key, &changed).unwrap();
                }
            }
            txn.commit().unwrap();
            writing.purge().unwrap();
        });
        assert_eq!(table.cardinality(0).unwrap(), [2, 3], "deleted: {deletes}");
        assert!(table.state.moments.passed());
    }
}

#[test]
fn a_key_column_that_stands_outside_its_row_counts_in_statistics() {
    let db = database();
    let (table, _) = three_rows(&db, MANY, LONG_NAME);
    assert_eq!(table.cardinality(0).unwrap(), [3, 3]);
}

/// Rows (id, name), with an index of names.
fn named() -> TableSchema {
    let id = ColumnType::Int {
        bytes: 4,
        signed: false,
    };
    TableSchema {
        columns: vec![
            Column::new("id", id),
            Column::new("name", ColumnType::VarBytes { max: 700 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![Index::new("name", &[1])],
        user: vec![],
    }
}

fn long_name(number: u32) -> Vec<u8> {
    let mut name = number.to_be_bytes().to_vec();
    name.resize(600, b'x');
    name
}

/// A table of so many rows with names of this length, opened again, with only the roots in memory.
fn opened_again(
    os: &SimulatedOs,
    schema: &TableSchema,
    rows: u32,
    length: usize,
) -> (Database, Arc<Table>) {
    let options = || Options {
        background: false,
        pool_bytes: 4 << 20,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
    let table = db.create_table("t", schema).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..rows {
        let mut name = long_name(id);
        name.resize(length, b'x');
        txn.insert(&table, &[Value::from(id), Value::Bytes(&name)])
            .unwrap();
    }
    txn.commit().unwrap();
    drop((txn, table));
    db.close().unwrap();
    let db = Database::open_on(Arc::new(os.clone()), "/db", options()).unwrap();
    let table = db.table("t").unwrap();
    (db, table)
}

#[test]
fn a_size_is_guessed_where_pages_can_not_be_read() {
    // This many rows of this length need inner nodes below the root.
    const ROWS: u32 = 6_000;
    let mut schema = named();
    schema.columns[1].ty = ColumnType::VarBytes { max: 3_000 };
    schema.indexes.clear();
    let os = SimulatedOs::new(3);
    let (_db, table) = opened_again(&os, &schema, ROWS, 3_000);
    os.fail(FaultOn::Read, 0, ErrorKind::Other);
    assert!(table.size_bytes().is_err());
    let ((rows, indexes), failed) = table.guess_size_bytes();
    assert!(matches!(failed, Some(Error::Io { .. })), "{failed:?}");
    assert!(rows >= u64::from(ROWS), "{rows}");
    assert_eq!(indexes, 0);
    // The error is reported once, and not tried at each statement.
    let tried = os.struck();
    assert!(table.guess_size_bytes().1.is_none());
    assert_eq!(os.struck(), tried);
    os.heal();
    table.analyze().unwrap();
    let sizes = table.size_bytes().unwrap();
    assert_eq!(table.guess_size_bytes().0, sizes);
}

#[test]
fn an_index_that_can_not_be_read_keeps_nothing_of_the_others_unknown() {
    const ROWS: u32 = 2_000;
    let os = SimulatedOs::new(4);
    let (db, table) = opened_again(&os, &named(), ROWS, 600);
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 0..ROWS {
        let key = table.encode_key(0, &[Value::from(id)]).unwrap();
        assert!(txn.get(&table, &key, |_| ()).unwrap().is_some());
    }
    os.fail(FaultOn::Read, 0, ErrorKind::Other);
    assert!(table.cardinality(1).is_err());
    assert!(table.analyze().is_err());
    assert!(table.cardinality(0).unwrap()[0] > u64::from(ROWS) / 2);
}

/// Behind the entries that are counted one by one, many have the same name; and one name is far behind all others.
#[test]
fn a_key_far_behind_all_others_hides_nothing_from_statistics() {
    const DIFFERENT: u32 = 8_000;
    if crate::knobs::SHAKEN {
        // The figures hold only for production's numbers.
        return;
    }
    let os = SimulatedOs::new(5);
    let options = Options {
        background: false,
        pool_bytes: 64 << 20,
        ..Options::default()
    };
    let db = Database::open_on(Arc::new(os), "/db", options).unwrap();
    let table = db.create_table("t", &named()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    let numbers = (0..DIFFERENT).chain((0..DIFFERENT).map(|n| DIFFERENT + n / 20));
    for (id, number) in (0u32..).zip(numbers.chain([u32::MAX])) {
        let row = [Value::from(id), Value::Bytes(&long_name(number))];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    let truth = f64::from(DIFFERENT + DIFFERENT / 20 + 1);
    let found = table.cardinality(1).unwrap()[0] as f64;
    assert!(
        (0.7..1.3).contains(&(found / truth)),
        "{found}, not {truth}"
    );
}
