//! Locking reads that have waited: they evaluate rows as they are after the wait, and find rows that were moved in the
//! meantime.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use peregrine::{
    Cursor, CursorOptions, Database, Error, Index, Isolation, RowLock, Seek, Table, Transaction,
    Value,
};
use proptest::prelude::*;

use crate::tables::schemas::{bodies, noise, numbered, options};

/// By id: (number, content).
///
/// The number has a unique index.
type Rows = BTreeMap<u32, (u32, u32)>;

fn table(db: &Database, rows: &Rows) -> Arc<Table> {
    let table = db.create_table("t", &numbered()).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for (&id, &(number, content)) in rows {
        let row = [id.into(), number.into(), content.into()];
        txn.insert(&table, &row).unwrap();
    }
    txn.commit().unwrap();
    table
}

fn key(table: &Table, id: u32) -> Vec<u8> {
    table.encode_key(0, &[id.into()]).unwrap()
}

fn u32_of(value: Value<'_>) -> u32 {
    match value {
        Value::UInt(n) => n as u32,
        other => panic!("{other:?}"),
    }
}

const EXCLUSIVE: CursorOptions = CursorOptions {
    lock: RowLock::Exclusive,
    skip_locked: false,
    index_only: false,
};

/// Returns all rows in the order of an index, locked.
fn scan(txn: &mut Transaction, table: &Arc<Table>, index: usize, forward: bool) -> Vec<Vec<u32>> {
    let mut cursor = Cursor::new(table, index, EXCLUSIVE);
    let mut rows = Vec::new();
    let first = if forward { Seek::First } else { Seek::Last };
    let mut more = cursor.seek(txn, &[], first).unwrap();
    while more {
        let row = cursor.row().unwrap();
        let get = |column| u32_of(row.get(column).unwrap());
        rows.push(vec![get(0), get(1), get(2)]);
        more = if forward {
            cursor.next(txn).unwrap()
        } else {
            cursor.prev(txn).unwrap()
        };
    }
    rows
}

/// Waits until a transaction waits for a lock; false when `done` says that none will.
fn until_waiting(db: &Database, done: impl Fn() -> bool) -> bool {
    while db.status().lock_waits_now == 0 {
        if done() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

#[derive(Clone, Debug)]
enum Change {
    Content(u32),
    Number(u32, u32),
    Id(u32, u32),
    Delete(u32),
    Insert(u32, u32),
}

fn change() -> impl Strategy<Value = Change> {
    let id = 0..16u32;
    let number = 100..116u32;
    prop_oneof![
        id.clone().prop_map(Change::Content),
        (id.clone(), number.clone()).prop_map(|(id, number)| Change::Number(id, number)),
        (id.clone(), id.clone()).prop_map(|(from, to)| Change::Id(from, to)),
        id.clone().prop_map(Change::Delete),
        (id, number).prop_map(|(id, number)| Change::Insert(id, number)),
    ]
}

/// Makes a change if it is possible; returns the row that was written.
fn apply(txn: &mut Transaction, table: &Table, rows: &mut Rows, change: &Change) -> Option<u32> {
    let taken = |rows: &Rows, n: u32| rows.values().any(|row| row.0 == n);
    let (old, new) = match *change {
        Change::Content(id) => match rows.get(&id) {
            Some(&(number, content)) => (Some(id), Some((id, number, content + 1))),
            None => return None,
        },
        Change::Number(id, number) if !taken(rows, number) => match rows.get(&id) {
            Some(&(_, content)) => (Some(id), Some((id, number, content))),
            None => return None,
        },
        Change::Id(from, to) if !rows.contains_key(&to) => match rows.get(&from) {
            Some(&(number, content)) => (Some(from), Some((to, number, content))),
            None => return None,
        },
        Change::Delete(id) if rows.contains_key(&id) => (Some(id), None),
        Change::Insert(id, number) if !rows.contains_key(&id) && !taken(rows, number) => {
            (None, Some((id, number, 7)))
        }
        _ => return None,
    };
    let row = |(id, number, content): (u32, u32, u32)| [id.into(), number.into(), content.into()];
    match (old, new) {
        (Some(old), Some(new)) => txn.update(table, &key(table, old), &row(new)).unwrap(),
        (Some(old), None) => txn.delete(table, &key(table, old)).unwrap(),
        (None, Some(new)) => txn.insert(table, &row(new)).unwrap(),
        (None, None) => {}
    }
    if let Some(old) = old {
        rows.remove(&old);
    }
    if let Some((id, number, content)) = new {
        rows.insert(id, (number, content));
    }
    old
}

/// Returns rows in the order of an index.
fn ordered(rows: &Rows, index: usize, forward: bool) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = rows.iter().map(|(&id, &(n, c))| vec![id, n, c]).collect();
    all.sort_by_key(|row| row[index]);
    if !forward {
        all.reverse();
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Rows before the first one that the scan waited for have their old state; those after it, their new state.
    ///
    /// The scan waits for an existing row at its old place and, in a secondary index, at its new place.
    #[test]
    fn a_scan_goes_on_with_what_is_there_after_the_wait(
        ids in proptest::collection::btree_set(0..16u32, 1..10),
        changes in proptest::collection::vec(change(), 1..8),
        commits in proptest::bool::weighted(0.9),
        index in 0..2usize,
        forward in any::<bool>(),
        committed_reads in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        let before: Rows = ids.iter().map(|&id| (id, (100 + (id * 7) % 16, 0))).collect();
        let table = table(&db, &before);
        let mut after = before.clone();
        let mut writer = db.begin(Isolation::ReadCommitted);
        let touched: BTreeSet<u32> = changes
            .iter()
            .filter_map(|change| apply(&mut writer, &table, &mut after, change))
            .collect();
        let written = if commits { after.clone() } else { std::mem::replace(&mut after, before.clone()) };
        let level = if committed_reads { Isolation::ReadCommitted } else { Isolation::RepeatableRead };
        let found = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut txn = db.begin(level);
                scan(&mut txn, &table, index, forward)
            });
            until_waiting(&db, || reader.is_finished());
            if commits {
                writer.commit().unwrap();
            } else {
                writer.rollback().unwrap();
            }
            reader.join().unwrap()
        });
        let stood = before.iter().filter(|(id, _)| touched.contains(id)).map(|(&id, row)| (id, row.0));
        let come = written
            .iter()
            .filter(|(id, row)| index == 1 && before.get(id).is_some_and(|old| old.0 != row.0))
            .map(|(&id, row)| (id, row.0));
        let places = stood.chain(come).map(|(id, number)| [id, number][index]);
        let waited_for = if forward { places.min() } else { places.max() };
        let further = |n: u32| waited_for.is_some_and(|at| if forward { n >= at } else { n <= at });
        let mut expected = ordered(&before, index, forward);
        expected.retain(|row| !further(row[index]));
        let then = ordered(&after, index, forward).into_iter();
        expected.extend(then.filter(|row| further(row[index])));
        prop_assert_eq!(found, expected);
    }
}

/// A search by a unique key finds the row that has the key after the wait.
#[test]
fn a_unique_key_leads_to_its_new_row() {
    for (new_id, level) in [
        (9, Isolation::ReadCommitted),
        (1, Isolation::ReadCommitted),
        (9, Isolation::RepeatableRead),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        let table = table(&db, &Rows::from([(5, (105, 0))]));
        let mut writer = db.begin(level);
        let row = [new_id.into(), 105u32.into(), 3u32.into()];
        writer.update(&table, &key(&table, 5), &row).unwrap();
        let found = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut txn = db.begin(level);
                let mut cursor = Cursor::new(&table, 1, EXCLUSIVE);
                let key = table.encode_key(1, &[105u32.into()]).unwrap();
                cursor.seek(&mut txn, &key, Seek::Exact).unwrap();
                u32_of(cursor.row().unwrap().get(0).unwrap())
            });
            assert!(until_waiting(&db, || reader.is_finished()));
            writer.commit().unwrap();
            reader.join().unwrap()
        });
        assert_eq!(found, new_id);
    }
}

/// Two rows exchange their places in a unique index repeatedly, while a locking read looks for the one that has the
/// number.
///
/// There always is one, and the read must find it even when it need not wait.
#[test]
fn a_number_that_passes_from_row_to_row_is_always_found() {
    const NUMBER: u32 = 7;
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path(), options()).unwrap();
    let table = table(&db, &Rows::from([(1, (NUMBER, 0)), (2, (1_000, 0))]));
    let by_number = table.encode_key(1, &[NUMBER.into()]).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..100_000_u32 {
                let (from, to) = if n % 2 == 0 { (1, 2) } else { (2, 1) };
                let mut txn = db.begin(Isolation::ReadCommitted);
                for (id, number) in [(from, 1_001 + n), (to, NUMBER)] {
                    let row = [id.into(), number.into(), n.into()];
                    txn.update(&table, &key(&table, id), &row).unwrap();
                }
                txn.commit().unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut looks = 0;
        while !done.load(Ordering::Relaxed) {
            let mut txn = db.begin(Isolation::ReadCommitted);
            let mut cursor = Cursor::new(&table, 1, EXCLUSIVE);
            looks += 1;
            match cursor.seek(&mut txn, &by_number, Seek::Exact) {
                Ok(true) => assert_eq!(u32_of(cursor.row().unwrap().get(1).unwrap()), NUMBER),
                Ok(false) => panic!("look {looks} found no row"),
                Err(peregrine::Error::Deadlock) => {}
                Err(error) => panic!("{error}"),
            }
            txn.rollback().unwrap();
        }
    });
}

/// A locking scan has copied a leaf while the deletion of a row was not committed.
///
/// The writer inserts the row again, or elsewhere, and commits before the scan comes there: the row was never missing
/// from the committed state.
#[test]
fn a_row_that_is_put_back_after_its_leaf_was_copied_is_found() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Back {
        Anew,
        ToSavepoint,
        Elsewhere(u32),
    }
    for back in [
        Back::Anew,
        Back::ToSavepoint,
        Back::Elsewhere(8),
        Back::Elsewhere(0),
    ] {
        for (index, forward) in [(0, true), (0, false), (1, true), (1, false)] {
            for level in [Isolation::ReadCommitted, Isolation::RepeatableRead] {
                let dir = tempfile::tempdir().unwrap();
                let db = Database::open(dir.path().join("db"), options()).unwrap();
                let mut rows: Rows = (1..=6).map(|id| (id, (100 + id, 0))).collect();
                let table = table(&db, &rows);
                let mut writer = db.begin(Isolation::ReadCommitted);
                let savepoint = writer.savepoint();
                writer.delete(&table, &key(&table, 5)).unwrap();
                writer.delete(&table, &key(&table, 2)).unwrap();

                let mut txn = db.begin(level);
                let mut cursor = Cursor::new(&table, index, EXCLUSIVE);
                let first = if forward { Seek::First } else { Seek::Last };
                let mut more = cursor.seek(&mut txn, &[], first).unwrap();
                match back {
                    Back::ToSavepoint => writer.rollback_to(&savepoint).unwrap(),
                    Back::Anew | Back::Elsewhere(_) => {
                        let id = match back {
                            Back::Elsewhere(id) => id,
                            _ => 5,
                        };
                        let row = [id.into(), 105_u32.into(), 1_u32.into()];
                        writer.insert(&table, &row).unwrap();
                        rows.remove(&5);
                        rows.insert(id, (105, 1));
                        rows.remove(&2);
                    }
                }
                writer.commit().unwrap();
                let mut found = Vec::new();
                while more {
                    let row = cursor.row().unwrap();
                    let get = |column| u32_of(row.get(column).unwrap());
                    found.push(vec![get(0), get(1), get(2)]);
                    more = match forward {
                        true => cursor.next(&mut txn).unwrap(),
                        false => cursor.prev(&mut txn).unwrap(),
                    };
                }
                // The cursor has passed the places before its first row.
                if index == 0 && back == Back::Elsewhere(if forward { 0 } else { 8 }) {
                    rows.retain(|&id, _| (1..=6).contains(&id));
                }
                let what = format!("{back:?}, index {index}, forward {forward}, {level:?}");
                assert_eq!(found, ordered(&rows, index, forward), "{what}");
            }
        }
    }
}

/// A statement locks rows of one table, and reads another with the snapshot that this takes.
///
/// A row that others delete afterwards counts as changed after the snapshot.
#[test]
fn a_scan_that_comes_to_have_a_snapshot_passes_no_row_by() {
    for index in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let db = Database::open(dir.path().join("db"), options()).unwrap();
        let rows: Rows = (1..=60).map(|id| (id, (100 + id, 0))).collect();
        let table = table(&db, &rows);
        let mut txn = db.begin(Isolation::RepeatableRead);
        let mut cursor = Cursor::new(&table, index, EXCLUSIVE);
        assert!(cursor.seek(&mut txn, &[], Seek::First).unwrap());
        txn.take_snapshot();
        let mut other = db.begin(Isolation::ReadCommitted);
        other.delete(&table, &key(&table, 50)).unwrap();
        other.commit().unwrap();
        let end = loop {
            match cursor.next(&mut txn) {
                Ok(true) => {}
                end => break end,
            }
        };
        let changed = matches!(end, Err(Error::WriteConflict | Error::RowChanged));
        assert!(changed, "index {index}: {end:?}");
    }
}

/// Before the scan continues, its statement waits for a row of another table.
///
/// Meanwhile a row moves from one place ahead of the scan to another.
#[test]
fn a_scan_whose_statement_has_waited_elsewhere_finds_what_moved_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let rows: Rows = (1..=4).map(|id| (id, (10 * id, 0))).collect();
    let table = table(&db, &rows);
    let elsewhere = db.create_table("elsewhere", &numbered()).unwrap();
    let mut other = db.begin(Isolation::ReadCommitted);
    let row = [1u32, 1, 1].map(Value::from);
    other.insert(&elsewhere, &row).unwrap();
    other.commit().unwrap();
    other.update(&elsewhere, &key(&elsewhere, 1), &row).unwrap();
    let found = std::thread::scope(|scope| {
        let scan = scope.spawn(|| {
            let mut txn = db.begin(Isolation::ReadCommitted);
            let mut cursor = Cursor::new(&table, 1, EXCLUSIVE);
            let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
            let waited = key(&elsewhere, 1);
            txn.get_locked(&elsewhere, &waited, RowLock::Exclusive, |_| ())
                .unwrap();
            let mut found = Vec::new();
            while more {
                found.push(u32_of(cursor.row().unwrap().get(0).unwrap()));
                more = cursor.next(&mut txn).unwrap();
            }
            found
        });
        assert!(until_waiting(&db, || scan.is_finished()));
        let moved = [4u32, 15, 0].map(Value::from);
        other.update(&table, &key(&table, 4), &moved).unwrap();
        other.commit().unwrap();
        scan.join().unwrap()
    });
    assert_eq!(found, [1, 4, 2, 3]);
}

/// The scan waits for a row with an indexed value outside it.
#[test]
fn a_row_with_an_indexed_value_outside_is_found_after_the_wait() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(dir.path().join("db"), options()).unwrap();
    let mut schema = bodies(1 << 20);
    let mut index = Index::new("body", &[1]);
    index.parts[0].prefix = Some(20);
    schema.indexes.push(index);
    let db_table = db.create_table("t", &schema).unwrap();
    let body = |id: u32, len: usize| [&id.to_be_bytes()[..], &noise(id, len)[..]].concat();
    let mut txn = db.begin(Isolation::ReadCommitted);
    for id in 1..=3u32 {
        txn.insert(&db_table, &[id.into(), Value::from(&body(id, 9_000)[..])])
            .unwrap();
    }
    txn.commit().unwrap();
    let mut writer = db.begin(Isolation::ReadCommitted);
    let new = body(2, 8_000);
    let changed = [2u32.into(), Value::from(&new[..])];
    writer
        .update(&db_table, &key(&db_table, 2), &changed)
        .unwrap();
    let found = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut txn = db.begin(Isolation::ReadCommitted);
            let mut cursor = Cursor::new(&db_table, 1, EXCLUSIVE);
            let mut found = Vec::new();
            let mut more = cursor.seek(&mut txn, &[], Seek::First).unwrap();
            while more {
                found.push(u32_of(cursor.row().unwrap().get(0).unwrap()));
                more = cursor.next(&mut txn).unwrap();
            }
            found
        });
        assert!(until_waiting(&db, || reader.is_finished()));
        writer.commit().unwrap();
        reader.join().unwrap()
    });
    assert_eq!(found, [1, 2, 3]);
}
