//! Inserts that a transaction has undone to a savepoint after its log has some of them: recovery makes them again, and
//! must not undo the rows that others have inserted in their place.

use std::ops::Deref;

use peregrine::check::Report;
use peregrine::{
    Column, ColumnType, Cursor, CursorOptions, Index, Isolation, Key, OwnedValue, Seek,
    TableSchema, Transaction, Value, Xid,
};

use crate::tables::one_table::OneTable;
use crate::tables::schemas::{noise, INT};

/// So many rows need more than one part of the log.
const ROWS: u32 = 300;
/// A row of the transaction that must not change.
const OWN: u32 = 1_000_000;

struct World(OneTable);

impl Deref for World {
    type Target = OneTable;

    fn deref(&self) -> &OneTable {
        &self.0
    }
}

impl World {
    fn new() -> World {
        let schema = TableSchema {
            columns: vec![
                Column::new("id", INT),
                Column::new("code", INT),
                Column::new("who", INT),
                Column::new("body", ColumnType::VarBytes { max: 4000 }),
            ],
            primary: Some(Key::new(&[0])),
            indexes: vec![Index::new("code", &[1]).unique(), Index::new("who", &[2])],
            user: vec![],
        };
        World(OneTable::new(&schema))
    }

    fn insert(&self, txn: &mut Transaction, id: u32, code: u32, who: u32) -> peregrine::Result<()> {
        let body = noise(id + who, 2000);
        txn.insert(
            &self.table,
            &[id.into(), code.into(), who.into(), Value::from(&body[..])],
        )
    }

    fn update(&self, txn: &mut Transaction, id: u32, code: u32, who: u32) -> peregrine::Result<()> {
        let key = self.table.encode_key(0, &[id.into()]).unwrap();
        let body = noise(id + who, 2000);
        let row = [id.into(), code.into(), who.into(), Value::from(&body[..])];
        txn.update(&self.table, &key, &row)
    }

    /// Returns number, code and writer of each row, in the order of each index.
    fn rows(&self) -> [Vec<Vec<OwnedValue>>; 3] {
        let mut txn = self.begin();
        [0, 1, 2].map(|index| {
            let mut cursor = Cursor::new(&self.table, index, CursorOptions::default());
            let mut rows = Vec::new();
            let mut found = cursor.seek(&mut txn, &[], Seek::First).unwrap();
            while found {
                let mut row = cursor.row().unwrap().to_values().unwrap();
                row.truncate(3);
                rows.push(row);
                found = cursor.next(&mut txn).unwrap();
            }
            rows.sort_by_key(|row| format!("{row:?}"));
            rows
        })
    }

    fn after_a_crash(&self) -> World {
        World(self.0.after_a_crash())
    }

    /// Checks that a crash restores the present state, and that no row is locked.
    fn is_found_again(&self, inserted: impl Fn(u32) -> (u32, u32)) {
        let live = self.rows();
        let after = self.after_a_crash();
        assert_eq!(after.rows(), live);
        let mut report = Report::default();
        after.db.check_table("t", &|| false, &mut report).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        for world in [self, &after] {
            let mut txn = world.begin();
            for n in 0..ROWS {
                let (id, code) = inserted(n);
                match world.insert(&mut txn, id, code, 3) {
                    Ok(()) | Err(peregrine::Error::Duplicate { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }

    /// One transaction inserts rows, which fill its log's first part, and undoes them.
    ///
    /// Another inserts as many rows as possible in their place, and commits. Then the first commits.
    fn meets(
        &self,
        checkpoint: bool,
        mine: impl Fn(u32) -> (u32, u32),
        theirs: impl Fn(u32) -> (u32, u32),
    ) {
        let mut txn = self.begin();
        self.insert(&mut txn, OWN, OWN, 1).unwrap();
        let mark = txn.savepoint();
        for n in 0..ROWS {
            let (id, code) = mine(n);
            self.insert(&mut txn, id, code, 1).unwrap();
        }
        txn.rollback_to(&mark).unwrap();
        let mut other = self.begin();
        for n in 0..ROWS {
            let (id, code) = theirs(n);
            let _refused = self.insert(&mut other, id, code, 2);
        }
        other.commit().unwrap();
        if checkpoint {
            self.db.checkpoint().unwrap();
        }
        txn.commit().unwrap();
        self.is_found_again(theirs);
    }
}

#[test]
fn rows_that_others_insert_where_rows_were_taken_back_are_found_after_a_crash() {
    for checkpoint in [false, true] {
        World::new().meets(checkpoint, |n| (n, n), |n| (n, n));
    }
}

#[test]
fn unique_entries_of_others_where_rows_were_taken_back_are_found_after_a_crash() {
    for checkpoint in [false, true] {
        World::new().meets(checkpoint, |n| (n, n), |n| (ROWS + n, n));
    }
}

/// The delete marks of rows that another transaction has deleted come back.
#[test]
fn rows_taken_back_over_deleted_rows_are_as_safe() {
    for checkpoint in [false, true] {
        let world = World::new();
        let mut txn = world.begin();
        for n in 0..ROWS {
            world.insert(&mut txn, n, n, 0).unwrap();
        }
        txn.commit().unwrap();
        // The snapshot keeps the deleted rows from being purged.
        let mut old = world.db.begin(Isolation::RepeatableRead);
        old.take_snapshot();
        let mut txn = world.begin();
        for n in 0..ROWS {
            let key = world.table.encode_key(0, &[n.into()]).unwrap();
            txn.delete(&world.table, &key).unwrap();
        }
        txn.commit().unwrap();
        world.meets(checkpoint, |n| (n, n), |n| (n, n));
        drop(old);
    }
}

#[test]
fn a_unique_value_that_an_update_had_and_lost_again_is_not_free() {
    for checkpoint in [false, true] {
        let world = World::new();
        let mut txn = world.begin();
        for n in 0..ROWS {
            world.insert(&mut txn, n, n, 0).unwrap();
        }
        txn.commit().unwrap();
        let mut txn = world.begin();
        let mark = txn.savepoint();
        for n in 0..ROWS {
            world.update(&mut txn, n, ROWS + n, 1).unwrap();
        }
        txn.rollback_to(&mark).unwrap();
        world.insert(&mut txn, OWN, OWN, 1).unwrap();
        let mut other = world.begin();
        for n in ROWS..2 * ROWS {
            let _refused = world.insert(&mut other, n, n, 2);
        }
        other.commit().unwrap();
        if checkpoint {
            world.db.checkpoint().unwrap();
        }
        txn.commit().unwrap();
        world.is_found_again(|n| (ROWS + n, ROWS + n));
    }
}

/// Recovery restores prepared transactions in the order of the log: they must not block each other.
#[test]
fn prepared_transactions_are_made_again_beside_each_other() {
    let world = World::new();
    let mut txn = world.begin();
    world.insert(&mut txn, OWN, OWN, 1).unwrap();
    let mark = txn.savepoint();
    for n in 0..ROWS {
        world.insert(&mut txn, n, n, 1).unwrap();
    }
    txn.rollback_to(&mark).unwrap();
    let mut other = world.begin();
    world.insert(&mut other, OWN + 1, OWN + 1, 2).unwrap();
    for n in 0..ROWS {
        let _refused = world.insert(&mut other, n, n, 2);
    }
    let names = [b"one", b"two"].map(|name| Xid::new(1, name, b"").unwrap());
    other.prepare(&names[1]).unwrap();
    txn.prepare(&names[0]).unwrap();
    let after = world.after_a_crash();
    for name in &names {
        after.db.commit_prepared(name).unwrap();
    }
    txn.commit().unwrap();
    other.commit().unwrap();
    assert_eq!(after.rows(), world.rows());
}

/// Undone rows that the log does not have are forgotten at once.
#[test]
fn rows_taken_back_before_the_log_had_them_are_free() {
    if peregrine::knobs::SHAKEN {
        // The test relies on the knobs' default values.
        return;
    }
    let world = World::new();
    let mut txn = world.begin();
    let mark = txn.savepoint();
    for n in 0..10 {
        world.insert(&mut txn, n, n, 1).unwrap();
    }
    txn.rollback_to(&mark).unwrap();
    assert_eq!(world.db.status().locked_rows, 0);
    let mut other = world.begin();
    for n in 0..10 {
        world.insert(&mut other, n, n, 2).unwrap();
    }
    other.commit().unwrap();
    world.insert(&mut txn, OWN, OWN, 1).unwrap();
    txn.commit().unwrap();
    assert_eq!(world.after_a_crash().rows(), world.rows());
}

/// The next change reuses the undo space of a refused row.
///
/// Others still find the oldest versions, and so do a crash, with a checkpoint in between, and a rollback.
#[test]
fn undo_in_the_place_of_that_of_refused_rows_leads_back() {
    let world = World::new();
    let mut txn = world.begin();
    for id in 0..3 {
        world.insert(&mut txn, id, id, 0).unwrap();
    }
    txn.commit().unwrap();
    let before = world.rows();
    for n in 0..40 {
        for code in 0..1 + n % 3 {
            let refused = world.insert(&mut txn, ROWS + code, code, 1);
            refused.unwrap_err();
        }
        world.update(&mut txn, n % 3, n % 3, n + 2).unwrap();
        if n % 10 == 5 {
            // A new change, whose undo has the same kind as that of the refused row.
            world.insert(&mut txn, OWN + n, OWN + n, 1).unwrap();
        }
        if n % 16 == 9 {
            world.db.checkpoint().unwrap();
            assert_eq!(world.after_a_crash().rows(), before);
        }
        assert_eq!(world.rows(), before);
    }
    assert_eq!(world.after_a_crash().rows(), before);
    txn.rollback().unwrap();
    assert_eq!(world.rows(), before);
    let mut report = Report::default();
    world.db.check_table("t", &|| false, &mut report).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}
