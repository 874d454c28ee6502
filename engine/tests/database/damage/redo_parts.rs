//! Changes that the log gets in parts before their transaction ends, and that recovery makes again.

use std::ops::Deref;

use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Error, Index, Key, OwnedValue, Result, Seek,
    TableSchema, Transaction, Value, Xid,
};

use crate::tables::one_table::OneTable;
use crate::tables::schemas::{noise, INT};

/// So many changes need more than one part of the log.
const ROWS: u32 = 1000;

/// Rows with a long name, which is their key, and a unique number.
struct World(OneTable);

impl Deref for World {
    type Target = OneTable;

    fn deref(&self) -> &OneTable {
        &self.0
    }
}

fn name(n: u32) -> Vec<u8> {
    [&n.to_be_bytes()[..], &[b'x'; 700]].concat()
}

impl World {
    fn new() -> World {
        let schema = TableSchema {
            columns: vec![
                Column::new("name", ColumnType::VarBytes { max: 800 }),
                Column::new("code", INT),
            ],
            primary: Some(Key::new(&[0])),
            indexes: vec![Index::new("code", &[1]).unique()],
            user: vec![],
        };
        World(OneTable::new(&schema))
    }

    fn key(&self, n: u32) -> Vec<u8> {
        let name = name(n);
        self.table.encode_key(0, &[Value::Bytes(&name)]).unwrap()
    }

    fn insert(&self, txn: &mut Transaction, n: u32, code: u32) -> Result<()> {
        let name = name(n);
        txn.insert(&self.table, &[Value::Bytes(&name), code.into()])
    }

    /// Gives a row another name and number.
    fn rename(&self, txn: &mut Transaction, n: u32, to: u32, code: u32) -> Result<()> {
        let name = name(to);
        let row = [Value::Bytes(&name), code.into()];
        txn.update(&self.table, &self.key(n), &row)
    }

    fn rows(&self) -> Vec<Vec<OwnedValue>> {
        let mut txn = self.begin();
        let mut cursor = Cursor::new(&self.table, 0, CursorOptions::default());
        let mut rows = Vec::new();
        let mut found = cursor.seek(&mut txn, &[], Seek::First).unwrap();
        while found {
            rows.push(cursor.row().unwrap().to_values().unwrap());
            found = cursor.next(&mut txn).unwrap();
        }
        rows
    }

    fn after_a_crash(&self) -> World {
        World(self.0.after_a_crash())
    }
}

/// A change of a row's key is two changes in the log.
///
/// The second is refused, after the first has been made.
fn is_made_again(code: u32, is_refusal: impl Fn(&Error) -> bool) {
    let world = World::new();
    let mut txn = world.begin();
    for n in 0..ROWS {
        world.insert(&mut txn, n, n).unwrap();
    }
    txn.commit().unwrap();
    let mut other = world.begin();
    world.insert(&mut other, 3 * ROWS, 3 * ROWS).unwrap();
    for commits in [false, true] {
        let mut txn = world.begin();
        for n in 1..ROWS {
            let refused = world.rename(&mut txn, n, ROWS + n, code).unwrap_err();
            assert!(is_refusal(&refused), "{refused}");
            txn.delete(&world.table, &world.key(n)).unwrap();
        }
        world.insert(&mut txn, 2 * ROWS, 2 * ROWS).unwrap();
        let xid = Xid::new(1, b"parts", b"").unwrap();
        txn.prepare(&xid).unwrap();
        let after = world.after_a_crash();
        match commits {
            false => {
                after.db.rollback_prepared(&xid).unwrap();
                txn.rollback().unwrap();
            }
            true => {
                after.db.commit_prepared(&xid).unwrap();
                txn.commit().unwrap();
            }
        }
        assert!(after.rows() == world.rows(), "commits: {commits}");
    }
}

#[test]
fn a_prepared_transaction_is_made_again_where_changes_of_keys_were_refused() {
    is_made_again(0, |error| matches!(error, Error::Duplicate { .. }));
}

#[test]
fn a_prepared_transaction_is_made_again_where_changes_of_keys_met_a_lock() {
    is_made_again(3 * ROWS, |error| matches!(error, Error::LockNotAvailable));
}

/// Long enough that one value fills a part of the log.
const LONG: usize = 300_000;

/// Changes of other columns beside long values are undone after the log has them.
#[test]
fn long_values_that_a_part_did_not_change_are_not_logged_when_it_is_taken_back() {
    let mut by_beginning = Index::new("body", &[2]);
    by_beginning.parts[0].prefix = Some(10);
    let schema = TableSchema {
        columns: vec![
            Column::new("id", INT),
            Column::new("code", INT),
            Column::new("body", ColumnType::Large { max: 1 << 20 }),
            Column::new("other", ColumnType::Large { max: 1 << 20 }),
        ],
        primary: Some(Key::new(&[0])),
        indexes: vec![by_beginning],
        user: vec![],
    };
    let world = World(OneTable::new(&schema));
    let put = |txn: &mut Transaction, id: u32, code: u32, other: u8| {
        let (body, other) = (noise(id, LONG), vec![other; LONG]);
        let row = [
            id.into(),
            code.into(),
            Value::Bytes(&body),
            Value::Bytes(&other),
        ];
        let key = world.table.encode_key(0, &[id.into()]).unwrap();
        match txn.get(&world.table, &key, |_| ()).unwrap() {
            Some(()) => txn.update(&world.table, &key, &row).unwrap(),
            None => txn.insert(&world.table, &row).unwrap(),
        }
    };
    let mut txn = world.begin();
    for id in 0..10 {
        put(&mut txn, id, 0, 1);
    }
    txn.commit().unwrap();
    let savepoint = txn.savepoint();
    for id in 0..10 {
        put(&mut txn, id, 1, 1);
    }
    // One row has another change of a value, and one row is new, which fills a part.
    put(&mut txn, 3, 2, 2);
    put(&mut txn, 10, 0, 1);
    let before = world.db.status().log_bytes;
    txn.rollback_to(&savepoint).unwrap();
    txn.commit().unwrap();
    let logged = world.db.status().log_bytes - before;
    // The rest of the last two rows that the log did not have yet, and the restored value of one of them.
    assert!((LONG as u64..5 * LONG as u64).contains(&logged), "{logged}");
    assert!(world.after_a_crash().rows() == world.rows());
    assert_eq!(world.rows().len(), 10);
}
